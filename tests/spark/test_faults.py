"""What fails in a native lambda on Spark is told as the local engine tells it: what, in which operator, where, of what."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import UnitError, UserCodeError
from tests.spark.helpers import explained, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Query = Callable[[sd.Stream[Any]], sd.Stream[Any]]
FILE = Path(__file__).name
BIG = 2**62
ZERO = "Record(v=0, ...)"
ROW = {"v": 0, "k": "b", "m": None, "f": 0.0, "big": BIG}
FAULTS: dict[str, tuple[Query, str]] = {
    "where": (lambda s: s.where(lambda e: 1 // e.v > 0), ZERO),
    "where none": (lambda s: s.where(lambda e: e.m > 1), "Record(m=None, ...)"),
    "where no answer": (lambda s: s.where(lambda e: e.m), "Record(m=None, ...)"),
    "select": (lambda s: s.select(x=lambda e: e.f / e.v), "Record(v=0, f=0.0, ...)"),
    "select none": (lambda s: s.select(x=lambda e: e.m + 1), "Record(m=None, ...)"),
    "select item": (lambda s: s.select(x=lambda e: e.k[3]), "Record(k='b', ...)"),
    "select modulo": (lambda s: s.select(x=lambda e: e.big % e.v), "Record(v=0, big=4611686018427387904, ...)"),
    "select method": (
        lambda s: s.select(x=lambda e: sd.when(e.v > 0).then(e.k).otherwise(None).strip()),
        "Record(v=0, k='b', ...)",
    ),
    "group key": (lambda s: s.group_by(lambda e: 1 // e.v).tumbling_window(5).aggregate(n=sd.count()), ZERO),
    "edges key": (lambda s: s.to_edges(lambda e: 1 // e.v), ZERO),
    "argument": (lambda s: s.tumbling_window(5).aggregate(n=sd.sum(lambda e: 1 // e.v)), ZERO),
    "argument of where": (lambda s: s.tumbling_window(5).aggregate(n=sd.count(where=lambda e: 1 // e.v > 0)), ZERO),
    "join where": (
        lambda s: s.join(s, where=lambda a, b: a.big // b.v > 0),
        "(Record(big=4611686018427387904, ...), Record(v=0, ...))",
    ),
    "join select": (lambda s: s.join(s, on="k", select=lambda a, b: 1 // b.v), "(Record(...), Record(v=0, ...))"),
    "join key": (lambda s: s.join(s, on=(lambda a: 1 // a.v, lambda b: b.v)), ZERO),
    "anti join": (lambda s: s.anti_join(s, where=lambda a, b: 1 // a.v > 0), "(Record(v=0, ...), Record(...))"),
    "lifetime": (lambda s: s.alter_lifetime(duration=lambda e: 1 // e.v), ZERO),
    "after a projection": (
        lambda s: s.select(a=lambda e: e.v, b=lambda e: e.k).where(lambda e: 1 // e.a > 0),
        "Record(v=0, ...)",
    ),
    "bare": (lambda s: s.select(lambda e: e.v).where(lambda e: 1 // e > 0), "0"),
    "tuple": (lambda s: s.select(lambda e: (e.v, e.k)).where(lambda e: 1 // e[0] > 0), ZERO),
}

ROWS = [sd.Insert("a", 1, 9, ROW), sd.Insert("b", 1, 9, {**ROW, "v": 1, "m": 2})]


def failure(query: sd.Stream[Any], engine: Any) -> Exception:
    """Return what a run raises."""
    with pytest.raises((UserCodeError, OverflowError, UnitError)) as raised:
        query.run({"s": ROWS}, engine=engine)
    return raised.value


def where(error: Exception) -> list[str]:
    """Return what happened, the operator, the line and the hint that an error names."""
    what, _, rest = str(error).partition("\n")
    hint = re.findall(r"Hint: .*", rest)
    return [
        what,
        *re.findall(r"operator \w+|window \S+ \d+\)|lambda in \S+ line \d+(?: \(.*?\)(?=, payload|\n|$))?", rest),
        *hint,
    ]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_the_local_engine_says(name: str) -> None:
    make, payload = FAULTS[name]
    query = make(stream())
    assert "native" in next(iter(explained(query).values()))
    found, local = failure(query, "spark"), failure(query, "local")
    assert type(found) is type(local)
    assert where(found) == where(local)
    assert f"lambda in {FILE}, line " in str(found)
    assert f", payload {payload}" in str(found)


WINDOWED: dict[str, Query] = {
    "window": lambda s: s.tumbling_window(5).aggregate(lambda w: 1 // w.min(lambda e: e.v)),
    "window none": lambda s: s.tumbling_window(5).aggregate(lambda w: 1 + w.min(lambda e: e.m, where=lambda e: e.v == 0)),
    "window of groups": lambda s: s.group_by("k").snapshot_window().aggregate(lambda w: 1 // w.min(lambda e: e.v)),
}


@pytest.mark.parametrize("name", WINDOWED)
def test_a_fault_in_a_window_s_lambda_names_window_and_line(name: str) -> None:
    query = WINDOWED[name](stream())
    found = failure(query, "spark")
    assert where(found) == where(failure(query, "local"))
    assert re.search(rf"window \[\d+, \d+\), lambda in {FILE}, line \d+ \(.*\), payload Record\(a0=(0|None)\)", str(found))


OVERFLOWS: dict[str, tuple[Query, str]] = {
    "integer": (lambda s: s.select(x=lambda e: e.big * 4), "select_1"),
    "sum": (lambda s: s.union(s, s).tumbling_window(5).aggregate(n=sd.sum(lambda e: e.big)), "window_aggregate_1, window [0, 5)"),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_an_integer_that_leaves_int64_says_where(name: str) -> None:
    make, place = OVERFLOWS[name]
    found = failure(make(stream()), "spark")
    assert isinstance(found, OverflowError)
    assert f"leaves int64\n  at operator {place}, lambda in {FILE}, line " in str(found)
    assert "\nHint: compute with float(...)" in str(found)


def test_spark_s_own_error_has_the_same_text(spark: Any) -> None:
    frame = spark.sql("select 1L as le, 9L as re, 0L as v, repeat('x', 1000) as k")
    out = stream().select(x=lambda e: sd.functions.length(e.k) // e.v).on_spark(spark).batch({"s": frame})
    with pytest.raises(Exception, match="ZeroDivisionError in user code: ") as raised:
        out.collect()
    assert re.search(
        rf"at operator select_1, lambda in {FILE}, line \d+ \(length\(e.k\) // e.v\), payload Record\(v=0, k='x{{400}}'\)",
        str(raised.value),
    )


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_setting_has_spark_raise_an_error_of_its_own(spark: Any, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        query = stream().select(x=lambda e: sd.functions.cast(e.f / e.v, int), y=lambda e: -(e.big * 4) // e.v)
        assert f"lambda in {FILE}" in str(failure(query, "spark"))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_many_faults_of_one_lambda_name_the_line_only() -> None:
    query = stream().select(x=lambda e: e.v + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 1 // e.v)
    found = str(failure(query, "spark"))
    assert f"at operator select_1, lambda in {FILE}, line " in found
    assert "payload" not in found
