"""The law of interrupts: a push that Ctrl-C cuts short has not happened, or the session says that it has failed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine.query_session import Session
from streamdsl.errors import SessionError
from streamdsl.temporal import Event
from tests.laws.choices import Random, given
from tests.laws.fold import Fold
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

_PACKAGE = str(Path(sd.__file__).parent)

QUERIES: list[Callable[[sd.Stream[Any]], sd.Stream[Any]]] = [
    lambda s: s.where(lambda e: e.v > 0),
    lambda s: s.extend(10),
    lambda s: s.tumbling_window(5).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    lambda s: s.group_by("k").snapshot_window().aggregate(n=sd.count()),
    lambda s: s.join(s.shift(2), on="k"),
]


def interrupted_at(line: int, call: Callable[[], list[Event[Any]]]) -> list[Event[Any]]:
    """Call and return what is given back; the so-many-th line of the package that runs is interrupted."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(None)


def lines_of(call: Callable[[], Any]) -> int:
    """Return how many lines of the package a call runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("number", range(len(QUERIES)))
@examples(8)
@given(SEEDS)
def test_an_interrupted_push_is_all_or_nothing(number: int, seed: int) -> None:
    rng = Random(seed)
    violation: Any = rng.choice(["error", "drop"])
    progress = rng.choice([None, sd.Progress.every(3, delay=100)])
    query = QUERIES[number](sd.source("s0", on_violation=violation, progress=progress))
    emit: Any = rng.choice(["speculative", "watermark", "final"])
    pushes = [list(events) for _, events in scenario(rng, unending=False).pushes]
    expected = Fold()
    whole = query.open(emit=emit)
    costs = []
    for events in pushes:
        costs.append(lines_of(lambda events=events: expected.take(whole.push(events))))  # type: ignore[misc]
    expected.take(whole.close())

    session, saved, output = query.open(emit=emit), query.open(emit=emit).snapshot(), Fold()
    for events, cost in zip(pushes, costs, strict=True):
        out = pushed(session, events, rng.randint(1, 2 * cost))
        if out is None:
            session = restored(query, saved, emit)
            out = session.push(events)
        output.take(out)
        saved = session.snapshot()
    output.take(session.close())
    assert output.cht() == expected.cht()


def pushed(session: Session[Any], events: list[Event[Any]], line: int) -> list[Event[Any]] | None:
    """Push, and again if the first time is interrupted; None if the session says that it has failed."""
    try:
        return interrupted_at(line, lambda: session.push(events))
    except KeyboardInterrupt:
        pass
    try:
        return session.push(events)
    except SessionError as error:
        said = str(error)
    assert re.match("the session has failed: .", said), said
    assert session.stats()
    return None


def restored(query: sd.Stream[Any], saved: bytes, emit: Any) -> Session[Any]:
    from streamdsl.engine.starting import open_session
    from streamdsl.engine.state.checkpoint import Checkpoint

    session = open_session(query.plan(), {}, emit, None)
    Checkpoint(saved).lay_over(session)
    return session


def test_a_session_that_was_interrupted_says_why() -> None:
    def stop(e: Any) -> bool:
        raise KeyboardInterrupt

    session = sd.source("s").where(stop).open()
    with pytest.raises(KeyboardInterrupt):
        session.push([sd.point("a", 1, {"v": 1})])
    with pytest.raises(
        SessionError, match=r"the session has failed: KeyboardInterrupt at .*\nHint: go on from its last checkpoint"
    ):
        session.push([sd.point("a", 1, {"v": 1})])
