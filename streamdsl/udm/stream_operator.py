"""User-defined stream operators: modules that process rows one by one and keep a state."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeAlias

from typing_extensions import TypeVar

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.udm.bases import UDM
from streamdsl.udm.incremental import detached
from streamdsl.udm.invoke import as_result, results_of

In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
State = TypeVar("State")


class UDSO(UDM, Generic[In, State, Out]):
    """A stateful operator over rows in order of (LE, payload, RE): `stream.scan(MyOperator())` runs it.

    The results of a row have its lifetime. The state may be changed in place, and is returned with the results. The module need
    not handle late rows or retractions: the engine recomputes the results that they affect.

    >>> class Delta(UDSO[float, list[float], float]):
    ...     def create_state(self) -> list[float]:
    ...         return []
    ...     def process(self, state: list[float], payload: float, le: int) -> tuple[list[float], list[float]]:
    ...         return [payload], [payload - before for before in state]
    >>> Delta().process([3.0], 5.0, le=7)
    ([5.0], [2.0])
    """

    keeps_payloads: ClassVar[bool] = False
    """Each result is the row's own payload, so the output has the input's schema."""
    for_kept_states: ClassVar[str] = "define is_empty(state) or fresh_from(state) on the class"
    """The remedy that `sd.checks.check` gives if the states of all groups are kept for ever."""

    @abstractmethod
    def create_state(self) -> State:
        """Return the state before the first row."""

    @abstractmethod
    def process(self, state: State, payload: In, le: int) -> tuple[State, Iterable[Out]]:
        """Return the state after a row, and the payloads of its results; `le` is the row's LE in ticks."""

    def copy_state(self, state: State) -> State:
        """Return an independent copy of a state: it must share no mutable object with it."""
        return copy.deepcopy(state)

    def is_empty(self, state: State) -> bool:
        """Say whether a state is equivalent to a new one, so that it can be dropped once no row of its group can change."""
        return False

    def fresh_from(self, state: State) -> int | None:
        """Return an LE from which on rows go on as from a new state, which the CTI there lets go; None: there is none."""
        return None

    @property
    def keeps_states(self) -> bool:
        """Whether no state is ever dropped."""
        return type(self).is_empty is UDSO.is_empty and type(self).fresh_from is UDSO.fresh_from


class Sieve(UDSO[Any, State, Any]):
    """A stream operator that passes some rows unchanged, so that the output has the input's schema."""

    keeps_payloads: ClassVar[bool] = True

    @abstractmethod
    def passes(self, state: State, payload: Any, le: int) -> tuple[State, bool]:
        """Return the state after a row, and whether it passes."""

    def process(self, state: State, payload: Any, le: int) -> tuple[State, list[Any]]:
        """Return the state after a row, and the row if it passes."""
        state, passes = self.passes(state, payload, le)
        return state, [payload] if passes else []


AnyUDSO: TypeAlias = UDSO[Any, Any, Any]


def processed(module: AnyUDSO, state: Any, payload: Any, le: int) -> tuple[Any, list[Any]]:
    """Process a row, and return the state and a list of results; raises `TypeError` if the module returns anything else.

    >>> class Broken(UDSO[int, int, int]):
    ...     def create_state(self): return 0
    ...     def process(self, state, payload, le): return state + payload
    >>> processed(Broken(), 0, 1, 0)
    Traceback (most recent call last):
        ...
    TypeError: Broken.process returned a value of type int; it returns a pair: the state, and an iterable of results
    """
    return taken(module, module.process(state, payload, le))


def taken(module: AnyUDSO, found: Any) -> tuple[Any, list[Any]]:
    """Return the state and the results, detached from the state, from the value of `process`; errors as in `processed`."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(
            f"{module.label}.process returned a value of type {type(found).__name__}; "
            "it returns a pair: the state, and an iterable of results"
        )
    state, results = found
    if type(results) is not list:
        results = results_of(module, results)
    return state, [item if type(item) in IMMUTABLE else as_result(detached(item)) for item in results]
