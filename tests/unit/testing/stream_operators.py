"""Stream operators that keep every law, and ones with a mistake each, by the law that must find it."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from streamdsl.udm import UDSO
from tests.unit.testing.modules import Trip
from tests.unit.testing.sabotaged import Basket, Incomparable


class Total(UDSO[float, float, float]):
    """The running sum."""

    def create_state(self) -> float:
        return 0.0

    def process(self, state: float, payload: float, le: int) -> tuple[float, Iterable[float]]:
        return state + payload, [state + payload]


class Recent(UDSO[int, deque[tuple[int, int]], list[int]]):
    """The values of the last five ticks, in a state that is changed in place and is soon as good as new."""

    def create_state(self) -> deque[tuple[int, int]]:
        return deque()

    def process(self, state: deque[tuple[int, int]], payload: int, le: int) -> tuple[Any, Iterator[list[int]]]:
        while state and state[0][0] <= le - 5:
            state.popleft()
        if payload:
            state.append((le, payload))
        return state, iter([[value for _, value in state]])

    def is_empty(self, state: deque[tuple[int, int]]) -> bool:
        return not state


@dataclass
class Seen:
    zones: dict[str, int] = field(default_factory=dict)


class Visits(UDSO[Trip, Seen, tuple[str, int]]):
    """How often each zone has been seen."""

    def create_state(self) -> Seen:
        return Seen()

    def process(self, state: Seen, payload: Trip, le: int) -> tuple[Seen, list[tuple[str, int]]]:
        state.zones[payload.zone] = state.zones.get(payload.zone, 0) + 1
        return state, [(payload.zone, state.zones[payload.zone])] * 2


class Annotated(UDSO):  # type: ignore[type-arg]
    """What it takes is said by its method only; it numbers rows as it likes."""

    deterministic: ClassVar[bool] = False
    numbers: ClassVar[Iterator[int]] = itertools.count()

    def create_state(self) -> None:
        return None

    def process(self, state: None, payload: str, le: int) -> tuple[None, list[int]]:
        return None, [next(self.numbers)]


GOOD: list[Any] = [Total, Recent, Visits, Annotated]


class ForgetsState(Total):
    def process(self, state: float, payload: float, le: int) -> Any:
        return [state + payload]


class ReturnsOne(Total):
    def process(self, state: float, payload: float, le: int) -> Any:
        return state + payload, payload


class Generates(Total):
    def process(self, state: float, payload: float, le: int) -> Any:
        yield state + payload


class NeedsARowBefore(UDSO[int, list[int], int]):
    def create_state(self) -> list[int]:
        return []

    def process(self, state: list[int], payload: int, le: int) -> tuple[list[int], list[int]]:
        return [payload], [payload - state[-1]]


class EmptiesBaskets(UDSO[Basket, list[str], int]):
    def create_state(self) -> list[str]:
        return []

    def process(self, state: list[str], payload: Basket, le: int) -> tuple[list[str], list[int]]:
        while payload.items:
            state.append(payload.items.pop())
        return state, [len(state)]


class FillsTheFirstBasket(UDSO[Basket, Any, int]):
    """Its state is the first payload itself, which later rows change."""

    def create_state(self) -> Any:
        return None

    def process(self, state: Any, payload: Basket, le: int) -> tuple[Any, list[int]]:
        if state is None:
            return payload, [len(payload.items)]
        state.items.extend(payload.items)
        return state, [len(state.items)]


class GivesOutItsOwn(UDSO[int, list[int], int]):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def create_state(self) -> list[int]:
        return self.seen

    def process(self, state: list[int], payload: int, le: int) -> tuple[list[int], list[int]]:
        state.append(payload)
        return state, [len(state)]


class KeepsTheSum(Total):
    """Its state is no state."""

    def __init__(self) -> None:
        self.sum = 0.0

    def process(self, state: float, payload: float, le: int) -> tuple[float, list[float]]:
        self.sum += payload
        return state, [self.sum]


class ReturnsObjects(Total):
    def process(self, state: float, payload: float, le: int) -> Any:
        return state + payload, [Incomparable(state)]


class DoesNotCopy(Recent):
    def copy_state(self, state: deque[tuple[int, int]]) -> deque[tuple[int, int]]:
        return state


class CopiesTheShell(Visits):
    def copy_state(self, state: Seen) -> Seen:
        return Seen(state.zones)


class CopiesNothing(Recent):
    def copy_state(self, state: deque[tuple[int, int]]) -> deque[tuple[int, int]]:
        return self.create_state()


class StartsAnew(UDSO[int, None, int]):
    """It knows the row before of a run from the start, but not of one that goes on from a state."""

    last = 0

    def create_state(self) -> None:
        self.last = 0

    def process(self, state: None, payload: int, le: int) -> tuple[None, list[int]]:
        rise, self.last = payload - self.last, payload
        return None, [rise]


class EmptyWhileItCounts(UDSO[int, tuple[int, int], int]):
    """The mean so far, rounded; a sum of 0 is empty, however many values it is of."""

    def create_state(self) -> tuple[int, int]:
        return 0, 0

    def process(self, state: tuple[int, int], payload: int, le: int) -> tuple[tuple[int, int], list[int]]:
        total, n = state[0] + payload, state[1] + 1
        return (total, n), [total // n]

    def is_empty(self, state: tuple[int, int]) -> bool:
        return state[0] == 0


class EmptiesToTell(Recent):
    """It takes its state apart to see whether there is anything in it."""

    def is_empty(self, state: deque[tuple[int, int]]) -> bool:
        while state:
            if state.pop()[1]:
                return False
        return True


class HoldsLock(Total):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def process(self, state: float, payload: float, le: int) -> tuple[float, list[float]]:
        with self.lock:
            return state + payload, [state]


class HoldsGenerator(UDSO[int, Iterator[int], int]):
    """The numbers of the rows, from a state that can be neither copied nor stored."""

    def create_state(self) -> Iterator[int]:
        return (n for n in range(1000))

    def copy_state(self, state: Iterator[int]) -> Iterator[int]:
        return self.create_state()

    def process(self, state: Iterator[int], payload: int, le: int) -> tuple[Iterator[int], list[int]]:
        return state, []


class TellsEqualsApart(UDSO[bool | int, None, str]):
    """1 and True are equal payloads, of which the engine keeps one."""

    def create_state(self) -> None:
        return None

    def process(self, state: None, payload: bool | int, le: int) -> tuple[None, list[str]]:
        return None, [repr(payload)]


class AtHome(UDSO[int, None, int]):
    """Another answer in another process."""

    def __init__(self) -> None:
        self.process_id = os.getpid()

    def create_state(self) -> None:
        return None

    def process(self, state: None, payload: int, le: int) -> tuple[None, list[int]]:
        return None, [payload + (os.getpid() != self.process_id)]


SABOTAGED: dict[str, list[Any]] = {
    "answers": [ForgetsState, ReturnsOne, Generates, NeedsARowBefore],
    "inputs_not_mutated": [EmptiesBaskets, FillsTheFirstBasket],
    "states_are_new": [GivesOutItsOwn],
    "deterministic": [KeepsTheSum, ReturnsObjects],
    "state_copyable": [DoesNotCopy, CopiesTheShell],
    "resumes": [CopiesNothing, StartsAnew],
    "empty_states_are_as_new": [EmptyWhileItCounts, EmptiesToTell],
    "picklable": [HoldsLock, HoldsGenerator],
    "arrival_order": [TellsEqualsApart],
}
