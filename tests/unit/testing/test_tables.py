from __future__ import annotations

from typing import NamedTuple

import pytest

from streamdsl.errors import EventError, SchemaError
from streamdsl.temporal import CHT, INFINITY, Cti, Insert, Record, Retract
from streamdsl.testing import events


class Price(NamedTuple):
    symbol: str
    price: float


def test_table_2_of_the_paper() -> None:
    table = """
        kind     id  le  re   re_new  value
        insert   E0  1   inf  -       P1
        retract  E0  1   inf  10      P1
        retract  E0  1   10   5       P1
        insert   E1  4   9    -       P2
    """
    assert CHT.from_events(events(table)) == CHT.from_rows([(1, 5, "P1"), (4, 9, "P2")])


def test_values_are_read_as_what_they_look_like() -> None:
    (event,) = events("kind id le re re_new i f t n b q d e\ninsert 7 -3 2 - 1 .5 abc none TRUE '1 2' - nan")
    assert isinstance(event, Insert)
    assert (event.id, event.le, event.re) == (7, -3, 2)
    assert dict(event.payload) | {"e": 0} == {"i": 1, "f": 0.5, "t": "abc", "n": None, "b": True, "q": "1 2", "d": None, "e": 0}
    assert event.payload.e != event.payload.e


def test_payloads_are_records_or_what_the_caller_builds() -> None:
    table = "kind id le re re_new symbol price\ninsert a 1 2 - X 3.5\nretract a 1 2 1"
    assert events(table) == [Insert("a", 1, 2, Record(symbol="X", price=3.5)), Retract("a", 1, 2, 1)]
    assert events(table, Price)[0] == Insert("a", 1, 2, Price("X", 3.5))
    assert events(table.replace("re 1 2 1", "re 1 2 1 X 3.5"), Price)[1].payload is not None  # type: ignore[union-attr]


def test_ctis_comments_and_empty_lines() -> None:
    table = "kind id le re re_new\n\n# nothing yet\ncti - 5   # up to five\nCTI - inf"
    assert events(table) == [Cti(5), Cti(INFINITY)]
    assert events("") == []


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ("kind le re\ninsert 1 2", SchemaError, "Hint: it begins with 'kind id le re re_new'"),
        ("kind id le re re_new v v", SchemaError, "once"),
        ("kind id le re re_new\ninsert a 1 2 - 3", SchemaError, "more cells"),
        ("kind id le re re_new\nremove a 1 2", SchemaError, "insert, retract and cti"),
        ("kind id le re re_new\ninsert a x 2", EventError, "'x' is not a time"),
        ("kind id le re re_new\nretract a 1 2", EventError, "'-' is not a time"),
    ],
)
def test_bad_tables_say_what_is_wrong(table: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        events(table)
