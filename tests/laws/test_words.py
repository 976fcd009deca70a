"""The law of the table of words: over columns each word gives what it gives row by row, or fails in the same row.

`tests/spark/test_expressions.py` holds Spark to the same table and the same values.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.expr.evaluate import Inputs, RowError, evaluate
from streamdsl.expr.nodes import Constant, Expr, Field, Function, application
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.expr.vector import Scalar, contains
from tests.laws.profiles import MANY
from tests.laws.tracing.law import canon, outcome
from tests.laws.words import OTHERS, VALUES, fields, node, rows

ARITIES = {"**": 2, ".removeprefix": 2, ".removesuffix": 2, ".zfill": 2, ".split": 2, "local_time": 3, "truncate": 3}
OWN = ("**", "floor_time", "ceil_time")
TIMES = ("add_time", "reach", "earliest", "latest", "to_ticks", "to_duration")
KINDS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("//", "&", "|", "^"), ("int", "bool")),
    **dict.fromkeys(TIMES, ("int",)),
}
SMALL: list[Any] = [0, 1, 2, 3, -2, True, 0.5, None]
MIXED: list[Any] = [*VALUES["int"], *VALUES["float"], True, None, *VALUES["str"][:8], *OTHERS]
COLUMNS: dict[str, list[Any]] = {**VALUES, "mixed": MIXED, "others": OTHERS, "small": SMALL}
NUMBERS = ("int", "float", "bool", "none", "small")


def arities(word: ScalarFunction) -> set[int]:
    return {len(kinds) for kinds in word.native} or {ARITIES.get(word.name, 1)}


def columns(word: ScalarFunction, arity: int) -> list[tuple[str, ...]]:
    """Return kinds of columns to try a word on; a power or a product must not fill the memory."""
    if word.name in ("**", ".zfill"):
        return [(kind, "small") for kind in COLUMNS]
    if word.name == "*":
        return [*itertools.product(NUMBERS, NUMBERS), ("str", "small"), ("small", "str"), ("others", "small")]
    if word.name == "local_time":
        return [(kind, "zone", unit) for kind in COLUMNS for unit in ("unit", "none")]
    if word.name in ("floor_time", "ceil_time"):
        return [(kind, "step", "start") for kind in COLUMNS]
    if word.name in ("to_ticks", "to_duration"):
        return [(kind, unit) for kind in COLUMNS for unit in ("unit", "none")]
    if word.name == "truncate":
        return [(kind, *("step", "start")[: arity - 1]) for kind in COLUMNS]
    if arity <= 2:
        return list(itertools.product(COLUMNS, repeat=arity))
    return [("str", *rest) for rest in itertools.product(("str", "small", "none"), repeat=arity - 1)]


MORE: dict[str, list[Any]] = {
    "zone": ["Europe/Vienna", "America/New_York", "Australia/Lord_Howe"],
    "unit": ["s", "ms", "us", "ns"],
    "step": [1, 5, 3600, -7, 0, 2.5, timedelta(hours=1), timedelta(days=7), None],
    "start": [0, 2, -3, timedelta(days=4), timedelta()],
}


def check(expr: Expr, table: Sequence[tuple[Any, ...]]) -> None:
    payloads = [{f"x{i}": value for i, value in enumerate(row)} for row in table]
    expected = [outcome(evaluate_row, expr, (payload,)) for payload in payloads]
    good = [n for n, (kind, _) in enumerate(expected) if kind == "value"]
    found = list(map(canon, over_columns(expr, [payloads[n] for n in good])))
    assert found == [expected[n][1] for n in good], (expr, [payloads[n] for n in good])
    bad = next((n for n, (kind, _) in enumerate(expected) if kind == "error"), None)
    if bad is not None:
        with pytest.raises(RowError) as raised:
            over_columns(expr, payloads)
        assert (raised.value.row, type(raised.value.cause).__name__) == (bad, expected[bad][1])


def over_columns(expr: Expr, payloads: list[dict[str, Any]]) -> list[Any]:
    found = evaluate(expr, Inputs((Table.from_payloads(payloads),), len(payloads))).tolist()
    return list(found)


@pytest.mark.parametrize("word", SCALAR_FUNCTIONS.values(), ids=SCALAR_FUNCTIONS.keys())
def test_a_word_means_the_same_over_columns_and_row_by_row(word: ScalarFunction) -> None:
    rng = random.Random(word.name)
    for arity in arities(word):
        expr = node(word, fields(arity))
        for kinds in columns(word, arity):
            table = rows([{**COLUMNS, **MORE}[kind] for kind in kinds], 150 if MANY else 50)
            check(expr, table)
            for _ in range(6 if MANY else 2):  # few rows, which seldom overflow: there numpy computes
                check(expr, rng.choices(table, k=rng.randint(1, 3)))


@pytest.mark.parametrize(
    "name", [word.name for word in SCALAR_FUNCTIONS.values() if word.native and word.name not in ("[]", "[:]")]
)
def test_a_word_means_the_same_with_a_constant(name: str) -> None:
    word = SCALAR_FUNCTIONS[name]
    for arity in arities(word) - {1}:
        for place, constant in itertools.product(range(arity), [0, 3, -1.5, True, None, "a", 2**70]):
            arguments = [Constant(constant) if n == place else Field(f"x{n}") for n in range(arity)]
            for kind in ("int", "float", "bool", "str"):
                check(node(word, arguments), [(value,) * arity for value in VALUES[kind][:6]])


@pytest.mark.parametrize(
    "name", [word.name for word in SCALAR_FUNCTIONS.values() if word.columns is not None and word.name not in (*OWN, "contains")]
)
def test_numpy_computes_where_it_is_certain(name: str) -> None:
    word = SCALAR_FUNCTIONS[name]
    assert word.columns is not None
    for kind in KINDS_OF.get(name, ("int", "float", "bool")):
        column = Table.from_payloads([{"x": value} for value in VALUES[kind][2:6] or [True, True]]).columns["x"]
        arity = min(arities(word))
        found = word.columns(column, *[Scalar(VALUES[kind][0] or 1)] * (arity - 1))
        assert found is not None, kind
        assert found.dtype != object


@pytest.mark.parametrize("name", ["floor_time", "ceil_time"])
@pytest.mark.parametrize(("period", "phase"), [(1, 0), (5, 0), (5, 3), (2**62, 7)])
def test_numpy_computes_grids_of_constants(name: str, period: int, phase: int) -> None:
    word, values = SCALAR_FUNCTIONS[name], [-7, -1, 0, 4, 5, 2**40]
    assert word.columns is not None
    found = word.columns(Table.from_payloads(values).columns["value"], Scalar(period), Scalar(phase))
    assert found is not None
    assert found.tolist() == [word.python(value, period, phase) for value in values]


@pytest.mark.parametrize(
    "whole", [(), (1, 3), (True, 2.5), ("a", None), (float("nan"), 0.0), (2**53 + 1, 2**70), (1, "a")], ids=str
)
def test_membership_in_a_constant_tuple(whole: tuple[Any, ...]) -> None:
    expr = Function("contains", (Constant(whole), Field("x0")))
    for values in COLUMNS.values():
        check(expr, [(value,) for value in values])


def test_membership_of_typed_columns_is_computed_by_numpy() -> None:
    for whole, values in (((1, 3), [1, 2]), (("a", "b"), ["a", "c"])):
        found = contains(Scalar(whole), Table.from_payloads(values).columns["value"])
        assert found is not None
        assert found.tolist() == [True, False]


def test_every_node_that_is_a_word_is_found_again() -> None:
    for word in SCALAR_FUNCTIONS.values():
        for arity in arities(word):
            assert application(node(word, fields(arity))) == (word, tuple(fields(arity)))


TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str, "none": type(None)}
TAME: dict[str, list[Any]] = {**VALUES, "int": [0, 1, -1, 2, 7, 300], "str": VALUES["str"][:12]}


@pytest.mark.parametrize("name", [word.name for word in SCALAR_FUNCTIONS.values() if word.native or word.others or word.gives])
def test_a_word_gives_what_the_table_says(name: str) -> None:
    word = SCALAR_FUNCTIONS[name]
    for arity in arities(word):
        for kinds in itertools.product(VALUES, repeat=arity):
            wanted = word.result(kinds)
            if wanted is None or (name == "*" and "str" in kinds):
                continue
            for row in rows([TAME[kind] for kind in kinds], 60):
                payload = {f"x{i}": value for i, value in enumerate(row)}
                kind, value = outcome(evaluate_row, node(word, fields(arity)), (payload,))
                assert kind == "error" or value[0] == TYPES[wanted].__name__ or (name == "coalesce" and value[0] == "NoneType")


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        (datetime(2026, 3, 29, 0, 59), "Europe/Vienna", "2026-03-29T01:59:00+01:00"),
        (datetime(2026, 3, 29, 1, 0), "Europe/Vienna", "2026-03-29T03:00:00+02:00"),
        (datetime(2026, 10, 25, 0, 30), "Europe/Vienna", "2026-10-25T02:30:00+02:00"),
        (datetime(2026, 10, 25, 1, 30), "Europe/Vienna", "2026-10-25T02:30:00+01:00"),
        (datetime(2026, 11, 1, 5, 30), "America/New_York", "2026-11-01T01:30:00-04:00"),
        (datetime(2026, 11, 1, 6, 30), "America/New_York", "2026-11-01T01:30:00-05:00"),
        (datetime(2026, 4, 4, 15, 0), "Australia/Lord_Howe", "2026-04-05T01:30:00+10:30"),
        (datetime(2026, 1, 1, 0, 0), "Asia/Kathmandu", "2026-01-01T05:45:00+05:45"),
        (datetime(1900, 1, 1), "UTC", "1900-01-01T00:00:00+00:00"),
    ],
)
def test_clocks_show_the_time_of_the_place(instant: datetime, zone: str, shown: str) -> None:
    ticks = {
        unit: int((instant - datetime(1970, 1, 1)) / timedelta(seconds=1)) * per
        for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
    }
    arguments: list[tuple[Any, ...]] = [(instant, zone), (instant.replace(tzinfo=UTC), zone)]
    arguments += [(count, zone, unit) for unit, count in ticks.items() if abs(count) < 2**63]
    for parts in arguments:
        expr = Function("local_time", tuple(map(Constant, parts)))
        assert evaluate_row(expr, ()).isoformat() == shown
    assert Schema.of_payload(evaluate_row(expr, ())) == Schema.scalar()


CHANGES = [datetime(2026, 3, 8, 7), datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1), datetime(2026, 11, 1, 6)]
"""When clocks change in New York and Vienna, in UTC."""
INSTANTS = st.builds(lambda at, minutes: at + timedelta(minutes=minutes), st.sampled_from(CHANGES), st.integers(-150, 150))
PLACES = st.sampled_from(["America/New_York", "Europe/Vienna", "Asia/Tokyo", "UTC"])


@given(INSTANTS, PLACES, st.sampled_from([1, 5, 30, 60]))
def test_no_hour_is_lost_where_clocks_change(instant: datetime, zone: str, minutes: int) -> None:
    at = instant.replace(tzinfo=UTC)
    ticks = int(at.timestamp())
    for parts in [(instant, zone), (ticks, zone, "s"), (ticks * 10**9, zone, "ns")]:
        shown = evaluate_row(Function("local_time", tuple(map(Constant, parts))), ())
        assert shown.timestamp() == ticks
        assert shown.replace(tzinfo=None) == datetime.fromtimestamp(ticks, ZoneInfo(zone)).replace(tzinfo=None)
        rounded = evaluate_row(Function("truncate", (Constant(shown), Constant(timedelta(minutes=minutes)))), ())
        assert 0 <= ticks - rounded.timestamp() < minutes * 60
