from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.testing import arrival_order, assert_cht_equal, run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, answer, assert_law, random_rows
from udm_examples.sessionizer import Click, Sessionizer, Visit


def click(rng: Random) -> Click:
    return Click(rng.choice(["ann", "bob"]), rng.choice(["/", "/a", "/b"]))


def visits(rows: Iterable[Row], window: tuple[int, int], gap: int) -> Counter[Row]:
    """The definition: clicks of a user are together if their lifetimes, made longer by the gap, overlap, or through others."""
    sessions: list[list[Row]] = []
    for le, re, payload in rows:
        if le < window[1] and window[0] < re:
            joined = [s for s in sessions if any(payload.user == p.user and a < re + gap and le < b + gap for a, b, p in s)]
            sessions = [s for s in sessions if s not in joined] + [[*(row for s in joined for row in s), (le, re, payload)]]
    return Counter(visit(sorted(session, key=lambda row: (row[0], row[2].page)), window) for session in sessions)


def visit(session: list[Row], window: tuple[int, int]) -> Row:
    start, end = max(session[0][0], window[0]), max(re for _, re, _ in session)
    return start, end, Visit(session[0][2].user, tuple(payload.page for _, _, payload in session))


@examples(90)
@given(SEEDS)
def test_visits_are_those_of_the_definition(seed: int) -> None:
    rng = Random(seed)
    rows, gap, window = random_rows(rng, click), rng.randint(1, 8), rng.choice([(-9, 60), (0, 10), (5, 7)])
    found = run_udm(Sessionizer(gap), rows, window, output=sd.Output.UNCHANGED, seed=seed)
    assert Counter(tuple(row) for row in found) == visits(rows, window, gap)
    clipped = [(le, min(re, window[1]), payload) for le, re, payload in rows if le < window[1]]
    found = run_udm(Sessionizer(gap), rows, window, clip=sd.Clip.RIGHT, output=sd.Output.UNCHANGED, seed=seed)
    assert Counter(tuple(row) for row in found) == visits(clipped, window, gap)


class PagesInOrder(sd.TimeSensitiveUDA[str, tuple[str, ...]]):
    """All pages of a window in order of time."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> tuple[str, ...]:
        return tuple(page for _, page in sorted((event.start_time, event.payload) for event in events))


@examples(72)
@given(SEEDS)
def test_visits_are_the_session_windows_of_the_engine_without_their_gap(seed: int) -> None:
    rng = Random(seed)
    rows, gap, clip = random_rows(rng, click), rng.randint(1, 8), rng.choice(list(sd.Clip))

    def found(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return s.tumbling_window(1000, offset=-500, clip=clip, output=sd.Output.UNCHANGED).apply(Sessionizer(gap))

    def windows(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return s.group_by("user").session_window(gap).aggregate(pages=PagesInOrder().of(lambda e: e.page))

    visits, sessions = (answer(query, arrival_order(rows, rng), rng) for query in (found, windows))
    assert Counter((le, re + gap, visit.user, visit.pages) for le, re, visit in visits) == Counter(
        (le, re, session.user, session.pages) for le, re, session in sessions
    )


@examples(72)
@given(SEEDS)
def test_a_session_window_of_the_engine_holds_one_visit_however_it_is_cut(seed: int) -> None:
    rng = Random(seed)
    rows, gap, longest = random_rows(rng, click), rng.randint(1, 8), rng.choice([None, 3, 10])

    def windows(s: sd.Stream[Any]) -> Any:
        return s.group_by("user").session_window(gap, longest)

    def found(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return windows(s).apply(Sessionizer(gap)).select(user=lambda e: e[0], pages=lambda e: e[1].pages)  # type: ignore[no-any-return]

    def pages(s: sd.Stream[Any]) -> sd.Stream[Any]:
        return windows(s).aggregate(pages=PagesInOrder().of(lambda e: e.page))  # type: ignore[no-any-return]

    one, other = (answer(query, arrival_order(rows, rng), rng) for query in (found, pages))
    assert_cht_equal(one, other)


@examples(60)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    module, hop = Sessionizer(rng.randint(1, 8)), rng.choice([12, 5])
    policy: dict[str, Any] = {
        "clip": rng.choice(list(sd.Clip)),
        "output": rng.choice([sd.Output.UNCHANGED, sd.Output.CLIP, sd.Output.ALIGN]),
    }
    assert_law(lambda s: s.hopping_window(12, hop, **policy).apply(module), random_rows(rng, click), rng)


def test_it_rightly_does_not_claim_to_be_time_bound() -> None:
    class Claims(Sessionizer):
        time_bound: ClassVar[bool] = True

    session = sd.source("s").tumbling_window(30, output=sd.Output.TIME_BOUND).apply(Claims(5)).open()
    session.push([sd.point("a", 1, Click("ann", "/"))])
    with pytest.raises(TimestampViolation, match="time-bound"):
        session.push([sd.point("b", 3, Click("ann", "/a"))])


def test_visits_of_a_day_end_at_midnight_and_a_late_click_joins_two() -> None:
    minute, hour = 60, 3600
    clicks = [
        (9 * hour, 5, "/news"),
        (10 * hour, 5, "/shop"),
        (23 * hour + 50 * minute, 20, "/film"),
        (24 * hour + 15 * minute, 5, "/bed"),
    ]
    days = sd.source("clicks", unit="s").tumbling_window("1d", clip=sd.Clip.RIGHT, output=sd.Output.UNCHANGED)
    session = days.apply(Sessionizer(gap=30 * minute), lambda e: Click(e.user, e.page)).open()

    def looked(at: int, minutes: int, page: str) -> sd.Event[Any]:
        return sd.interval(page, at, at + minutes * minute, {"user": "ann", "page": page})

    out = session.push([looked(*click) for click in clicks])
    assert [(row.le / hour, row.re / hour, row.payload.pages) for row in sd.CHT.from_events(out)] == [
        (9, 9 + 5 / 60, ("/news",)),
        (10, 10 + 5 / 60, ("/shop",)),
        (23 + 50 / 60, 24, ("/film",)),
        (24, 24 + 20 / 60, ("/film", "/bed")),
    ]
    out += session.push([looked(9 * hour + 25 * minute, 10, "/weather")])
    first = sd.CHT.from_events(out).rows[0]
    assert (first.le, first.re, first.payload.pages) == (9 * hour, 10 * hour + 5 * minute, ("/news", "/weather", "/shop"))
    assert len(sd.CHT.from_events(out)) == 3
