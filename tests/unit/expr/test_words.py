"""The functions of expressions: what they build and compute, and the mistakes that are found when a query is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypedDict

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import is_opaque
from streamdsl.expr.recording import NotTraceable
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.schema import Schema
from streamdsl.expr.tracing import trace


class Point(NamedTuple):
    x: float
    y: float


class Tags(TypedDict):
    colour: str
    size: int


@dataclass
class Address:
    city: str
    title: str
    at: Point | None = None

    country = "AT"

    @property
    def short(self) -> str:
        return self.city[:3]


@dataclass
class Person:
    name: str
    home: Address
    work: Address | None
    tags: Tags
    extra: Any
    friends: list[Address]


PERSON = Schema.of_type(Person)
ADA = Person("Ada", Address("Vienna", "Dr.", Point(1.0, 2.0)), None, {"colour": "red", "size": 3}, {"a": 1}, [])


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (sd.functions.coalesce(sd.col("a"), sd.col("b"), 0), "coalesce(e.a, coalesce(e.b, 0))"),
        (sd.functions.cast(sd.col("a"), int) + 1, "cast(e.a, int) + 1"),
        (sd.functions.length(sd.col("s")) > 3, "length(e.s) > 3"),
        (sd.functions.contains(sd.col("s"), "x"), "contains(e.s, 'x')"),
        (sd.functions.contains((sd.col("a"), 1), 2), "contains((e.a, 1), 2)"),
        (sd.functions.local_time(sd.col("t"), "UTC").hour, "local_time(e.t, 'UTC').hour"),
        (sd.functions.local_time(sd.col("t"), "UTC", unit="s").date(), "local_time(e.t, 'UTC', 's').date()"),
        (sd.functions.truncate(sd.col("t"), 60, -1), "truncate(e.t, 60, 59)"),
        (sd.functions.truncate(sd.col("t"), "1h", unit="ms"), "truncate(e.t, 3600000)"),
        (sd.functions.truncate(sd.col("t"), "1h"), "truncate(e.t, datetime.timedelta(seconds=3600))"),
        (sd.col("s")[0], "e.s[0]"),
        (sd.col("s")[1:], "e.s[1:]"),
        (sd.col("s")[: sd.col("n")], "e.s[:e.n]"),
        ((sd.col("s") + "x")[::2], "(e.s + 'x')[::2]"),
    ],
)
def test_functions_build_what_they_say(expression: Any, text: str) -> None:
    assert repr(expression) == text


def test_of_values_the_functions_compute() -> None:
    assert sd.functions.coalesce(None, None, 3) == 3
    assert sd.functions.coalesce(0, 1) == 0
    assert (
        sd.functions.cast("7", int),
        sd.functions.cast(7, float),
        sd.functions.cast(None, str),
        sd.functions.cast("", bool),
    ) == (7, 7.0, "None", False)
    assert (sd.functions.length("abc"), sd.functions.contains([1, 2], 2.0), sd.functions.contains("abc", "bc")) == (3, True, True)
    assert not sd.functions.contains((float("nan"),), float("nan"))
    assert sd.functions.local_time(datetime(2026, 7, 1, 12, tzinfo=UTC), "America/New_York").hour == 8


def test_in_an_opaque_lambda_a_scalar_row_is_its_value() -> None:
    rows = [(1, 2, "ab"), (2, 3, "c")]
    query = sd.from_rows(rows).where(lambda e: sd.functions.length(e) == 2 and sd.functions.contains(e, "a"))
    assert [row.payload for row in query.run().cht()] == ["ab"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: sd.functions.cast(sd.col("a"), list), "there is no cast to <class 'list'>.*\n.*int, float, str, bool"),  # type: ignore[arg-type]
        (lambda: sd.functions.local_time(sd.col("t"), "Europe/Wien"), "there is no time zone 'Europe/Wien'"),
        (lambda: sd.functions.local_time(sd.col("t"), "Europe/Viena"), "did you mean 'Europe/Vienna'"),
        (lambda: sd.functions.local_time(sd.col("t"), "../etc"), "there is no time zone"),
        (lambda: sd.functions.local_time(sd.col("t"), "UTC", "tick"), "no calendar unit 'tick'; there are: s, ms, us, ns"),  # type: ignore[call-overload]
        (lambda: sd.functions.truncate(sd.col("t"), "1h", 5), "'1h' and 5 are ticks and a duration"),
        (lambda: sd.functions.truncate(sd.col("t"), "-1h"), "positive period"),
        (lambda: sd.functions.truncate(sd.col("t"), 0), "positive period, not to 0"),
        (lambda: sd.functions.truncate(sd.col("t"), "1 month"), "month"),
        (lambda: sd.functions.truncate(sd.col("t"), "1h", unit="tick"), "no calendar unit 'tick'"),  # type: ignore[call-overload]
        (lambda: sd.functions.coalesce(sd.col("a"), [1]), "list is not a constant"),
        (lambda: sd.col("s")[[1]], "list is not a constant"),
    ],
)
def test_mistakes_are_told_when_they_are_written(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        wrong()


def test_a_datetime_is_rounded_down_by_the_clock_that_it_shows() -> None:
    noon = datetime(2026, 7, 1, 12, 34, tzinfo=UTC)
    assert sd.functions.truncate(noon, "1d").isoformat() == "2026-07-01T00:00:00+00:00"
    assert sd.functions.truncate(sd.functions.local_time(noon, "Europe/Vienna"), "1d").isoformat() == "2026-07-01T00:00:00+02:00"
    assert sd.functions.truncate(noon.replace(tzinfo=None), "7d", "4d") == datetime(2026, 6, 29), "a Monday"
    assert sd.functions.truncate(datetime(1969, 12, 31, 23), timedelta(hours=2)) == datetime(1969, 12, 31, 22)
    again = sd.functions.local_time(datetime(2026, 10, 25, 1, 40, tzinfo=UTC), "Europe/Vienna")
    assert sd.functions.truncate(again, "1h").isoformat() == "2026-10-25T02:00:00+01:00", (
        "the second time that the clocks show two"
    )


@pytest.mark.parametrize(("time", "period"), [(7, timedelta(hours=1)), (datetime(2026, 7, 1), 60), ("2026", 60)])
def test_ticks_and_datetimes_are_not_mixed(time: Any, period: Any) -> None:
    with pytest.raises(TypeError, match=r"rounded down|unsupported operand|not all arguments"):
        sd.functions.truncate(time, period)


def test_a_wrong_zone_in_a_lambda_is_told_when_the_query_is_written() -> None:
    with pytest.raises(QueryError, match="Europe/Viena"):
        sd.source("s").select(lambda e: sd.functions.local_time(e.t, "Europe/Viena").hour)


def test_a_zone_that_a_row_gives_makes_a_lambda_opaque() -> None:
    assert is_opaque(trace(lambda e: sd.functions.local_time(e.t, e.zone), (None,)))
    with pytest.raises(NotTraceable, match="constants"):
        sd.functions.local_time(sd.col("t"), sd.col("zone"))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda e: e.home.citi,
            "no field 'home.citi'; the fields are: home.city, home.title, home.at\nHint: did you mean 'home.city'",
        ),
        (lambda e: e.work.citi == "x", "no field 'work.citi'"),
        (lambda e: e.home.at.z, "no field 'home.at.z'; the fields are: home.at.x, home.at.y"),
        (lambda e: {"a": e.name, "b": e.home.at.xx + 1}, "did you mean 'home.at.x'"),
        (lambda e: e.tags["weight"], "no field 'tags.weight'; the fields are: tags.colour, tags.size"),
        (lambda e: sd.functions.length(e.home.upper), "no field 'home.upper'"),
    ],
)
def test_a_nested_field_that_is_not_declared_is_told_with_those_that_are(function: Any, message: str) -> None:
    with pytest.raises(FieldNotFound) as raised:
        trace(function, (PERSON,))
    assert message in str(raised.value)


def test_the_right_row_of_a_join_is_checked_too() -> None:
    people = sd.source("p", Person)
    with pytest.raises(FieldNotFound, match=r"home\.citi"):
        people.join(people, where=lambda a, b: a.home.city == b.home.citi)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "text", "value"),
    [
        (lambda e: e.home.city, "e.home.city", "Vienna"),
        (lambda e: e.home.title, "e.home.title", "Dr."),
        (lambda e: e.home.title.lower(), "e.home.title.lower()", "dr."),
        (lambda e: e.home.country, "e.home.country", "AT"),
        (lambda e: e.home.short, "e.home.short", "Vie"),
        (lambda e: e.home.at.x * 2, "e.home.at.x * 2", 2.0),
        (lambda e: e.home.at[1], "e.home.at[1]", 2.0),
        (lambda e: e.tags["colour"].upper(), "e.tags['colour'].upper()", "RED"),
        (lambda e: e.extra["a"], "e.extra['a']", 1),
        (lambda e: e.work == None, "e.work == None", True),  # noqa: E711
        (lambda e: sd.functions.length(e.friends), "length(e.friends)", 0),
    ],
)
def test_nested_fields_are_traced(function: Any, text: str, value: Any) -> None:
    expr = trace(function, (PERSON,))
    assert describe(expr) == text
    assert evaluate_row(expr, (ADA,)) == function(ADA) == value


def test_what_a_class_answers_for_itself_is_not_checked() -> None:
    @dataclass
    class Open:
        x: int

        def __getattr__(self, name: str) -> str:
            return name

    @dataclass
    class Holder:
        inner: Open

    Holder.__annotations__["inner"] = Open
    expr = trace(lambda e: e.inner.anything, (Schema.of_type(Holder),))
    assert evaluate_row(expr, (Holder(Open(1)),)) == "anything"
