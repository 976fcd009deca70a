"""Window sequences in queries: what a `View` sees at every single instant, for as long as the same window is the last one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, groupby
from typing import Any

import pytest

import streamdsl as sd
from streamdsl import astral
from streamdsl.astral import View
from streamdsl.emit import EMIT_MODES
from streamdsl.errors import QueryError, UnboundedOutputError
from streamdsl.temporal import CHT, CHTRow, Lifetime
from streamdsl.windows import Sequenced
from tests.laws.choices import Random, given
from tests.laws.harness import check_until
from tests.laws.modules import Ends
from tests.laws.operators import SEQUENCES, Kind, Variant
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

S: sd.Stream[Any] = sd.source("s")
ENDLESS: list[Kind] = [
    lambda s: s.windows(astral.last_n_every(3, 4)),
    lambda s: s.windows(astral.last_n_every(1, 0.5), start=2),
    lambda s: s.windows(astral.linear((0, 2), (3, 4), 3), start=0),
    lambda s: s.windows(astral.WindowSequence(lambda j: j, lambda j: 2 * j + 3, 2, delay=1)),
    lambda s: s.windows(
        astral.WindowSequence(lambda j, v: max(0, v.tau_inv(j) - 1), lambda j, v: v.tau_inv(j), 1, "position", "time")
    ),
    lambda s: s.windows(astral.for_loop(0, lambda u: True, lambda u: u + 5, lambda u: (0, u))),
]
"""Sequences of which new windows hold rows for ever."""


def rows_of(rng: Random) -> CHT[Any]:
    times = (rng.randint(-3, 25) for _ in range(rng.randint(0, 8)))
    return CHT([CHTRow(le, le + rng.randint(1, 9), rng.randint(0, 3)) for le in times])


def instant_by_instant(windows: Sequenced, rows: CHT[Any], until: int) -> list[tuple[int, int, list[Any]]]:
    """Return the windows that end by a time, found by looking at every tick."""
    ordered = sorted(rows, key=lambda row: (row.le, row.payload))
    if not ordered:
        return []
    view = View([(row.payload, row.le) for row in ordered], ordered[0].le if windows.start is None else windows.start)
    found = []
    for _, ticks in groupby(range(-10, until + 1), lambda tick: state(view, windows, tick)):
        instants = list(ticks)
        content = view.content(windows.sequence, instants[0])
        if content and instants[-1] < until:
            found.append((instants[0], instants[-1] + 1, content))
    return found


def state(view: View, windows: Sequenced, tick: int) -> Any:
    if windows.sequence == astral.range_slide(4):
        return view.content(windows.sequence, tick), list(view.positions(windows.sequence, tick))
    return view.gamma(windows.sequence, tick)


@examples(90)
@given(SEEDS)
def test_a_query_gives_what_a_view_sees_at_every_instant(seed: int) -> None:
    rng = Random(seed)
    windows, rows, until = rng.choice([*SEQUENCES, *ENDLESS])(S)._frame.windows, rows_of(rng), rng.randint(5, 60)
    shown = [(window.le, window.re, [row.payload for row in members]) for window, members in windows.divide(rows, until)]
    assert shown == instant_by_instant(windows, rows, until), windows.describe()
    assert [(window.le, window.re) for window in windows.over([Lifetime(row.le, row.re) for row in rows], until)] == [
        (le, re) for le, re, _ in shown
    ]


@examples(60)
@given(SEEDS)
def test_endless_sequences_make_the_windows_that_end_by_the_bound(seed: int) -> None:
    rng = Random(seed)
    make = rng.choice(ENDLESS)
    variant = Variant("endless", lambda s: make(s).aggregate(n=sd.count(), all=sd.collect(lambda e: e.v)))
    check_until(variant.query(), scenario(rng, 1, unending=True), rng.randint(-5, 60))


@pytest.mark.parametrize("make", ENDLESS)
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_endless_sequences_need_a_bound(make: Any, engine: Any) -> None:
    query = make(sd.from_rows([(2, 3, {"v": 1})])).aggregate(n=sd.count())
    with pytest.raises(UnboundedOutputError, match=r"(?s)after the last row.*Hint: bound the run with run\(until=t\)"):
        query.run(engine=engine)


@pytest.mark.parametrize("make", [*SEQUENCES, *ENDLESS])
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_no_rows_give_no_windows(make: Any, engine: Any) -> None:
    assert not len(make(sd.from_rows([])).aggregate(n=sd.count()).run(engine=engine).cht())


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_rows_far_from_the_start_and_from_each_other_cost_no_more_than_near_ones(engine: Any) -> None:
    rows = sd.from_rows([(10**15, 10**15 + 1, 1), (3 * 10**17, 3 * 10**17 + 1, 2)])
    query = rows.windows(astral.range_slide(10, 5), start=-(10**15)).aggregate(n=sd.count())
    assert [row.le - 10**15 for row in query.run(engine=engine).cht()][:3] == [0, 5, 10]


BOUNDED = [
    astral.range_slide(6, 4),
    astral.range_slide(5, 2, partial=False),
    astral.range_slide(4),
    astral.five_uplet(2, 5, 5, 5, 4),
    astral.rows_slide(3, 2),
    astral.last_n_every(3, 4),
    astral.fixed(2, 9),
    astral.fixed(1, 3, "position"),
    astral.linear((1, 1), (1, 3), 1, "position"),
]


@pytest.mark.parametrize(("ws", "emit"), list(zip(BOUNDED, cycle(EMIT_MODES), strict=False)))
def test_a_cti_frees_the_rows_that_no_later_window_reaches(ws: Any, emit: Any) -> None:
    session = S.windows(ws).aggregate(n=sd.count()).open(emit)
    kept = []
    for time in range(0, 200, 2):
        session.push([sd.Insert(time, time, time + 5, {"v": time}), sd.Cti(time)])
        figures = session.stats()["window_aggregate_1"]
        kept.append(figures["windows"] + figures["events"])
    assert max(kept[100 // 2 :]) <= max(kept[: 100 // 2]) <= 14, kept


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: S.windows(astral.landmark), "is no window sequence.*range_slide"),  # type: ignore[arg-type]
    (lambda: S.windows(astral.landmark().partitioned("k")), "partitioned.*group_by"),  # type: ignore[arg-type]
    (
        lambda: S.windows(astral.GenericWindowSequence(lambda b, v: b[0], lambda b, v: b[0], lambda at, v: at)),
        "GenericWindowSequence.*View",
    ),
    (lambda: S.windows(astral.linear((0, 0), (3, 0), 2)), "end later and later.*definition 8"),
    (lambda: S.windows(astral.linear((-1, 9), (1, 9), 2)), "go back"),
    (lambda: S.windows(astral.landmark(), output=sd.Output.POINT_AT_END), "POINT_AT_END.*to_points"),
    (lambda: S.windows(astral.landmark()).aggregate(Ends(), lambda e: e.v), "time-sensitive.*trailing_window"),
    (lambda: S.windows(astral.landmark()).aggregate(m=sd.time_weighted_avg(lambda e: e.v)), "time-sensitive"),
    (
        lambda: S.windows(astral.WindowSequence(lambda j: j, lambda j: j, 1)).aggregate(n=sd.count()).plan().to_json(),
        "window sequence of functions.*linear",
    ),
]


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_what_means_nothing_is_refused_with_what_to_do(make: Any, text: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){text}"):
        make()


def test_a_bound_that_is_a_function_and_raises_is_user_code() -> None:
    bad = astral.WindowSequence(lambda j: 1 // (j - 1), lambda j: j, 1)
    query = sd.from_rows([(0, 1, "a")]).windows(bad).aggregate(n=sd.count())
    for engine in ("reference", "local"):
        with pytest.raises(sd.errors.UserCodeError, match="ZeroDivisionError in user code"):
            query.run(engine=engine, until=9)


def test_windows_of_all_keys_together_are_snapshots_of_the_rows_in_those_of_each() -> None:
    """As the hint says: what a partitioned sequence holds at an instant, from what it holds for each key."""

    @sd.udo
    def rows(members: Any) -> Any:
        return list(members)

    tuples = [({"id": n % 3, "loc": "xxyyx"[n], "n": n}, 2 * n) for n in range(5)]
    stream = sd.from_rows([(t, t + 1, payload) for payload, t in tuples])
    last = astral.rows_slide(1, 1)
    together = stream.group_by("loc").windows(last).apply(rows).select(lambda e: e[1]).snapshot_window()
    found = together.aggregate(all=sd.collect(lambda e: e.n)).run().cht()
    view = View(tuples)
    for row in found:
        assert sorted(row.payload["all"]) == [payload["n"] for payload in view.content(last.partitioned("loc"), row.le)]
    assert [row.le for row in found] == [0, 2, 4, 6, 8]
