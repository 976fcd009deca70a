"""The scalar functions of expressions in one table: what each computes in Python, and which engines can compute the same.

A scalar function is an operator (`+`), a method (`.upper`) or a function (`coalesce`). Its `python` defines it. `columns`
computes the same over numpy columns, or gives None where that is not certain. `native` lists the argument types for which Spark
SQL has an exact equivalent (`streamdsl/spark/operations.py` writes it). Where neither applies, `python` runs row by row.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from streamdsl.expr import vector
from streamdsl.expr.datetimes import local_time, truncate
from streamdsl.expr.table import Column
from streamdsl.temporal.time import (
    add_time,
    add_times,
    ceil_time,
    ceil_times,
    floor_time,
    floor_times,
    reach,
    reaches,
    to_duration,
    to_ticks,
)

Kind: TypeAlias = Literal["int", "float", "bool", "str", "none"]
"""A type whose values are the same in Spark as in Python: ints in int64, texts in valid Unicode; `none` has no value but None."""
Signatures: TypeAlias = Mapping[tuple[Kind, ...], Kind]

KINDS: Final[tuple[Kind, ...]] = ("int", "float", "bool", "str", "none")
_NUMBERS: Final[tuple[Kind, ...]] = ("int", "float", "bool")
_WHOLE: Final[tuple[Kind, ...]] = ("int", "bool")


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function: over values, over columns (None where not certain), and the signatures that Spark SQL computes exactly.

    `others` lists further signatures, which only Python computes. `gives` is the type of the result for any arguments. Without
    `takes_none` a None among the arguments is an error, in Python and on Spark.
    """

    name: str
    python: Callable[..., Any]
    columns: Callable[..., Column | None] | None = None
    native: Signatures = field(default_factory=dict)
    others: Signatures = field(default_factory=dict)
    takes_none: bool = False
    gives: Kind | None = None

    def result(self, kinds: Sequence[str]) -> Kind | None:
        """Return the type of the result for arguments of these kinds, where that is certain.

        >>> upper = SCALAR_FUNCTIONS[".upper"]
        >>> SCALAR_FUNCTIONS["/"].result(("int", "bool")), upper.result(("str",)), upper.result(("",))
        ('float', 'str', None)
        """
        found: Mapping[Any, Kind] = {**self.native, **self.others}
        return self.gives or found.get(tuple(kinds))


def coalesce(first: Any, second: Any) -> Any:
    """Return the first value that is not None."""
    return second if first is None else first


def contains(whole: Any, part: Any) -> bool:
    """Say whether a text has a part, or whether some item is equal; NaN is equal to nothing, not even to itself."""
    return part in whole if isinstance(whole, (str, bytes)) else any(part == item for item in whole)


def is_none(value: Any) -> bool:
    """Say whether a value is None."""
    return value is None


def _call_method(name: str, value: Any, *arguments: Any) -> Any:
    return getattr(value, name)(*arguments)


def _slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    return value[start:stop:step]


def _infix(
    name: str, python: Callable[..., Any], native: Signatures, others: Signatures | None = None, **more: Any
) -> ScalarFunction:
    return ScalarFunction(name, python, partial(vector.binary, name), native, others or {}, **more)


def _prefix(name: str, op: str, python: Callable[..., Any], native: Signatures, **more: Any) -> ScalarFunction:
    return ScalarFunction(name, python, partial(vector.unary, op), native, **more)


def _method(name: str, native: Signatures | None = None, others: Signatures | None = None, **more: Any) -> ScalarFunction:
    return ScalarFunction(f".{name}", partial(_call_method, name), None, native or {}, others or {}, **more)


def _of(result: Kind, *arguments: Iterable[Kind]) -> dict[tuple[Kind, ...], Kind]:
    """Return the signatures of all combinations of arguments, with one kind of result."""
    return dict.fromkeys(itertools.product(*arguments), result)


_STR: Final[tuple[Kind, ...]] = ("str",)
_SUMS: Final = {**_of("float", _NUMBERS, _NUMBERS), **_of("int", _WHOLE, _WHOLE)}
_FLOATS: Final = {**_of("float", _NUMBERS, ("float",)), **_of("float", ("float",), _NUMBERS)}
_BITS: Final = {**_of("int", _WHOLE, _WHOLE), **_of("bool", ("bool",), ("bool",))}
_SIGNED: Final = {**_of("int", _WHOLE), **_of("float", ("float",))}
_ORDERED: Final = {**_of("bool", _NUMBERS, _NUMBERS), **_of("bool", _STR, _STR)}
_ANYTHING: Final = _of("bool", KINDS)
_EQUALS: Final = _of("bool", KINDS, KINDS)
_OPERATORS: Final = (
    _infix("+", operator.add, {**_SUMS, **_of("str", _STR, _STR)}),
    _infix("-", operator.sub, _SUMS),
    _infix("*", operator.mul, _SUMS, _of("str", _STR, _WHOLE)),
    _infix("/", operator.truediv, _of("float", _NUMBERS, _NUMBERS)),
    _infix("//", operator.floordiv, _of("int", _WHOLE, _WHOLE), _FLOATS),
    _infix("%", operator.mod, _SUMS),
    _infix("**", operator.pow, {}),
    _infix("&", operator.and_, _BITS),
    _infix("|", operator.or_, _BITS),
    _infix("^", operator.xor, _BITS),
    _infix("==", operator.eq, _EQUALS, takes_none=True, gives="bool"),
    _infix("!=", operator.ne, _EQUALS, takes_none=True, gives="bool"),
    _infix("<", operator.lt, _ORDERED, gives="bool"),
    _infix("<=", operator.le, _ORDERED, gives="bool"),
    _infix(">", operator.gt, _ORDERED, gives="bool"),
    _infix(">=", operator.ge, _ORDERED, gives="bool"),
    _prefix("-x", "-", operator.neg, _SIGNED),
    _prefix("+x", "+", operator.pos, _SIGNED),
    _prefix("abs", "abs", operator.abs, _SIGNED),
    _prefix("not", "not", operator.not_, _ANYTHING, takes_none=True, gives="bool"),
    _prefix("is_none", "is_none", is_none, _ANYTHING, takes_none=True, gives="bool"),
)

_TEXT_CASES: Final = "upper lower title capitalize casefold swapcase"
_TEXT_TESTS: Final = "isalpha isalnum isdigit isdecimal isnumeric isupper islower istitle"
_OF_TIMES: Final = "weekday isoweekday date time timestamp isoformat toordinal total_seconds"
_STRIP: Final = {**_of("str", _STR), **_of("str", _STR, ("str", "none"))}
_METHODS: Final = (
    *map(_method, [*_OF_TIMES.split(), "bit_length"]),
    *(_method(name, None, _of("str", _STR)) for name in _TEXT_CASES.split()),
    *(_method(name, _of("str", _STR, _STR)) for name in ("removeprefix", "removesuffix")),
    _method("zfill", None, _of("str", _STR, _WHOLE)),
    *(_method(name, gives="bool") for name in [*_TEXT_TESTS.split(), "is_integer"]),
    _method("isspace", _of("bool", _STR), gives="bool"),
    *(_method(name, _STRIP, takes_none=True) for name in ("strip", "lstrip", "rstrip")),
    *(_method(name, _of("bool", _STR, _STR), gives="bool") for name in ("startswith", "endswith")),
    _method("find", _of("int", _STR, _STR)),
    _method("split"),
    _method("replace", _of("str", _STR, _STR, _STR)),
)

_EITHER: Final[Signatures] = {pair: kind for kind in KINDS for pair in ((kind, kind), (kind, "none"), ("none", kind))}
_INT: Final[tuple[Kind, ...]] = ("int",)
_BOUND: Final[tuple[Kind, ...]] = ("int", "none")
_FUNCTIONS: Final = (
    ScalarFunction("[]", operator.getitem, None, _of("str", _STR, ("int",))),
    ScalarFunction(
        "[:]", _slice, None, _of("str", _STR, _BOUND, _BOUND, ("none",)), _of("str", _STR, _BOUND, _BOUND, ("int",)), True
    ),
    ScalarFunction("length", len, None, _of("int", _STR), gives="int"),
    ScalarFunction("contains", contains, vector.contains, _of("bool", _STR, _STR), gives="bool"),
    ScalarFunction("coalesce", coalesce, vector.coalesce, _EITHER, takes_none=True),
    ScalarFunction("int", int, partial(vector.unary, "int"), _of("int", _NUMBERS), gives="int"),
    ScalarFunction("float", float, partial(vector.unary, "float"), _of("float", _NUMBERS), gives="float"),
    ScalarFunction("bool", bool, partial(vector.unary, "bool"), _ANYTHING, takes_none=True, gives="bool"),
    ScalarFunction("str", str, None, _of("str", ("int", "bool", "str", "none")), takes_none=True, gives="str"),
    ScalarFunction("local_time", local_time),
    ScalarFunction("truncate", truncate, vector.truncate, {**_of("int", _INT, _INT), **_of("int", _INT, _INT, _INT)}),
)

_GRID: Final = _of("int", _INT, _INT, _INT)
_READ: Final = _of("int", _INT, ("str", "none"))
_TIMES: Final = (
    ScalarFunction("add_time", add_time, partial(vector.of_times, add_times), _of("int", _INT, _INT)),
    ScalarFunction("reach", reach, partial(vector.of_times, reaches), _of("int", _INT, _INT)),
    ScalarFunction("earliest", min, partial(vector.of_times, np.minimum), _of("int", _INT, _INT)),
    ScalarFunction("latest", max, partial(vector.of_times, np.maximum), _of("int", _INT, _INT)),
    ScalarFunction("floor_time", floor_time, partial(vector.on_grid, floor_times), _GRID),
    ScalarFunction("ceil_time", ceil_time, partial(vector.on_grid, ceil_times), _GRID),
    ScalarFunction("to_ticks", to_ticks, vector.ticks, _READ, takes_none=True, gives="int"),
    ScalarFunction("to_duration", to_duration, vector.ticks, _READ, takes_none=True, gives="int"),
)
"""Of times and durations in ticks; of these the ends of lifetimes are made (`streamdsl/plan/end_expressions.py`)."""

SCALAR_FUNCTIONS: Final[Mapping[str, ScalarFunction]] = {
    word.name: word for word in (*_OPERATORS, *_METHODS, *_FUNCTIONS, *_TIMES)
}
"""Every scalar function by its name: an operator's symbol (`-x` of one operand), `.name` of a method, a function's name."""
METHODS: Final = frozenset(word.name[1:] for word in _METHODS)
"""The methods that an expression may call; each gives a new value and changes nothing."""
CASTS: Final[Mapping[type, str]] = {int: "int", float: "float", str: "str", bool: "bool"}
"""The types that `sd.functions.cast` converts to."""
