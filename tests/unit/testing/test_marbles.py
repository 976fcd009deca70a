"""Marble diagrams: what each character means, and that what is drawn of a stream is read as the same stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamdsl.errors import SchemaError
from streamdsl.temporal import CHT, INFINITY, Cti, Event, Insert, Retract, problems
from streamdsl.testing import events, marbles, timeline
from streamdsl.testing.strategies import chts, physical_streams


def insert(id: str, le: int, re: int) -> Insert[str]:
    return Insert(id, le, re, id.partition(".")[0])


DIAGRAMS: list[tuple[str, list[Event[Any]]]] = [
    ("", []),
    ("---", []),
    ("a", [insert("a", 0, 1)]),
    ("-a-b", [insert("a", 1, 2), insert("b", 3, 4)]),
    ("ab", [insert("a", 0, 1), insert("b", 1, 2)]),
    ("a-a", [insert("a", 0, 1), insert("a.2", 2, 3)]),
    ("-a==)", [insert("a", 1, 4)]),
    ("a)", [insert("a", 0, 1)]),
    ("a>", [insert("a", 0, INFINITY)]),
    ("a==>", [insert("a", 0, INFINITY)]),
    ("a!", [insert("a", 0, 0)]),
    ("a==b==)-c", [insert("a", 0, 3), insert("b", 3, 6), insert("c", 8, 9)]),
    ("a==(bc)=>", [insert("a", 0, 3), insert("b", 3, INFINITY), insert("c", 3, INFINITY)]),
    ("-(ab)==)", [insert("a", 1, 4), insert("b", 1, 4)]),
    ("-(ab)-c", [insert("a", 1, 2), insert("b", 1, 2), insert("c", 3, 4)]),
    ("-|-|>", [Cti(1), Cti(INFINITY)]),
    ("(a|b)==)|", [insert("a", 0, 3), Cti(0), insert("b", 0, 3), Cti(4)]),
    ("7: --*", [insert("7", 2, 3)]),
    ("trip 7: --[==)--[=>", [insert("trip 7", 2, 5), insert("trip 7.2", 8, INFINITY)]),
    ("cti: ---|", [Cti(3)]),
    ("time: -5   0\na: [==)\n-b", [insert("a", -5, -2), insert("b", -4, -3)]),
    ("-a==>  # a comment: a begins\n\n# nothing\n-a==)", [insert("a", 1, INFINITY), Retract("a", 1, INFINITY, 4)]),
    ("-a==)\n-a=====)\n-a!\n-a", [insert("a", 1, 4), Retract("a", 1, 4, 7), Retract("a", 1, 7, 1), insert("a.2", 1, 2)]),
    ("a==)\n-a==)\n-a=)", [insert("a", 0, 3), insert("a.2", 1, 4), Retract("a.2", 1, 4, 3)]),
]


@pytest.mark.parametrize(("diagram", "expected"), DIAGRAMS, ids=[repr(diagram) for diagram, _ in DIAGRAMS])
def test_each_character_means_one_thing(diagram: str, expected: list[Event[Any]]) -> None:
    found = marbles(diagram)
    assert found == expected
    assert problems(found) == []


def test_diagrams_begin_where_they_are_told_to() -> None:
    assert marbles("a-|", start=-3) == [insert("a", -3, -2), Cti(-1)]


def test_payloads_are_the_names_or_the_values_given() -> None:
    found = marbles("a-b-a", {"a": 7.5})
    assert [event.payload for event in found if isinstance(event, Insert)] == [7.5, "b", 7.5]


def test_table_2_of_the_paper_as_marbles() -> None:
    diagram = """
        E0: -[=========>
        E0: -[========)
        E0: -[===)
        E1: ----[====)
    """
    table = """
        kind     id  le  re   re_new  value
        insert   E0  1   inf  -       P1
        retract  E0  1   inf  10
        retract  E0  1   10   5
        insert   E1  4   9    -       P2
    """
    assert marbles(diagram, {"E0": "P1", "E1": "P2"}) == events(table)


@pytest.mark.parametrize(
    ("diagram", "message"),
    [
        ("a==", r"an event has no end\n    a==\n      \^"),
        ("a==-", "an event has no end"),
        ("a==|", "an event has no end"),
        ("a=!", "'!' stands right after an event's start"),
        ("--)", r"'\)' means nothing here\n    --\)\n      \^"),
        ("a b", "' ' means nothing here"),
        ("(a", r"'\(' means nothing here"),
        ("()", r"'\(' means nothing here"),
        ("(aa)", "(?s)drawn twice in one tick.*values="),
        ("|)", "a CTI has no end"),
        ("|==>", "a CTI has no end"),
        ("-[==)", r"'\[' means nothing in a line without a name"),
        ("x: -a", r"'a' means nothing in a line with a name\n    x: -a\n        \^"),
        ("time: soon", "does not begin with a tick"),
        ("time:", "does not begin with a tick"),
    ],
)
def test_bad_diagrams_are_refused_where_they_are_bad(diagram: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        marbles(diagram)


@given(physical_streams(chts(st.sampled_from("xy"), min_time=-9, max_time=20)))
def test_what_is_drawn_is_read_as_the_same_stream(stream: list[Event[Any]]) -> None:
    ids = [event.id for event in stream if isinstance(event, Insert)]
    assume(len(set(ids)) == len(ids))  # a name that is drawn again is of another event, and says so: a.2
    named = [event if isinstance(event, Cti) else _without_payload(event) for event in stream]
    assert marbles(timeline(named)) == named if named else timeline(named) == "time: 0"


def _without_payload(event: Insert[Any] | Retract) -> Event[Any]:
    if isinstance(event, Insert):
        return Insert(event.id, event.le, event.re, event.id)
    return Retract(event.id, event.le, event.re, event.re_new)


def test_a_wide_timeline_is_not_to_scale() -> None:
    stream = [Insert("a", 10**9, 2 * 10**9, 1), Cti(10**9), Insert("b", 5 * 10**9, INFINITY, "x"), Cti(INFINITY)]
    assert timeline(stream).splitlines() == [
        "time: not to scale",
        "a   : [===)          # [1000000000, 2000000000) 1",
        "cti : |              # 1000000000",
        "b   : --------[===>  # [5000000000, inf) 'x'",
        "cti : |>             # inf",
    ]
    with pytest.raises(SchemaError, match="for reading only"):
        marbles(timeline(stream))


def test_a_timeline_of_rows_names_them_by_their_payloads() -> None:
    rows = [(-2, 3, "x"), (0, 1, 2.5), (4, INFINITY, None), (1, 4, {"zone": "north", "fare": 12.5})]
    assert timeline(rows, window=(0, 10)).splitlines() == [
        "time  : -2     5    10",
        "window: --[=========)",
        "x     : [====)",
        "2.5   : --*",
        "None  : ------[======>",
        "Record: ---[==)         # Record(zone='north', fare=12.5)",
    ]
    assert timeline([]) == "time: 0"
    assert timeline([(1000, 1003, "x")]) == "time: 1000\nx   : [==)"


def test_a_timeline_shows_dates_of_a_calendar_unit() -> None:
    cht = CHT.from_rows([("2013-01-01T00:00:00Z", "2013-01-01T01:00:00Z", "x")], "s")
    assert timeline(cht).splitlines() == ["time: not to scale", "x   : [===)  # [2013-01-01T00:00:00Z, 2013-01-01T01:00:00Z)"]
