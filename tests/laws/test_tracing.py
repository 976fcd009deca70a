"""The law of tracing: a traced lambda never means something else than the same lambda called on a row.

Each lambda (`tracing/traced.py`, `tracing/opaque.py`, random ones: `tracing/grammar.py`) is called directly on the rows
(`tracing/payloads.py`), evaluated row by row, and evaluated over columns: the same values of the same types, or the same
exception in the same row (`tracing/law.py`). Traced ones must be traced (that is the use of it), opaque ones must not be.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from streamdsl.errors import FieldNotFound
from streamdsl.expr.describe import describe
from streamdsl.expr.evaluate import Inputs, truth
from streamdsl.expr.expression_functions import coalesce, contains, is_none, not_, when
from streamdsl.expr.nodes import is_opaque
from streamdsl.expr.predicates import holds
from streamdsl.expr.row_evaluator import evaluate_row, holds_row
from streamdsl.expr.schema import Schema, as_payload
from streamdsl.expr.table import Table
from streamdsl.expr.tracing import trace
from tests.laws.profiles import examples
from tests.laws.tracing.grammar import lambdas
from tests.laws.tracing.law import called, check, expected_columns, outcome, over_columns, traced
from tests.laws.tracing.names import Lambda, Out, clamp, helper, kind
from tests.laws.tracing.opaque import OF_CLASSES, OF_RECORDS, OPAQUE
from tests.laws.tracing.payloads import (
    CLASS_SCHEMA,
    CORNERS,
    RECORD_SCHEMA,
    Allocated,
    Initialized,
    Row,
    as_record,
    batches,
    made_by,
)
from tests.laws.tracing.traced import ITEMS, TRACED

pytestmark = [
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.* with .*literal:SyntaxWarning"),
    pytest.mark.filterwarnings("ignore:.*is not subscriptable:SyntaxWarning"),
    pytest.mark.filterwarnings("ignore:.*indices must be integers:SyntaxWarning"),
]

SCALARS: list[Lambda] = [
    lambda e: e,
    lambda e: e / 2,
    lambda e: 2 * e + 1,
    lambda e: -e,
    lambda e: abs(e),
    lambda e: (e > 0) & (e < 2),
    lambda e: e == e,
    lambda e: (e, e + e),
    lambda e: {"v": e},
    lambda e: Out(e),
    lambda e: e if e else None,
    lambda e: (e, 1) if e else [e],
    lambda e: {"v": e} if e else Out(e),
    lambda e: when(e == 1).then(e).otherwise(-1),
    lambda e: when(e).then(e).otherwise(-1),
    lambda e: when(e).then((e, 1)).otherwise(e).numerator,
    lambda e: coalesce(e, 0),
    lambda e: contains((1, "a"), e),
    lambda e: is_none(e),
    lambda e: not_(e),
    lambda e: helper(e),
    lambda e: clamp(e),
    lambda e: kind(e),
    lambda e: kind(e + e),
    lambda e: kind((e, 1)),
    lambda e: kind((e, 1)[0]),
    lambda e: kind(when(e).then(e).otherwise(e)),
    lambda e: e.numerator,
    lambda e: e[0],
    lambda e: e.real if e else e.imag,
]
OF_TEXTS: list[Lambda] = [lambda e: e.upper()]
OF_VALUE: list[Lambda] = [
    lambda e: e.value,
    lambda e: e.value + 1,
    lambda e: (e.value, 1),
    lambda e: e.value if e.value else None,
    lambda e: when(e.value == 1).then(e.value).otherwise(-1),
    lambda e: kind(e.value),
]
TUPLES: list[Lambda] = [
    lambda e: e,
    lambda e: e[0],
    lambda e: e[-1],
    lambda e: e[2],
    lambda e: e._0 + e[1],
    lambda e: e["_1"],
    lambda e: (e, e[0]),
    lambda e: e if e[0] else (e, e),
    lambda e: e.count(1),
    lambda e: e.index(1),
    lambda e: e[0:1],
    lambda e: len(e),
    lambda e: kind(e),
    lambda e: kind((1, e)),
]
TRUTHS: list[Lambda] = [
    lambda e: e,
    lambda e: e.m,
    lambda e: e.f,
    lambda e: e.i,
    lambda e: e.s,
    lambda e: (e.i,),
    lambda e: {},
    lambda e: e.m or e.s,
]


def test_there_are_enough_lambdas() -> None:
    assert len(TRACED) >= 60
    assert len(TRACED) + len(OPAQUE) + len(ITEMS) + len(OF_RECORDS) + len(OF_CLASSES) >= 200


@pytest.mark.parametrize("schema", [CLASS_SCHEMA, RECORD_SCHEMA, None], ids=["class", "record", "unknown"])
def test_what_should_be_traced_is_traced(schema: Schema | None) -> None:
    items = ITEMS if schema is RECORD_SCHEMA else []
    functions = [*TRACED, *items]
    assert [f"{describe(traced(f, schema))} #{n}" for n, f in enumerate(functions) if is_opaque(traced(f, schema))] == []


def test_what_must_be_opaque_is_opaque() -> None:
    seen = [describe(traced(f, CLASS_SCHEMA)) for f in [*OPAQUE, *OF_CLASSES] if not is_opaque(traced(f, CLASS_SCHEMA))]
    seen += [describe(traced(f, RECORD_SCHEMA)) for f in OF_RECORDS if not is_opaque(traced(f, RECORD_SCHEMA))]
    assert seen == []


@pytest.mark.parametrize("rows", CORNERS, ids=range(len(CORNERS)))
def test_all_lambdas_mean_what_they_mean_in_the_corners(rows: list[Row]) -> None:
    for function in [*TRACED, *OPAQUE, *OF_CLASSES]:
        check(function, CLASS_SCHEMA, rows)


@examples(60)
@given(batches())
def test_traced_lambdas_mean_what_they_mean_on_dataclasses(rows: list[Row]) -> None:
    for function in TRACED:
        check(function, CLASS_SCHEMA, rows)


@examples(60)
@given(batches())
def test_lambdas_mean_what_they_mean_on_records(rows: list[Row]) -> None:
    payloads = list(map(as_record, rows))
    for function in [*TRACED, *ITEMS, *OF_RECORDS]:
        check(function, RECORD_SCHEMA, payloads)


@examples(40)
@given(batches())
def test_lambdas_mean_what_they_mean_where_the_schema_is_unknown(rows: list[Row]) -> None:
    for function in [*TRACED, *OF_CLASSES]:
        check(function, None, rows)


@examples(40)
@given(batches())
def test_opaque_lambdas_mean_what_they_mean(rows: list[Row]) -> None:
    for function in [*OPAQUE, *OF_CLASSES]:
        check(function, CLASS_SCHEMA, rows)


@examples(90)
@given(lambdas(), st.sampled_from([CLASS_SCHEMA, RECORD_SCHEMA, None]), st.sampled_from(CORNERS))
def test_random_lambdas_mean_what_they_mean(written: tuple[str, Lambda], schema: Schema | None, rows: list[Row]) -> None:
    text, function = written
    note(text)
    payloads = list(map(as_record, rows)) if schema is RECORD_SCHEMA else rows
    try:
        traced(function, CLASS_SCHEMA)
    except FieldNotFound:
        assert all(outcome(called, function, payload)[0] == "error" for payload in payloads)
    else:
        check(function, schema, payloads)


def test_random_lambdas_are_traced_about_as_often_as_not() -> None:
    kinds: Counter[str] = Counter()

    @examples(90)
    @given(lambdas())
    def look(written: tuple[str, Lambda]) -> None:
        try:
            kinds["opaque" if is_opaque(traced(written[1], CLASS_SCHEMA)) else "traced"] += 1
        except FieldNotFound:
            kinds["refused"] += 1

    look()
    assert min(kinds["opaque"], kinds["traced"]) >= 0.3 * kinds.total(), kinds


@pytest.mark.parametrize("cls", [Initialized, Allocated])
@pytest.mark.parametrize("rows", CORNERS, ids=range(len(CORNERS)))
def test_lambdas_over_classes_that_run_code_of_their_own_are_opaque_and_mean_the_same(rows: list[Row], cls: type[Row]) -> None:
    schema, payloads = Schema.of_type(cls), list(map(made_by(cls), rows))
    for function in [*TRACED, *OPAQUE, *OF_CLASSES]:
        assert is_opaque(traced(function, schema))
        check(function, schema, payloads)


BARE: list[list[Any]] = [[1, 0], [1.5, math.nan], [None, 2, "x"], ["a", "b"], [True]]


@pytest.mark.parametrize("schema", [Schema.scalar(), None, int], ids=["scalar", "unknown", "declared"])
@pytest.mark.parametrize("payloads", BARE, ids=str)
def test_a_bare_payload_is_itself_in_every_lambda(payloads: list[Any], schema: Schema | type | None) -> None:
    for function in SCALARS if schema is int else [*SCALARS, *OF_TEXTS]:
        check(function, Schema.of_type(schema) if isinstance(schema, type) else schema, payloads)


@pytest.mark.parametrize("function", OF_TEXTS)
def test_an_attribute_that_a_declared_bare_payload_has_not_is_refused_when_the_query_is_made(function: Lambda) -> None:
    with pytest.raises(FieldNotFound, match="'int' payloads have no attribute 'upper'; the attributes are: as_integer_ratio, "):
        traced(function, Schema.of_type(int))


@pytest.mark.parametrize("kind", [int, float, str, bool])
def test_what_is_done_to_a_declared_bare_payload_is_traced(kind: type) -> None:
    schema = Schema.of_type(kind)
    assert [is_opaque(traced(function, schema)) for function in SCALARS[:10]] == [False] * 10
    assert describe(traced(lambda e: (e / 2 > 3) & (e < 9), schema)) == "((e / 2) > 3) & (e < 9)"


@pytest.mark.filterwarnings("ignore:e.value of a bare payload:DeprecationWarning")
@pytest.mark.parametrize("schema", [Schema.scalar(), None, int], ids=["scalar", "unknown", "declared"])
@pytest.mark.parametrize("payloads", BARE, ids=str)
def test_value_of_a_builtin_bare_payload_is_it_for_one_version_more(payloads: list[Any], schema: Schema | type | None) -> None:
    for function in OF_VALUE:
        check(function, Schema.of_type(schema) if isinstance(schema, type) else schema, payloads)


def test_value_of_a_declared_bare_payload_warns_at_its_line_traced_and_called() -> None:
    here = test_value_of_a_declared_bare_payload_warns_at_its_line_traced_and_called.__code__.co_firstlineno
    for function in (lambda e: e.value + 1, lambda e: e.value + 1 if e.value else 0):
        with pytest.warns(DeprecationWarning, match="the payload is itself, write e") as seen:
            assert evaluate_row(trace(function, (Schema.scalar(int),)), (2,)) == 3
        assert (seen[0].filename, seen[0].lineno) == (__file__, here + 2)


class Colour(Enum):
    RED = "r"
    BLUE = "b"


@pytest.mark.parametrize("schema", [Schema.of_type(Colour), None], ids=["declared", "unknown"])
@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_a_bare_payload_s_own_attribute_value_wins(schema: Schema | None) -> None:
    functions: list[Lambda] = [
        lambda e: e.value,
        lambda e: e.value == "r",
        lambda e: e.value if e.name == "RED" else e,
        lambda e: (e, e.value),
    ]
    for function in functions:
        check(function, schema, list(Colour))
    moments = [datetime(2026, 3, 29), datetime(2026, 10, 25)]
    for function in [lambda e: e.year, lambda e: e.month + 1, lambda e: e.date(), lambda e: e.isoformat() if e.day else None]:
        check(function, Schema.of_type(datetime) if schema else None, moments)


@pytest.mark.parametrize("schema", [Schema.tuple(2), None], ids=["tuple", "unknown"])
@pytest.mark.parametrize("payloads", [[(1, 2), (0, 5)], [(1, "a"), (2, None)], [(1.0, 0.5)]], ids=str)
def test_lambdas_over_tuples(payloads: list[Any], schema: Schema | None) -> None:
    for function in TUPLES:
        check(function, schema, payloads)


@examples(30)
@given(batches())
def test_a_predicate_s_answer_is_python_s_truth_and_what_has_none_is_refused(rows: list[Row]) -> None:
    inputs = Inputs((Table.from_payloads(rows),), len(rows))
    for function in TRUTHS:
        expr = traced(function, CLASS_SCHEMA)
        direct = [outcome(holds, as_payload(function(row))) for row in rows]
        assert [outcome(holds_row, expr, (row,)) for row in rows] == direct
        assert over_columns(lambda: truth(expr, inputs).tolist()) == expected_columns(direct)  # noqa: B023
