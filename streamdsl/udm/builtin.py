"""The built-in aggregates: modules like any other, with their rules for None, NaN and ties (semantics, section 7).

None is ignored. Without other values `count` and `count_distinct` are 0, `collect` is empty, and the others are None. Sums are
exact and rounded once, so that results depend neither on the order of rows nor on earlier corrections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, ClassVar, Final, Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.temporal.identifiers import snake
from streamdsl.temporal.payload import is_nan, payload_key
from streamdsl.udm.bases import UDA, IntervalEvent, TimeSensitiveUDA, WindowDescriptor

Gives: TypeAlias = Literal["int", "float", "V", "list[V]"]
"""What type the results of a built-in aggregate have; V is that of the values."""


class AnyBuiltin:
    """The base of built-in aggregates: they have the name of their class."""

    gives: ClassVar[Gives] = "V"

    @property
    def label(self) -> str:
        return snake(type(self).__name__)


class Builtin(AnyBuiltin, UDA[Any, Any]):
    """The base of built-in aggregates of payloads, which are equal if they have the same class and settings."""

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        values = [value for value in payloads if value is not None]
        return self.of_values(values) if values else self.empty_result

    def of_values(self, values: list[Any]) -> Any:
        """Return the result of at least one value, none of them None."""
        raise AssertionError("each built-in defines it")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.__dict__.items())))


class Count(Builtin):
    """The number of rows, or of values that are not None.

    >>> Count().compute_result([1, None, 3])
    2
    """

    gives: ClassVar[Gives] = "int"
    empty_result: Any = 0

    def of_values(self, values: list[Any]) -> int:
        return len(values)


class Sum(Builtin):
    """The sum; sums of integers are exact even beyond int64.

    >>> Sum().compute_result([0.1] * 10), Sum().compute_result([2**63, 1])
    (1.0, 9223372036854775809)
    """

    def of_values(self, values: list[Any]) -> Any:
        return exact_sum(values)


class Avg(Builtin):
    """The mean.

    >>> Avg().compute_result([4, 8])
    6.0
    """

    gives: ClassVar[Gives] = "float"

    def of_values(self, values: list[Any]) -> Any:
        return exact_sum(values) / len(values)


class Min(Builtin):
    """The smallest value; NaN counts as the largest.

    >>> Min().compute_result([3, float("nan"), 1])
    1
    """

    def of_values(self, values: list[Any]) -> Any:
        return min(values, key=_natural)


class Max(Builtin):
    """The largest value; NaN counts as the largest.

    >>> Max().compute_result([3, None, 1])
    3
    """

    def of_values(self, values: list[Any]) -> Any:
        return max(values, key=_natural)


class Quantile(Builtin):
    """The q-quantile: interpolated linearly, or the smallest value such that at least a share q of the values is at most it.

    >>> Quantile(0.5).compute_result([1, 2, 4]), Quantile(0.25, "inverted_cdf").compute_result([1, 2, 4, 8])
    (2, 1)
    """

    gives: ClassVar[Gives] = "float"
    q: float
    method: Literal["linear", "inverted_cdf"]

    def __init__(self, q: float, method: Literal["linear", "inverted_cdf"] = "linear") -> None:
        if not isinstance(q, (Real, Decimal)) or not 0 <= q <= 1:
            raise QueryError(f"a quantile is between 0 and 1, not {q!r}", hint="for example 0.95")
        if method not in ("linear", "inverted_cdf"):
            raise QueryError(f'the method of a quantile is "linear" or "inverted_cdf", not {method!r}')
        self.q = q
        self.method = method

    def position(self, size: int) -> tuple[int, Fraction]:
        """Return the index of the quantile among `size` ordered values, and the share of the way from there to the next value.

        >>> Quantile(0.5).position(4)
        (1, Fraction(1, 2))
        """
        if self.method == "inverted_cdf":
            return max(0, math.ceil(Fraction(self.q) * size) - 1), Fraction(0)
        place = (size - 1) * Fraction(self.q)
        return int(place), place - int(place)

    def of_values(self, values: list[Any]) -> Any:
        ordered = sorted(values, key=_natural)
        below, share = self.position(len(ordered))
        if not share:
            return ordered[below]
        low, high = ordered[below], ordered[below + 1]
        return low if low == high else low + (high - low) * float(share)


class Median(Quantile):
    """The middle value; for an even number of values the mean of the two in the middle.

    >>> Median().compute_result([1, 2, 4, 8])
    3.0
    """

    def __init__(self) -> None:
        super().__init__(0.5)


class Variance(Builtin):
    """The sample variance, exact and rounded once; None for a single value.

    >>> Variance().compute_result([1, 3]), Variance().compute_result([0.1] * 3)
    (2.0, 0.0)
    """

    gives: ClassVar[Gives] = "float"

    def of_values(self, values: list[Any]) -> Any:
        if len(values) < 2:
            return None
        if not all(math.isfinite(value) for value in values):
            return math.nan
        exact = list(map(exactly, values))
        return sample_variance(sum(exact), sum(value * value for value in exact), len(values))


class Stddev(Variance):
    """The sample standard deviation, the square root of the variance; None for a single value.

    >>> Stddev().compute_result([1, 3]) ** 2
    2.0000000000000004
    """

    def of_values(self, values: list[Any]) -> Any:
        variance = super().of_values(values)
        return None if variance is None else math.sqrt(variance)


class CountDistinct(Builtin):
    """The number of different values.

    >>> CountDistinct().compute_result([1, 1.0, "a", None])
    2
    """

    gives: ClassVar[Gives] = "int"
    empty_result: Any = 0

    def of_values(self, values: list[Any]) -> int:
        return len({payload_key(value) for value in values})


class First(Builtin):
    """The value of the first row in order of (LE, payload).

    >>> First().compute_result([3, 1])
    3
    """

    order_insensitive: ClassVar[bool] = False

    def of_values(self, values: list[Any]) -> Any:
        return values[0]


class Last(Builtin):
    """The value of the last row in order of (LE, payload).

    >>> Last().compute_result([3, 1])
    1
    """

    order_insensitive: ClassVar[bool] = False

    def of_values(self, values: list[Any]) -> Any:
        return values[-1]


class Collect(Builtin):
    """The list of all values in order of (LE, payload).

    >>> Collect().compute_result([3, None, 1])
    [3, 1]
    """

    gives: ClassVar[Gives] = "list[V]"
    order_insensitive: ClassVar[bool] = False

    @property
    def empty_result(self) -> list[Any]:
        return []

    def of_values(self, values: list[Any]) -> list[Any]:
        return values


class TimeWeightedAvg(AnyBuiltin, TimeSensitiveUDA[Any, Any]):
    """The sum of value x duration inside the window, divided by the window's duration; always fully clipped (paper 001, IV.C).

    >>> events = [IntervalEvent(0, 3, 4.0), IntervalEvent(2, 10, 8.0)]
    >>> TimeWeightedAvg().compute_result(events, WindowDescriptor(0, 10))
    7.6
    """

    gives: ClassVar[Gives] = "float"
    always_clipped: ClassVar[bool] = True
    ignores_ends_beyond_window: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[Any]], window: WindowDescriptor) -> Any:
        known = [event for event in events if event.payload is not None]
        if not known:
            return None
        return exact_sum([event.payload * (event.end_time - event.start_time) for event in known]) / window.duration

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


_SIMPLE: Final[tuple[Any, ...]] = (Count, Sum, Avg, Min, Max, Median, Quantile, Stddev, Variance, CountDistinct, First, Last)
BUILTINS: Final[dict[str, Any]] = {snake(kind.__name__): kind for kind in (*_SIMPLE, Collect, TimeWeightedAvg)}
"""The built-in aggregates by name."""


def exact_sum(values: Iterable[Any]) -> Any:
    """Return the exact sum, rounded once, so that it does not depend on the order of values.

    >>> exact_sum([1e100, 1.0, -1e100])
    1.0
    """
    items = list(values)
    floats = [value for value in items if isinstance(value, float)]
    if not floats:
        return sum(items, timedelta()) if items and isinstance(items[0], timedelta) else sum(items)
    if len(floats) < len(items) and not all(isinstance(value, (int, float)) for value in items):
        return sum(items)
    if not all(map(math.isfinite, floats)):
        return (
            math.nan
            if any(map(is_nan, floats)) or {math.inf, -math.inf} <= set(floats)
            else math.inf
            if math.inf in floats
            else -math.inf
        )
    whole = sum(value for value in items if not isinstance(value, float))
    if abs(whole) <= 2**53:
        try:
            return math.fsum([*floats, float(whole)])
        except OverflowError:
            pass
    return _rounded(sum(map(Fraction, floats), Fraction(whole)))


def sample_variance(total: Fraction | int, squares: Fraction | int, size: int) -> float:
    """Return the variance of `size` values from their sum and that of their squares, rounded once; too large is infinite.

    >>> sample_variance(4, 10, 2)
    2.0
    """
    return _rounded(Fraction(size * squares - total * total, size * (size - 1)))


def exactly(value: Any) -> Fraction:
    """Return a finite number of any kind as a fraction.

    >>> exactly(0.5), exactly(Decimal("0.1"))
    (Fraction(1, 2), Fraction(1, 10))
    """
    return Fraction(value) if isinstance(value, (float, Rational, Decimal)) else Fraction(float(value))


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _natural(value: Any) -> tuple[bool, Any]:
    return (True, 0) if is_nan(value) else (False, value)
