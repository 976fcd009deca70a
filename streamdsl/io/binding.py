"""Bound inputs of sources: events or columnar insertions, with times in ticks, that can be read repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, largest
from streamdsl.temporal import Event, Insert, Unit
from streamdsl.temporal.time import CHRONON, INFINITY, Ticks, add_times


@dataclass(frozen=True, slots=True)
class Inserts:
    """Insertions in columns, in order of arrival.

    Without `ids` the id of a row is its number in the whole input; without `ends` all rows are point events.
    """

    ids: Sequence[Hashable] | None
    le: Ticks
    ends: Ticks | None
    table: Table

    def __len__(self) -> int:
        return len(self.le)

    @property
    def re(self) -> Ticks:
        """The right endpoints of the lifetimes."""
        return add_times(self.le, CHRONON) if self.ends is None else self.ends

    def events(self, first_id: int = 0) -> Iterator[Insert[Any]]:
        """Yield the insertions one by one; rows without ids are numbered from `first_id`.

        >>> import numpy as np
        >>> list(Inserts(None, np.array([1]), np.array([5]), Table.from_payloads(["x"])).events(7))
        [Insert(id=7, le=1, re=5, payload='x')]
        """
        ids = range(first_id, first_id + len(self)) if self.ids is None else self.ids
        return map(Insert, ids, self.le.tolist(), self.re.tolist(), self.table.payloads())


def known_ends(le: Ticks, re: Ticks) -> Ticks | None:
    """Return the REs for `Inserts`: None if all rows are point events, which take fewer checks later."""
    return None if len(le) and (re - le == CHRONON).all() and largest(le) < INFINITY else re


Piece: TypeAlias = list[Event[Any]] | Inserts


@dataclass(frozen=True, slots=True)
class Bound:
    """A bounded input: its unit of time and payload schema, as far as they are known, and its reader.

    `narrow`, for an input in columns, returns the same input as records of a subset of the fields, and reads only these.
    `reread`, for one that was read without a payload or a unit, reads it with those of the source that it is bound to.
    `apart` returns the inputs that it is made of, if there are several whose rows have no order among one another.

    >>> bound = Bound("tick", None, lambda: iter([[Insert("a", 1, 5, "x")]]))
    >>> list(bound.events()) == list(bound.events())
    True
    """

    unit: Unit | None
    schema: Schema | None
    reader: Callable[[], Iterator[Piece]]
    size_hint: int | None = None
    narrow: Callable[[Schema], Bound] | None = None
    reread: Callable[[Schema | None, Unit | None], Bound] | None = None
    apart: Callable[[], Sequence[Bound]] | None = None

    def pieces(self) -> Iterator[Piece]:
        """Read the input from its beginning, piece by piece; times are int ticks."""
        return self.reader()

    def whole(self) -> Piece:
        """Read the input as one piece."""
        (piece,) = self.parts(None)
        return piece

    def parts(self, rows: int | None) -> Iterator[Piece]:
        """Read the input in parts of at least `rows` rows (None: one part of all rows); there is at least one part.

        From the first piece that is not in columns on, the rest of the input is one part.
        """
        pieces, first, size = self.pieces(), 0, 0
        waiting: list[Piece] = []
        for piece in pieces:
            waiting.append(piece)
            size += len(piece)
            if not isinstance(piece, Inserts) or piece.ids is not None:
                waiting.extend(pieces)
            elif rows is not None and size >= rows:
                yield _together(waiting, first)
                waiting, first, size = [], first + size, 0
        if waiting or not first:
            yield _together(waiting, first)

    def events(self) -> Iterator[Event[Any]]:
        """Read the input from its beginning as physical events."""
        return _events(self.pieces())


def rereadable(read: Callable[[Schema | None, Unit | None], Bound], payload: Schema | None, unit: Unit | None) -> Bound:
    """Return the input read with a payload and a unit; of these a source that it is bound to may give what is None."""
    bound = read(payload, unit)
    if payload is not None and unit is not None:
        return bound

    def again(declared: Schema | None, counted: Unit | None) -> Bound:
        fits = (payload or declared) in (payload, bound.schema) and (unit or counted) in (unit, bound.unit)
        return found if fits else read(payload or declared, unit or counted)

    found = replace(bound, reread=again)
    return found


def _together(pieces: Sequence[Piece], first: int) -> Piece:
    """Return the concatenation of pieces; `first` is the number of their first row."""
    columns = [piece for piece in pieces if isinstance(piece, Inserts) and piece.ids is None]
    if len(pieces) == 1 and (columns or not first):
        return pieces[0]
    if not columns or len(columns) < len(pieces):
        return list(_events(pieces, first))
    le = np.concatenate([piece.le for piece in columns])
    ends = None if all(piece.ends is None for piece in columns) else np.concatenate([piece.re for piece in columns])
    return Inserts(None, le, ends, Table.concat([piece.table for piece in columns]))


def _events(pieces: Iterable[Piece], row: int = 0) -> Iterator[Event[Any]]:
    for piece in pieces:
        yield from piece.events(row) if isinstance(piece, Inserts) else piece
        row += len(piece)
