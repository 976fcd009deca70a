"""Modules that are reached from `import streamdsl as sd`, and old names, which type checkers know as long as they work."""

from __future__ import annotations

from typing import Any, assert_type

import streamdsl
import streamdsl as sd
from streamdsl import Emit, run_all
from streamdsl.udm import UDSO


def modules() -> None:
    assert_type(sd.functions.length("tide"), int)
    assert_type(sd.checks.check(sd.source("s")), list[sd.checks.Finding])
    assert_type(sd.sources.from_table([1, 2]), sd.Stream[int])
    assert_type(sd.emit.Emit(hold=5), sd.emit.Emit)
    assert_type(sd.secret.Tick(1), sd.papers.secret.Tick)
    assert_type(sd.papers.out_of_order.Tuple(1, "x"), sd.progress.Tuple)
    assert_type(sd.temporal.Lifetime(1, 2), sd.temporal.Lifetime)
    sd.functions.lenght("tide")  # type: ignore[attr-defined]
    _ = sd.papers.sercet  # type: ignore[attr-defined]
    _ = sd.nothing_of_the_kind  # type: ignore[attr-defined]


def old_names() -> None:
    assert_type(streamdsl.length("tide"), int)
    assert_type(streamdsl.check(streamdsl.source("s")), list[streamdsl.Finding])
    assert_type(Emit(hold=5), sd.emit.Emit)
    assert_type(run_all({"a": sd.from_rows([(1, 2, 3)])})["a"].cht(), sd.CHT[int])
    streamdsl.length(3)  # type: ignore[call-overload]


class Last(UDSO[int, int, int]):
    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: int, le: int) -> tuple[int, list[int]]:
        return payload, [state]


class OldLast(streamdsl.UDSO[int, int, int]):
    def create_state(self) -> Any:
        return 0

    def process(self, state: int, payload: int, le: int) -> tuple[int, list[int]]:
        return payload, [state]


assert_type(sd.from_rows([(1, 2, 3)]).scan(Last()), sd.Stream[int])
assert_type(sd.from_rows([(1, 2, 3)]).scan(OldLast()), sd.Stream[int])
