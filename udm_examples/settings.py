"""What the modules ask of their settings: a wrong one is refused where the query is written, with what would be right."""

from __future__ import annotations

import math
from numbers import Integral, Real

from streamdsl.errors import QueryError


def whole(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """Return a whole number within its bounds, both included. Raises `QueryError` for anything else.

    >>> whole("k", 3)
    3
    """
    if not isinstance(value, Integral) or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"between {least} and {most}"
        raise QueryError(f"{name} is a whole number {bounds}, not {value!r}")
    return value


def ticks(name: str, value: int) -> int:
    """Return a duration in ticks. Raises `QueryError` unless it is a positive whole number.

    >>> ticks("gap", 30 * 60)
    1800
    """
    if not isinstance(value, Integral) or value < 1:
        raise QueryError(
            f"{name} is a duration of at least one tick, not {value!r}",
            hint=f"a module does not know its stream's unit: for half an hour of a stream in seconds write {name}=30 * 60",
        )
    return value


def positive(name: str, value: float) -> float:
    """Return a number that is positive and finite. Raises `QueryError` for anything else.

    >>> positive("half_life", 7.5)
    7.5
    """
    if not isinstance(value, Real) or not 0 < value < math.inf:
        raise QueryError(f"{name} is a positive, finite number, not {value!r}")
    return value


def apart(low: float, high: float) -> tuple[float, float]:
    """Return two thresholds. Raises `QueryError` unless they are finite and `low` is below `high`.

    >>> apart(70.0, 80.0)
    (70.0, 80.0)
    """
    if not all(isinstance(value, Real) and math.isfinite(value) for value in (low, high)) or not low < high:
        raise QueryError(f"low and high are finite numbers, low below high, not {low!r} and {high!r}")
    return low, high
