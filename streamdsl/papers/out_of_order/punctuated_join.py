"""OOP-Join: joins on a band of the progressing attributes, or on their equality (paper 004, 5.3, Figure 4 as corrected)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.predicates import holds
from streamdsl.papers.common.row_functions import hashable, keys, reader
from streamdsl.papers.out_of_order.items import (
    BEGINNING,
    Joined,
    JointPunctuation,
    Order,
    Time,
    Tuple,
    Unmatched,
    check_number,
    check_order,
    check_positive,
    floor_to,
    minus,
)
from streamdsl.papers.out_of_order.join_store import JoinStore
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated, PunctuationSender
from streamdsl.papers.out_of_order.sort_buffer import SortBuffer
from streamdsl.temporal.time import INFINITY

SIDES = ("left", "right")


class PunctuatedJoin(Punctuated):
    """What both joins share; they differ in which times a tuple's partners have."""

    inputs = 2
    closed = True
    """Whether the last time of the partners is one of theirs."""

    def __init__(self, on: Any, where: Any, order: Order, outer: bool) -> None:
        check_order(order)
        super().__init__()
        self._keys = keys(on, self.name)
        self._where = None if where is None else reader(where, self.name, 2)
        self._stored = (JoinStore(), JoinStore())
        self._sent = PunctuationSender()
        self._joint: tuple[Time, Time] = (BEGINNING, BEGINNING)
        self._ordering = _InOrderJoin(self) if order == "in" else None
        self._outer = outer
        self._alone: dict[int, Tuple] = {}
        """The left tuples of an outer join that are stored, and that nothing has matched yet, by their Python ids."""

    @abstractmethod
    def partners(self, ts: Time, side: int) -> tuple[Time, Time]:
        """Return the first and the last time of the partners that a tuple of a side can have."""

    @abstractmethod
    def horizon(self, bound: Time, side: int) -> Time:
        """Return the least time of the tuples of a side that can have partners at or after a bound."""

    @property
    def buffered(self) -> int:
        return sum(map(len, self._stored)) + (0 if self._ordering is None else len(self._ordering))

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        return list(self.match(item, input)) if self._ordering is None else self._ordering.take(item, input)

    def match(self, item: Tuple, side: int) -> Sequence[Joined | Unmatched]:
        """Return the pairs of a tuple with stored ones, and store it unless all its partners have arrived."""
        key = hashable(self._keys[side](item.payload))
        found = self._stored[1 - side].between(key, *self.partners(item.ts, side), self.closed)
        stays = item.ts >= self.horizon(self._bounds[1 - side], side)
        if stays:
            self._stored[side].add(key, item)
        pairs = [Joined(item, other) for other in found] if side == 0 else [Joined(other, item) for other in found]
        where = self._where
        pairs = pairs if where is None else [pair for pair in pairs if holds(where(pair.left.payload, pair.right.payload))]
        return self._with_alone(item, side, pairs, stays) if self._outer else pairs

    def _with_alone(self, item: Tuple, side: int, pairs: list[Joined], stays: bool) -> Sequence[Joined | Unmatched]:
        """Take note of which left tuples are matched; one without partners, to which none can come, is a result at once."""
        if side == 1:
            for pair in pairs:
                self._alone.pop(id(pair.left), None)
        elif not pairs and stays:
            self._alone[id(item)] = item
        elif not pairs:
            return [Unmatched(item)]
        return pairs

    def _on_progress(self, input: int) -> Items:
        if self._ordering is not None:
            return self._ordering.progress(input, self._bounds)
        return [*self.purge(input), *self._punctuation()]

    def purge(self, side: int) -> list[Unmatched]:
        """Forget the tuples of the other side that no later tuple of this one can match; return those that none has matched."""
        gone = self._stored[1 - side].purge(self.horizon(self._bounds[side], 1 - side))
        if side == 0:
            return []
        alone = [Unmatched(self._alone[id]) for id in gone if id in self._alone]
        for id in gone:
            self._alone.pop(id, None)
        return alone

    def _punctuation(self) -> Items:
        bounds = self._bounds[0], self._bounds[1]
        sent: Items = []
        for side in (0, 1):
            sent += self._sent.to(min(self.horizon(bounds[1 - side], side), bounds[side]), SIDES[side])
        if BEGINNING not in bounds and bounds != self._joint:
            self._joint = bounds
            sent.append(JointPunctuation(*bounds))
        return sent

    @property
    def complete(self) -> Time:
        """The left ts below which every result has been found: later ones have a later one."""
        return min(self._bounds[0], self.horizon(self._bounds[1], 0))


class _InOrderJoin:
    """The in-order join around the other one: it sorts both inputs before, and the results after."""

    def __init__(self, join: PunctuatedJoin) -> None:
        self._join = join
        self._sorted = (SortBuffer(), SortBuffer())
        self._waiting = SortBuffer()

    def __len__(self) -> int:
        return len(self._sorted[0]) + len(self._sorted[1]) + len(self._waiting)

    def take(self, item: Tuple, side: int) -> Items:
        """Keep a tuple until punctuation releases it."""
        self._sorted[side].add(item.ts, item)
        return []

    def progress(self, side: int, bounds: list[Time]) -> Items:
        """Join what punctuation releases, in order, and return the results that no later one precedes."""
        for item in self._sorted[side].complete(bounds[side]):
            for pair in self._join.match(item, side):
                self._waiting.add(pair.left.ts, pair)
        for alone in self._join.purge(side):
            self._waiting.add(alone.left.ts, alone)
        return self._waiting.complete(self._join.complete)


class BandJoin(PunctuatedJoin):
    """Pairs with right.ts in `[left.ts - before, left.ts + after]`, equal keys, and a condition over both payloads.

    Results come when the second of a pair does. A tuple is stored only while partners may come. Punctuation goes out on `"left"`,
    on `"right"`, and jointly. `on` is a field's name, a list of them, or a pair of functions; `where` a function of two payloads.
    `outer=True`: a left tuple that matches nothing is a result too, `Unmatched`, once no partner can come.

    `order="in"` sorts each input, and lets results go in order of left.ts; it sends no punctuation.

    >>> join = BandJoin(before=2, after=3)
    >>> join.push(Tuple(10, "l")), [pair.right.ts for pair in join.push(Tuple(13, "r"), 1)]
    ([], [13])
    >>> from streamdsl.progress import Punctuation
    >>> join.push(Punctuation(11)), join.push(Punctuation(14), 1)[-1], join.buffered
    ([], JointPunctuation(left=11, right=14), 1)
    """

    def __init__(
        self, before: Time, after: Time, on: Any = None, where: Any = None, order: Order = "any", outer: bool = False
    ) -> None:
        check_number(before, "before")
        check_number(after, "after")
        if not -before <= after:
            raise QueryError(f"a band from {-before} to {after} is empty", hint="before and after are both >= 0 in most bands")
        self._reach = (after, before)
        super().__init__(on, where, order, outer)

    def partners(self, ts: Time, side: int) -> tuple[Time, Time]:
        return ts - self._reach[1 - side], ts + self._reach[side]

    def horizon(self, bound: Time, side: int) -> Time:
        return minus(bound, self._reach[side])


class EqualityJoin(PunctuatedJoin):
    """Pairs whose ts are equal, or in the same of the periods `[n * width, (n + 1) * width)`: a tumbling-window join.

    All else is as in `BandJoin`.

    >>> join = EqualityJoin(10)
    >>> join.push(Tuple(19, "l")), join.push(Tuple(11, "r"), 1), join.push(Tuple(20, "r"), 1)
    ([], [Joined(left=Tuple(ts=19, payload='l'), right=Tuple(ts=11, payload='r'))], [])
    """

    closed = False

    def __init__(self, width: Time = 1, on: Any = None, where: Any = None, order: Order = "any", outer: bool = False) -> None:
        check_positive(width, "width")
        self._width = width
        super().__init__(on, where, order, outer)

    def partners(self, ts: Time, side: int) -> tuple[Time, Time]:
        first = ts // self._width * self._width
        return first, first + self._width

    def horizon(self, bound: Time, side: int) -> Time:
        if bound in (BEGINNING, INFINITY):
            return bound
        return floor_to(bound, self._width) * self._width
