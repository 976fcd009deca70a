"""The functions that users write expressions with: `col`, `lit`, `param`, `when`, `@udf`, and the scalar functions by name.

Called with plain values, as an opaque lambda does, the functions compute; called with expressions they build.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Container, Sized
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Never, NoReturn, ParamSpec, TypeVar, overload

from streamdsl.errors import QueryError, TimeOverflow, UnitError
from streamdsl.expr.datetimes import CalendarUnit
from streamdsl.expr.facade import E, build, constant, family
from streamdsl.expr.nodes import Call, Choose, Constant, Expr, Field, Function, Parameter, Unary
from streamdsl.expr.predicates import check_function
from streamdsl.expr.proxies import BuiltPayload, RowProxy, argument_node, call_argument_node, is_value, result_node
from streamdsl.expr.recording import StandIn, SymbolicValue, WriterError, is_tracing, refuse
from streamdsl.expr.scalar_functions import CASTS, SCALAR_FUNCTIONS
from streamdsl.temporal.time import PER_SECOND, DurationLike, is_integer, to_duration
from streamdsl.temporal.zones import zone_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V", int, float, str, bool)


def col(name: str) -> E:
    """Return the expression of a field.

    >>> col("price") > 10
    e.price > 10
    """
    if not isinstance(name, str):
        raise WriterError(f"a field is named by a text, not by {name!r}", hint='sd.col("price")')
    return E(Field(name))


def lit(value: object) -> E:
    """Return the expression of a constant; a mutable value is refused.

    >>> lit(1) + col("x")
    1 + e.x
    """
    return E(constant(value))


@overload
def param(name: str, type: type[T], default: T = ...) -> T: ...
@overload
def param(name: str, type: Any = object, default: Any = ...) -> Any: ...
def param(name: str, type: Any = object, default: Any = ...) -> Any:
    """Return the expression of a value that is bound when the query is: `query.bind(limit=10)`.

    `type` is the class of its values, or a union of classes; to a type checker the parameter is a value of that type. Without a
    `default` a query with it runs only when it is bound. It is made outside of the lambdas that read it. Raises `QueryError` for
    a name that is none, and for a default of another type, or one that may change.

    >>> limit = param("limit", int, default=5)
    >>> col("price") > limit
    e.price > $limit
    >>> import streamdsl as sd
    >>> dear = sd.from_rows([(1, 2, 7), (3, 4, 12)]).where(lambda e: e > limit)
    >>> len(dear.run().cht()), len(dear.bind(limit=10).run().cht())
    (2, 1)
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise QueryError(f"a parameter has the name that bind(...) takes, not {name!r}", hint='sd.functions.param("limit", int)')
    made = Parameter(name, type)
    given = None if default is ... else checked_value(made, default)
    return E(Parameter(name, type, given), hint=type)


def checked_value(parameter: Parameter, value: object) -> Constant:
    """Return a value as a constant; raises `QueryError` where it is none, or not of the parameter's type.

    >>> checked_value(Parameter("limit", int | None), None)
    Constant(value=None)
    >>> checked_value(Parameter("limit", int), "ten")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the parameter 'limit' is of type int, not str: 'ten'
    """
    found = constant(value)
    types = (parameter.accepts,) if parameter.accepts is not float else (float, int)
    try:
        fits = any(isinstance(found.value, each) for each in types)
    except TypeError:
        raise QueryError(
            f"the type of the parameter {parameter.name!r} is {parameter.accepts!r}, which says nothing of a single value",
            hint='a class or a union of classes: sd.functions.param("limit", int | None)',
        ) from None
    if not fits:
        wanted = getattr(parameter.accepts, "__name__", parameter.accepts)
        raise QueryError(f"the parameter {parameter.name!r} is of type {wanted}, not {type(value).__name__}: {value!r}")
    return found


@overload
def not_(condition: E) -> E: ...  # type: ignore[overload-overlap]
@overload
def not_(condition: object) -> bool: ...
def not_(condition: Any) -> Any:
    """Return `not condition`, of a value or of an expression.

    >>> not_(col("done")), not_(0)
    (not_(e.done), True)
    """
    if not _is_expression(condition):
        return not condition
    return family(condition)(Unary("not", argument_node(condition)))


@overload
def is_none(value: E) -> E: ...  # type: ignore[overload-overlap]
@overload
def is_none(value: object) -> bool: ...
def is_none(value: Any) -> Any:
    """Say whether a value, an expression's value or a row is None.

    >>> is_none(col("tip")), is_none(None)
    (is_none(e.tip), True)
    """
    if not _is_expression(value):
        return value is None
    return family(value)(Unary("is_none", argument_node(value)))


@overload
def coalesce(first: E, /, *rest: object) -> E: ...
@overload
def coalesce(first: T | None, last: U, /) -> T | U: ...
@overload
def coalesce(first: T | None, /, *rest: T | None) -> T | None: ...
def coalesce(first: Any, /, *rest: Any) -> Any:
    """Return the first value that is not None, of values or expressions; all of them are evaluated.

    >>> coalesce(col("tip"), 0.0), coalesce(None, 2, 3)
    (coalesce(e.tip, 0.0), 2)
    """
    return _apply("coalesce", first, coalesce(*rest)) if rest else first


@overload
def cast(value: E, kind: type[int | float | str | bool]) -> E: ...  # type: ignore[overload-overlap]
@overload
def cast(value: object, kind: type[V]) -> V: ...
def cast(value: Any, kind: Any) -> Any:
    """Return `int(value)`, `float(value)`, `str(value)` or `bool(value)`, of a value or of an expression, with Python's errors.

    >>> cast(col("price"), int), cast("12", int)
    (cast(e.price, int), 12)
    """
    cls = kind.held if isinstance(kind, CastType) else kind
    if not isinstance(cls, type) or cls not in CASTS:
        raise WriterError(f"there is no cast to {kind!r}", hint=f"the types are: {', '.join(CASTS.values())}")
    return _apply(CASTS[cls], value)


class CastType(StandIn):
    """A type that `cast` converts to, in a lambda that is traced."""

    __slots__ = ()


@overload
def length(value: E) -> E: ...  # type: ignore[overload-overlap]
@overload
def length(value: Sized) -> int: ...
def length(value: Any) -> Any:
    """Return `len(value)`, of a value or of an expression: the code points of a text, the items of a collection.

    >>> length(col("name")) > 3, length("abc")
    (length(e.name) > 3, 3)
    """
    return _apply("length", value)


@overload
def contains(whole: E, part: object) -> E: ...  # type: ignore[overload-overlap]
@overload
def contains(whole: object, part: E) -> E: ...  # type: ignore[overload-overlap]
@overload
def contains(whole: Container[Any], part: object) -> bool: ...
def contains(whole: Any, part: Any) -> Any:
    """Say whether a text has a part, or a collection an item that is equal; NaN is equal to nothing.

    >>> contains(col("name"), "van"), contains(("EWR", "JFK"), col("origin")), contains("Vienna", "en")
    (contains(e.name, 'van'), contains(('EWR', 'JFK'), e.origin), True)
    """
    return _apply("contains", whole, part)


@overload
def local_time(time: E, zone: str, unit: CalendarUnit | None = None) -> E: ...
@overload
def local_time(time: datetime, zone: str) -> datetime: ...
@overload
def local_time(time: int, zone: str, unit: CalendarUnit) -> datetime: ...
def local_time(time: Any, zone: str, unit: CalendarUnit | None = None) -> Any:
    """Return the datetime that the clocks of a time zone show, of a datetime field (a naive one is UTC) or of ticks of a unit.

    Its `hour`, `weekday()`, `date()` are those of that place, daylight saving time included. Ticks are rounded down to
    microseconds. Raises an error for a zone that the IANA database does not have.

    >>> local_time(col("t"), "America/New_York").hour
    local_time(e.t, 'America/New_York').hour
    >>> local_time(1774746000, "Europe/Vienna", unit="s").isoformat()
    '2026-03-29T03:00:00+02:00'
    """
    _check_zone(zone, unit)
    return _apply("local_time", time, zone) if unit is None else _apply("local_time", time, zone, unit)


@overload
def truncate(time: E, period: DurationLike, offset: DurationLike = 0, *, unit: CalendarUnit | None = None) -> E: ...
@overload
def truncate(time: datetime, period: timedelta | str, offset: timedelta | str = ...) -> datetime: ...
@overload
def truncate(time: int, period: DurationLike, offset: DurationLike = 0, *, unit: CalendarUnit) -> int: ...
@overload
def truncate(time: int, period: int, offset: int = 0) -> int: ...
def truncate(time: Any, period: Any, offset: Any = 0, *, unit: CalendarUnit | None = None) -> Any:
    """Return a time rounded down to the grid offset + k * period, of a datetime or of ticks, of a value or of an expression.

    Of a datetime it is what its clock shows that is rounded down: of a naive one and of one in UTC from 1970 on, of a
    `local_time` so that "1d" is midnight at that place. Ticks take a number of ticks, or a duration with their `unit`. Raises an
    error for a period that is not positive.

    >>> truncate(col("at"), "15m"), truncate(col("t"), 3600)
    (truncate(e.at, datetime.timedelta(seconds=900)), truncate(e.t, 3600))
    >>> truncate(datetime(2026, 3, 29, 14, 7), "6h", "1h").isoformat(), truncate(1774746007, "1h", unit="s")
    ('2026-03-29T13:00:00', 1774746000)
    """
    if any(_is_expression(value) or isinstance(value, SymbolicValue) for value in (period, offset, unit)):
        refuse("the period, the offset and the unit are constants", "use a function under @sd.udf")
    step, start = _grid(period, offset, unit)
    return _apply("truncate", time, step, start) if start else _apply("truncate", time, step)


def _grid(period: Any, offset: Any, unit: CalendarUnit | None) -> tuple[Any, Any]:
    """Return the period and the offset of a grid in ticks, or as durations where there is no unit."""
    _check_unit(unit)
    in_ticks = [is_integer(value) for value in (period, offset)]
    if unit is None and offset != 0 and in_ticks[0] != in_ticks[1]:
        raise WriterError(f"{period!r} and {offset!r} are ticks and a duration", hint='give the unit of the ticks, as unit="s"')
    try:
        step, start = (to_duration(value, unit or "us") for value in (period, offset))
    except (UnitError, TimeOverflow) as error:
        raise WriterError(str(error)) from None
    if step <= 0:
        raise WriterError(f"a time is rounded down to a positive period, not to {period!r}", hint='for example "1h"')
    start %= step
    return (step, start) if unit is not None or in_ticks[0] else (timedelta(microseconds=step), timedelta(microseconds=start))


def _check_unit(unit: str | None) -> None:
    if unit is not None and (not isinstance(unit, str) or unit not in PER_SECOND):
        raise WriterError(f"there is no calendar unit {unit!r}; there are: {', '.join(PER_SECOND)}", hint='for example unit="us"')


def _check_zone(zone: str, unit: str | None) -> None:
    if isinstance(zone, SymbolicValue) or isinstance(unit, SymbolicValue):
        refuse("the zone and the unit are constants", "use a function under @sd.udf")
    _check_unit(unit)
    if not isinstance(zone, str):
        raise WriterError(f"a time zone is named by a text, not by {zone!r}", hint='for example "Europe/Vienna"')
    try:
        zone_of(zone)
    except QueryError as error:
        raise WriterError(str(error)) from None


def _apply(name: str, *values: Any) -> Any:
    """Return the application of a scalar function to expressions, or its value for values."""
    if any(map(_is_expression, _flatten(values))):
        return build(lambda *parts: Function(name, parts), *values)
    return SCALAR_FUNCTIONS[name].python(*values)


class When(Generic[T]):
    """A condition whose value is still to come: `.then(value)`."""

    __slots__ = ("_branches", "_condition")

    def __init__(self, branches: tuple[tuple[Any, Any], ...], condition: Any) -> None:
        self._branches = branches
        self._condition = condition

    @overload
    def then(self: When[E], value: object) -> Then[E]: ...
    @overload
    def then(self, value: U) -> Then[T | U]: ...
    def then(self, value: Any) -> Any:
        """Give the value for the rows where the condition, and none before it, holds."""
        return Then((*self._branches, (self._condition, value)))

    def __bool__(self) -> NoReturn:
        refuse_incomplete(self)

    def __repr__(self) -> str:
        return "sd.when(...)"


class Then(Generic[T]):
    """Conditions with their values: `.when(condition)` adds one, `.otherwise(value)` ends."""

    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[tuple[Any, Any], ...]) -> None:
        self._branches = branches

    def when(self, condition: object) -> When[T]:
        """Go on with another condition, for the rows where none before it holds."""
        return When(self._branches, condition)

    @overload
    def otherwise(self: Then[E], value: object) -> E: ...
    @overload
    def otherwise(self, value: U) -> T | U: ...
    def otherwise(self, value: Any) -> Any:
        """Give the value for all other rows; only the value that is chosen is evaluated."""
        parts = [part for branch in self._branches for part in branch] + [value]
        if not any(map(_is_expression, _flatten(parts))):
            return next((chosen for condition, chosen in self._branches if condition), value)
        branches = tuple((argument_node(condition), result_node(chosen)) for condition, chosen in self._branches)
        chosen = (*(chosen for _, chosen in self._branches), value)
        return family(*_flatten(parts))(Choose(branches, result_node(value)), is_value=is_value(chosen))

    def __bool__(self) -> NoReturn:
        refuse_incomplete(self)

    def __repr__(self) -> str:
        return "sd.when(...).then(...)"


def refuse_incomplete(choice: When[Any] | Then[Any]) -> NoReturn:
    """Refuse a choice that is not written to its end."""
    refuse(f"{choice!r} has no value yet", "write sd.when(condition).then(value).otherwise(value)")


@overload
def when(condition: E) -> When[E]: ...  # type: ignore[overload-overlap]
@overload
def when(condition: object) -> When[Never]: ...
def when(condition: Any) -> Any:
    """Start a choice between values: `when(c).then(a).otherwise(b)`; only the chosen one is evaluated.

    >>> when(col("n") > 0).then(col("total") / col("n")).otherwise(None)
    when(e.n > 0).then(e.total / e.n).otherwise(None)
    >>> when(3 > 2).then("yes").otherwise("no")
    'yes'
    """
    return When((), condition)


class Udf(Generic[P, R]):
    """A function for use in expressions: of expressions it is an expression, of values it is called."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self.__name__: str = type(function).__name__
        self.__qualname__: str = self.__name__
        functools.update_wrapper(self, function, updated=())

    @overload
    def __call__(self, first: E, /, *rest: Any, **kwargs: Any) -> E: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        if not is_tracing() and not any(map(_is_expression, _flatten(values))):
            return self._function(*args, **kwargs)
        return family(*_flatten(values))(call(self, tuple(map(call_argument_node, self._positional(args, kwargs)))))

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs:
            return args
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        if bound.kwargs:
            refuse(f"{self.__name__} has parameters that go by name only")
        return bound.args

    def __repr__(self) -> str:
        return f"<udf {self.__name__}>"

    def __reduce__(self) -> Any:
        # By name where that finds this object; the workers of a cluster have no __main__ of ours, there it goes by value.
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self and self.__module__ != "__main__" else (Udf, (self._function,))


def call(function: Udf[..., Any], arguments: tuple[Expr, ...]) -> Call:
    """Return the node of a registered function of some arguments."""
    return Call(function, arguments, function.__name__)


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a registered one runs on values."""
    return function._function if isinstance(function, Udf) else function


def udf(function: Callable[P, R]) -> Udf[P, R]:
    """Register a function for use in expressions; it runs row by row, on values.

    >>> @udf
    ... def initials(name: str) -> str:
    ...     return "".join(part[0] for part in name.split())
    >>> initials(col("name")), initials("Ada Lovelace")
    (initials(e.name), 'AL')
    """
    if not callable(function) or isinstance(function, Udf):
        raise QueryError(f"@udf takes a function, not {function!r}", hint="write it above def, or call it: sd.udf(math.sqrt)")
    check_function(function, "a value")
    return Udf(function)


FUNCTIONS: Final = (col, lit, when, not_, is_none, abs, coalesce, cast, length, contains, local_time, truncate)
"""The functions that a traced lambda may call."""


def _is_expression(value: object) -> bool:
    return isinstance(value, (E, RowProxy, BuiltPayload))


def _flatten(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(_flatten(value) if type(value) is tuple else _flatten(value.values()) if type(value) is dict else [value])
    return found
