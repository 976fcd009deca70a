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
    """What all modules share: the properties that the optimizer may use, each a promise that can be tested."""

    time_sensitive: ClassVar[bool] = False
    incremental: ClassVar[bool] = False
    returns_many: ClassVar[bool] = False
    vectorized: ClassVar[bool] = False
    """Payloads come as an ndarray (scalars) or as a mapping of ndarrays (records)."""
    deterministic: ClassVar[bool] = True
    """Equal members give equal results. Where that is not so, what went out is remembered and retracted as it was."""
    order_insensitive: ClassVar[bool] = True
    """Members may come in any order. Where that is not so, they come by original (LE, payload), and no state is kept."""
    time_bound: ClassVar[bool] = False
    """A change of the input at time s changes no output before s; `Output.TIME_BOUND` asks for it."""
    ignores_ends_beyond_window: ClassVar[bool] = False
    """Where a member ends after its window makes no difference: clipping ends to the window changes nothing."""
    float_error: ClassVar[float] = 0.0
    """By how much, as a share or in itself, a float of the results may be off for what has left the window; 0: by nothing."""
    mergeable: ClassVar[bool] = False
    """States of parts of a window may be combined by `merge_states`; true of itself where a class defines that."""
    commutes_with_filter_on: ClassVar[Sequence[str]] = ()
    """Fields of the results: to filter the results by them is to filter the members by the fields of the same names."""
    state_types: ClassVar[Sequence[type]] = ()
    """The classes that its state is built of, besides those that its annotations name: a checkpoint restores no others."""
    reads: ClassVar[Sequence[str] | None] = None
    """The only fields of the payload that the module reads; None: perhaps all."""

    @property
    def label(self) -> str:
        """The module's name in `explain()` and in errors."""
        return type(self).__name__


_NOTHING: Any = object()


class AnyUDA(UDM, Generic[In, Out]):
    """What all aggregates share: one value per window."""

    empty_result: Any = None
    """The value of a window none of whose rows is left by the aggregate's `where=`."""

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

    Without an expression the module is given whole payloads.
    """

    function: AnyUDA[Any, O_co]
    argument: Callable[[T_contra], Any] | None = None
    where: Callable[[T_contra], Any] | None = None


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


class Incremental(UDM, Generic[State]):
    """What all incremental modules share: a state per window, from which the result is computed (paper 001, IV.A.2)."""

    incremental: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "merge_states" in cls.__dict__ and "mergeable" not in cls.__dict__:
            cls.mergeable = True

    @abstractmethod
    def create_state(self) -> State:
        """Return the state of a window without members."""

    def copy_state(self, state: State) -> State:
        """Return a state of its own with the same content; by default a deep copy."""
        return copy.deepcopy(state)

    def merge_states(self, a: State, b: State) -> State:
        """Return the state of the members of both; it may change and return `a`, and may not keep parts of `b`. Optional."""
        raise _undefined(self, "merge_states", "its partial states are not combined")


class OverPayloads(Incremental[State], Generic[In, State]):
    """What the time-insensitive incremental modules share: payloads go into the state, and out of it."""

    @abstractmethod
    def add_event_to_state(self, state: State, payload: In) -> State:
        """Return the state with one more payload; it may change the state that it is given."""

    def remove_event_from_state(self, state: State, payload: In) -> State:
        """Return the state with one payload less; it may change the state that it is given. Optional."""
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
    """What the time-sensitive incremental modules share: events go into the state, and out of it.

    A change of a member's lifetime, clipped as the query says, is its removal and its addition.
    """

    time_sensitive: ClassVar[bool] = True

    @abstractmethod
    def add_event_to_state(self, state: State, event: IntervalEvent[In], window: WindowDescriptor) -> State:
        """Return the state with one more event; it may change the state that it is given."""

    def remove_event_from_state(self, state: State, event: IntervalEvent[In], window: WindowDescriptor) -> State:
        """Return the state with one event less; it may change the state that it is given. Optional."""
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
    """A time-insensitive aggregate with a state per window: only what changes reaches it.

    What is removed must leave no trace, and a float sum keeps one: `(1.0 + 1e16) - 1e16` is 0.0. Fractions are exact:

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
    """A time-sensitive aggregate with a state per window: only what changes reaches it."""

    @abstractmethod
    def compute_result(self, state: State, window: WindowDescriptor) -> Out:
        """Return the window's value."""


class IncrementalUDO(OverPayloads[In, State], AnyUDO[In, Out], Generic[In, State, Out]):
    """A time-insensitive operator with a state per window: only what changes reaches it."""

    @abstractmethod
    def compute_result(self, state: State) -> Iterable[Out]:
        """Return the window's payloads."""


class TimeSensitiveIncrementalUDO(OverEvents[In, State], AnyUDO[In, Out], Generic[In, State, Out]):
    """A time-sensitive operator with a state per window: only what changes reaches it."""

    @abstractmethod
    def compute_result(self, state: State, window: WindowDescriptor) -> Iterable[IntervalEvent[Out]]:
        """Return the window's events."""


AnyModule: TypeAlias = AnyUDA[Any, Any] | AnyUDO[Any, Any]


def can_remove(module: UDM) -> bool:
    """Say whether an incremental module takes members out of its state; if not, its windows are computed anew.

    >>> from streamdsl.udm.builtin import Count
    >>> can_remove(Count())
    False
    """
    base = OverEvents if module.time_sensitive else OverPayloads
    names = ("remove_event_from_state", "remove_events_from_state")
    return module.incremental and any(getattr(type(module), name) is not getattr(base, name) for name in names)


def _undefined(module: UDM, method: str, instead: str) -> QueryError:
    return QueryError(f"{module.label} does not define {method}; {instead}", hint=f"define {method} on the class")
