"""User-defined stream operators: modules that see one row after another and keep a state."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias

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

    The results of a row have its lifetime. The state may be changed in place, and is returned with the results. Rows that come
    late, and retractions, are no concern of the module: what they change is computed again.

    >>> class Delta(UDSO[float, list[float], float]):
    ...     def create_state(self) -> list[float]:
    ...         return []
    ...     def process(self, state: list[float], payload: float, le: int) -> tuple[list[float], list[float]]:
    ...         return [payload], [payload - before for before in state]
    >>> Delta().process([3.0], 5.0, le=7)
    ([5.0], [2.0])
    """

    @abstractmethod
    def create_state(self) -> State:
        """Return the state before the first row."""

    @abstractmethod
    def process(self, state: State, payload: In, le: int) -> tuple[State, Iterable[Out]]:
        """Return the state after a row, and the payloads that it causes; `le` is its LE in ticks."""

    def copy_state(self, state: State) -> State:
        """Return a state that shares nothing that can change with this one."""
        return copy.deepcopy(state)

    def is_empty(self, state: State) -> bool:
        """Say whether a state is as good as a new one, so that a group of which no row can change may be forgotten."""
        return False


class Sieve(UDSO[Any, State, Any]):
    """A stream operator that lets some rows pass as they are, so that the output's payloads look as the input's do."""

    @abstractmethod
    def passes(self, state: State, payload: Any, le: int) -> tuple[State, bool]:
        """Return the state after a row, and whether it passes."""

    def process(self, state: State, payload: Any, le: int) -> tuple[State, list[Any]]:
        """Return the state after a row, and the row if it passes."""
        state, passes = self.passes(state, payload, le)
        return state, [payload] if passes else []


AnyUDSO: TypeAlias = UDSO[Any, Any, Any]


def processed(module: AnyUDSO, state: Any, payload: Any, le: int) -> tuple[Any, list[Any]]:
    """Return what a stream operator makes of a row; `TypeError` for what is no pair of a state and an iterable of results.

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
    """Return the state and the results, as payloads of their own, in what `process` has returned; errors as in `processed`."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(
            f"{module.label}.process returned a value of type {type(found).__name__}; "
            "it returns a pair: the state, and an iterable of results"
        )
    state, results = found
    if type(results) is not list:
        results = results_of(module, results)
    return state, [item if type(item) in IMMUTABLE else as_result(detached(item)) for item in results]
