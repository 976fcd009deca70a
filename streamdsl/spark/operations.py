"""Python's operators as SQL, with Python's rules spelled out: what raises in Python fails the task with the same error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamdsl.errors import UnitError
from streamdsl.expr.predicates import NotBooleanError
from streamdsl.expr.scalar_functions import ScalarFunction
from streamdsl.spark import string_functions
from streamdsl.spark.column_types import ANY, BOOL, FLOAT, INT, NONE, STR, ScalarType, as_nullable
from streamdsl.spark.sql_text import NotNative, Sql, double, floor_div, integer, moved_time, plus_time
from streamdsl.spark.task_errors import error_marker, not_none, python_error
from streamdsl.temporal import INFINITY

_COMPARISONS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def truth(condition: Sql) -> Sql:
    """Return the SQL of `bool(condition)`.

    >>> truth(Sql("x", as_nullable(INT))).text
    'coalesce(x <> 0L, false)'
    """
    kind = condition.kind
    tests = {"bool": "{}", "any": "{}", "int": "{} <> 0L", "float": "{} <> 0D", "str": "{} <> ''"}
    if kind == "none":
        if condition.raises:
            raise NotNative("Python raises in any case")
        return Sql("false", BOOL)
    text = tests[kind].format(condition.text)
    return Sql(f"coalesce({text}, false)" if condition.type.nullable else f"({text})", BOOL, condition.raises)


def predicate_truth(condition: Sql) -> Sql:
    """Return the SQL of a predicate: `truth`, but None fails the task.

    >>> predicate_truth(Sql("x", BOOL)).text
    '(x)'
    """
    return truth(not_none(condition, NotBooleanError(None)))


def apply(word: ScalarFunction, arguments: Sequence[Sql]) -> Sql:
    """Return the SQL of a function of its arguments; raises `NotNative` where the table has no SQL form for their types."""
    if any(argument.type == NONE and argument.raises for argument in arguments):
        raise NotNative("Python raises in any case")
    if word.name == "is_none":
        return _is_none(arguments[0])
    kinds = tuple(argument.kind for argument in arguments)
    if word.native and "any" in kinds:
        return Sql("null", ScalarType(word.gives) if word.gives is not None else ANY)
    if kinds not in word.native:
        raise NotNative(f"{word.name} of {', '.join(kinds)} runs in Python")
    if not word.takes_none:
        arguments = [
            not_none(argument, python_error(word.name, kinds, {i: None})) if argument.type.nullable else argument
            for i, argument in enumerate(arguments)
        ]
    return SQL[word.name](word.name, *arguments)


def _is_none(operand: Sql) -> Sql:
    return Sql(f"({operand.text} IS NULL)", BOOL, operand.raises)


def _not(op: str, operand: Sql) -> Sql:
    held = truth(operand)
    return Sql(f"(NOT {held.text})", BOOL, held.raises)


def _signed(op: str, operand: Sql) -> Sql:
    value = number(operand, op)
    if op == "+x":
        return value
    if value.kind == "float":
        return Sql(f"(- {value.text})" if op == "-x" else f"abs({value.text})", FLOAT, value.raises)
    negative = _or_overflow(f"try_subtract(0L, {value.text})")
    text = negative if op == "-x" else f"CASE WHEN {value.text} < 0L THEN {negative} ELSE {value.text} END"
    return Sql(text, INT, True)


def number(value: Sql, name: str) -> Sql:
    """Return the SQL of a number, where bools are integers; `name` is what the message of `NotNative` calls it."""
    if value.kind not in ("int", "float", "bool", "any"):
        raise NotNative(f"{name} of values that are not numbers")
    if value.kind != "bool":
        return value
    return Sql(f"cast({value.text} as bigint)", ScalarType("int", value.type.nullable), value.raises)


def _or_overflow(text: str) -> str:
    return f"coalesce({text}, {error_marker(int64_overflow('an integer'))})"


def int64_overflow(what: str) -> OverflowError:
    """Return the error for an integer that Spark cannot hold."""
    error = OverflowError(f"{what} leaves int64")
    error.hint = 'compute with float(...) of it, or run the query with engine="local"'  # type: ignore[attr-defined]
    return error


def _equality(op: str, left: Sql, right: Sql) -> Sql:
    kinds, raises = (left.kind, right.kind), left.raises or right.raises
    if "any" in kinds:
        return Sql("null", BOOL)
    if "none" in kinds:
        other = left if kinds[1] == "none" else right
        text = f"({other.text} IS NULL)"
    elif (kinds[0] == "str") != (kinds[1] == "str"):
        text = f"({left.text} IS NULL AND {right.text} IS NULL)"
    else:
        values = [Sql(value.text, as_nullable(value.type, False)) for value in (left, right)]
        compared = _compare("==", values[0], values[1]).text
        nulls = f"{left.text} IS NULL OR {right.text} IS NULL"
        nullable = left.type.nullable or right.type.nullable
        text = f"if({nulls}, {left.text} IS NULL AND {right.text} IS NULL, {compared})" if nullable else compared
    return Sql(text if op == "==" else f"(NOT {text})", BOOL, raises)


def _compare(op: str, left: Sql, right: Sql) -> Sql:
    raises = left.raises or right.raises
    if (left.kind == "str") != (right.kind == "str"):
        raise NotNative("Python raises when a text is compared with a number")
    if left.kind == "str" or (left.kind == "bool" == right.kind):
        return Sql(f"({left.text} {_COMPARISONS[op]} {right.text})", BOOL, raises)
    left, right = _as_float(number(left, op), right), _as_float(number(right, op), left)
    if left.kind == right.kind == "int":
        return Sql(f"({left.text} {_COMPARISONS[op]} {right.text})", BOOL, raises)
    if left.kind == right.kind == "float":
        return Sql(_compare_floats(op, left.text, right.text), BOOL, raises)
    if left.kind == "float":
        left, right, op = right, left, {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    return Sql(_compare_mixed(op, left.text, right.text), BOOL, raises)


def _as_float(value: Sql, beside: Sql) -> Sql:
    """Return an int literal that is compared with a float as the float that is exactly equal, if there is one."""
    digits = value.text[:-1]
    literal = value.text.endswith("L") and digits.removeprefix("-").isdigit()
    exact = literal and beside.kind == "float" and abs(int(digits)) <= 2**53
    return Sql(double(float(digits)), FLOAT) if exact else value


def _compare_floats(op: str, left: str, right: str) -> str:
    """Compare floats as Python does: any comparison with NaN is false (`!=` is written as not `==`)."""
    tests = [f"{left} {_COMPARISONS[op]} {right}"]
    tests += [f"NOT isnan({text})" for text in (left, right) if not _is_literal(text)]
    return f"({' AND '.join(tests)})" if "NaN" not in left + right else "false"


def _is_literal(text: str) -> bool:
    return text.endswith("D") and text[:-1].replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit()


def _compare_mixed(op: str, whole: str, real: str) -> str:
    """Compare an int with a float exactly, also beyond 2**53, where not every int has an equal float."""
    symbol = _COMPARISONS[op]
    near = f"cast({whole} as double)"
    beyond = "true" if op in ("<", "<=") else "false"
    cases = f"WHEN isnan({real}) THEN false WHEN {near} <> {real} THEN {near} {symbol} {real}"
    return f"CASE {cases} WHEN {real} >= 9.223372036854775807E18D THEN {beyond} ELSE {whole} {symbol} cast({real} as bigint) END"


def _add(op: str, left: Sql, right: Sql) -> Sql:
    if op == "+" and left.kind == right.kind == "str":
        return Sql(f"concat({left.text}, {right.text})", STR, left.raises or right.raises)
    left, right = number(left, op), number(right, op)
    if left.kind == right.kind == "int":
        function = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[op]
        return Sql(_or_overflow(f"{function}({left.text}, {right.text})"), INT, True)
    return Sql(f"({_as_double(left)} {op} {_as_double(right)})", FLOAT, left.raises or right.raises)


def _as_double(value: Sql) -> str:
    return value.text if value.kind == "float" else f"cast({value.text} as double)"


def _divide(op: str, left: Sql, right: Sql) -> Sql:
    left, right = number(left, op), number(right, op)
    return Sql(f"({_as_double(left)} / {_nonzero(op, left, right)})", FLOAT, True)


def _nonzero(op: str, left: Sql, right: Sql) -> str:
    """Return the SQL of a divisor that fails the task where it is zero; it is a float unless both operands are ints."""
    whole = left.kind == right.kind == "int"
    text, zero = (right.text, "0L") if whole and op != "/" else (_as_double(right), "0D")
    if _is_nonzero(text):
        return text
    error = python_error(op, (left.kind, right.kind), {1: 0 if right.kind == "int" else 0.0})
    return f"CASE WHEN {text} = {zero} THEN {error_marker(error)} ELSE {text} END"


def _is_nonzero(text: str) -> bool:
    return (text[:-1].isdigit() or _is_literal(text)) and float(text[:-1]) != 0


def _modulo(op: str, left: Sql, right: Sql) -> Sql:
    left, right = number(left, op), number(right, op)
    if left.kind == right.kind == "int":
        return _whole_modulo(op, left, right)
    if op == "//":
        raise NotNative("// of floats is computed in Python")
    a, n = _as_double(left), _as_double(right)
    rest = f"({a} % {_nonzero(op, left, right)})"
    return Sql(f"CASE WHEN {rest} <> 0D AND ({rest} < 0D) <> ({n} < 0D) THEN {rest} + {n} ELSE {rest} END", FLOAT, True)


def _whole_modulo(op: str, left: Sql, right: Sql) -> Sql:
    a, n = left.text, right.text
    if n[:-1].isdigit() and int(n[:-1]) > 0:
        by = int(n[:-1])
        text = floor_div(a, by) if op == "//" else f"pmod({a}, {n})"
        return Sql(text, INT, left.raises)
    first = _nonzero(op, left, right)
    apart = f"{a} % {n} <> 0L AND ({a} % {n} < 0L) <> ({n} < 0L)"
    if op == "%":
        return Sql(f"CASE WHEN {first} = -1L THEN 0L WHEN {apart} THEN {a} % {n} + {n} ELSE {a} % {n} END", INT, True)
    negative = _or_overflow(f"try_subtract(0L, {a})")
    return Sql(f"CASE WHEN {first} = -1L THEN {negative} ELSE {a} div {n} - if({apart}, 1L, 0L) END", INT, True)


def _truncate(op: str, time: Sql, *grid: Sql) -> Sql:
    step, start = (*map(_count, grid), 0)[:2]
    if not 0 <= start < step:
        raise NotNative("truncate to a grid that is no constant one runs in Python")
    past = f"pmod({time.text}, {integer(step)})"
    rest = past if start == 0 else f"pmod({past} - {integer(start)}, {integer(step)})"
    return Sql(_or_overflow(f"try_subtract({time.text}, {rest})"), INT, True)


def _count(value: Sql) -> int:
    """Return the value of a non-negative int literal, else -1."""
    return int(value.text[:-1]) if value.text[:-1].isdigit() else -1


def _add_time(op: str, time: Sql, duration: Sql) -> Sql:
    if duration.text.removeprefix("-")[:-1].isdigit():
        return Sql(plus_time(time.text, int(duration.text[:-1])), INT, True)
    return Sql(moved_time(time.text, duration.text), INT, True)


def _reach(op: str, time: Sql, duration: Sql) -> Sql:
    beyond = integer(INFINITY)
    if _count(duration) < 0:
        beyond = f"if({duration.text} < 0L, -{beyond} - 1L, {beyond})"  # Spark reads no literal of the smallest time
    return Sql(f"coalesce(try_add({time.text}, {duration.text}), {beyond})", INT, time.raises or duration.raises)


def _earliest(op: str, first: Sql, second: Sql) -> Sql:
    function = "least" if op == "earliest" else "greatest"
    return Sql(f"{function}({first.text}, {second.text})", INT, first.raises or second.raises)


def _on_grid(op: str, time: Sql, *grid: Sql) -> Sql:
    period, phase = map(_count, grid)
    if not 0 <= phase < period:
        raise NotNative("a grid that is no constant one is computed in Python")
    beyond = f"pmod(pmod({time.text}, {integer(period)}) - {integer(phase)}, {integer(period)})"
    step = f"-{beyond}" if op == "floor_time" else f"pmod(-{beyond}, {integer(period)})"
    return Sql(moved_time(time.text, step), INT, True)


def _ticks(op: str, time: Sql, unit: Sql) -> Sql:
    return not_none(time, UnitError(f"None is not a {'time' if op == 'to_ticks' else 'duration'}"))


def _bits(op: str, left: Sql, right: Sql) -> Sql:
    raises = left.raises or right.raises
    if left.kind == right.kind == "bool":
        if op == "^":
            return Sql(f"({left.text} <> {right.text})", BOOL, raises)
        if raises:
            both = f"cast({left.text} as bigint) {op} cast({right.text} as bigint)"
            return Sql(f"(({both}) = 1L)", BOOL, True)
        return Sql(f"({left.text} {'AND' if op == '&' else 'OR'} {right.text})", BOOL, raises)
    if "float" in (left.kind, right.kind):
        raise NotNative("Python raises for bits of floats")
    return Sql(f"({number(left, op).text} {op} {number(right, op).text})", INT, raises)


def _int(op: str, operand: Sql) -> Sql:
    if operand.kind != "float":
        return number(operand, op)
    text = operand.text
    nan, beyond = error_marker(python_error("int", ("float",), {0: math.nan})), error_marker(int64_overflow("an integer"))
    outside = f"{text} >= 9.223372036854775807E18D OR {text} < -9.223372036854775808E18D"
    return Sql(f"CASE WHEN isnan({text}) THEN {nan} WHEN {outside} THEN {beyond} ELSE cast({text} as bigint) END", INT, True)


def _float(op: str, operand: Sql) -> Sql:
    return Sql(_as_double(number(operand, op)), FLOAT, operand.raises)


def _bool(op: str, operand: Sql) -> Sql:
    return truth(operand)


def _str(op: str, operand: Sql) -> Sql:
    if operand.kind == "none":
        return Sql("'None'", STR)
    text = f"if({operand.text}, 'True', 'False')" if operand.kind == "bool" else f"cast({operand.text} as string)"
    return Sql(f"if({operand.text} IS NULL, 'None', {text})" if operand.type.nullable else text, STR, operand.raises)


def _coalesce(op: str, first: Sql, second: Sql) -> Sql:
    if second.raises:
        raise NotNative("a later value of coalesce may fail, and Spark would not compute it")
    if "none" in (first.kind, second.kind):
        return second if first.kind == "none" else first
    nullable = first.type.nullable and second.type.nullable
    return Sql(f"coalesce({first.text}, {second.text})", as_nullable(first.type, nullable), first.raises)


SQL: Final[Mapping[str, Callable[..., Sql]]] = {
    **dict.fromkeys(("==", "!="), _equality),
    **dict.fromkeys(("<", "<=", ">", ">="), _compare),
    **dict.fromkeys(("+", "-", "*"), _add),
    **dict.fromkeys(("%", "//"), _modulo),
    **dict.fromkeys(("&", "|", "^"), _bits),
    **dict.fromkeys(("-x", "+x", "abs"), _signed),
    "/": _divide,
    "not": _not,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "coalesce": _coalesce,
    "truncate": _truncate,
    "add_time": _add_time,
    "reach": _reach,
    **dict.fromkeys(("earliest", "latest"), _earliest),
    **dict.fromkeys(("floor_time", "ceil_time"), _on_grid),
    **dict.fromkeys(("to_ticks", "to_duration"), _ticks),
    **string_functions.SQL,
}
"""The SQL of each scalar function but `is_none`, for the types that `streamdsl/expr/scalar_functions.py` calls native."""
