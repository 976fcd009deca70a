"""Pattern matching, by small examples, and against the gallery's operator over one window that holds everything."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.checks.plans import Checked
from streamdsl.denote import denote
from streamdsl.errors import UserCodeError
from streamdsl.temporal import CHT
from streamdsl.testing import assert_cht_equal
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from udm_examples.sequence import Match, SequencePattern
from udm_examples.sequence import Step as GalleryStep

ANY: sd.Stream[Any] = sd.source("s")


def found(query: sd.Stream[Any], *rows: tuple[int, Any]) -> list[tuple[int, int, Any]]:
    """Return what a query means over points; a match as the tuple of what its steps have taken."""
    cht: CHT[Any] = denote(query.plan(), {"s": CHT.from_rows([(t, t + 1, payload) for t, payload in rows])})
    return [(row.le, row.re, tuple(row.payload.values()) if isinstance(row.payload, sd.Record) else row.payload) for row in cht]


def letter(wanted: str) -> Any:
    return lambda e: e == wanted


def a_then_b(p: sd.pattern.Steps[Any]) -> sd.pattern.Pattern[Any]:
    return p.a.where(letter("a")).then(p.b.where(letter("b"))).within(10)


def test_a_match_lives_from_its_last_event_until_within_after_its_first() -> None:
    assert found(ANY.match(a_then_b), (1, "a"), (4, "b")) == [(4, 11, ("a", "b"))]
    assert found(ANY.match(a_then_b), (1, "a"), (10, "b")) == [(10, 11, ("a", "b"))]
    assert found(ANY.match(a_then_b), (1, "a"), (11, "b")) == []


def test_what_starts_together_has_no_order() -> None:
    assert found(ANY.match(a_then_b), (1, "a"), (1, "b")) == []
    assert found(ANY.match(a_then_b), (1, "a"), (1, "b"), (2, "b")) == [(2, 11, ("a", "b"))]


def test_of_what_starts_together_a_step_takes_the_first_in_payload_order_and_a_many_step_all() -> None:
    query = ANY.match(lambda p: p.a.many().where(lambda e: e < "x").then(p.b).within(5))
    assert found(query, (1, "c"), (1, "b"), (1, "a"), (2, "z"), (2, "y")) == [(2, 6, (("a", "b", "c"), "y"))]


def test_what_fits_no_step_is_skipped_and_what_fits_is_taken_at_once() -> None:
    assert found(ANY.match(a_then_b), (1, "a"), (2, "x"), (3, "b"), (4, "b")) == [(3, 11, ("a", "b"))]


def test_a_match_that_is_complete_ends_the_runs_that_overlap_it() -> None:
    rows = [(1, "a"), (2, "a"), (3, "b"), (4, "b"), (5, "a"), (6, "b")]
    assert found(ANY.match(a_then_b), *rows) == [(3, 11, ("a", "b")), (6, 15, ("a", "b"))]
    assert [row[:2] for row in found(ANY.match(a_then_b, overlapping=True), *rows)] == [(3, 11), (3, 12), (6, 15)]


def test_the_run_that_is_complete_first_counts_though_another_began_before_it() -> None:
    query = ANY.match(lambda p: p.a.then(p.b.where(lambda e, m: e == m.a + 1)).within(10))
    assert found(query, (1, 1), (2, 5), (3, 6), (4, 2)) == [(3, 12, (5, 6))]


def test_a_run_goes_to_the_furthest_step_that_it_can_reach() -> None:
    query = ANY.match(
        lambda p: p.a.where(letter("a")).then(p.b.optional()).then(p.c.optional().many()).then(p.d.where(letter("d"))).within(9)
    )
    assert found(query, (1, "a"), (2, "x"), (3, "y"), (4, "d")) == [(4, 10, ("a", None, ("x", "y"), "d"))]
    assert found(query, (1, "a"), (2, "d")) == [(2, 10, ("a", None, (), "d"))]


def test_a_predicate_sees_what_was_taken_at_earlier_instants() -> None:
    query = ANY.match(
        lambda p: (
            p.a.then(p.b.many().where(lambda e, m: e > (m.b[-1] if m.b else m.a)))
            .then(p.c.where(lambda e, m: e < m.a and len(m.b) > 1))
            .within(20)
        )
    )
    assert found(query, (1, 5), (2, 7), (3, 6), (4, 8), (4, 9), (5, 4)) == [(5, 21, (5, (7, 8, 9), 4))]


def test_none_of_unless_may_be_strictly_between() -> None:
    def query(**options: Any) -> sd.Stream[Any]:
        return ANY.match(lambda p: p.a.then(p.b.where(letter("b"))).unless(p.x.where(letter("x"))).within(10), **options)

    assert found(query(), (1, "a"), (2, "x"), (3, "b")) == [(3, 12, ("x", "b"))]
    assert found(query(overlapping=True), (1, "a"), (2, "x"), (3, "b")) == [(3, 12, ("x", "b"))]
    assert found(query(), (1, "a"), (3, "b"), (3, "x")) == [(3, 11, ("a", "b"))]
    assert found(query(), (1, "a"), (1, "x"), (3, "b")) == [(3, 11, ("a", "b"))]


def test_keys_are_matched_each_by_itself() -> None:
    rows = [(1, {"k": 1, "v": "a"}), (2, {"k": 1.0, "v": "b"}), (3, {"k": None, "v": "a"}), (4, {"k": None, "v": "b"})]
    query = ANY.match(lambda p: p.a.then(p.b).within(9), by="k", select=lambda m: m.b.v)
    assert found(query, *rows) == [(2, 10, "b"), (4, 12, "b")]


def test_ends_do_not_count() -> None:
    long = CHT.from_rows([(1, sd.INFINITY, "a"), (4, 5, "b")])
    query = ANY.match(a_then_b).plan()
    assert_cht_equal(denote(query, {"s": long}), denote(query, {"s": CHT.from_rows([(1, 2, "a"), (4, 9, "b")])}))


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(
    "query",
    [
        ANY.match(lambda p: p.a.where(lambda e: 1 / e > 0).within(5)),
        ANY.match(lambda p: p.a.then(p.b.where(lambda e, m: m.a / e > 0)).within(5)),
        ANY.match(lambda p: p.a.then(p.b.many().where(lambda e, m: m.b[-1] < e)).then(p.c).within(5)),
        ANY.match(lambda p: p.a.then(p.b.where(lambda e, m: m.d or e)).within(5)),
    ],
    ids=["alone", "over earlier", "nothing taken yet", "unknown step"],
)
def test_a_predicate_that_raises_is_named_with_its_event(query: sd.Stream[Any], engine: Any) -> None:
    shown = "event 'zero'" if engine == "local" else "payload=0"
    with pytest.raises(UserCodeError, match=rf"(?s)in user code.*operator match_1.*{shown}"):
        query.run({"s": [sd.point("two", 1, 2), sd.point("zero", 3, 0)]}, engine=engine)


def gallery(rng: Random) -> tuple[list[GalleryStep[str]], int, bool]:
    steps = [
        GalleryStep(f"s{n}", Shows(rng.choice("abc")), many=rng.random() < 0.4, optional=rng.random() < 0.4)
        for n in range(rng.randint(0, 3))
    ]
    return [*steps, GalleryStep("last", Shows(rng.choice("abc")))], rng.choice([3, 8, 100]), rng.random() < 0.5


class Shows:
    """A predicate: whether a payload shows a letter."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def __call__(self, payload: str) -> bool:
        return self.letter in payload


def on_value(predicate: Any) -> Any:
    return lambda e: predicate(e)


def written(steps: list[GalleryStep[str]], within: int) -> Any:
    def pattern(p: sd.pattern.Steps[Any]) -> sd.pattern.Pattern[Any]:
        whole: sd.pattern.Pattern[Any] | None = None
        for model in steps:
            step = p[model.name].where(on_value(model.where))
            step = step.many() if model.many else step
            step = step.optional() if model.optional else step
            whole = step if whole is None else whole.then(step)
        assert whole is not None
        return whole.within(within)

    return pattern


def taken(match: sd.Record) -> list[tuple[str, str]]:
    """Return a match's events with their steps, as the gallery's operator gives them."""
    parts = (
        (name, events if isinstance(events, tuple) else [] if events is None else [events]) for name, events in match.items()
    )
    return [(name, event) for name, events in parts for event in events]


@examples(90)
@given(SEEDS)
def test_it_gives_what_the_gallery_operator_gives_over_one_window(seed: int) -> None:
    rng = Random(seed)
    steps, within, overlapping = gallery(rng)
    letters = ["a", "a", "b", "b", "c", "c", "ab", "bc", "abc", "d"]
    rows = [
        sd.IntervalEvent(t := rng.randint(0, 25), t + rng.randint(1, 9), rng.choice(letters)) for _ in range(rng.randint(1, 12))
    ]
    module = SequencePattern(steps, within, overlapping=overlapping)
    expected = [
        (event.start_time, event.end_time, [*event.payload.events])
        for event in module.compute_result(rows, sd.WindowDescriptor(0, 100))
        if isinstance(event.payload, Match)
    ]
    stream = sd.from_rows([(event.start_time, event.end_time, event.payload) for event in rows])
    for engine in ("reference", "local"):
        result = stream.match(written(steps, within), overlapping=overlapping).run(engine=engine)
        matches = [(row.le, row.re, taken(row.payload)) for row in result.cht()]
        assert sorted(matches) == sorted(expected)


def test_predicates_have_parameters_and_matches_end() -> None:
    limit = sd.functions.param("limit", int)
    edges = sd.source("s", sd.Record).to_edges()
    query = edges.match(
        lambda p: p.a.where(lambda e: e.v > limit).then(p.b.where(lambda e, m: (e.v > m.a.v) & (e.v > limit + 5))).within(9),
        select=lambda m: m.b.v,
    )
    rows = [(1, {"v": 2}), (2, {"v": 4}), (3, {"v": 8}), (4, {"v": 12})]
    assert found(query.bind(limit=3), *rows) == [(4, 11, 12)]
    assert found(query.bind(limit=1), *rows) == [(3, 10, 8)]
    assert Checked(query.plan()).open_rows(query.plan()) is None
