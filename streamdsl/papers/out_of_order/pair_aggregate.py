"""Grouping a join's result by both timestamps, which joint punctuation completes early (paper 004, section 7, Q3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.papers.common.partial_aggregates import aggregate_of
from streamdsl.papers.out_of_order.items import (
    BEGINNING,
    Item,
    Joined,
    JointPunctuation,
    PairResult,
    Punctuation,
    Time,
    Tuple,
    Unmatched,
)
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.time import INFINITY


class PairAggregate(Punctuated):
    """An aggregate of the pairs with the same two timestamps; it is fed with a join's output.

    A group is complete when left < b0 and right < b1 of a joint punctuation (b0, b1). With `joint=False` that is not looked at,
    and a group is complete once either of its timestamps is below the individual punctuation on that side.

    >>> pairs = PairAggregate(len)
    >>> pairs.push(Joined(Tuple(0, "SYN"), Tuple(1, "ACK")))
    []
    >>> pairs.push(JointPunctuation(1, 2))
    [PairResult(left=0, right=1, value=1)]
    """

    def __init__(self, fn: Any, joint: bool = True) -> None:
        super().__init__()
        self._made = aggregate_of(fn, self.name)
        self._joint = joint
        self._reached: dict[str, Time] = {"left": BEGINNING, "right": BEGINNING}
        self._groups: dict[tuple[Time, Time], Any] = {}

    @property
    def buffered(self) -> int:
        return len(self._groups)

    def close(self) -> Items:
        """Return the groups that are left: all are complete."""
        return self._complete(lambda left, right: True)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        raise self._refused(item)

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        if item.on == "ts" and item.value >= INFINITY:
            return self.close()
        if item.on in self._reached:
            self._reached[item.on] = max(self._reached[item.on], item.value)
        b0, b1 = self._reached["left"], self._reached["right"]
        return [] if self._joint else self._complete(lambda left, right: left < b0 or right < b1)

    def _on_other(self, item: Item, input: int) -> Items:
        if isinstance(item, Joined):
            self._add(item)
            return []
        if not isinstance(item, JointPunctuation):
            raise self._refused(item)
        b0, b1 = item.left, item.right
        return self._complete(lambda left, right: left < b0 and right < b1) if self._joint else []

    def _refused(self, item: Item) -> QueryError:
        if isinstance(item, Unmatched):
            return QueryError(f"{self.name} takes pairs, not {item!r}", hint="leave outer=True out of the join before it")
        return QueryError(f"{self.name} takes a join's results, not {item!r}", hint="feed it with the output of a BandJoin")

    def _add(self, item: Joined) -> None:
        key = item.left.ts, item.right.ts
        state = self._groups[key] if key in self._groups else self._made.create()
        self._groups[key] = self._made.add(state, max(key), item, _extent(key))

    def _complete(self, is_complete: Callable[[Time, Time], bool]) -> Items:
        complete = sorted(key for key in self._groups if is_complete(*key))
        return [PairResult(*key, self._made.result(self._groups.pop(key), _extent(key))) for key in complete]


def _extent(key: tuple[Time, Time]) -> Lifetime:
    return Lifetime(min(key), max(key) + 1)  # type: ignore[arg-type]
