"""Plain functions as modules: `@uda` and `@udo`, bare or with properties (paper 001, section IV)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack, get_type_hints, overload

from streamdsl.errors import QueryError
from streamdsl.expr.predicates import check_function
from streamdsl.udm.bases import UDA, UDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741

_FIELDS: Final = ("reads", "commutes_with_filter_on")


class FunctionModule:
    """A module that wraps a function and has its name; two are equal if function and properties are."""

    def __init__(self, function: Callable[..., Any], **properties: object) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        vars(self).update(properties)

    @property
    def label(self) -> str:
        """The function's name."""
        return self.__name__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.function))

    def __repr__(self) -> str:
        return f"<{'uda' if isinstance(self, (FunctionUDA, TimeSensitiveFunctionUDA)) else 'udo'} {self.label}>"


class FunctionUDA(FunctionModule, UDA[I, O], Generic[I, O]):
    """A function of a window's payloads as a time-insensitive aggregate; it can still be called as a function."""

    def compute_result(self, payloads: Sequence[I]) -> O:
        """Return what the function returns."""
        result: O = self.function(payloads)
        return result

    __call__ = compute_result


class TimeSensitiveFunctionUDA(FunctionModule, TimeSensitiveUDA[I, O], Generic[I, O]):
    """A function of a window's events and the window as a time-sensitive aggregate; it can still be called as a function."""

    def compute_result(self, events: Sequence[IntervalEvent[I]], window: WindowDescriptor) -> O:
        """Return what the function returns."""
        result: O = self.function(events, window)
        return result

    __call__ = compute_result


class FunctionUDO(FunctionModule, UDO[I, O], Generic[I, O]):
    """A function of a window's payloads as a time-insensitive operator; it can still be called as a function."""

    def compute_result(self, payloads: Sequence[I]) -> Iterable[O]:
        """Return what the function returns."""
        result: Iterable[O] = self.function(payloads)
        return result

    __call__ = compute_result


class TimeSensitiveFunctionUDO(FunctionModule, TimeSensitiveUDO[I, O], Generic[I, O]):
    """A function of a window's events and the window as a time-sensitive operator; it can still be called as a function."""

    def compute_result(self, events: Sequence[IntervalEvent[I]], window: WindowDescriptor) -> Iterable[IntervalEvent[O]]:
        """Return what the function returns."""
        result: Iterable[IntervalEvent[O]] = self.function(events, window)
        return result

    __call__ = compute_result


class Properties(TypedDict, total=False):
    """The properties that both `@uda` and `@udo` take, with the meaning of the attributes of `UDM`."""

    deterministic: bool
    order_insensitive: bool
    ignores_ends_beyond_window: bool
    reads: Sequence[str] | None
    commutes_with_filter_on: Sequence[str]


class UDAProperties(Properties, total=False):
    """The properties that `@uda` takes; `empty` is the module's `empty_result`."""

    empty: object


class UDOProperties(Properties, total=False):
    """The properties that `@udo` takes."""

    time_bound: bool


class MakesUDA(Protocol):
    """The type of `@uda(...)`: a decorator that turns a function into an aggregate."""

    @overload
    def __call__(self, function: Callable[[Sequence[I]], O], /) -> FunctionUDA[I, O]: ...
    @overload
    def __call__(
        self, function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], O], /
    ) -> TimeSensitiveFunctionUDA[I, O]:
        """Return the function as an aggregate."""


class MakesVectorizedUDA(Protocol):
    """The type of `@uda(vectorized=True, ...)`: a decorator that turns a function of arrays into an aggregate."""

    def __call__(self, function: Callable[[Any], O], /) -> FunctionUDA[Any, O]:
        """Return the function as an aggregate."""


class MakesUDO(Protocol):
    """The type of `@udo(...)`: a decorator that turns a function into an operator."""

    @overload
    def __call__(self, function: Callable[[Sequence[I]], Iterable[O]], /) -> FunctionUDO[I, O]: ...
    @overload
    def __call__(
        self, function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], Iterable[IntervalEvent[O]]], /
    ) -> TimeSensitiveFunctionUDO[I, O]:
        """Return the function as an operator."""


class MakesVectorizedUDO(Protocol):
    """The type of `@udo(vectorized=True, ...)`: a decorator that turns a function of arrays into an operator."""

    def __call__(self, function: Callable[[Any], Iterable[O]], /) -> FunctionUDO[Any, O]:
        """Return the function as an operator."""


@overload
def uda(function: Callable[[Sequence[I]], O], /) -> FunctionUDA[I, O]: ...
@overload
def uda(function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], O], /) -> TimeSensitiveFunctionUDA[I, O]: ...
@overload
def uda(*, vectorized: Literal[True], **properties: Unpack[UDAProperties]) -> MakesVectorizedUDA: ...
@overload
def uda(*, vectorized: Literal[False] = False, **properties: Unpack[UDAProperties]) -> MakesUDA: ...
def uda(function: Callable[..., Any] | None = None, /, *, vectorized: bool = False, **properties: Any) -> Any:
    """Make an aggregate of a function: of the payloads, or (two parameters) of the events and the window.

    It is used bare, or with properties, which have the meaning of the attributes of `UDM`; `empty` is its `empty_result`.
    Raises `QueryError` for a function with other parameters, and for an unknown property.

    >>> @uda
    ... def spread(prices: Sequence[float]) -> float:
    ...     return max(prices) - min(prices)
    >>> spread, spread([3.0, 1.0, 7.0])
    (<uda spread>, 6.0)
    >>> @uda(order_insensitive=False, reads=("price",), empty=0.0)
    ... def rise(trades: Sequence[Any]) -> float:
    ...     return trades[-1].price - trades[0].price
    >>> rise.order_insensitive, rise.reads, rise.empty_result
    (False, ('price',), 0.0)
    """
    options = _checked("uda", UDAProperties, properties)
    if "empty" in options:
        options["empty_result"] = options.pop("empty")
    make = partial(_module, "uda", FunctionUDA, TimeSensitiveFunctionUDA, vectorized=vectorized, **options)
    return make if function is None else make(function)


@overload
def udo(function: Callable[[Sequence[I]], Iterable[O]], /) -> FunctionUDO[I, O]: ...
@overload
def udo(
    function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], Iterable[IntervalEvent[O]]], /
) -> TimeSensitiveFunctionUDO[I, O]: ...
@overload
def udo(*, vectorized: Literal[True], **properties: Unpack[UDOProperties]) -> MakesVectorizedUDO: ...
@overload
def udo(*, vectorized: Literal[False] = False, **properties: Unpack[UDOProperties]) -> MakesUDO: ...
def udo(function: Callable[..., Any] | None = None, /, *, vectorized: bool = False, **properties: Any) -> Any:
    """Make an operator of a function that returns an iterable: of the payloads, or (two parameters) of the events and the window.

    It is used bare, or with properties, which have the meaning of the attributes of `UDM`.
    Raises `QueryError` for a function with other parameters, and for an unknown property.

    >>> @udo
    ... def extremes(prices: Sequence[float]) -> list[float]:
    ...     return [min(prices), max(prices)]
    >>> extremes, extremes([3.0, 1.0, 7.0])
    (<udo extremes>, [1.0, 7.0])
    >>> @udo(time_bound=True)
    ... def late(events: Sequence[IntervalEvent[float]], window: WindowDescriptor) -> list[IntervalEvent[float]]:
    ...     return [event for event in events if event.start_time >= window.start_time + window.duration // 2]
    >>> late, late.time_bound
    (<udo late>, True)
    """
    options = _checked("udo", UDOProperties, properties)
    make = partial(_module, "udo", FunctionUDO, TimeSensitiveFunctionUDO, vectorized=vectorized, **options)
    return make if function is None else make(function)


def _module(
    decorator: str,
    kind: type[FunctionModule],
    time_sensitive: type[FunctionModule],
    function: Callable[..., Any],
    /,
    **properties: object,
) -> FunctionModule:
    if decorator == "uda" and inspect.isgeneratorfunction(function):
        raise QueryError(f"@uda needs a function with one result per window; {function!r} yields several", hint="use @udo for it")
    if not _reads_time(function, decorator):
        return kind(function, **properties)
    if properties["vectorized"]:
        raise QueryError(
            f"@{decorator}(vectorized=True) needs a function of the payloads; {function!r} takes events and the window",
            hint="leave vectorized out: events are passed as objects",
        )
    return time_sensitive(function, **properties)


def _checked(decorator: str, known: type, properties: dict[str, Any]) -> dict[str, Any]:
    names = ("vectorized", *get_type_hints(known))
    unknown = [name for name in properties if name not in names]
    if unknown:
        raise QueryError(
            f"@{decorator} has no property {unknown[0]!r}; it has {', '.join(names)}",
            hint=f"@sd.{decorator}(deterministic=False)",
        )
    return {name: _names(name, value) if name in _FIELDS else value for name, value in properties.items()}


def _names(name: str, given: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise QueryError(f"{name}={given!r} is a string, not a sequence of field names", hint=f"write {name}=({given!r},)")
    return None if given is None else tuple(given)


def _reads_time(function: Callable[..., Any], decorator: str) -> bool:
    check_function(function, "a window", yields=True)
    if isinstance(function, type) or not callable(function):
        raise QueryError(
            f"@{decorator} takes a function, not {function!r}",
            hint=f"a class that derives from sd.{decorator.upper()} needs no decorator",
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # a builtin without a signature, such as max
        return False
    required = [p for p in parameters if _is_positional(p) and p.default is p.empty]
    if not required and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    if len(required) not in (1, 2):
        raise QueryError(
            f"@{decorator} needs a function of the payloads, or of the events and the window; "
            f"{function!r} has {len(required)} parameters",
            hint="def spread(payloads): ..., or def spread(events, window): ...",
        )
    return len(required) == 2


def _is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
