"""A push of which too many windows would come is refused before they are made, and undone; what is held for nothing is named."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.engine.query_session import Session
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.errors import HeldOutputWarning, QueryError, SessionError, UnboundedOutputError
from tests.laws.incremental import IncrementalValues
from tests.laws.stops import figures

FAR = 10**7
Query = sd.Stream[Any]
S = sd.source("s")
WINDOWS: dict[str, Callable[[Query], Query]] = {
    "tumbling": lambda s: s.tumbling_window(1).aggregate(n=sd.count()),
    "hopping, tiny hops": lambda s: s.hopping_window(5, 1).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    "trailing": lambda s: s.trailing_window(5, 1).aggregate(n=sd.count()),
    "at ends": lambda s: s.tumbling_window(2, output=sd.Output.POINT_AT_END).aggregate(n=sd.count()),
    "holistic": lambda s: s.tumbling_window(1).aggregate(m=sd.max(lambda e: e.v), all=sd.collect(lambda e: e.v)),
    "states": lambda s: s.tumbling_window(1).aggregate(m=IncrementalValues().of(lambda e: e.v)),
    "groups": lambda s: s.group_by("v").tumbling_window(1).aggregate(n=sd.count()),
    "behind filters": lambda s: (
        s.where(lambda e: e.v < 100).select(v=lambda e: e.v + 1).tumbling_window(1).aggregate(n=sd.count())
    ),
    "behind an alteration": lambda s: s.extend(3).tumbling_window(1).aggregate(n=sd.count()),
    "behind quantize": lambda s: s.quantize(4, 4).tumbling_window(1).aggregate(n=sd.count()),
    "behind windows": lambda s: s.snapshot_window().aggregate(n=sd.count()).tumbling_window(1).aggregate(n=sd.count()),
    "behind a join": lambda s: s.join(s.shift(1), on="v", select=lambda a, b: a).tumbling_window(1).aggregate(n=sd.count()),
    "chop": lambda s: s.chop(1),
    "fill": lambda s: s.tumbling_window(1).aggregate(n=sd.count()).fill(1, {"n": 0}, end=2 * FAR),
    "sessions that are cut": lambda s: s.session_window(2, max_duration=3).aggregate(n=sd.count()),
}


def pushes_of(name: str) -> list[list[Any]]:
    """Return pushes of which too much comes: of a row that lasts and a leap in time, in one push, or one after the other."""
    long, leap = sd.interval("long", 4, FAR, {"v": 7}), sd.Cti(FAR)
    if name == "fill":
        return [[leap], [sd.point("late", FAR, {"v": 7}), leap]]
    if name == "behind windows":  # whose result is there for as long, but comes late: a snapshot that ends at the CTI is open
        return [[long, sd.Cti(FAR + 1)]]
    return [[long, leap], [long, sd.point("late", FAR, {"v": 7})]]


def open_(name: str, emit: Any) -> Session[Any]:
    session = WINDOWS[name](S).open(emit=emit, engine_options={"most_windows": 1000})
    session.push([sd.interval("a", 0, 5, {"v": 1}), sd.point("b", 3, {"v": 7}), sd.Cti(2)])
    return session


def sections(session: Session[Any]) -> dict[str, bytes]:
    """Return what a session holds besides the numbers that its sources have given."""
    found = Checkpoint(session.snapshot()).sections
    return {name: held for name, held in found.items() if not name.startswith("source:")}


MORE: list[list[Any]] = [
    [sd.interval("c", 4, 9, {"v": 7})],
    [sd.interval("long", 5, 8, {"v": 1}), sd.Retract("a", 0, 5, 3), sd.Cti(4)],
    [sd.Cti(12)],
]


@pytest.mark.parametrize("emit", ["speculative", "watermark", "final"])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_push_of_too_many_windows_is_undone(name: str, emit: Any) -> None:
    for pushed in pushes_of(name):
        session, twin = open_(name, emit), open_(name, emit)
        before = sections(session)
        tracemalloc.start()
        try:
            with pytest.raises(UnboundedOutputError, match=r"(?s)would make more than 1000 .* at once.*Hint: .*most_windows"):
                session.push(pushed)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()
        assert sections(session) == before
        assert [session.push(each) for each in MORE] == [twin.push(each) for each in MORE]
        assert figures(session) == figures(twin)
        assert closed(session) == closed(twin)


def closed(session: Session[Any]) -> Any:
    """Return what a session sends at its end, or that it would be too much."""
    try:
        return session.close()
    except UnboundedOutputError as error:
        return str(error)


def test_a_leap_alone_and_a_frame_are_undone_too() -> None:
    query = WINDOWS["tumbling"](S)
    session, twin = query.open(), query.open()
    for each in (session, twin):
        each.push([sd.interval("long", 4, FAR, {"v": 7}), sd.Cti(5)])
    with pytest.raises(UnboundedOutputError, match="more than 1000000"):
        session.push([sd.Cti(FAR)])
    frame = pd.DataFrame({"le": np.full(100, FAR), "v": np.arange(100)})
    with pytest.raises(UnboundedOutputError):
        session.push(frame)
    last: list[sd.Event[Any]] = [sd.Retract("long", 4, FAR, 6), sd.Cti(FAR)]
    assert session.push(last) == twin.push(last)
    assert session.push(frame) == twin.push(frame)


def test_as_many_windows_may_come_as_the_option_says() -> None:
    pushed = [sd.interval("long", 0, 3000, {"v": 7}), sd.Cti(3000)]
    assert len(WINDOWS["tumbling"](S).open().push(pushed)) == 3001
    assert len(WINDOWS["tumbling"](S).open(engine_options={"most_windows": 3001}).push(pushed)) == 3001
    with pytest.raises(UnboundedOutputError):
        WINDOWS["tumbling"](S).open(engine_options={"most_windows": 2000}).push(pushed)
    with pytest.raises(QueryError, match="most_windows"):
        S.open(engine_options={"most_windows": 0})


def test_many_rows_may_make_many_windows() -> None:
    frame = pd.DataFrame({"le": np.arange(5000) * 10, "k": np.arange(5000)})
    query = S.group_by("k").hopping_window(30, 1).aggregate(n=sd.count())
    assert len(query.open(engine_options={"most_windows": 1000}).feed(frame).to_pandas()) >= 140_000


@pytest.mark.parametrize("emit", ["speculative", "watermark", "final"])
def test_a_session_that_has_undone_a_push_is_saved_as_before(emit: Any) -> None:
    session = open_("tumbling", emit)
    before = session.snapshot()
    with pytest.raises(UnboundedOutputError):
        session.push([*(sd.point(n, 5, {"v": 1}) for n in "cde"), sd.interval("long", 6, FAR, {"v": 7}), sd.Cti(FAR)])
    assert session.snapshot() == before


def test_what_cannot_be_undone_fails_the_session_with_the_reason() -> None:
    session = WINDOWS["tumbling"](S).open(engine_options={"most_windows": 1000, "attach": "on"})
    session.attach(S.where(lambda e: e.v > 1))
    with pytest.raises(UnboundedOutputError):
        session.push(pushes_of("tumbling")[0])
    with pytest.raises(SessionError, match="has failed: window_aggregate_1 would make more than 1000"):
        session.push([])


@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "fill"])
@pytest.mark.parametrize("emit", ["speculative", "watermark", "final"])
@pytest.mark.parametrize("own", [True, False], ids=["of the source", "of another one"])
def test_a_push_is_undone_with_a_tick_of_which_too_many_windows_come(name: str, emit: Any, own: bool) -> None:
    now = [4]
    clock = sd.Progress.wall_clock(1, clock=lambda: now[0] * 10**9)
    if own:
        query = WINDOWS[name](sd.source("s", unit="s", progress=clock))
    else:
        query = WINDOWS[name](sd.source("s", unit="s", progress=sd.Progress.imported_from("t"))).union(
            sd.source("t", unit="s", progress=clock).select(n=lambda e: e.v)
        )
    sessions = [query.open(emit=emit, engine_options={"most_windows": 1000}) for _ in range(2)]
    for each in sessions:
        each.push([sd.interval("a", 4, 9, {"v": 1}), sd.interval("long", 5, FAR, {"v": 7})], "s")
    session, twin = sessions
    before = sections(session)
    now[0] = FAR + 2
    for pushed in ([], [sd.interval("b", 6, 8, {"v": 1})]):
        with pytest.raises(UnboundedOutputError, match="would make more than 1000"):
            session.push(pushed, "s")
        assert sections(session) == before
    now[0] = 12
    last = [sd.interval("b", 6, 8, {"v": 1}), sd.Retract("long", 5, FAR, 11)]
    assert session.push(last, "s") == twin.push(last, "s")
    assert figures(session) == figures(twin)


def test_an_end_of_which_too_much_comes_fails_the_session_with_the_reason() -> None:
    session = open_("tumbling", "speculative")
    session.push([sd.interval("long", 4, FAR, {"v": 7})])
    with pytest.raises(UnboundedOutputError):
        session.close()
    for use in (session.close, lambda: session.push([]), session.snapshot):
        with pytest.raises(SessionError, match=r"has failed: window_aggregate_1 would make more than 1000(?s:.*)\nHint: "):
            use()


def test_a_bounded_run_has_the_limit_too() -> None:
    long = [sd.interval("long", 0, FAR, {"v": 7})]
    with pytest.raises(UnboundedOutputError, match="more than 1000000"):
        WINDOWS["tumbling"](S).run({"s": long})


def test_what_is_held_for_nothing_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdsl.engine.limits.WARN", 300)
    for query in (S.where(lambda e: e.v >= 0), S.tumbling_window(1).aggregate(n=sd.count())):
        session = query.open(emit="final")
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for n in range(1000):
                session.push([sd.point(n, n, {"v": n})])
        assert [(each.category, each.filename) for each in found] == [(HeldOutputWarning, __file__)]
        assert re.search(r"rows and windows are held in memory: .*source 's' has sent no CTI yet", str(found[0].message))


def test_what_is_held_is_looked_at_ever_less_often_where_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdsl.engine.limits.WARN", 300)
    looks = Mock(return_value=0)
    monkeypatch.setattr("streamdsl.engine.limits._held", looks)
    session = S.tumbling_window(1000).aggregate(n=sd.count()).open(emit="final")
    for n in range(20):
        session.push([sd.point(f"{n} {each}", 1000 * n + each, {"v": n}) for each in range(500)])
        session.push([sd.Cti(1000 * (n + 1))])
    assert looks.call_count == 1


def test_nothing_is_said_where_ctis_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdsl.engine.limits.WARN", 300)
    session = S.tumbling_window(1).aggregate(n=sd.count()).open(emit="final")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(2000):
            session.push([sd.point(n, n, {"v": n}), *([sd.Cti(n)] if n % 100 == 0 else [])])
