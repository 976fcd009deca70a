"""The base classes of user-defined modules (paper 001, section IV)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias

from typing_extensions import TypeVar

from streamdsl.errors import QueryError

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
P_co = TypeVar("P_co", covariant=True)
T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
State = TypeVar("State")


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
    """The base of all modules, with the properties that engines and the optimizer rely on; `check_udm` tests these promises."""

    time_sensitive: ClassVar[bool] = False
    incremental: ClassVar[bool] = False
    returns_many: ClassVar[bool] = False
    is_opaque: ClassVar[bool] = False
    """Stands for a lambda over windows that could not be traced to aggregates."""
    vectorized: ClassVar[bool] = False
    """Payloads are passed as an ndarray (scalars), or as a mapping of ndarrays by field (records)."""
    deterministic: ClassVar[bool] = True
    """Equal members give equal results. If False, emitted results are stored, so that they can be retracted unchanged."""
    order_insensitive: ClassVar[bool] = True
    """The order of members does not matter. If False, they come in order of original (LE, payload), and no state is kept."""
    time_bound: ClassVar[bool] = False
    """A change of the input at time s changes no output before s; `Output.TIME_BOUND` requires it."""
    ignores_ends_beyond_window: ClassVar[bool] = False
    """Ends of members beyond the window do not matter: clipping them to the window changes no result."""
    float_error: ClassVar[float] = 0.0
    """The relative or absolute error that members removed from the state may leave in floats of the results; 0 for none."""
    mergeable: ClassVar[bool] = False
    """States of parts of a window may be combined by `merge_states`; set to True on a class that defines that method."""
    commutes_with_filter_on: ClassVar[Sequence[str]] = ()
    """Fields of the results: a filter on them gives the same before the module, on the members' fields of the same names."""
    state_types: ClassVar[Sequence[type]] = ()
    """Classes of objects in its state, besides those in its annotations: a checkpoint restores no others."""
    reads: ClassVar[Sequence[str] | None] = None
    """The fields of the payload that the module reads, None if it may read all."""

    @property
    def label(self) -> str:
        """The module's name in `explain()` and in errors."""
        return type(self).__name__


_NOTHING: Any = object()


class AnyUDA(UDM, Generic[In, Out]):
    """The base of all aggregates: one value per window."""

    empty_result: Any = None
    """The value of a window all of whose rows are excluded by the aggregate's `where=`."""

    def of(self: AnyUDA[I, O], f: Callable[[T], I] = _NOTHING) -> Agg[T, O]:
        """Return this aggregate of an expression over the stream's rows (paper 001, IV.C, the mapping expression)."""
        if not isinstance(self, AnyUDA) or f is _NOTHING:
            raise QueryError(
                "of(...) takes the expression, and is called on an aggregate, not on its class",
                hint="make one: Spread().of(lambda e: e.fare), where the class is Spread",
            )

        return Agg(self, f)


@dataclass(frozen=True, slots=True)
class Agg(Generic[T_contra, O_co]):
    """An aggregate of an expression over rows of type T, giving O; `aggregate(...)` binds it to a stream.

    Without an expression the module receives whole payloads.
    """

    function: AnyUDA[Any, O_co]
    argument: Callable[[T_contra], Any] | None = None
    where: Callable[[T_contra], Any] | None = None


class AnyUDO(UDM, Generic[In, Out]):
    """The base of all operators: zero or more payloads per window."""

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
        """Return the window's value; `payloads` is a non-empty bag, in no particular order."""


class TimeSensitiveUDA(AnyUDA[In, Out]):
    """A time-sensitive aggregate: the events of a window in, one value out."""

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def compute_result(self, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> Out:
        """Return the window's value; `events` is a bag, with lifetimes clipped by the query's `clip`."""


class UDO(AnyUDO[In, Out]):
    """A time-insensitive operator: the payloads of a window in, any number of payloads out."""

    @abstractmethod
    def compute_result(self, payloads: Sequence[In]) -> Iterable[Out]:
        """Return the window's payloads."""


class TimeSensitiveUDO(AnyUDO[In, Out]):
    """A time-sensitive operator: the events of a window in, any number of events out, with lifetimes from the module."""

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def compute_result(self, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> Iterable[IntervalEvent[Out]]:
        """Return the window's events."""


class Incremental(UDM, Generic[State]):
    """The base of all incremental modules: a state per window, from which the result is computed (paper 001, IV.A.2)."""

    incremental: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "merge_states" in cls.__dict__ and "mergeable" not in cls.__dict__:
            cls.mergeable = True

    @abstractmethod
    def create_state(self) -> State:
        """Return the state of a window without members."""

    def copy_state(self, state: State) -> State:
        """Return an independent copy of a state; by default a deep copy."""
        return copy.deepcopy(state)

    def merge_states(self, a: State, b: State) -> State:
        """Return the state of the members of both; it may change and return `a`, but must not share parts of `b`. Optional."""
        raise _undefined(self, "merge_states", "its partial states are not combined")


class OverPayloads(Incremental[State], Generic[In, State]):
    """The base of time-insensitive incremental modules: payloads are added to the state, and removed from it."""

    @abstractmethod
    def add_event_to_state(self, state: State, payload: In) -> State:
        """Return the state with one more payload; it may change `state` in place."""

    def remove_event_from_state(self, state: State, payload: In) -> State:
        """Return the state with one payload less; it may change `state` in place. Optional."""
        raise _undefined(self, "remove_event_from_state", "its windows are computed anew")

    def add_events_to_state(self, state: State, payloads: Sequence[In]) -> State:
        """Return the state with more payloads; by default they are added one by one."""
        for payload in payloads:
            state = self.add_event_to_state(state, payload)
        return state

    def remove_events_from_state(self, state: State, payloads: Sequence[In]) -> State:
        """Return the state without some of its payloads; by default they are removed one by one."""
        for payload in payloads:
            state = self.remove_event_from_state(state, payload)
        return state


class OverEvents(Incremental[State], Generic[In, State]):
    """The base of time-sensitive incremental modules: events are added to the state, and removed from it.

    A change of a member's clipped lifetime is a removal and an addition.
    """

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def add_event_to_state(self, state: State, event: IntervalEvent[In], window: WindowDescriptor) -> State:
        """Return the state with one more event; it may change `state` in place."""

    def remove_event_from_state(self, state: State, event: IntervalEvent[In], window: WindowDescriptor) -> State:
        """Return the state with one event less; it may change `state` in place. Optional."""
        raise _undefined(self, "remove_event_from_state", "its windows are computed anew")

    def add_events_to_state(self, state: State, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> State:
        """Return the state with more events; by default they are added one by one."""
        for event in events:
            state = self.add_event_to_state(state, event, window)
        return state

    def remove_events_from_state(self, state: State, events: Sequence[IntervalEvent[In]], window: WindowDescriptor) -> State:
        """Return the state without some of its events; by default they are removed one by one."""
        for event in events:
            state = self.remove_event_from_state(state, event, window)
        return state


class IncrementalUDA(OverPayloads[In, State], AnyUDA[In, Out], Generic[In, State, Out]):
    """A time-insensitive aggregate with a state per window: only added and removed members are passed to it.

    Removal must undo addition exactly, which float sums do not: `(1.0 + 1e16) - 1e16` is 0.0. Fractions are exact:

    >>> from fractions import Fraction
    >>> class Mean(IncrementalUDA[float, tuple[Fraction, int], float]):
    ...     def create_state(self) -> tuple[Fraction, int]:
    ...         return Fraction(), 0
    ...     def add_event_to_state(self, state: tuple[Fraction, int], payload: float) -> tuple[Fraction, int]:
    ...         return state[0] + Fraction(payload), state[1] + 1
    ...     def remove_event_from_state(self, state: tuple[Fraction, int], payload: float) -> tuple[Fraction, int]:
    ...         return state[0] - Fraction(payload), state[1] - 1
    ...     def compute_result(self, state: tuple[Fraction, int]) -> float:
    ...         return float(state[0] / state[1])
    >>> Mean().compute_result(Mean().add_events_to_state(Mean().create_state(), [1.0, 2.0]))
    1.5
    >>> from streamdsl.testing import check_udm
    >>> "what_has_gone_leaves_no_trace" in check_udm(Mean).held
    True
    """

    @abstractmethod
    def compute_result(self, state: State) -> Out:
        """Return the window's value."""


class TimeSensitiveIncrementalUDA(OverEvents[In, State], AnyUDA[In, Out], Generic[In, State, Out]):
    """A time-sensitive aggregate with a state per window: only added and removed members are passed to it."""

    @abstractmethod
    def compute_result(self, state: State, window: WindowDescriptor) -> Out:
        """Return the window's value."""


class IncrementalUDO(OverPayloads[In, State], AnyUDO[In, Out], Generic[In, State, Out]):
    """A time-insensitive operator with a state per window: only added and removed members are passed to it."""

    @abstractmethod
    def compute_result(self, state: State) -> Iterable[Out]:
        """Return the window's payloads."""


class TimeSensitiveIncrementalUDO(OverEvents[In, State], AnyUDO[In, Out], Generic[In, State, Out]):
    """A time-sensitive operator with a state per window: only added and removed members are passed to it."""

    @abstractmethod
    def compute_result(self, state: State, window: WindowDescriptor) -> Iterable[IntervalEvent[Out]]:
        """Return the window's events."""


AnyModule: TypeAlias = AnyUDA[Any, Any] | AnyUDO[Any, Any]


def can_remove(module: UDM) -> bool:
    """Say whether an incremental module can remove members from its state; if not, a removal recomputes the window.

    >>> from streamdsl.udm.builtin import Count
    >>> can_remove(Count())
    False
    """
    base = OverEvents if module.time_sensitive else OverPayloads
    names = ("remove_event_from_state", "remove_events_from_state")
    return module.incremental and any(getattr(type(module), name) is not getattr(base, name) for name in names)


def _undefined(module: UDM, method: str, instead: str) -> QueryError:
    return QueryError(f"{module.label} does not define {method}; {instead}", hint=f"define {method} on the class")
