"""Expressions on Spark mean what Python means: values of every kind against each other, operator by operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import UserCodeError
from streamdsl.expr.evaluate import evaluate_row
from streamdsl.expr.nodes import Attribute, Binary, Choose, Constant, Expr, Field, Make, Method, Unary
from streamdsl.expr.schema import Schema
from streamdsl.io.sources import bind
from streamdsl.plan.node import Select, Source, Where
from streamdsl.spark import run_batch
from streamdsl.spark.expressions import Env, RowAt, to_sql
from streamdsl.spark.sql import NotNative
from streamdsl.spark.types import type_of_payloads

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

AB = Schema.record(("a", "b"))
BIG = 2**63 - 1
INTS: list[Any] = [0, 1, -1, 2, 3, -3, 7, -7, 10, 2**31, 2**53 + 1, -(2**53) - 1, BIG, BIG - 1, -BIG - 1]
FLOATS: list[Any] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    2.0,
    3.75,
    1e16,
    -1e300,
    5e-324,
    2.0**53,
    2.0**63,
    -(2.0**63),
    math.inf,
    -math.inf,
    math.nan,
]
BOOLS: list[Any] = [True, False]
TEXTS: list[Any] = ["", "a", "b", "ab", "é", "z", "\U0001f600", "\uffff", "'", "A"]
KINDS: dict[str, list[Any]] = {"int": INTS, "float": FLOATS, "bool": BOOLS, "str": TEXTS}
NUMBERS = [(a, b) for a in ("int", "float", "bool") for b in ("int", "float", "bool")]


def pairs(left: str, right: str, none: bool = False) -> list[dict[str, Any]]:
    missing = [None] if none else []
    return [{"a": a, "b": b} for a in KINDS[left] + missing for b in KINDS[right] + missing]


def outcome(expr: Expr, payload: Any) -> Any:
    """Return what Python gives, or the exception that it raises (also for integers that leave int64)."""
    try:
        value = evaluate_row(expr, (payload,))
    except Exception as error:
        return error
    if type(value) is int and not -(2**63) <= value < 2**63:
        return OverflowError("leaves int64")
    return value


def on_spark(expr: Expr, payloads: Sequence[Any], schema: Schema) -> list[Any]:
    """Return an expression's values on Spark, in order; asserts that it runs natively."""
    numbered = Schema.record(("n", *schema.names))
    rows = [sd.Insert(n, n, n + 1, {"n": n, **payload}) for n, payload in enumerate(payloads)]
    kind = type_of_payloads(numbered, [row.payload for row in rows])
    made = Make(Schema.tuple(2), (Field("n"), expr))
    to_sql(made, Env((RowAt(kind),)))
    plan = Select(Source("s", numbered), made)
    found = run_batch(plan, {"s": bind(rows, plan.input)}).cht()  # type: ignore[arg-type]
    return [value for _, value in sorted(row.payload for row in found)]


def same(a: Any, b: Any, rel: float) -> bool:
    """Say whether two values are the same: of one type, NaN like NaN."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y, rel) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and (a == b or (a != a and b != b) or (rel > 0 and math.isclose(a, b, rel_tol=rel)))


def compare(expr: Expr, payloads: Sequence[Any], schema: Schema = AB) -> None:
    """Assert that Spark gives Python's values wherever Python gives one, and fails where Python raises.

    The quotient of integers beyond 2**53 may differ in its last bit.
    """
    rel = 3e-16 if isinstance(expr, Binary) and expr.op == "/" else 0.0
    expected = [outcome(expr, payload) for payload in payloads]
    good = [n for n, value in enumerate(expected) if not isinstance(value, Exception)]
    values = on_spark(expr, [payloads[n] for n in good], schema) if good else []
    for n, value in zip(good, values, strict=True):
        assert same(value, expected[n], rel), f"{expr} of {payloads[n]}: {value!r}, not {expected[n]!r}"
    bad = [n for n, value in enumerate(expected) if isinstance(value, Exception)]
    if bad:
        n = bad[len(bad) // 2]
        _check_raises(expr, payloads[n], [payloads[good[0]]] if good else [], expected[n], schema)


def _check_raises(expr: Expr, payload: Any, others: list[Any], error: Exception, schema: Schema) -> None:
    wanted = OverflowError if type(error) is OverflowError else UserCodeError
    with pytest.raises(wanted) as raised:
        on_spark(expr, [payload, *others], schema)
    if wanted is UserCodeError:
        assert type(error).__name__ in str(raised.value)


A, B = Field("a"), Field("b")


def each(*ops: Any) -> Expr:
    """Return the tuple of several operators' values, none of which raises."""
    return Make(Schema.tuple(len(ops)), tuple(Binary(op, A, B) for op in ops))


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize(("left", "right"), NUMBERS)
def test_arithmetic(op: Any, left: str, right: str) -> None:
    compare(Binary(op, A, B), pairs(left, right))


@pytest.mark.parametrize(("left", "right"), [*NUMBERS, ("str", "str")])
def test_comparisons(left: str, right: str) -> None:
    compare(each("==", "!=", "<", "<=", ">", ">="), pairs(left, right))


@pytest.mark.parametrize(
    ("op", "left", "right"), [("//", "int", "int"), ("//", "int", "bool"), *((o, "int", "int") for o in "&|^")]
)
def test_integers(op: Any, left: str, right: str) -> None:
    compare(Binary(op, A, B), pairs(left, right))


def test_bools_and_texts() -> None:
    compare(each("&", "|", "^"), pairs("bool", "bool"))
    compare(Binary("+", A, B), pairs("str", "str"))


@pytest.mark.parametrize("constant", [2, -3, 0, 1, 2.5, -0.0, 2**53 + 1, math.nan, math.inf, True])
def test_constants(constant: Any) -> None:
    for kind in ("int", "float"):
        payloads = [{"a": a} for a in KINDS[kind]]
        made = [Binary("<", A, Constant(constant)), Binary("==", A, Constant(constant)), Binary(">=", A, Constant(constant))]
        compare(Make(Schema.tuple(len(made)), tuple(made)), payloads, Schema.record(("a",)))
    ops: list[Any] = ["%", "/", "-", *(["//"] if type(constant) is int else [])]
    for op in ops:
        compare(Binary(op, A, Constant(constant)), [{"a": a} for a in INTS], Schema.record(("a",)))


@pytest.mark.parametrize(
    ("left", "right"), [("int", "int"), ("float", "float"), ("int", "float"), ("str", "str"), ("str", "int")]
)
def test_none_is_equal_to_none_only(left: str, right: str) -> None:
    compare(each("==", "!="), pairs(left, right, none=True))


@pytest.mark.parametrize("op", ["<", "+", "/", "%", "&"])
def test_none_raises(op: Any) -> None:
    compare(Binary(op, A, B), [{"a": 1, "b": 2}, {"a": None, "b": 2}, {"a": 1, "b": None}])


@pytest.mark.parametrize("op", ["-", "+", "abs", "not", "is_none"])
def test_unary(op: Any) -> None:
    for kind in ("int", "float", "bool") if op != "not" else KINDS:
        compare(Unary(op, A), [{"a": a} for a in KINDS[kind]], Schema.record(("a",)))
    compare(Unary("is_none", A), [{"a": 1}, {"a": None}], Schema.record(("a",)))
    compare(Unary("not", A), [{"a": 1}, {"a": None}, {"a": 0}], Schema.record(("a",)))


CHOICES: dict[str, Expr] = {
    "guards": Choose(((Binary("!=", B, Constant(0)), Binary("//", A, B)),), Constant(None)),
    "truth": Choose(((A, Constant("x")), (B, Constant("y"))), Constant("z")),
    "nested": Choose(((Binary(">", A, B), A),), Choose(((Binary("==", A, B), Constant(0)),), B)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_only_the_chosen_value_is_computed(name: str) -> None:
    compare(CHOICES[name], [{"a": a, "b": b} for a in (-7, 0, 3) for b in (-2, 0, 5)])


def test_both_sides_of_a_conjunction_are_computed() -> None:
    guarded = Binary("&", Binary("!=", B, Constant(0)), Binary(">", Binary("/", A, B), Constant(1)))
    compare(guarded, [{"a": 6, "b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 0}])


@pytest.mark.parametrize("name", ["startswith", "endswith"])
def test_methods(name: str) -> None:
    compare(Method(A, name, (B,)), [payload for payload in pairs("str", "str") if payload["b"]])


def test_fields_of_nested_records() -> None:
    inner = Make(Schema.record(("x", "y")), (A, Binary("*", B, Constant(2))))
    plan = Select(Select(Source("s"), Make(Schema.record(("r",)), (inner,))), Attribute(Field("r"), "y"))
    rows = [sd.Insert(0, 1, 2, {"a": "q", "b": 4}), sd.Insert(1, 1, 2, {"a": "r", "b": 5})]
    assert sorted(row.payload for row in run_batch(plan, {"s": bind(rows, Source("s"))}).cht()) == [8, 10]


def test_truth_of_every_kind() -> None:
    for kind, values in KINDS.items():
        for none in ([], [None]):
            plan = Where(Source("s"), Field("a"))
            rows = [sd.Insert(n, n, n + 1, {"a": a}) for n, a in enumerate([*values, *none])]
            kept = {row.le for row in run_batch(plan, {"s": bind(rows, Source("s"))}).cht()}
            assert kept == {n for n, a in enumerate([*values, *none]) if a}, kind


IN_PYTHON: dict[str, Callable[[Any], Any]] = {
    "power": lambda e: e.a**2,
    "floor division of floats": lambda e: e.f // 2,
    "text compared with a number": lambda e: e.s < e.a,
    "repeated text": lambda e: e.s * 2,
    "upper": lambda e: e.s.upper(),
    "strip": lambda e: e.s.strip(),
    "mixed branches": lambda e: sd.when(e.a > 0).then(1).otherwise(0.5),
    "big constant": lambda e: e.a < 2**64,
    "a function": lambda e: len(e.s),
    "bits of floats": lambda e: e.f & 1,
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_what_is_not_certain_runs_in_python(name: str) -> None:
    schema = Schema.record(("a", "f", "s"))
    kind = type_of_payloads(schema, [{"a": 1, "f": 0.5, "s": "x"}])
    plan = sd.source("s").select(IN_PYTHON[name]).plan()
    assert isinstance(plan, Select)
    with pytest.raises(NotNative):
        to_sql(plan.projection, Env((RowAt(kind),)))


def test_columns_of_mixed_types_run_in_python() -> None:
    rows: list[tuple[int, int, Any]] = [
        (1, 2, {"a": 1}),
        (2, 3, {"a": 1.0}),
        (3, 4, {"a": "x"}),
        (4, 5, {"a": 2**80}),
        (5, 6, {"a": None}),
        (6, 7, {"a": (1, 2)}),
    ]
    events = [sd.Insert(n, *row) for n, row in enumerate(rows)]
    query = sd.source("s").where(lambda e: (e.a == 1) | (e.a == 2**80))
    assert sorted(row.le for row in query.run({"s": events}, engine="spark").cht()) == [1, 2, 4]


def test_settings_of_the_session_change_nothing(spark: Any) -> None:
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        compare(Binary("+", A, B), pairs("int", "int"))
        compare(Binary("/", A, B), pairs("int", "float"))
        compare(Binary("==", A, Constant("it's \\n ${x}")), [{"a": "it's \\n ${x}"}, {"a": "x"}], Schema.record(("a",)))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
