"""Views: the tuples that a query with a start sees, and the windows of a sequence over them (paper 003, section 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

from streamdsl.errors import FieldNotFound, QueryError, shortened
from streamdsl.temporal.cht import CHT
from streamdsl.temporal.payload import fields_of, payload_key, payload_order
from streamdsl.windows.sequences.description import AnySequence, Bounds, Partitioned
from streamdsl.windows.sequences.numbers import At, Batch, Given, batch, exact
from streamdsl.windows.sequences.seen import Prefix, Seen

Tuple: TypeAlias = tuple[Any, Given] | tuple[Any, Given, int]


class _Ran(Protocol):
    def cht(self) -> CHT[Any]: ...


class _Stream(Protocol):
    def run(self) -> _Ran: ...


class View(Seen):
    """The tuples `(payload, t)` or `(payload, t, i)` with t >= t0, in order of position; for a stream its rows at t = LE.

    Simultaneous rows of a stream are one batch, in order of payload.

    >>> from streamdsl.astral import range_slide
    >>> view = View([("a", 0.5), ("b", 2), ("c", 5.25)])
    >>> view.content(range_slide(3, 2, partial=False), 5.5)
    ['b']
    """

    def __init__(self, tuples: Iterable[Tuple] | _Stream, t0: Given = 0) -> None:
        given = _rows(tuples.run().cht()) if hasattr(tuples, "run") else tuples
        self.t0 = exact(t0)
        placed = [(t[0], (exact(t[1]), t[2] if len(t) > 2 else 0)) for t in given]
        for (_, before), (payload, after) in pairwise(placed):
            if after < before:
                raise QueryError(
                    f"the tuple {shortened(payload)} at {_show(after)} follows one at {_show(before)}",
                    hint="give the tuples in order of position, which is one of time (axiom 1)",
                )
        seen = [(payload, at) for payload, at in placed if at[0] >= self.t0]
        self.payloads = [payload for payload, _ in seen]
        self.batches = [at for _, at in seen]

    @property
    def last(self) -> int:
        return len(self.batches) - 1

    def batch_at(self, position: int) -> Batch:
        return self.batches[position]

    def tau_inv(self, at: At) -> int:
        """Return the highest position with batch <= `at`, or -1.

        >>> View([("a", 1), ("b", 1), ("c", 3)]).tau_inv(2)
        1
        """
        return bisect_right(self.batches, batch(at)) - 1

    def by(self, at: At) -> Seen:
        """Return the tuples that have been seen by a moment.

        >>> View([("a", 1), ("b", 5)]).by(4).last
        0
        """
        return Prefix(self, self.tau_inv(at))

    def gamma(self, ws: AnySequence, at: At) -> Any:
        """Return the rank of the last window created by `at`: its number, or the batch of a generic sequence; None if none is.

        >>> from streamdsl.astral import range_slide
        >>> View([]).gamma(range_slide(4, 2), 5)
        2
        """
        if isinstance(ws, Partitioned):
            raise TypeError("a partitioned sequence has no single last window: each key has its own")
        moment = batch(at)
        return ws.rank(moment, self.by(moment)) if moment[0] >= self.t0 else None

    def bounds(self, ws: AnySequence, at: At) -> Bounds | None:
        """Return the bounds of the last window created by `at`, None if there is none yet.

        >>> from streamdsl.astral import range_slide
        >>> View([]).bounds(range_slide(4, 2), 7)
        (2, 6)
        """
        rank = self.gamma(ws, at)
        return None if rank is None else ws.bounds(rank, self.by(at))

    def content(self, ws: AnySequence | Partitioned, at: At) -> list[Any]:
        """Return the payloads in the last window created by `at`, in order of position.

        >>> from streamdsl.astral import landmark
        >>> View([("a", 1), ("b", 5)]).content(landmark(), 4)
        ['a']
        """
        return [self.payloads[position] for position in self.positions(ws, at)]

    def positions(self, ws: AnySequence | Partitioned, at: At) -> Sequence[int]:
        """Return the positions of the tuples in the last window created by `at`.

        >>> from streamdsl.astral import landmark
        >>> list(View([("a", 1), ("b", 5)]).positions(landmark(), 4))
        [0]
        """
        if isinstance(ws, Partitioned):
            return sorted(
                n for part, known in self._parts(ws.by) for n in map(known.__getitem__, part.positions(ws.sequence, at))
            )
        rank = self.gamma(ws, at)
        return range(0) if rank is None else ws.positions(rank, self.by(at))

    def where(self, p: Callable[[Any], object]) -> View:
        """Return the view of the same query on the tuples for which `p(payload)` is true: selection before the window.

        >>> View([(5, 1), (-5, 2), (7, 3)]).where(lambda v: v > 0).tau(1)
        (3, 0)
        """
        return self._of([n for n, payload in enumerate(self.payloads) if p(payload)])

    def _of(self, positions: Iterable[int]) -> View:
        return View([(self.payloads[n], *self.batches[n]) for n in positions], self.t0)

    def _parts(self, by: Sequence[str]) -> list[tuple[View, list[int]]]:
        """Return for each key the view of its tuples, and their positions in this view."""
        found: dict[Hashable, list[int]] = {}
        for n, payload in enumerate(self.payloads):
            found.setdefault(_key(payload, by), []).append(n)
        return [(self._of(known), known) for known in found.values()]


def _rows(cht: CHT[Any]) -> list[Tuple]:
    rows = sorted(cht.rows, key=lambda row: (row.le, payload_order(row.payload)))
    return [(row.payload, row.le) for row in rows]


def _key(payload: Any, by: Sequence[str]) -> Hashable:
    fields = dict(fields_of(payload))
    for name in by:
        if name not in fields:
            raise FieldNotFound(name, fields)
    return tuple(payload_key(fields[name]) for name in by)


def _show(at: Batch) -> str:
    return f"({at[0]}, {at[1]})"
