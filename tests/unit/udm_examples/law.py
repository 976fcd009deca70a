"""The law for a module in a query: every order of arrival, event by event, gives what the reference gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeAlias

import streamdsl as sd
from streamdsl.temporal import Event
from streamdsl.testing import arrival_order, assert_cht_equal
from tests.laws.harness import EMITS, Run

Row: TypeAlias = tuple[int, int, Any]
Query: TypeAlias = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]


def assert_law(query: Query, rows: Iterable[Row], rng: Random) -> None:
    """Raise `AssertionError` unless a random arrival of the rows means to each way to emit what it means to the reference.

    With `Output.TIME_BOUND` the engine also checks the module's claim, at every event.
    """
    rows = list(rows)
    expected = query(sd.from_rows(rows)).run(engine="reference").cht()
    assert_cht_equal(answer(query, arrival_order(rows, rng), rng), expected)


def answer(query: Query, stream: Iterable[Event[Any]], rng: Random) -> sd.CHT[Any]:
    """Return what the engine answers to a stream, pushed event by event, in a random way to emit."""
    run = Run(query(sd.source("s")), rng.choice(EMITS))
    for event in stream:
        run.push("s", [event])
    run.close()
    return run.output.cht()


def random_rows(rng: Random, payload: Callable[[Random], Any], most: int = 9) -> list[Row]:
    """Return rows with random payloads: spread out, or crowded so that times are often equal; points or of any length."""
    span, longest = rng.choice([(30, 12), (30, 1), (8, 3)])
    starts = [rng.randint(-5, span) for _ in range(rng.randint(1, most))]
    return [(le, le + rng.randint(1, longest), payload(rng)) for le in starts]
