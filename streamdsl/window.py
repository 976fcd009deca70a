"""The type of `w` in `aggregate(lambda w: ...)` for type checkers: a window whose aggregates are values.

At run time `w` is one of the windows of `streamdsl.udm.window_lambda`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, overload

from typing_extensions import TypeVar

from streamdsl.udm.bases import AnyUDA

T = TypeVar("T", covariant=True)
K = TypeVar("K", covariant=True)
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
V = TypeVar("V")


class Window(Protocol[T]):
    """A window of rows of type T."""

    def count(self, f: Callable[[T], object] | None = None, *, where: Callable[[T], object] | None = None) -> int:
        """Return the number of rows, or of values that are not None."""

    def sum(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> V:
        """Return the sum."""

    def avg(self, f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> float:
        """Return the mean."""

    def min(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> V:
        """Return the smallest value."""

    def max(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> V:
        """Return the largest value."""

    def median(self, f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> float:
        """Return the median."""

    def quantile(
        self,
        f: Callable[[T], float | None],
        q: float,
        method: Literal["linear", "inverted_cdf"] = "linear",
        *,
        where: Callable[[T], object] | None = None,
    ) -> float:
        """Return the q-quantile."""

    def stddev(self, f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> float:
        """Return the sample standard deviation."""

    def variance(self, f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> float:
        """Return the sample variance."""

    def count_distinct(self, f: Callable[[T], object] | None = None, *, where: Callable[[T], object] | None = None) -> int:
        """Return the number of distinct values."""

    def first(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> V:
        """Return the value of the first row in order of (LE, payload)."""

    def last(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> V:
        """Return the value of the last row in order of (LE, payload)."""

    def collect(self, f: Callable[[T], V | None], *, where: Callable[[T], object] | None = None) -> list[V]:
        """Return the list of all values in order of (LE, payload)."""

    def time_weighted_avg(self, f: Callable[[T], float | None], *, where: Callable[[T], object] | None = None) -> float:
        """Return the mean of the values weighted by their lifetime inside the window: sum of value x lifetime / window length."""

    @overload
    def udm(self, module: AnyUDA[T, O]) -> O: ...
    @overload
    def udm(self, module: Callable[[], AnyUDA[T, O]]) -> O: ...
    @overload
    def udm(self, module: AnyUDA[I, O], f: Callable[[T], I]) -> O: ...
    @overload
    def udm(self, module: Callable[[], AnyUDA[I, O]], f: Callable[[T], I]) -> O:
        """Return the result of a user-defined aggregate over an expression or over whole payloads."""


class GroupedWindow(Window[T], Protocol[K, T]):
    """A window of one group's rows."""

    @property
    def key(self) -> K:
        """The group's key."""
