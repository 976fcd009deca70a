"""The base classes of user-defined modules (paper 001, section IV)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from streamdsl.udm.aggregates import Agg

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
P_co = TypeVar("P_co", covariant=True)
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True, slots=True)
class IntervalEvent(Generic[P_co]):
    """A payload with its lifetime, as time-sensitive modules read and write it; times in ticks."""

    start_time: int
    end_time: int
    payload: P_co


class WindowDescriptor(NamedTuple):
    """The period of the window that a module is invoked for, in ticks."""

    start_time: int
    end_time: int

    @property
    def duration(self) -> int:
        """The window's length in ticks."""
        return self.end_time - self.start_time


class UDM(ABC):
    """What all modules share: the properties that the optimizer may use, each a promise that can be tested."""

    time_sensitive: ClassVar[bool] = False
    returns_many: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True
    time_bound: ClassVar[bool] = False
    order_insensitive: ClassVar[bool] = True
    vectorized: ClassVar[bool] = False
    reads: ClassVar[Sequence[str] | None] = None

    @property
    def label(self) -> str:
        """The module's name in `explain()` and in errors."""
        return type(self).__name__


class AnyUDA(UDM, Generic[In, Out]):
    """What all aggregates share: one value per window."""

    def of(self: AnyUDA[I, O], f: Callable[[T], I]) -> Agg[T, O]:
        """Return this aggregate of an expression over the stream's rows (paper 001, IV.C, the mapping expression)."""
        from streamdsl.udm.aggregates import Agg

        return Agg(self, f)


class AnyUDO(UDM, Generic[In, Out]):
    """What all operators share: zero or more payloads per window."""

    returns_many: ClassVar[bool] = True


class UDA(AnyUDA[In, Out]):
    """A time-insensitive aggregate: the payloads of a window in, one value out.

    >>> class Spread(UDA[float, float]):
    ...     def compute_result(self, payloads: Sequence[float]) -> float:
    ...         return max(payloads) - min(payloads)
    >>> Spread().compute_result([3.0, 1.0, 7.0])
    6.0
    """

    @abstractmethod
    def compute_result(self, payloads: Sequence[In]) -> Out:
        """Return the window's value; `payloads` is a bag, never empty."""


class TimeSensitiveUDA(AnyUDA[In, Out]):
    """A time-sensitive aggregate: the events of a window in, one value out."""

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def compute_result(self, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> Out:
        """Return the window's value; `events` is a bag, lifetimes clipped as the query says."""


class UDO(AnyUDO[In, Out]):
    """A time-insensitive operator: the payloads of a window in, any number of payloads out."""

    @abstractmethod
    def compute_result(self, payloads: Sequence[In]) -> Iterable[Out]:
        """Return the window's payloads."""


class TimeSensitiveUDO(AnyUDO[In, Out]):
    """A time-sensitive operator: the events of a window in, any number of events out, stamped by the module."""

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def compute_result(self, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> Iterable[IntervalEvent[Out]]:
        """Return the window's events."""


AnyModule: TypeAlias = AnyUDA[Any, Any] | AnyUDO[Any, Any]
