"""Tables that are written from the code are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import MARKS, TABLES, written


@pytest.mark.parametrize("path", TABLES, ids=[path.name for path in TABLES])
def test_a_table_is_that_of_the_code(path: Path) -> None:
    assert path.read_text().count(MARKS[0]) == path.read_text().count(MARKS[1]) == 1
    assert written(path) == path.read_text(), "run `make docs`"
