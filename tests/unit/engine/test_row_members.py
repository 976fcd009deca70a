"""Modules that see members, where rows come one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

import streamdsl as sd
from streamdsl.engine.operators.framed_windows import FramedWindowOperator
from streamdsl.temporal import Insert


class Joined(sd.UDA[Any, str]):
    """All values as one text, in the order in which they are given."""

    order_insensitive = False

    def compute_result(self, payloads: Sequence[Any]) -> str:
        return "".join(map(str, payloads))


class Kinds(sd.UDA[Any, str]):
    """The same of a module that does not ask for an order, and is given one all the same: by RE."""

    def compute_result(self, payloads: Sequence[Any]) -> str:
        return "".join(map(str, payloads))


ROWS = [("c", 4, 20), ("a", 4, 30), ("b", 2, 25), ("d", 4, 12), ("e", 3, 11)]


def pushed(module: sd.UDA[Any, str], where: Any = None) -> list[str]:
    """Return the result after each row that changes it."""
    session = sd.source("s").tumbling_window(100).aggregate(text=sd.Agg(module, lambda e: e.v, where)).open()
    found: list[str] = []
    with patch.object(FramedWindowOperator, "_in_columns", side_effect=AssertionError("it went through columns")):
        for n, (value, le, re) in enumerate(ROWS):
            found += [
                event.payload.text for event in session.push([Insert(n, le, re, {"v": value})]) if isinstance(event, Insert)
            ]
    return found


def test_a_module_that_asks_for_an_order_is_given_it_row_by_row() -> None:
    assert pushed(Joined()) == ["c", "ac", "bac", "bacd", "beacd"]


def test_a_module_that_asks_for_none_is_given_rows_as_they_end() -> None:
    assert pushed(Kinds()) == ["c", "ca", "bca", "bdca", "bedca"]


def test_a_module_is_given_the_rows_that_are_chosen() -> None:
    assert pushed(Joined(), where=lambda e: e.v != "a") == ["c", "bc", "bcd", "becd"]


@pytest.mark.parametrize("many", [0, 8192])
def test_rows_that_are_too_many_to_look_through_are_left_to_columns(many: int) -> None:
    session = sd.source("s").tumbling_window(100).aggregate(Joined(), lambda e: e.v).open()
    with patch("streamdsl.engine.frames.arrangement._FEW", many):
        sent = [event for n, row in enumerate(ROWS) for event in session.push([Insert(n, row[1], row[2], {"v": row[0]})])]
    assert sent[-1].payload == "beacd"  # type: ignore[union-attr]


class Pair(sd.UDA[Any, tuple[Any, Any]]):
    """The first and the last value, which is no plain value; it counts its calls."""

    calls = 0

    def compute_result(self, payloads: Sequence[Any]) -> tuple[Any, Any]:
        Pair.calls += 1
        return (payloads[0], payloads[-1])


def test_a_module_that_gives_other_values_is_called_once_for_each_row() -> None:
    session = sd.source("s").tumbling_window(100).aggregate(pair=Pair().of(lambda e: e.v)).open()
    for n, (value, le, re) in enumerate(ROWS):
        session.push([Insert(n, le, re, {"v": value})])
    assert Pair.calls == len(ROWS) + 1  # the first row tells
