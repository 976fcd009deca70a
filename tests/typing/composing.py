"""What type checkers infer for checks and compositions of queries, and what they refuse."""

from __future__ import annotations

from typing import Literal, assert_type

import streamdsl as sd
from tests.typing.payloads import trips


def checks() -> None:
    found = sd.check(trips)
    assert_type(found, list[sd.Finding])
    assert_type(found[0].level, Literal["warning", "note"])
    assert_type(found[0].line, int | None)
    sd.check(trips.tumbling_window("1h"))  # type: ignore[arg-type]
    found[0].line = 5  # type: ignore[misc]
