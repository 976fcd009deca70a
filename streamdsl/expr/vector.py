"""Scalar functions over typed columns, where numpy certainly computes what Python does; else they give None, and Python computes.

Certain means: no int64 overflow, no division by zero, and where integers meet floats, only integers that floats represent
exactly. Float `**` is left to Python, because numpy does not guarantee the same rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.expr.table import Column
from streamdsl.temporal.alike import unique

_INT64: Final = (-(2**63), 2**63 - 1)
_EXACT: Final = 2**53

_COMPARE: Final[Mapping[str, Callable[..., Any]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARITHMETIC: Final[Mapping[str, Callable[..., Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
}
_BITS: Final[Mapping[str, Callable[..., Any]]] = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A column with the same value in every row. [DuckDB: constant vector]"""

    value: Any


Operand: TypeAlias = Column | Scalar


def binary(op: str, left: Operand, right: Operand) -> Column | None:
    """Return `left op right` for typed columns (at least one of the two), or None.

    >>> binary("+", np.array([1, 2]), Scalar(0.5)).tolist(), binary("+", np.array([2**62]), Scalar(2**62)) is None
    ([1.5, 2.5], True)
    """
    with np.errstate(all="ignore"):
        return _binary(op, left, right)


def _binary(op: str, left: Operand, right: Operand) -> Column | None:
    kinds = _kind(left) + _kind(right)
    if any(isinstance(value, np.ndarray) and not value.size for value in (left, right)):
        return None
    if "?" in kinds:
        return _array(_COMPARE[op](_raw(left), _raw(right))) if op in _COMPARE and _is_text(left) and _is_text(right) else None
    if op in _COMPARE:
        mixed = "f" in kinds and "i" in kinds
        return None if mixed and not _floats_hold(left, right) else _array(_COMPARE[op](_raw(left), _raw(right)))
    if op in _BITS:
        return None if "f" in kinds else _array(_BITS[op](_raw(left), _raw(right)))
    left, right = _number(left), _number(right)
    if op == "**":
        return _power(left, right) if kinds[0] != "f" else None
    if op in ("/", "//", "%") and _has_zero(right):
        return None
    if "f" not in kinds and not _stays_exact(op, left, right):
        return None
    return _array(_ARITHMETIC[op](_raw(left), _raw(right)))


def unary(op: str, column: Operand) -> Column | None:
    """Return `op column` for a typed column, or None.

    >>> unary("int", np.array([2.9, -2.9])).tolist(), unary("int", np.array([np.inf])) is None
    ([2, -2], True)
    """
    if isinstance(column, Scalar) or column.dtype == object or not column.size:
        return None
    if op in ("not", "bool"):
        truth = column.astype(np.bool_)
        return ~truth if op == "not" else truth
    if op == "float":
        return column.astype(np.float64)
    if op == "int":
        return _whole(column)
    if op == "is_none":
        return np.zeros(len(column), dtype=np.bool_)
    number = _number(column)
    if op == "+":
        return _array(number)
    if number.dtype.kind == "i" and int(number.min()) == _INT64[0]:
        return None
    return _array(np.negative(number) if op == "-" else np.abs(number))


def coalesce(first: Operand, second: Operand) -> Column | None:
    """Return the first of two columns if its type has no None, else None.

    >>> coalesce(np.array([1, 2]), Scalar(0)).tolist()
    [1, 2]
    """
    return None if isinstance(first, Scalar) or first.dtype == object else first


def truncate(time: Operand, period: Operand, offset: Operand = Scalar(0)) -> Column | None:
    """Return each time rounded down to the grid offset + k * period, or None.

    >>> truncate(np.array([7, -7]), Scalar(5)).tolist()
    [5, -10]
    """
    moved = None if isinstance(time, Scalar) else binary("-", time, offset)
    rest = None if moved is None else binary("%", moved, period)
    return None if rest is None else binary("-", time, rest)


def of_times(function: Callable[..., Column], first: Operand, second: Operand) -> Column | None:
    """Return a function of two columns of ticks, or None.

    >>> of_times(np.minimum, np.array([1, 9]), Scalar(5)).tolist()
    [1, 5]
    """
    if _kind(first) + _kind(second) != "ii":
        return None
    return function(*np.broadcast_arrays(*(np.asarray(_raw(each), dtype=np.int64) for each in (first, second))))


def on_grid(function: Callable[..., Column], time: Operand, period: Operand, phase: Operand) -> Column | None:
    """Return a function of a column of ticks and a constant grid, or None."""
    grid = [each.value for each in (period, phase) if isinstance(each, Scalar) and _kind(each) == "i"]
    if isinstance(time, Scalar) or _kind(time) != "i" or len(grid) < 2 or not 0 <= grid[1] < grid[0]:
        return None
    return function(time, *grid)


def ticks(time: Operand, unit: Operand = Scalar(None)) -> Column | None:
    """Return a column of integers, which are ticks whatever the unit is, or None."""
    return time if not isinstance(time, Scalar) and time.dtype == np.int64 else None


def contains(whole: Operand, part: Operand) -> Column | None:
    """Return whether some item of a constant tuple equals each value of a typed column, or None.

    >>> contains(Scalar((1, 3)), np.array([1, 2])).tolist(), contains(Scalar(("a", None)), np.array([1, 2])) is None
    ([True, False], True)
    """
    if not isinstance(whole, Scalar) or type(whole.value) is not tuple or isinstance(part, Scalar):
        return None
    found = [binary("==", part, Scalar(item)) for item in whole.value]
    tests = [test for test in found if test is not None]
    return _array(np.logical_or.reduce(tests)) if tests and len(tests) == len(found) else None


def _whole(column: Column) -> Column | None:
    if column.dtype.kind == "f" and not (np.abs(column) < -float(_INT64[0])).all():
        return None
    return column.astype(np.int64)


def _array(column: Any) -> Column:
    return column  # type: ignore[no-any-return]


def _kind(value: Operand) -> str:
    if isinstance(value, Scalar):
        kind = type(value.value)
        if kind is int:
            return "i" if _INT64[0] <= value.value <= _INT64[1] else "?"
        return {bool: "b", float: "f"}.get(kind, "?")
    return value.dtype.kind if value.dtype.kind in "bif" else "?"


def _is_text(value: Operand) -> bool:
    if isinstance(value, Scalar):
        return type(value.value) is str
    return value.dtype == object and unique(map(type, value.tolist())) == {str}


def _raw(value: Operand) -> Any:
    return value.value if isinstance(value, Scalar) else value


def _number(value: Any) -> Any:
    if isinstance(value, Scalar):
        return Scalar(int(value.value)) if type(value.value) is bool else value
    return value.astype(np.int64) if value.dtype.kind == "b" else value


def _bounds(value: Any) -> tuple[int, int]:
    return (value.value, value.value) if isinstance(value, Scalar) else (int(value.min()), int(value.max()))


def _floats_hold(*values: Operand) -> bool:
    whole = [_bounds(value) for value in values if _kind(value) == "i"]
    return all(lo >= -_EXACT and hi <= _EXACT for lo, hi in whole)


def _has_zero(value: Any) -> bool:
    return value.value == 0 if isinstance(value, Scalar) else not value.all()


def _stays_exact(op: str, left: Any, right: Any) -> bool:
    if op == "/":
        return _floats_hold(left, right)
    (a, b), (c, d) = _bounds(left), _bounds(right)
    if op in ("//", "%"):
        return not (a == _INT64[0] and c <= -1 <= d)
    ends = {"+": (a + c, b + d), "-": (a - d, b - c), "*": (a * c, a * d, b * c, b * d)}[op]
    return _INT64[0] <= min(ends) and max(ends) <= _INT64[1]


def _power(base: Any, exponent: Any) -> Column | None:
    if not isinstance(exponent, Scalar) or not isinstance(base, np.ndarray) or type(exponent.value) is not int:
        return None
    if not 0 <= exponent.value < 64 or max(map(abs, _bounds(base))) ** exponent.value > _INT64[1]:
        return None
    return _array(np.power(base, exponent.value))
