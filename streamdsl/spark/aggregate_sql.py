"""The built-in aggregates as Spark SQL: the update, merge and evaluate expressions of each.

Sums are exact, so the order of rows never shows in a result: integers are summed as two halves of 32 bits, floats as integer
limbs of 32 bits (a superaccumulator).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowAggregate
from streamdsl.spark.aggregation_plan import BufferColumn, NativeAggregate
from streamdsl.spark.column_types import FLOAT, INT, ListType, RecordType, as_nullable, is_native, is_ordered
from streamdsl.spark.expressions import Env, to_sql, to_test
from streamdsl.spark.operations import int64_overflow, number
from streamdsl.spark.sql_text import NotNative, Sql, double
from streamdsl.spark.task_errors import error_marker, mark_expression, resolve_markers
from streamdsl.udm import builtin
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.windows import Hopping

_LIMB: Final = 32
_WEIGHTS: Final = (2, 1, 0, -1, -2, -3)
_EXACT_BELOW: Final = 2.0**94
_SCALE: Final = 2.0**-64
_OVERFLOW: Final = error_marker(int64_overflow("a sum"))


def native_aggregates(node: WindowAggregate, env: Env) -> list[NativeAggregate]:
    """Return a node's aggregates as SQL, or raise `NotNative` for one that runs in Python."""
    return [_native_aggregate(agg, node, env) for agg in node.aggregates]


def _native_aggregate(agg: BoundAgg, node: WindowAggregate, env: Env) -> NativeAggregate:
    rule = _RULES.get(type(agg.function))
    if rule is None:
        raise NotNative(f"{agg.function.label} is Python code")
    found: NativeAggregate = rule(agg.function, _argument(agg, env), node, env)
    window = replace(env, rows=(), window=True)
    return replace(
        found, evaluate=lambda columns: resolve_markers(mark_expression(found.evaluate(columns), agg.given), agg.given, window.at)
    )


def _argument(agg: BoundAgg, env: Env) -> Sql:
    value = to_sql(agg.given, env)
    if agg.where is None:
        return value
    test = to_test(agg.where, env)
    return Sql(f"CASE WHEN {test.text} THEN {value.text} END", as_nullable(value.type), test.raises or value.raises)


def _count(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    counted = Sql(f"if({value.text} IS NULL, NULL, 1L)" if value.type.nullable else "1L", INT, value.raises)
    return NativeAggregate(counted, (_count_column(),), lambda c: f"coalesce({c[0]}, 0L)", INT)


def _count_column() -> BufferColumn:
    return BufferColumn("count({x})", signed="sum(if({x} IS NULL, 0L, s))")


def _sum(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    value = number(value, "the sum")
    return replace(_total(value, lambda total, n: total, whole=True), argument=value)


def _avg(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    value = number(value, "the mean")
    return replace(_total(value, lambda total, n: f"{total} / {n}", whole=False), argument=value)


def _total(value: Sql, result: Callable[[str, str], str], whole: bool, of: str | None = None) -> NativeAggregate:
    """Return an aggregate that computes `result` from an exact sum and the count; `of` is summed in place of the argument."""
    sums, total = _sum_columns(value, whole, of)
    kind = INT if whole and value.kind == "int" else FLOAT
    text = lambda c: f"CASE WHEN {c[-1]} > 0L THEN {result(total(c), c[-1])} END"  # noqa: E731
    return NativeAggregate(value, (*sums, _count_column()), text, as_nullable(kind, value.type.nullable))


def _sum_columns(value: Sql, whole: bool, of: str | None) -> tuple[list[BufferColumn], Callable[[Sequence[str]], str]]:
    """Return the buffer columns of an exact sum, and the function that evaluates it from these and the count."""
    if value.kind != "int":
        return [BufferColumn(f"sum({part})") for part in _limbs(of or "{x}")], _sum_of_limbs
    if of is not None:
        return [BufferColumn(f"try_sum({of})")], _from_decimal
    halves = "shiftright({x}, 32)", "({x} & 4294967295L)"
    return [BufferColumn(f"sum({half})", signed=f"sum(s * {half})") for half in halves], _as_integer if whole else _as_float


def _exact(integer: str) -> str:
    return f"cast({integer} as decimal(20,0))"


def _as_integer(columns: Sequence[str]) -> str:
    return _from_halves(columns, lambda whole: whole, _OVERFLOW)


def _as_float(columns: Sequence[str]) -> str:
    high, low, _ = columns
    exact = f"{_exact(high)} * cast(4294967296L as decimal(10,0)) + {_exact(low)}"
    return _from_halves(columns, lambda whole: f"cast({whole} as double)", f"cast({exact} as double)")


def _from_halves(columns: Sequence[str], within: Callable[[str], str], beyond: str) -> str:
    """Return the SQL of a sum from those of the high and low 32 bits, within int64 and beyond. Both hold 2**31 rows."""
    high, low, count = columns
    carried = f"({high} + shiftright({low}, 32))"
    whole = f"(shiftleft({carried}, 32) | ({low} & 4294967295L))"
    many = error_marker(UnsupportedOnSpark("more than 2**31 integers are added up in one window, which Spark cannot do exactly"))
    fits = f"{carried} BETWEEN -2147483648L AND 2147483647L"
    return f"CASE WHEN {count} > 2147483648L THEN {many} WHEN {fits} THEN {within(whole)} ELSE {beyond} END"


def _from_decimal(columns: Sequence[str]) -> str:
    return f"coalesce(cast({columns[0]} as double), {_OVERFLOW})"


def _limbs(x: str) -> list[str]:
    return [*(_limb(x, k) for k in _WEIGHTS), *_remainder(x)]


def _limb(x: str, k: int) -> str:
    """Return the SQL of the bits of a float from 2**(32 k) up to 2**(32 k + 32) as an integer; limbs add up exactly."""
    part = f"rint({x} * {double(2.0 ** (-_LIMB * k))})"
    if k != _WEIGHTS[0]:
        part += f" - rint({x} * {double(2.0 ** (-_LIMB * (k + 1)))}) * {double(2.0**_LIMB)}"
    return f"cast(CASE WHEN abs({x}) < {double(_EXACT_BELOW)} THEN {part} ELSE 0D END as bigint)"


def _remainder(x: str) -> tuple[str, str]:
    """Return the SQL of what the limbs do not hold: bits below the last limb, and numbers that are too large or not finite.

    The second column sums the magnitudes of numbers that are too large: as these are not summed exactly, the total is only
    trusted where it is large beside that sum.
    """
    scale = _LIMB * _WEIGHTS[-1]
    cut = f"{x} - rint({x} * {double(2.0**-scale)}) * {double(2.0**scale)}"
    fits, endless = f"abs({x}) < {double(_EXACT_BELOW)}", "double('Infinity')"
    large = f"CASE WHEN abs({x}) >= {double(_EXACT_BELOW)} AND abs({x}) < {endless} THEN abs({x}) * {double(_SCALE)} ELSE 0D END"
    return f"CASE WHEN {fits} THEN {cut} ELSE {x} END", large


def _sum_of_limbs(columns: Sequence[str]) -> str:
    """Return the SQL of the float nearest to the sum of limbs and remainder: from large to small, with the error compensated."""
    *limbs, rest, large, count = columns
    terms = []
    for column, k in zip(limbs, _WEIGHTS, strict=True):
        terms.append(f"cast(shiftright({column}, 32) as double) * {double(2.0 ** (_LIMB * (k + 1)))}")
        terms.append(f"cast({column} & 4294967295L as double) * {double(2.0 ** (_LIMB * k))}")
    carry = "if(abs(a.s) >= abs(x), (a.s - (a.s + x)) + x, (x - (a.s + x)) + a.s)"
    step = f"(a, x) -> named_struct('s', a.s + x, 'c', a.c + {carry})"
    lost = error_marker(UnsupportedOnSpark("floats beyond 2**94 nearly cancel in a sum, which Spark cannot add exactly"))
    finish = f"a -> if({large} * {count} <= abs(a.s + a.c) * {double(_SCALE * 2.0**22)}, a.s + a.c, {lost})"
    folded = f"aggregate(array({', '.join([*terms, rest])}), named_struct('s', 0D, 'c', 0D), {step}, {finish})"
    special = f"isnan({rest}) OR abs({rest}) = double('Infinity')"
    return f"CASE WHEN {large} >= {double(_SCALE * 2.0**1022)} THEN {lost} WHEN {special} THEN {rest} ELSE {folded} END"


def _extremum(name: str) -> Callable[..., NativeAggregate]:
    def rule(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
        if value.kind == "none":
            raise NotNative("there is no value")
        return NativeAggregate(value, (BufferColumn(f"{name}({{x}})", name),), lambda c: c[0], value.type)

    return rule


def _first_or_last(name: str) -> Callable[..., NativeAggregate]:
    """Return the rule for the first or the last value in order of (LE, payload)."""

    def rule(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
        order = f"named_struct('le', le, 'p', {_payload_order(env)})"
        part = BufferColumn(f"{name}({{x}}, {order}) FILTER (WHERE {{x}} IS NOT NULL)", None)
        return NativeAggregate(value, (part,), lambda c: c[0], value.type)

    return rule


def _payload_order(env: Env) -> str:
    if not is_ordered(env.rows[0].type):
        raise NotNative("payloads of this type are ordered in Python")
    return env.rows[0].whole().text


def _collect(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    if not is_ordered(value.type):
        raise NotNative("values of this type are listed in Python")
    row = f"named_struct('le', le, 'p', {_payload_order(env)}, 'x', {{x}})"
    part = BufferColumn(f"array_sort(collect_list({row}) FILTER (WHERE {{x}} IS NOT NULL))", None)
    return NativeAggregate(
        value, (part,), lambda c: f"transform({c[0]}, s -> s.x)", ListType(as_nullable(value.type, False), False)
    )


def _count_distinct(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    if not is_native(value.type):
        raise NotNative("values of this type are compared in Python")
    return NativeAggregate(value, (BufferColumn("count(DISTINCT {x})", None),), lambda c: c[0], INT)


def _quantile(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    share = Fraction(function.q)
    exact = function.method == "inverted_cdf"
    if value.kind != "float" and not exact:
        raise NotNative("only a quantile of floats is certainly a float")
    if value.kind == "none":
        raise NotNative("there is no value")
    if share.denominator > 2**60:
        raise NotNative(f"the fraction {function.q} is too fine for Spark's decimals")
    text = _inverted if exact else _interpolated
    part = BufferColumn("sort_array(collect_list({x}))", None)
    result = lambda c: f"CASE WHEN size({c[0]}) > 0 THEN {text(c[0], share)} END"  # noqa: E731
    return NativeAggregate(value, (part,), result, value.type)


def _decimal(value: int | str) -> str:
    return f"cast({value}{'L' if isinstance(value, int) else ''} as decimal(19,0))"


def _inverted(array: str, share: Fraction) -> str:
    scaled = f"({_decimal(f'size({array})')} * {_decimal(share.numerator)})"
    above = f"(({scaled} + {_decimal(share.denominator - 1)}) div {_decimal(share.denominator)})"
    return f"element_at({array}, cast(greatest(1L, {above}) as int))"


def _interpolated(array: str, share: Fraction) -> str:
    by = _decimal(share.denominator)
    scaled = f"({_decimal(f'size({array}) - 1')} * {_decimal(share.numerator)})"
    below = f"cast(({scaled} div {by}) as int)"
    rest = f"cast({scaled} % {by} as double) / {double(float(share.denominator))}"
    low, high = f"element_at({array}, {below} + 1)", f"element_at({array}, {below} + 2)"
    between = f"CASE WHEN {low} = {high} THEN {low} ELSE {low} + ({high} - {low}) * ({rest}) END"
    return f"CASE WHEN {scaled} % {by} = 0 THEN {low} ELSE {between} END"


def _variance(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    value = number(value, "the variance")
    mean = _total(value, lambda total, n: f"{total} / {n}", whole=False)
    parts = (*mean.buffer, BufferColumn("collect_list(cast({x} as double))", None))

    def result(columns: Sequence[str]) -> str:
        array, count = columns[-1], columns[-2]
        squares = f"aggregate({array}, named_struct('s', 0D, 'm', {mean.evaluate(columns[:-1])}), {_SQUARES}, a -> a.s)"
        wild = f"exists({array}, x -> isnan(x) OR abs(x) = double('Infinity'))"
        made = f"if({wild}, double('NaN'), {squares} / ({count} - 1L))"
        root = f"sqrt({made})" if isinstance(function, builtin.Stddev) else made
        return f"CASE WHEN {count} > 1L THEN {root} END"

    return NativeAggregate(value, parts, result, as_nullable(FLOAT))


_SQUARES: Final = "(a, x) -> named_struct('s', a.s + (x - a.m) * (x - a.m), 'm', a.m)"


def _time_weighted(function: Any, value: Sql, node: WindowAggregate, env: Env) -> NativeAggregate:
    if not isinstance(node.windows, Hopping):
        raise NotNative("lifetimes inside windows of other kinds are weighed in Python")
    value = number(value, "the time-weighted mean")
    inside = "(least(re, wre) - greatest(le, wle))"
    whole = f"{_exact('{x}')} * {_exact(inside)}"
    weighed = whole if value.kind == "int" else f"({{x}} * cast({inside} as double))"
    size = double(float(node.windows.size))
    total = _total(value, lambda total, n: f"({total} / {size})", whole=False, of=weighed)
    parts = tuple(BufferColumn(part.update, None) for part in total.buffer)
    return NativeAggregate(value, parts, total.evaluate, as_nullable(FLOAT, value.type.nullable))


def record_type(aggregates: Sequence[NativeAggregate]) -> RecordType:
    """Return the type of the record of aggregates that the projection of a window reads."""
    return RecordType(Schema.record(tuple(f"a{i}" for i in range(len(aggregates)))), tuple(agg.type for agg in aggregates))


_RULES: Final[dict[type, Callable[..., NativeAggregate]]] = {
    builtin.Count: _count,
    builtin.Sum: _sum,
    builtin.Avg: _avg,
    builtin.Min: _extremum("min"),
    builtin.Max: _extremum("max"),
    builtin.Median: _quantile,
    builtin.Quantile: _quantile,
    builtin.Variance: _variance,
    builtin.Stddev: _variance,
    builtin.CountDistinct: _count_distinct,
    builtin.First: _first_or_last("min_by"),
    builtin.Last: _first_or_last("max_by"),
    builtin.Collect: _collect,
    builtin.TimeWeightedAvg: _time_weighted,
}

__all__ = ["native_aggregates", "record_type"]
