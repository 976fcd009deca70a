"""What the lambda of `aggregate(lambda w: ...)` gets, for type checkers: a window whose aggregates are values (paper 001, III.D).

At run time `w` is the tracing window or the real one of `streamdsl.udm.window_lambda`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias, overload

from typing_extensions import TypeVar

from streamdsl.scalars import S, Scalar
from streamdsl.udm.bases import AnyUDA

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K_co = TypeVar("K_co", covariant=True)
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
V = TypeVar("V")
Method: TypeAlias = Literal["linear", "inverted_cdf"]


class Counting(Protocol[T_co]):
    """An aggregate that counts: rows, or an expression's values."""

    @overload
    def __call__(self, f: Callable[[T_co], object] | None = None, *, where: Callable[[T_co], object] | None = None) -> int: ...
    @overload
    def __call__(
        self: Counting[S], f: Callable[[Scalar[S]], object] | None = None, *, where: Callable[[Scalar[S]], object] | None = None
    ) -> int: ...


class Numeric(Protocol[T_co]):
    """An aggregate of numbers that gives a float."""

    @overload
    def __call__(self, f: Callable[[T_co], float | None], *, where: Callable[[T_co], object] | None = None) -> float: ...
    @overload
    def __call__(
        self: Numeric[S], f: Callable[[Scalar[S]], float | None], *, where: Callable[[Scalar[S]], object] | None = None
    ) -> float: ...


class Quantiles(Protocol[T_co]):
    """`quantile`."""

    @overload
    def __call__(
        self, f: Callable[[T_co], float | None], q: float, method: Method = ..., *, where: Callable[[T_co], object] | None = None
    ) -> float: ...
    @overload
    def __call__(
        self: Quantiles[S],
        f: Callable[[Scalar[S]], float | None],
        q: float,
        method: Method = ...,
        *,
        where: Callable[[Scalar[S]], object] | None = None,
    ) -> float: ...


class Picking(Protocol[T_co]):
    """An aggregate that gives a value of the expression's own type."""

    @overload
    def __call__(self, f: Callable[[T_co], V | None], *, where: Callable[[T_co], object] | None = None) -> V: ...
    @overload
    def __call__(
        self: Picking[S], f: Callable[[Scalar[S]], V | None], *, where: Callable[[Scalar[S]], object] | None = None
    ) -> V: ...


class Collecting(Protocol[T_co]):
    """An aggregate that lists an expression's values."""

    @overload
    def __call__(self, f: Callable[[T_co], V | None], *, where: Callable[[T_co], object] | None = None) -> list[V]: ...
    @overload
    def __call__(
        self: Collecting[S], f: Callable[[Scalar[S]], V | None], *, where: Callable[[Scalar[S]], object] | None = None
    ) -> list[V]: ...


class Modules(Protocol[T_co]):
    """`udm`: a user-defined aggregate, of an expression or of whole payloads."""

    @overload
    def __call__(self, module: AnyUDA[T_co, O] | Callable[[], AnyUDA[T_co, O]]) -> O: ...
    @overload
    def __call__(self, module: AnyUDA[I, O] | Callable[[], AnyUDA[I, O]], f: Callable[[T_co], I]) -> O: ...
    @overload
    def __call__(self: Modules[S], module: AnyUDA[I, O] | Callable[[], AnyUDA[I, O]], f: Callable[[Scalar[S]], I]) -> O: ...


class Window(Protocol[T_co]):
    """A window of rows of type T."""

    @property
    def count(self) -> Counting[T_co]:
        """The number of rows, or of values that are not None."""

    @property
    def sum(self) -> Picking[T_co]:
        """The sum."""

    @property
    def avg(self) -> Numeric[T_co]:
        """The mean."""

    @property
    def min(self) -> Picking[T_co]:
        """The smallest value."""

    @property
    def max(self) -> Picking[T_co]:
        """The largest value."""

    @property
    def median(self) -> Numeric[T_co]:
        """The middle value."""

    @property
    def quantile(self) -> Quantiles[T_co]:
        """The q-quantile."""

    @property
    def stddev(self) -> Numeric[T_co]:
        """The standard deviation of the sample."""

    @property
    def variance(self) -> Numeric[T_co]:
        """The variance of the sample."""

    @property
    def count_distinct(self) -> Counting[T_co]:
        """The number of different values."""

    @property
    def first(self) -> Picking[T_co]:
        """The first row's value."""

    @property
    def last(self) -> Picking[T_co]:
        """The last row's value."""

    @property
    def collect(self) -> Collecting[T_co]:
        """The list of all values."""

    @property
    def time_weighted_avg(self) -> Numeric[T_co]:
        """The time-weighted mean."""

    @property
    def udm(self) -> Modules[T_co]:
        """A user-defined aggregate."""


class GroupedWindow(Window[T_co], Protocol[K_co, T_co]):
    """A window of one group's rows."""

    @property
    def key(self) -> K_co:
        """The group's key."""
