from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from hypothesis import given

import streamdsl as sd
from streamdsl.temporal import payload_order
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.law import Row, assert_law, random_rows
from udm_examples.sequence import Match, SequencePattern, Step


class Seen(NamedTuple):
    """An event of the tests: whose it is, and which letters it shows."""

    key: str
    letters: str


class Shows:
    """A predicate that can be printed."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def __call__(self, seen: Seen) -> bool:
        return self.letter in seen.letters

    def __repr__(self) -> str:
        return self.letter


def key_of(seen: Seen) -> str:
    return seen.key


def seen(rng: Random) -> Seen:
    return Seen(rng.choice("xy"), rng.choice(["a", "a", "b", "b", "c", "c", "ab", "bc", "abc", "d"]))


def random_pattern(rng: Random) -> SequencePattern[Seen]:
    steps = [
        Step(f"s{i}", Shows(rng.choice("abc")), many=rng.random() < 0.4, optional=rng.random() < 0.4)
        for i in range(rng.randint(0, 3))
    ]
    steps.append(Step("last", Shows(rng.choice("abc"))))
    key = key_of if rng.random() < 0.7 else None
    return SequencePattern(steps, rng.choice([3, 8, 100]), key, overlapping=rng.random() < 0.5)


Moves = tuple[tuple[int, int], ...]
"""A way through a pattern: which step is reached at which time."""


def ways(pattern: SequencePattern[Seen], at: dict[int, list[Seen]], moves: Moves = ()) -> Iterator[Moves]:
    """Yield every way through the pattern, whatever it skips."""
    steps, now = pattern.steps, moves[-1][1] if moves else -1
    if now == len(steps) - 1:
        yield moves
        return
    for time, events in at.items():
        if moves and not moves[-1][0] < time < moves[0][0] + pattern.within:
            continue
        for step in range(max(now, 0), len(steps)):
            allowed = steps[step].many if step == now else all(between.optional for between in steps[now + 1 : step])
            if allowed and any(steps[step].where(event) for event in events):
                yield from ways(pattern, at, (*moves, (time, step)))


def reported(pattern: SequencePattern[Seen], at: dict[int, list[Seen]]) -> list[Moves]:
    """The definition: of all ways from one start the one that skips least and goes furthest; then the leftmost of these."""
    by_start: dict[int, list[Moves]] = {}
    for way in ways(pattern, at):
        by_start.setdefault(way[0][0], []).append(way)
    preferred = [min(found, key=lambda way: [(time, -step) for time, step in way]) for found in by_start.values()]
    for way in preferred:
        assert way[-1][0] == min(other[-1][0] for other in by_start[way[0][0]]), "none is complete earlier"
    if pattern.overlapping:
        return preferred
    chosen: list[Moves] = []
    while later := [way for way in preferred if not chosen or way[0][0] > chosen[-1][-1][0]]:
        chosen.append(min(later, key=lambda way: (way[-1][0], way[0][0])))
    return chosen


def expected(pattern: SequencePattern[Seen], rows: list[Row], window: tuple[int, int]) -> Counter[Any]:
    members = [row for row in rows if row[0] < window[1] and window[0] < row[1]]
    keys = {pattern.key(row[2]) if pattern.key else None for row in members}
    found: Counter[Any] = Counter()
    for key in keys:
        at: dict[int, list[Seen]] = {}
        for le, _, event in sorted(members, key=lambda row: payload_order(row[2])):
            if not pattern.key or pattern.key(event) == key:
                at.setdefault(le, []).append(event)
        for way in reported(pattern, at):
            since, until = max(way[-1][0], window[0]), way[0][0] + pattern.within
            if since < until:
                found[since, until, Match(key, tuple(taken(pattern, at, way)))] += 1
    return found


def taken(pattern: SequencePattern[Seen], at: dict[int, list[Seen]], way: Moves) -> Iterator[tuple[str, Seen]]:
    for time, position in way:
        step = pattern.steps[position]
        fitting = [event for event in at[time] if step.where(event)]
        yield from ((step.name, event) for event in (fitting if step.many else fitting[:1]))


@examples(72)
@given(SEEDS)
def test_it_reports_the_matches_of_the_definition(seed: int) -> None:
    rng = Random(seed)
    pattern, rows, window = random_pattern(rng), random_rows(rng, seen, most=8), rng.choice([(-9, 60), (5, 12)])
    for clip in (sd.Clip.NONE, sd.Clip.RIGHT):
        found = run_udm(pattern, rows, window, clip=clip, output=sd.Output.UNCHANGED, seed=seed)
        assert Counter(tuple(row) for row in found) == expected(pattern, rows, window), [(s.where, s) for s in pattern.steps]


def test_the_random_patterns_are_found_often() -> None:
    found = 0
    for seed in range(100):
        rng = Random(seed)
        found += bool(run_udm(random_pattern(rng), random_rows(rng, seen), (-9, 60)))
    assert found > 25


@examples(90)
@given(SEEDS)
def test_in_a_query_the_order_of_arrival_does_not_matter(seed: int) -> None:
    rng = Random(seed)
    pattern, hop = random_pattern(rng), rng.choice([10, 4])
    policy: dict[str, Any] = {
        "clip": rng.choice(list(sd.Clip)),
        "output": rng.choice([sd.Output.TIME_BOUND, sd.Output.CLIP, sd.Output.ALIGN]),
    }
    if rng.random() < 0.3:
        assert_law(lambda s: s.snapshot_window(**policy).apply(pattern), random_rows(rng, seen), rng)
    else:
        assert_law(lambda s: s.hopping_window(10, hop, **policy).apply(pattern), random_rows(rng, seen), rng)


def found_in(pattern: SequencePattern[Seen], letters: str) -> list[str]:
    """Return the letters of each match in a series of events, one letter a tick; `.` is a tick without event."""
    rows = [(time, time + 1, Seen("x", letter)) for time, letter in enumerate(letters) if letter != "."]
    matches = run_udm(pattern, rows, (0, 99), output=sd.Output.UNCHANGED)
    return ["".join(event.letters for _, event in match.payload.events) for match in matches]


def test_the_rules_one_by_one() -> None:
    a, b, c = (Step(letter, Shows(letter)) for letter in "abc")
    many_b, maybe_b = Step("b", Shows("b"), many=True), Step("b", Shows("b"), optional=True)
    assert found_in(SequencePattern([a, b], 50), "adcb") == ["ab"], "what does not fit is skipped"
    assert found_in(SequencePattern([a, many_b, c], 50), "abdbac") == ["abbc"]
    assert found_in(SequencePattern([a, maybe_b, c], 50), "ac.abc") == ["ac", "abc"]
    assert found_in(SequencePattern([a, b], 3), "a..b.a.b") == ["ab"], "the first pair is too far apart"
    assert found_in(SequencePattern([a, b], 50), "aabb") == ["ab"], "the leftmost, and none inside it"
    assert found_in(SequencePattern([a, b], 50, overlapping=True), "aabb") == ["ab", "ab"], "one for each start"
    assert found_in(SequencePattern([a], 50), "aba") == ["a", "a"]


def test_a_match_that_is_over_when_its_window_starts_is_none() -> None:
    a, b = (Step(letter, Shows(letter)) for letter in "ab")
    rows = [(2, 9, Seen("x", "a")), (4, 9, Seen("x", "b"))]
    assert run_udm(SequencePattern([a, b], 3), rows, (5, 12)) == []
    assert len(run_udm(SequencePattern([a, b], 4), rows, (5, 12))) == 1


def test_who_buys_after_looking_at_several_pages() -> None:
    def views(page: str) -> bool:
        return page.startswith("/item")

    def pays(page: str) -> bool:
        return page == "/paid"

    def asks(page: str) -> bool:
        return page == "/help"

    steps = [Step("view", views), Step("more", views, many=True), Step("help", asks, optional=True), Step("pay", pays)]
    bought = SequencePattern(steps, within=3600)
    clicks = [
        (10, "ann", "/item/1"),
        (60, "ann", "/item/2"),
        (70, "bob", "/item/2"),
        (90, "ann", "/item/3"),
        (95, "ann", "/help"),
        (200, "bob", "/paid"),
        (300, "ann", "/paid"),
    ]
    events = [sd.point(number, time, {"user": user, "page": page}) for number, (time, user, page) in enumerate(clicks)]
    users = sd.source("clicks", unit="s").group_by("user").tumbling_window("1d", output=sd.Output.TIME_BOUND)
    query = users.apply(bought, lambda e: e.page).select(
        lambda e: (e[0], [page for step, page in e[1].events if step in ("view", "more")])
    )
    late_first = query.run({"clicks": events[::-1]}).cht()
    assert [(row.le, row.payload) for row in late_first] == [(300, ("ann", ["/item/1", "/item/2", "/item/3"]))]
    session = query.open()
    session.push(events)
    found = session.push([sd.point("late", 80, {"user": "bob", "page": "/item/9"})])
    assert [(event.le, event.payload) for event in found if isinstance(event, sd.Insert)] == [
        (200, ("bob", ["/item/2", "/item/9"]))
    ]
