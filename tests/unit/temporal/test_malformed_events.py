"""Every way in which a physical event can be wrong, what is said about it, and that it has no effect (semantics, section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from streamdsl.errors import CtiViolation, EventError, StreamDslError
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, EventTable, Insert, Retract, problems
from tests.unit.temporal.feeding import Stream, feed

A = Insert("a", 1, 20, "x")


@dataclass
class Reading:
    """A payload with a class of its own."""

    value: float


MALFORMED: dict[str, tuple[Stream, str]] = {
    "LE after RE": ([Insert("a", 5, 4, "x")], "its LE 5 is after its RE 4"),
    "LE not finite": ([Insert("a", INFINITY, INFINITY, "x")], "its LE is not finite"),
    "RE_new before LE": ([A, Retract("a", 1, 20, 0)], "its RE_new 0 is before its LE 1"),
    "an id that is not equal to itself": ([Insert(float("nan"), 1, 5, "x")], "its id is not equal to itself"),
    "second insertion": ([A, Insert("a", 3, 4, "y")], "an event with the id 'a' is known already"),
    "second insertion of a deleted id": ([A, Retract("a", 1, 20, 1), A], "known already"),
    "second insertion of an empty one": ([Insert("a", 5, 5, "x"), Cti(5), A], "known already"),
    "never inserted": ([A, Retract("b", 1, 20, 5)], "no event with the id 'b' is known"),
    "retraction before its insertion": ([Retract("a", 1, 20, 5), A], "no event with the id 'a' is known"),
    "already deleted": ([A, Retract("a", 1, 20, 1), Retract("a", 1, 1, 5)], "has been fully retracted already"),
    "deleted twice": ([A, Retract("a", 1, 20, 1), Retract("a", 1, 20, 1)], "has been fully retracted already"),
    "wrong LE": ([A, Retract("a", 2, 20, 5)], "its LE 2 is not the event's, 1"),
    "wrong RE": ([A, Retract("a", 1, 19, 5)], "its RE 19 is not the event's current one, 20"),
    "an RE of the past": ([A, Retract("a", 1, 20, 10), Retract("a", 1, 20, 5)], "its RE 20 is not the event's current one, 10"),
    "wrong payload": ([A, Retract("a", 1, 20, 5, "y")], "its payload is not the event's, 'x'"),
}


@pytest.mark.parametrize(("stream", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_events_are_refused(stream: Stream, rule: str) -> None:
    with pytest.raises(EventError) as refused:
        CHT.from_events(stream)
    assert rule in str(refused.value)
    assert not isinstance(refused.value, CtiViolation)
    assert isinstance(refused.value, (StreamDslError, ValueError))


@pytest.mark.parametrize(("stream", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_event_has_no_effect(stream: Stream, rule: str) -> None:
    wrong = [index for index, kind in problems(stream) if kind == "malformed"]
    assert len(wrong) == 1
    rest = [event for index, event in enumerate(stream) if index not in wrong]
    assert problems(rest) == []
    assert table_after(stream).high_water == table_after(rest).high_water


@pytest.mark.parametrize("policy", ["drop", "adjust"])
@pytest.mark.parametrize(("stream", "rule"), MALFORMED.values(), ids=MALFORMED)
def test_no_policy_excuses_a_malformed_event(stream: Stream, rule: str, policy: Any) -> None:
    table = EventTable("trips", policy)
    with pytest.raises(EventError, match="at source 'trips'"):
        feed(table, stream)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param([Insert("a", 5, 5, "x")], id="an empty lifetime leaves no row"),
        pytest.param([A, Retract("a", 1, 20, 20)], id="a retraction that changes nothing"),
        pytest.param([A, Retract("a", 1, 20, 40)], id="a longer lifetime"),
        pytest.param([A, Retract("a", 1, 20, INFINITY), Retract("a", 1, INFINITY, 7)], id="for ever, then not"),
        pytest.param([Insert("a", MIN_TIME, 0, "x")], id="the first time is a legal start"),
        pytest.param([Insert("a", 5, 5, "x"), Retract("a", 5, 5, 9)], id="an empty lifetime may grow"),
        pytest.param([Cti(9), Cti(4), Insert("a", 9, 10, "x")], id="a lower CTI has no effect"),
        pytest.param([A, Cti(20), Retract("a", 1, 20, 30)], id="what ends at the CTI may still grow"),
        pytest.param([A, Cti(21), Insert("a", 21, 22, "y")], id="an id that the CTI has passed may come again"),
        pytest.param([A, Retract("a", 1, 20, 1), Cti(2), Insert("a", 2, 22, "y")], id="a deleted one once it has passed LE"),
        pytest.param([Insert("a", 1, 3, Reading(float("nan"))), Retract("a", 1, 3, 2, Reading(float("nan")))], id="NaN is NaN"),
        pytest.param([Insert("a", 1, 3, {"v": 1}), Retract("a", 1, 3, 2, {"v": 1.0})], id="1 is 1.0"),
    ],
)
def test_unusual_but_legal(stream: Stream) -> None:
    assert problems(stream) == []


def test_an_empty_lifetime_that_grew_is_a_row() -> None:
    assert CHT.from_events([Insert("a", 5, 5, "x"), Retract("a", 5, 5, 9)]) == CHT.from_rows([(5, 9, "x")])


def test_an_event_before_the_cti_is_a_violation_of_it() -> None:
    with pytest.raises(CtiViolation, match=r"event 'b' is refused: its sync time 9 is before the CTI 10") as refused:
        CHT.from_events([A, Cti(10), Insert("b", 9, 30, "y")])
    assert (refused.value.cti, refused.value.event) == (10, Insert("b", 9, 30, "y"))
    assert "Hint: " in str(refused.value)


@pytest.mark.parametrize(
    ("late", "violates"),
    [
        (Insert("b", 10, 12, "y"), False),
        (Insert("b", 9, 12, "y"), True),
        (Retract("a", 1, 20, 10), False),
        (Retract("a", 1, 20, 9), True),
        (Retract("a", 1, 20, 1), True),
        (Retract("a", 1, 20, INFINITY), False),
        (Retract("gone", 1, 9, 30), True),
    ],
    ids=repr,
)
def test_sync_time_and_cti(late: Insert[str] | Retract, violates: bool) -> None:
    stream: Stream = [A, Insert("gone", 1, 9, "x"), Cti(10), late]
    assert problems(stream) == ([(3, "cti-violation")] if violates else [])


def test_the_table_forgets_ids_that_can_no_longer_change() -> None:
    table = EventTable()
    feed(table, [Insert(i, i, i + 5, "x") for i in range(100)])
    assert len(table) == 100
    table.advance(50)
    assert len(table) == 55, "events whose RE is 50 may still be lengthened"
    table.advance(INFINITY)
    assert len(table) == 0


def test_an_event_without_end_is_remembered_to_the_end() -> None:
    table = EventTable()
    feed(table, [Insert("a", 1, INFINITY, "x"), Cti(10**9)])
    assert table.admit(Retract("a", 1, INFINITY, 10**9)) == Retract("a", 1, INFINITY, 10**9, "x")


def test_a_retraction_learns_its_payload_from_the_table() -> None:
    table = EventTable()
    feed(table, [A])
    assert table.admit(Retract("a", 1, 20, 7)) == Retract("a", 1, 20, 7, "x")


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ([], MIN_TIME),
        ([A], 1),
        ([A, Cti(3), Insert("b", 7, 8, "x")], 7),
        ([A, Cti(9), Insert("b", 9, 10, "x")], 9),
        ([Insert("b", 7, 8, "x"), Retract("b", 7, 8, 7)], 7),
    ],
)
def test_the_watermark_is_the_latest_cti_or_le(stream: Stream, expected: int) -> None:
    assert table_after(stream).high_water == expected


def table_after(stream: Stream) -> EventTable:
    table, wrong = EventTable(), {index for index, _ in problems(stream)}
    feed(table, [event for index, event in enumerate(stream) if index not in wrong])
    return table
