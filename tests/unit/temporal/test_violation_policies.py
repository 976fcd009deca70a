"""What `on_violation` and `progress` do to a stream: examples, and random streams that break CTIs (semantics, section 7)."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from streamdsl.denote import history
from streamdsl.errors import CtiViolation
from streamdsl.plan.node import Source
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, EventTable, Insert, OnViolation, Progress, Retract, sync_time
from tests.unit.temporal.feeding import Stream, feed

A = Insert("a", 1, 20, "x")
LATE = Insert("l", 4, 30, "y")

DROP: dict[str, tuple[Stream, list[tuple[int, int, str]], int]] = {
    "a late insertion": ([Cti(10), LATE], [], 1),
    "what corrects it": ([Cti(10), LATE, Retract("l", 4, 30, 25), Retract("l", 4, 25, 40)], [], 3),
    "a late retraction": ([A, Cti(10), Retract("a", 1, 20, 5)], [(1, 20, "x")], 1),
    "a full retraction": ([A, Cti(10), Retract("a", 1, 20, 1)], [(1, 20, "x")], 1),
    "what follows a late retraction": (
        [A, Cti(10), Retract("a", 1, 20, 5), Retract("a", 1, 5, 15), Retract("a", 1, 15, 12)],
        [(1, 20, "x")],
        3,
    ),
    "unless it matches again": (
        [A, Cti(10), Retract("a", 1, 20, 5), Retract("a", 1, 5, 20), Retract("a", 1, 20, 15), Retract("a", 1, 15, 12)],
        [(1, 12, "x")],
        2,
    ),
    "lengthening what the CTI has passed": (
        [Insert("a", 1, 5, "x"), Cti(10), Retract("a", 1, 5, 15), Retract("a", 1, 15, 12)],
        [(1, 5, "x")],
        2,
    ),
    "and nothing else": ([A, Cti(10), Retract("a", 1, 20, 10), Insert("b", 10, 11, "y")], [(1, 10, "x"), (10, 11, "y")], 0),
    "its id may come again once the CTI has passed it": (
        [Cti(10), LATE, Cti(31), Insert("l", 40, 41, "z"), Retract("l", 40, 41, 45)],
        [(40, 45, "z")],
        1,
    ),
    "an insertion late as a whole leaves no trace": (
        [Cti(10), Insert("l", 4, 9, "y"), Insert("l", 40, 41, "z"), Retract("l", 40, 41, 45)],
        [(40, 45, "z")],
        1,
    ),
}

ADJUST: dict[str, tuple[Stream, list[tuple[int, int, str]], int]] = {
    "LE moves to the CTI": ([Cti(10), LATE], [(10, 30, "y")], 1),
    "a lifetime before the CTI is dropped": ([Cti(10), Insert("l", 4, 9, "y")], [], 1),
    "so is one that ends at it": ([Cti(10), Insert("l", 4, 10, "y")], [], 1),
    "retractions still match the moved LE": (
        [Cti(10), LATE, Retract("l", 4, 30, 25), Cti(20), Retract("l", 4, 25, 40)],
        [(10, 40, "y")],
        1,
    ),
    "its full retraction leaves nothing": ([Cti(10), LATE, Retract("l", 4, 30, 4)], [], 2),
    "its full retraction after a later CTI": ([Cti(10), LATE, Cti(20), Retract("l", 4, 30, 4)], [(10, 20, "y")], 2),
    "a moved event that ends at its new LE may still grow": (
        [Cti(10), LATE, Retract("l", 4, 30, 10), Retract("l", 4, 10, 25)],
        [(10, 25, "y")],
        1,
    ),
    "RE_new moves to the CTI": ([A, Cti(10), Retract("a", 1, 20, 5)], [(1, 10, "x")], 1),
    "a full retraction too": ([A, Cti(10), Retract("a", 1, 20, 1)], [(1, 10, "x")], 1),
    "at RE = CTI nothing is left to change": ([A, Cti(20), Retract("a", 1, 20, 5)], [(1, 20, "x")], 1),
    "what follows is dropped": (
        [A, Cti(10), Retract("a", 1, 20, 5), Retract("a", 1, 5, 15), Retract("a", 1, 15, 12)],
        [(1, 10, "x")],
        3,
    ),
    "lengthening what the CTI has passed": ([Insert("a", 1, 5, "x"), Cti(10), Retract("a", 1, 5, 15)], [(1, 5, "x")], 1),
}


@pytest.mark.parametrize(("stream", "rows", "rejected"), DROP.values(), ids=DROP)
def test_drop(stream: Stream, rows: list[tuple[int, int, str]], rejected: int) -> None:
    check("drop", stream, rows, rejected)


@pytest.mark.parametrize(("stream", "rows", "rejected"), ADJUST.values(), ids=ADJUST)
def test_adjust(stream: Stream, rows: list[tuple[int, int, str]], rejected: int) -> None:
    check("adjust", stream, rows, rejected)


def check(policy: OnViolation, stream: Stream, rows: list[tuple[int, int, str]], rejected: int) -> None:
    assert history(Source("s", on_violation=policy), stream) == CHT.from_rows(rows)
    table = EventTable("s", policy)
    feed(table, stream)
    assert len(table.rejected) == rejected


def test_error_is_the_default() -> None:
    with pytest.raises(CtiViolation, match="at source 'trips'"):
        history(Source("trips"), [Cti(10), LATE])


def test_what_is_rejected_is_reported_with_the_cti_that_it_broke() -> None:
    table = EventTable("s", "adjust")
    feed(table, [Cti(10), LATE, Retract("l", 4, 30, 6), Insert("b", 1, 2, "z")])
    assert [(r.event, r.cti, r.reason) for r in table.rejected] == [
        (LATE, 10, "adjusted: its LE became the CTI"),
        (Retract("l", 4, 30, 6), 10, "adjusted: its RE_new became the CTI"),
        (Insert("b", 1, 2, "z"), 10, "dropped: it changes a time before the CTI"),
    ]


@pytest.mark.parametrize("policy", ["drop", "adjust"])
def test_no_stream_of_a_correct_sender_fails_and_what_takes_effect_is_legal(policy: OnViolation) -> None:
    """The sender knows no CTIs, so it breaks them; what is admitted breaks none, and its history is the source's."""
    breaking = 0
    for seed in range(300):
        stream = random_stream(Random(seed))
        table = EventTable("s", policy)
        admitted = feed(table, stream)
        legal = [event for event in admitted if event is not None]
        breaking += bool(table.rejected)
        assert folded(legal) == history(Source("s", on_violation=policy), stream)
        assert len(table.rejected) == sum(a is None or times(a) != times(s) for a, s in zip(admitted, data(stream), strict=True))
        assert all(sync >= cti for sync, cti in zip(map(sync_time, legal), ctis_before(stream, admitted), strict=True))
    assert breaking >= 100


def test_a_stream_without_violations_is_the_same_under_every_policy() -> None:
    policies: list[OnViolation] = ["error", "drop", "adjust"]
    for seed in range(100):
        stream: Stream = [*data(random_stream(Random(seed))), Cti(INFINITY)]
        first, *others = [history(Source("s", on_violation=policy), stream) for policy in policies]
        assert all(other == first for other in others)


@pytest.mark.parametrize("policy", ["drop", "adjust"])
def test_a_rollback_leaves_no_trace(policy: OnViolation) -> None:
    for seed in range(200):
        stream = random_stream(Random(seed))
        cut = len(stream) // 2
        tried, untouched = EventTable("s", policy), EventTable("s", policy)
        feed(tried, stream[:cut])
        feed(untouched, stream[:cut])
        tried.commit()
        for event in stream[cut:]:
            if isinstance(event, Cti):
                tried.promise(event.time)
            else:
                tried.admit(event)
        tried.rollback()
        assert (tried.cti, tried.high_water, tried.rejected) == (untouched.cti, untouched.high_water, untouched.rejected)
        assert feed(tried, stream[cut:]) == feed(untouched, stream[cut:])
        assert (tried.cti, tried.rejected, len(tried)) == (untouched.cti, untouched.rejected, len(untouched))


@pytest.mark.parametrize(
    ("progress", "rows", "rejected"),
    [
        (Progress.ordered(), [(1, 5), (9, 12), (20, 21)], 2),
        (Progress.slack(3), [(1, 5), (9, 12), (7, 11), (20, 21)], 1),
        (Progress.slack(100), [(1, 5), (9, 12), (7, 11), (20, 21), (8, 9)], 0),
        (Progress.every(3), [(1, 5), (9, 12), (7, 11), (20, 21)], 1),
        (Progress.every(3, delay=1), [(1, 5), (9, 12), (7, 11), (20, 21), (8, 9)], 0),
    ],
)
def test_progress_judges_each_event_by_those_before_it(progress: Progress, rows: list[Any], rejected: int) -> None:
    lives = [(1, 5), (9, 12), (7, 11), (20, 21), (8, 9)]
    stream: Stream = [Insert(i, le, re, "x") for i, (le, re) in enumerate(lives)]
    node = Source("s", progress=progress, on_violation="drop")
    assert history(node, stream) == CHT.from_rows([(le, re, "x") for le, re in rows])
    assert len(stream) - len(rows) == rejected


def test_a_count_of_numpy_is_a_count() -> None:
    assert Progress.every(3) == Progress.every(np.int64(3))  # type: ignore[arg-type]


def test_progress_by_period_moves_at_the_start_of_a_period() -> None:
    generator = Progress.every("10s", delay="2s").generator("s")
    assert [generator.after(le) for le in (3, 9, 14, 11, 29)] == [-2, -2, 8, 8, 18]


def test_progress_counts_retractions_as_events() -> None:
    generator = Progress.every(2).generator(None)
    assert [generator.after(le) for le in (5, None, 8, 9)] == [MIN_TIME, 5, 5, 9]


def data(stream: Stream) -> list[Insert[Any] | Retract]:
    return [event for event in stream if not isinstance(event, Cti)]


def folded(events: list[Insert[Any] | Retract]) -> CHT[Any]:
    """The last lifetime that each id was given."""
    rows = {e.id: (e.le, e.re if isinstance(e, Insert) else e.re_new, e.payload) for e in events}
    return CHT.from_rows(rows.values())


def ctis_before(stream: Stream, admitted: list[Insert[Any] | Retract | None]) -> list[int]:
    """The CTI that held when each admitted event came."""
    found, cti, results = [], MIN_TIME, iter(admitted)
    for event in stream:
        if isinstance(event, Cti):
            cti = max(cti, event.time)
        elif next(results) is not None:
            found.append(cti)
    return found


def times(event: Insert[Any] | Retract) -> tuple[int, ...]:
    return (event.le, event.re) if isinstance(event, Insert) else (event.re, event.re_new)


def random_stream(rng: Random) -> Stream:
    """Events of a sender that corrects itself now and then, CTIs anywhere among them."""
    ends: dict[str, tuple[int, int]] = {}
    stream: Stream = []
    for number in range(rng.randint(1, 14)):
        kind = rng.random()
        if kind < 0.25:
            stream.append(Cti(rng.randint(0, 20)))
        elif kind < 0.6 or not ends:
            le = rng.randint(0, 20)
            re = INFINITY if rng.random() < 0.1 else le + rng.randint(0, 8)
            stream.append(Insert(f"e{number}", le, re, rng.choice("xy")))
            ends[f"e{number}"] = (le, re)
        else:
            name = rng.choice(sorted(ends))
            le, re = ends[name]
            re_new = rng.choice([le, le + rng.randint(0, 8), 20, INFINITY])
            stream.append(Retract(name, le, re, max(le, re_new)))
            ends[name] = (le, max(le, re_new))
            if ends[name] == (le, le):
                del ends[name]
    return stream
