"""The k best rows of a window, with ties: whoever is as good as the k-th is in.

Source: SQL:2011 (ISO/IEC 9075-2), `ORDER BY ... DESC FETCH FIRST k ROWS WITH TIES`. A choice among equals would depend on the
order of arrival; with ties the answer is a matter of the rows alone. The method `top_k` of every window does the same and gives
ranks; this one shows how such a module keeps a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from sortedcontainers import SortedDict

import streamdsl as sd
from streamdsl.temporal import payload_key
from udm_examples.settings import whole

T = TypeVar("T")
Place: TypeAlias = tuple[bool, float]


class TopK(sd.UDO[T, T]):
    """The rows that are among the k best by a field, and those that equal the last of them; NaN counts as the largest.

    Raises `QueryError` if k is not positive.

    >>> list(TopK(2, by=lambda flight: flight["delay"]).compute_result([{"delay": 5}, {"delay": 60}, {"delay": 9}, {"delay": 9}]))
    [{'delay': 60}, {'delay': 9}, {'delay': 9}]

    In a query:

    >>> delays = [("UA1", 5), ("B62", 60), ("AA9", 60), ("DL3", 0)]
    >>> flights = sd.from_rows([(t, t + 1, {"no": no, "delay": delay}) for t, (no, delay) in enumerate(delays)])
    >>> flights.tumbling_window(10).apply(TopK(1, by=lambda flight: flight.delay)).run().cht()
    CHT
      [0, 10) no='AA9' delay=60
      [0, 10) no='B62' delay=60
    """

    def __init__(self, k: int, by: Callable[[T], float]) -> None:
        self.k = whole("k", k)
        self.by = by

    def compute_result(self, payloads: Sequence[T]) -> Iterator[T]:
        """Yield the best rows, the best first."""
        ranked = sorted(((_place(self.by(row)), row) for row in payloads), key=lambda item: item[0], reverse=True)
        last, _ = ranked[: self.k][-1]
        return (row for place, row in ranked if place >= last)


class SlidingTopK(sd.IncrementalUDO[T, "SortedDict[Place, list[T]]", T]):
    """The same rows from a state in order. Rows below the k-th stay in it, as one of the best may be taken back.

    >>> module = SlidingTopK[float](2, by=lambda row: row)
    >>> state = module.add_events_to_state(module.create_state(), [5, 60, 9, 9])
    >>> list(module.compute_result(state))
    [60, 9, 9]
    >>> list(module.compute_result(module.remove_event_from_state(state, 60)))
    [9, 9]

    In a query it stands where the other one does:

    >>> delays = sd.from_rows([(1, 2, 5), (3, 4, 60), (12, 13, 0)])
    >>> delays.hopping_window(20, 10).apply(SlidingTopK(1, by=lambda row: row), lambda e: e).run().cht()
    CHT
      [-10, 10) 60
      [0, 20) 60
      [10, 30) 0
    """

    def __init__(self, k: int, by: Callable[[T], float]) -> None:
        self.k = whole("k", k)
        self.by = by

    def create_state(self) -> SortedDict[Place, list[T]]:
        """Return no places."""
        return SortedDict()

    def add_event_to_state(self, state: SortedDict[Place, list[T]], payload: T) -> SortedDict[Place, list[T]]:
        """Put a row to those in its place."""
        state.setdefault(_place(self.by(payload)), []).append(payload)
        return state

    def remove_event_from_state(self, state: SortedDict[Place, list[T]], payload: T) -> SortedDict[Place, list[T]]:
        """Take out one row with this content; a row that holds a NaN is not equal to itself, but its content is."""
        place, content = _place(self.by(payload)), payload_key(payload)
        rows = state[place]
        del rows[next(i for i, row in enumerate(rows) if payload_key(row) == content)]
        if not rows:
            del state[place]
        return state

    def merge_states(self, a: SortedDict[Place, list[T]], b: SortedDict[Place, list[T]]) -> SortedDict[Place, list[T]]:
        """Return the rows of both."""
        for place, rows in b.items():
            a.setdefault(place, []).extend(rows)
        return a

    def copy_state(self, state: SortedDict[Place, list[T]]) -> SortedDict[Place, list[T]]:
        """Return the same rows in lists of their own; rows are never changed."""
        return SortedDict({place: rows.copy() for place, rows in state.items()})

    def compute_result(self, state: SortedDict[Place, list[T]]) -> Iterator[T]:
        """Yield the best rows, the best first."""
        found = 0
        for place in reversed(state):
            if found >= self.k:
                break
            found += len(state[place])
            yield from state[place]


def _place(value: float) -> Place:
    return (True, 0.0) if value != value else (False, value)
