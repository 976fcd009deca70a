"""The built-in aggregates as Spark SQL: the update, merge and evaluate expressions of each.

Sums are exact (`exact_sums.py`), so the order of rows never shows in a result, unless a user asks for rounded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowAggregate
from streamdsl.spark import exact_sums
from streamdsl.spark.aggregation_plan import BufferColumn, NativeAggregate
from streamdsl.spark.column_types import (
    ANY,
    FLOAT,
    INT,
    ColumnType,
    ListType,
    NumberType,
    RecordType,
    as_nullable,
    is_comparable,
    is_native,
    is_ordered,
)
from streamdsl.spark.expressions import Env, to_sql, to_test
from streamdsl.spark.operations import number
from streamdsl.spark.payload_order import in_order
from streamdsl.spark.rounded_sums import rounded
from streamdsl.spark.sql_text import NotNative, Sql, double
from streamdsl.spark.task_errors import error_marker, mark_expression, resolve_markers
from streamdsl.spark.variance_sql import variance
from streamdsl.udm import builtin
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.windows import Hopping, Snapshot

_MIXED: Final = TypeError("unsupported operand type(s) for *: 'decimal.Decimal' and 'float'")


def native_aggregates(node: WindowAggregate, env: Env, exact: bool = True) -> list[NativeAggregate]:
    """Return a node's aggregates as SQL, or raise `NotNative` for one that runs in Python; not `exact`: floats may be rounded."""
    return [_native_aggregate(agg, node, env, exact) for agg in node.aggregates]


def _native_aggregate(agg: BoundAgg, node: WindowAggregate, env: Env, exact: bool) -> NativeAggregate:
    rule = _RULES.get(type(agg.function))
    if rule is None:
        raise NotNative(f"{agg.function.label} is Python code")
    argument = _argument(agg, env)
    inexact = None if exact else rounded(agg.function, argument, node.windows)
    found: NativeAggregate = inexact or rule(agg.function, argument, node, env)
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
    return _total(number(value, "the sum"), lambda total, n: total, node, whole=True)


def _avg(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
    return _total(number(value, "the mean"), lambda total, n: f"{total} / {n}", node)


def _total(
    value: Sql, result: Callable[[str, str], str], node: WindowAggregate, whole: bool = False, of: str = "{x}"
) -> NativeAggregate:
    """Return an aggregate that computes `result` from an exact sum and the count; `of` is summed in place of the argument."""
    kind = INT if whole and value.kind == "int" else FLOAT
    parts: tuple[str, ...] = ()
    if value.kind != "int":
        # What weighs values reads the window, which is known after the parts are computed.
        parts = exact_sums.near_parts() if of == "{x}" else ()
        usual, small = ("{x1}", "{x2}") if parts else (exact_sums.usual_float(of), exact_sums.with_digits(of))
        near = exact_sums.NEAR_OF_PARTS if parts else exact_sums.near_digits(small)
        sums = exact_sums.float_columns(of, usual, small, near, isinstance(node.windows, Snapshot))
        total = exact_sums.float_sum
    elif of != "{x}":
        sums, total = [BufferColumn(f"try_sum({of})")], exact_sums.decimal_sum
    else:
        sums, total = exact_sums.integer_columns(of), exact_sums.integer_sum if whole else exact_sums.float_of_integers
    count = len(sums)
    text = lambda c: f"CASE WHEN {c[count]} > 0L THEN {result(total(c), c[count])} END"  # noqa: E731
    return NativeAggregate(value, (*sums, _count_column()), text, as_nullable(kind, value.type.nullable), parts)


def _extremum(name: str) -> Callable[..., NativeAggregate]:
    def rule(function: Any, value: Sql, node: Any, env: Env) -> NativeAggregate:
        _check_comparable(value)
        return NativeAggregate(value, (BufferColumn(f"{name}({{x}})", name),), lambda c: c[0], value.type)

    return rule


def _check_comparable(value: Sql) -> None:
    if not is_comparable(value.type):
        raise NotNative("values of this type are compared in Python")


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
    return in_order(env.rows[0].whole().text, env.rows[0].type)


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
    _check_comparable(value)
    share = Fraction(function.q)
    if share.denominator > 2**60:
        raise NotNative(f"the fraction {function.q} is too fine for Spark's decimals")
    text, kind = (_inverted, value.type) if function.method == "inverted_cdf" else _interpolation(value.type)
    part = BufferColumn("sort_array(collect_list({x}))", None)
    result = lambda c: f"CASE WHEN size({c[0]}) > 0 THEN {text(c[0], share)} END"  # noqa: E731
    return NativeAggregate(value, (part,), result, kind)


def _interpolation(kind: ColumnType) -> tuple[Callable[[str, Fraction], str], ColumnType]:
    """Return what computes a quantile between two values, and its type: among ints a member is an int, and all else a float."""
    if kind == ANY or kind.ddl == "double":
        return partial(_between, _between_floats, str), kind
    if kind.ddl == "bigint":
        return partial(_between, _between_ints, lambda member: _number(member, "cast(null as double)")), NumberType()
    if kind.ddl.startswith("decimal("):
        return partial(_between, lambda low, high, rest: error_marker(_MIXED), str), kind
    raise NotNative("what lies between values of this type is computed in Python")


def _decimal(value: int | str) -> str:
    return f"cast({value}{'L' if isinstance(value, int) else ''} as decimal(19,0))"


def _inverted(array: str, share: Fraction) -> str:
    scaled = f"({_decimal(f'size({array})')} * {_decimal(share.numerator)})"
    above = f"(({scaled} + {_decimal(share.denominator - 1)}) div {_decimal(share.denominator)})"
    return f"element_at({array}, cast(greatest(1L, {above}) as int))"


def _between(inside: Callable[[str, str, str], str], of_member: Callable[[str], str], array: str, share: Fraction) -> str:
    """Return the SQL of a quantile: a member of the array, or what lies `inside`, between two that differ."""
    by = _decimal(share.denominator)
    scaled = f"({_decimal(f'size({array}) - 1')} * {_decimal(share.numerator)})"
    below = f"cast(({scaled} div {by}) as int)"
    rest = f"cast({scaled} % {by} as double) / {double(float(share.denominator))}"
    low, high = f"element_at({array}, {below} + 1)", f"element_at({array}, {below} + 2)"
    member = of_member(low)
    return f"CASE WHEN {scaled} % {by} = 0 THEN {member} WHEN {low} = {high} THEN {member} ELSE {inside(low, high, rest)} END"


def _between_floats(low: str, high: str, rest: str) -> str:
    return f"{low} + ({high} - {low}) * ({rest})"


def _between_ints(low: str, high: str, rest: str) -> str:
    """Return the SQL of the float between two ints, whose distance may leave int64."""
    apart = f"cast({exact_sums.decimal(high)} - {exact_sums.decimal(low)} as double)"
    return _number("cast(null as bigint)", f"cast({low} as double) + {apart} * ({rest})")


def _number(whole: str, real: str) -> str:
    return f"named_struct('i', {whole}, 'f', {real})"


def _variance(function: Any, value: Sql, node: WindowAggregate, env: Env) -> NativeAggregate:
    root, retracts = isinstance(function, builtin.Stddev), isinstance(node.windows, Snapshot)
    return variance(number(value, "the variance"), _count_column(), root, retracts)


def _time_weighted(function: Any, value: Sql, node: WindowAggregate, env: Env) -> NativeAggregate:
    if not isinstance(node.windows, Hopping):
        raise NotNative("lifetimes inside windows of other kinds are weighed in Python")
    value = number(value, "the time-weighted mean")
    inside = "(least(re, wre) - greatest(le, wle))"
    whole = f"{exact_sums.decimal('{x}')} * {exact_sums.decimal(inside)}"
    weighed = whole if value.kind == "int" else f"({{x}} * cast({inside} as double))"
    size = double(float(node.windows.size))
    total = _total(value, lambda total, n: f"({total} / {size})", node, of=weighed)
    buffer = tuple(BufferColumn(column.update, None) for column in total.buffer)
    return replace(total, buffer=buffer, type=as_nullable(FLOAT, value.type.nullable))


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
