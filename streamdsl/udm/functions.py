"""Plain functions as modules: `@uda` and `@udo` (paper 001, section IV)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, overload

from streamdsl.errors import QueryError
from streamdsl.udm.bases import UDA, UDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741


class _Function:
    """A module that is one function: named after it, equal to another of the same function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    @property
    def label(self) -> str:
        """The function's name."""
        return self.__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Function) and type(self) is type(other) and self.function == other.function

    def __hash__(self) -> int:
        return hash((type(self), self.function))

    def __repr__(self) -> str:
        return f"<{'uda' if isinstance(self, (FunctionUDA, TimeSensitiveFunctionUDA)) else 'udo'} {self.label}>"


class FunctionUDA(_Function, UDA[I, O], Generic[I, O]):
    """A function of a window's payloads, as a time-insensitive aggregate; still called like the function."""

    def compute_result(self, payloads: Sequence[I]) -> O:
        """Return what the function returns."""
        result: O = self.function(payloads)
        return result

    __call__ = compute_result


class TimeSensitiveFunctionUDA(_Function, TimeSensitiveUDA[I, O], Generic[I, O]):
    """A function of a window's events and the window, as a time-sensitive aggregate; still called like the function."""

    def compute_result(self, events: Sequence[IntervalEvent[I]], window: WindowDescriptor) -> O:
        """Return what the function returns."""
        result: O = self.function(events, window)
        return result

    __call__ = compute_result


class FunctionUDO(_Function, UDO[I, O], Generic[I, O]):
    """A function of a window's payloads, as a time-insensitive operator; still called like the function."""

    def compute_result(self, payloads: Sequence[I]) -> Iterable[O]:
        """Return what the function returns."""
        result: Iterable[O] = self.function(payloads)
        return result

    __call__ = compute_result


class TimeSensitiveFunctionUDO(_Function, TimeSensitiveUDO[I, O], Generic[I, O]):
    """A function of a window's events and the window, as a time-sensitive operator; still called like the function."""

    def compute_result(self, events: Sequence[IntervalEvent[I]], window: WindowDescriptor) -> Iterable[IntervalEvent[O]]:
        """Return what the function returns."""
        result: Iterable[IntervalEvent[O]] = self.function(events, window)
        return result

    __call__ = compute_result


@overload
def uda(function: Callable[[Sequence[I]], O]) -> FunctionUDA[I, O]: ...
@overload
def uda(function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], O]) -> TimeSensitiveFunctionUDA[I, O]: ...
def uda(function: Callable[..., Any]) -> FunctionUDA[Any, Any] | TimeSensitiveFunctionUDA[Any, Any]:
    """Make an aggregate of a function: of the payloads, or (two parameters) of the events and the window.

    Raises `QueryError` for a function with other parameters.

    >>> @uda
    ... def spread(prices: Sequence[float]) -> float:
    ...     return max(prices) - min(prices)
    >>> spread, spread([3.0, 1.0, 7.0])
    (<uda spread>, 6.0)
    """
    return TimeSensitiveFunctionUDA(function) if _reads_time(function, "uda") else FunctionUDA(function)


@overload
def udo(function: Callable[[Sequence[I]], Iterable[O]]) -> FunctionUDO[I, O]: ...
@overload
def udo(
    function: Callable[[Sequence[IntervalEvent[I]], WindowDescriptor], Iterable[IntervalEvent[O]]],
) -> TimeSensitiveFunctionUDO[I, O]: ...
def udo(function: Callable[..., Any]) -> FunctionUDO[Any, Any] | TimeSensitiveFunctionUDO[Any, Any]:
    """Make an operator of a function that returns an iterable: of the payloads, or (two parameters) of the events and the window.

    Raises `QueryError` for a function with other parameters.

    >>> @udo
    ... def extremes(prices: Sequence[float]) -> list[float]:
    ...     return [min(prices), max(prices)]
    >>> extremes, extremes([3.0, 1.0, 7.0])
    (<udo extremes>, [1.0, 7.0])
    """
    return TimeSensitiveFunctionUDO(function) if _reads_time(function, "udo") else FunctionUDO(function)


def _reads_time(function: Callable[..., Any], decorator: str) -> bool:
    if isinstance(function, type) or not callable(function):
        raise QueryError(
            f"@{decorator} takes a function, not {function!r}",
            hint=f"a class that derives from sd.{decorator.upper()} needs no decorator",
        )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # a builtin that does not say, such as max
        return False
    required = [p for p in parameters if _is_positional(p) and p.default is p.empty]
    if not required and any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return False
    if len(required) not in (1, 2):
        raise QueryError(
            f"@{decorator} needs a function of the payloads, or of the events and the window; "
            f"{function!r} has {len(required)} parameters"
        )
    return len(required) == 2


def _is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
