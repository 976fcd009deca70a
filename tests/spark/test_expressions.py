"""Expressions on Spark mean what Python means: values of every kind against each other, operator by operator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Attribute, Binary, Choose, Constant, Expr, Field, Function, Make, Method
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from streamdsl.expr.schema import Schema
from streamdsl.io.readers import bind
from streamdsl.plan.node import Select, Source, Where
from streamdsl.spark import SourceFrame, run_batch, translated
from streamdsl.spark.column_types import type_of_payloads
from streamdsl.spark.expressions import Env, PayloadRef, infer, to_sql
from streamdsl.spark.operations import SQL
from streamdsl.spark.source_frames import source_of_frame
from streamdsl.spark.sql_text import NotNative
from streamdsl.testing import assert_cht_equal
from tests.laws.places import PLACES, SOME, bindings
from tests.laws.words import BIG, INTS, OTHERS, TEXTS, VALUES, fields, native, node, rows
from tests.spark.helpers import PYTHON, check_noted, physical_plan

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

AB = Schema.record(("a", "b"))
A, B = Field("a"), Field("b")
SMALL: list[Any] = [0, 1, -1, 2, -3, 5, 2**40, -BIG - 1, BIG]


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
    to_sql(made, Env((PayloadRef(kind),)))
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
    wanted = type(error) if isinstance(error, (OverflowError, StreamDslError)) else UserCodeError
    with pytest.raises(wanted) as raised:
        on_spark(expr, [payload, *others], schema)
    if wanted is UserCodeError:
        assert type(error).__name__ in str(raised.value)


SIGNATURES: dict[tuple[str, ...], list[ScalarFunction]] = {}
for _word, _kinds, _ in native():
    SIGNATURES.setdefault(_kinds, []).append(_word)


def columns(kinds: Sequence[str]) -> list[list[Any]]:
    """Return values for the arguments: fewer where there are three or more."""
    if len(kinds) < 3:
        return [VALUES[kind] for kind in kinds]
    return [TEXTS[::2] if kind == "str" else SMALL if kind == "int" else VALUES[kind] for kind in kinds]


def cases(kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return payloads: all combinations in `x0`, ..., and in `y0`, ... the same, or with a None in some place."""
    full = rows(columns(kinds))
    places = itertools.product((False, True), repeat=len(kinds))
    holes = [tuple(None if hole else v for v, hole in zip(full[0], some, strict=True)) for some in places]
    pairs = [*((row, row) for row in full), *((full[0], row) for row in holes)]
    return [{f"{name}{i}": v for name, row in zip("xy", pair, strict=True) for i, v in enumerate(row)} for pair in pairs]


def tries(word: ScalarFunction, kinds: Sequence[str]) -> list[Expr]:
    """Return a word of columns without None, and of columns with None where that may matter."""
    if word.name == "truncate":  # on Spark the grid must be a constant one
        return [Function(word.name, (Field("x0"), *map(Constant, (60, 7)[: len(kinds) - 1])))]
    if word.name in ("floor_time", "ceil_time"):
        return [Function(word.name, (Field(f"{name}0"), Constant(60), Constant(7))) for name in "xy"]
    if word.name in ("to_ticks", "to_duration"):
        return [Function(word.name, (Field(f"{name}0"), Constant("s"))) for name in "xy"]
    names = "xy" if word.takes_none or "str" in kinds or tuple(kinds) == next(iter(word.native)) else "x"
    if word.name != ".replace":
        return [node(word, fields(len(kinds), name)) for name in names]
    old = map(Constant, ("a", "\U0001f600", " "))  # on Spark this one must be a constant
    return [Method(Field(f"{name}0"), "replace", (part, Field(f"{name}2"))) for part in old for name in names]


@pytest.mark.parametrize("kinds", SIGNATURES, ids=str)
def test_native_words_mean_what_python_means(kinds: tuple[str, ...]) -> None:
    check_values([expr for word in SIGNATURES[kinds] for expr in tries(word, kinds)], cases(kinds))


def check_values(exprs: Sequence[Expr], payloads: Sequence[dict[str, Any]]) -> None:
    """Assert that Spark gives Python's values, of many expressions at once, each in the rows where Python does not raise."""
    expected = [[outcome(expr, payload) for payload in payloads] for expr in exprs]
    guarded = [
        {**payload, **{f"g{i}": not isinstance(values[n], Exception) for i, values in enumerate(expected)}}
        for n, payload in enumerate(payloads)
    ]
    schema = Schema.record(tuple(guarded[0]))
    for some in batches(exprs, Env((PayloadRef(type_of_payloads(schema, guarded)),))):
        made = Make(Schema.tuple(len(some)), tuple(Choose(((Field(f"g{i}"), exprs[i]),), Constant(None)) for i in some))
        for n, values in enumerate(on_spark(made, guarded, schema)):
            for i, value in zip(some, values, strict=True):
                wanted = None if isinstance(expected[i][n], Exception) else expected[i][n]
                rel = 3e-16 if getattr(exprs[i], "op", "") == "/" else 0.0
                assert same(value, wanted, rel), f"{describe(exprs[i])} of {payloads[n]}: {value!r}, not {wanted!r}"


def batches(exprs: Sequence[Expr], env: Env) -> list[list[int]]:
    """Return the places of the expressions, so many at a time as make no SQL that is too long."""
    found: list[list[int]] = [[]]
    size = 0
    for place, expr in enumerate(exprs):
        length = len(to_sql(expr, env).text) + 60
        if size + length > 19_500:
            found.append([])
            size = 0
        found[-1].append(place)
        size += length
    return found


def errors(name: str) -> list[tuple[Expr, Any, list[Any], Exception]]:
    """Return one failing row, and one that does not fail, for each kind of error of a word."""
    found: dict[str, tuple[Expr, Any, list[Any], Exception]] = {}
    for word, kinds, _ in native():
        if word.name != name:
            continue
        expr = tries(word, kinds)[-1]
        payloads = cases(kinds)
        outcomes = [outcome(expr, payload) for payload in payloads]
        good = next(payload for payload, value in zip(payloads, outcomes, strict=True) if not isinstance(value, Exception))
        for payload, error in zip(payloads, outcomes, strict=True):
            if isinstance(error, Exception):
                found.setdefault(type(error).__name__, (expr, payload, [good], error))
    return list(found.values())


NEVER_RAISES = {"==", "!=", "bool", "coalesce", "is_none", "not", "str"}


@pytest.mark.parametrize("name", sorted({word.name for word, _, _ in native()}))
def test_what_raises_in_python_fails_the_task(name: str) -> None:
    found = errors(name)
    assert (not found) == (name in NEVER_RAISES)
    for expr, payload, others, error in found:
        _check_raises(expr, payload, others, error, Schema.record(tuple(payload)))


def test_spark_writes_the_words_that_the_table_calls_native_and_no_others() -> None:
    assert {*SQL, "is_none"} == {word.name for word in SCALAR_FUNCTIONS.values() if word.native}


def test_words_of_other_types_run_in_python() -> None:
    for word in SCALAR_FUNCTIONS.values():
        for arity in {len(kinds) for kinds in word.native}:
            for kinds in set(itertools.product(VALUES, repeat=arity)) - set(word.native):
                payload = {f"x{i}": VALUES[kind][0] for i, kind in enumerate(kinds)}
                row = PayloadRef(type_of_payloads(Schema.record(tuple(payload)), [payload]))
                with pytest.raises(NotNative):
                    to_sql(node(word, fields(arity)), Env((row,)))


def test_the_table_says_of_what_type_a_native_word_is() -> None:
    for word, kinds, result in native():
        payload = {f"x{i}": VALUES[kind][0] for i, kind in enumerate(kinds)}
        row = Env((PayloadRef(type_of_payloads(Schema.record(tuple(payload)), [payload])),))
        expr = tries(word, kinds)[0]
        assert to_sql(expr, row).kind == result, (word.name, kinds)


CONSTANTS: list[Any] = [2, -3, 0, 1, 2.5, -0.0, 2**53 + 1, math.nan, math.inf, True]
OF_CONSTANTS: list[Any] = ["<", "==", ">=", "%", "/", "-", "//", "*", "+"]


def test_constants() -> None:
    payloads = [{"a": a, "b": b} for a, b in zip(INTS, VALUES["float"], strict=False)]
    pairs = [(op, constant) for op in OF_CONSTANTS for constant in CONSTANTS]
    whole = [Binary(op, A, Constant(c)) for op, c in pairs if op != "//" or type(c) is not float]
    check_values([*whole, *(Binary(op, B, Constant(c)) for op, c in pairs if op in ("<", "==", ">=", "-"))], payloads)


def test_membership_in_a_constant_tuple() -> None:
    tuples: list[Any] = [(), (1, 3), (True, 2.5, None), ("a", "'", None), (math.nan, 0.0, -7), (1, "a"), (2**53 + 1,)]
    payloads = [{"a": a, "b": b, "c": c, "d": c} for a, b, c in zip(INTS, VALUES["float"], TEXTS, strict=False)]
    payloads.append({"a": 1, "b": 1.0, "c": "a", "d": None})
    exprs = [Function("contains", (Constant(some), Field(name))) for some in tuples for name in "abcd"]
    check_values([*exprs, Function("contains", (Constant((1, 2)), Binary("//", A, A)))], payloads)


def test_items_and_slices_with_constant_places() -> None:
    places: list[Any] = [None, 0, 1, 3, -1, -2, 2**40, -(2**40)]
    slices = [Function("[:]", (A, Constant(lo), Constant(hi), Constant(None))) for lo in places for hi in places]
    items = [Function("[]", (A, Constant(place))) for place in places[1:]]
    check_values([*slices, *items], [{"a": text} for text in TEXTS])


NAN = math.nan
LISTS: list[Any] = [[], [1], [3, None, -7], [None], [2**53 + 1, 0]]
OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "length": lambda e: sd.functions.length(e.a) + sd.functions.length(e.c),
    "an item": lambda e: sd.when(sd.functions.length(e.a) > 1).then((e.a[1], e.a[-2], e.a[e.n - 3])).otherwise(None),
    "membership": lambda e: (
        sd.functions.contains(e.a, e.n),
        sd.functions.contains(e.a, None),
        sd.functions.contains(e.a, 2.0**53),
    ),
    "membership of texts": lambda e: (sd.functions.contains(e.c, "\U0001f600"), sd.functions.contains(e.c, e.n)),
    "membership of floats": lambda e: (sd.functions.contains(e.b, NAN), sd.functions.contains(e.b, e.n)),
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_functions_of_lists_mean_what_python_means(spark: Any, name: str) -> None:
    floats, texts = [[1.0, math.nan], [], [None], [-0.0], [0.5]], [["\U0001f600", None], [""], [], ["a", "3"], ["b"]]
    rows = [{"n": n, "a": a, "b": b, "c": c} for n, (a, b, c) in enumerate(zip(LISTS, floats, texts, strict=True))]
    columns = "le long, re long, n long, a array<long>, b array<double>, c array<string>"
    frame = spark.createDataFrame([(1, 2, *row.values()) for row in rows], columns)
    query = sd.source("s", unit="tick").select(OF_LISTS[name])
    history = {"s": sd.CHT.from_rows([(1, 2, row) for row in rows])}
    flows = {"s": source_of_frame(Source("s", None, "tick"), SourceFrame(frame))}
    assert check_noted(query, history, denote(query.plan(), history), flows=flows)


OF_BAD_LISTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "IndexError in user code: list index out of range": (lambda e: e.a[-3], [1, 2]),
    "TypeError in user code: object of type 'NoneType' has no len": (lambda e: sd.functions.length(e.a), None),
    "TypeError in user code: 'NoneType' object is not subscriptable": (lambda e: e.a[0], None),
    "TypeError in user code: 'NoneType' object is not iterable": (lambda e: sd.functions.contains(e.a, 1), None),
}


@pytest.mark.parametrize("said", OF_BAD_LISTS)
def test_functions_of_lists_fail_where_python_raises(spark: Any, said: str) -> None:
    function, items = OF_BAD_LISTS[said]
    query = sd.source("s", unit="tick").select(function)
    with pytest.raises(UserCodeError, match=said):
        query.run({"s": [sd.Insert(0, 1, 2, {"a": items})]})
    found = query.on_spark(spark).batch(spark.createDataFrame([(1, items)], "le long, a array<long>"))
    assert PYTHON.search(physical_plan(found)) is None
    with pytest.raises(UserCodeError, match=said), translated():
        found.collect()


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


def test_fields_of_nested_records() -> None:
    inner = Make(Schema.record(("x", "y")), (A, Binary("*", B, Constant(2))))
    plan = Select(Select(Source("s"), Make(Schema.record(("r",)), (inner,))), Attribute(Field("r"), "y"))
    rows = [sd.Insert(0, 1, 2, {"a": "q", "b": 4}), sd.Insert(1, 1, 2, {"a": "r", "b": 5})]
    assert sorted(row.payload for row in run_batch(plan, {"s": bind(rows, Source("s"))}).cht()) == [8, 10]


def test_truth_of_every_kind() -> None:
    plan = Where(Source("s"), Field("a"))
    for kind, values in VALUES.items():
        given = [a for a in values if a is not None]
        rows = [sd.Insert(n, n, n + 1, {"a": a}) for n, a in enumerate(given)]
        kept = {row.le for row in run_batch(plan, {"s": bind(rows, Source("s"))}).cht()}
        assert kept == {n for n, a in enumerate(given) if a}, kind
    with pytest.raises(UserCodeError, match="a predicate returned None"):
        run_batch(plan, {"s": bind([sd.Insert(0, 0, 1, {"a": 1}), sd.Insert(1, 0, 1, {"a": None})], Source("s"))}).cht()


IN_PYTHON: dict[str, Callable[[Any], Any]] = {
    "power": lambda e: e.a**2,
    "floor division of floats": lambda e: e.f // 2,
    "text compared with a number": lambda e: e.s < e.a,
    "repeated text": lambda e: e.s * 2,
    "upper": lambda e: e.s.upper(),
    "title": lambda e: e.s.title(),
    "a cast of a float to text": lambda e: sd.functions.cast(e.f, str),
    "a cast of text to a number": lambda e: sd.functions.cast(e.s, int),
    "an empty text replaced": lambda e: e.s.replace("", "x"),
    "a text replaced that is not constant": lambda e: e.s.replace(e.s, "x"),
    "a slice with steps": lambda e: e.s[::2],
    "a later value that may fail": lambda e: sd.functions.coalesce(e.a, 1 // e.a),
    "what may fail, in no tuple": lambda e: sd.functions.contains((), 1 // e.a),
    "membership among what Spark has no constants of": lambda e: sd.functions.contains((1, 2**70), e.a),
    "a datetime rounded down": lambda e: sd.functions.truncate(e.a, "1h"),
    "clocks": lambda e: sd.functions.local_time(e.a, "Europe/Vienna", "s").hour,
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
        to_sql(plan.projection, Env((PayloadRef(kind),)))


def test_what_python_computes_has_a_type_where_that_is_certain() -> None:
    rows = [(n, n + 1, {"a": n, "f": n / 2, "s": text}) for n, text in enumerate(TEXTS)]
    query = sd.source("s").select(
        u=lambda e: e.s.upper(), f=lambda e: e.f // 1, t=lambda e: sd.functions.cast(e.f, str), z=lambda e: e.s[::-1].zfill(e.a)
    )
    plan = query.plan()
    assert isinstance(plan, Select)
    row = PayloadRef(type_of_payloads(Schema.record(("a", "f", "s")), [rows[0][2]]))
    assert infer(plan.projection, Env((row,))).ddl == "struct<f0:string,f1:double,f2:string,f3:string>"
    given = {"s": [sd.Insert(n, *row) for n, row in enumerate(rows)]}
    longer = query.where(lambda e: (sd.functions.length(e.u) > 0) & (e.f >= 1))
    assert_cht_equal(longer.run(given, engine="spark").cht(), longer.run(given, engine="reference").cht())


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


def test_registered_functions_run_in_every_place() -> None:
    streams = [sd.source(name, unit="tick") for name in "ab"]
    queries = [PLACES[place](streams[0], streams[1]).select(partial(_shown, place)) for place in SOME]
    query = queries[0].union(*queries[1:])
    found = query.run(bindings(query), engine="spark").cht()
    assert {row.payload.split(":")[0] for row in found} == set(SOME)
    assert_cht_equal(found, query.run(bindings(query), engine="reference").cht())


def _shown(place: str, row: Any) -> str:
    return f"{place}:{row!r}"


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
        compare(Binary("+", A, B), [{"a": a, "b": b} for a in INTS for b in INTS])
        compare(Binary("/", A, B), [{"a": a, "b": b} for a in INTS for b in VALUES["float"]])
        clocks = sd.source("s", unit="s").select(
            lambda e, life: (
                sd.functions.local_time(e.t, "Europe/Vienna").isoformat(),
                sd.functions.local_time(life.le, "America/New_York", unit="s").hour,
            )
        )
        instants = [value for value in OTHERS if isinstance(value, datetime) and 1900 < value.year < 2100]
        events = [sd.point(n, int(value.timestamp()), {"t": value}) for n, value in enumerate(instants)]
        assert_cht_equal(clocks.run({"s": events}, engine="spark").cht(), clocks.run({"s": events}, engine="reference").cht())
        compare(Binary("==", A, Constant("it's \\n ${x}")), [{"a": "it's \\n ${x}"}, {"a": "x"}], Schema.record(("a",)))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
