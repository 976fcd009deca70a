"""Coalescing of row batches: neighbours are merged into columns, or into the net change of each row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.row_batch import Change, RowBatch, in_columns
from streamdsl.expr.row_program import Values


def coalesced(batches: Iterable[Batch]) -> list[Batch]:
    """Return the batches, with neighbouring row batches of one kind merged into one in columns; empty ones are left out.

    >>> from streamdsl.expr.schema import Schema
    >>> batch = RowBatch([("a", 0, 3, 3, 4)], [(7,)], Schema.scalar())
    >>> [len(batch) for batch in coalesced([batch, batch])]
    [2]
    """
    found: list[Batch] = []
    run: list[RowBatch] = []
    for batch in batches:
        if type(batch) is RowBatch and (not run or _are_alike(run[0], batch)):
            run.append(batch)
            continue
        if run:
            found.append(in_columns(run))
        run = [batch] if type(batch) is RowBatch else []
        if type(batch) is not RowBatch:
            found.append(batch)
    if run:
        found.append(in_columns(run))
    return [batch for batch in found if len(batch)]


def _are_alike(one: RowBatch, other: RowBatch) -> bool:
    if one.origin is not other.origin and (one.origin is None or not one.origin.is_like(other.origin)):
        return False
    is_one_schema = one.schema is other.schema or one.schema == other.schema
    return is_one_schema and (one.groups is None) is (other.groups is None)


class NetChanges:
    """The net change of each row over many row batches of one kind, none of them grouped.

    >>> from streamdsl.expr.schema import Schema
    >>> net = NetChanges()
    >>> net.take(RowBatch([("a", 0, 3, 3, 9), ("b", 0, 4, 4, 5)], [(7,), (8,)], Schema.scalar()), 0)
    2
    >>> net.take(RowBatch([("a", 0, 3, 9, 6), ("b", 0, 4, 5, 4)], [(7,), (8,)], Schema.scalar()), 0)
    2
    >>> net.batch().ids.tolist(), net.batch().re_new.tolist()
    (['a'], [6])
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, tuple[Change, Values]] = {}
        self._kind: RowBatch | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, batch: RowBatch, cti: int, start: int = 0) -> int:
        """Add the changes from index `start` on, and return the index of the first that cannot be added.

        A change cannot be added if the batch is of another kind, or if its id is held for a row that it does not continue; if
        nothing is held, every change can be added. A change of a row that ends before the CTI is skipped.
        """
        kind, rows = self._kind, self._rows
        if kind is None or not rows:
            self._kind = batch
        elif (kind.origin is not batch.origin or kind.schema is not batch.schema) and not _are_alike(kind, batch):
            return start
        for place in range(start, len(batch.changes)):
            change = batch.changes[place]
            id, version, le, re_old, re_new = change
            if re_old < cti and re_new < cti:
                continue
            before = rows.get((id, version))
            if before is None:
                rows[id, version] = change, batch.values[place]
                continue
            _, _, start_before, first, last = before[0]
            if start_before != le or last != re_old or re_old == le:
                return place
            if first == re_new:
                del rows[id, version]
            else:
                rows[id, version] = (id, version, le, first, re_new), batch.values[place]
        return len(batch.changes)

    def forget(self, cti: int) -> None:
        """Drop the changes of rows that end before a CTI."""
        self._rows = {key: row for key, row in self._rows.items() if row[0][3] >= cti or row[0][4] >= cti}

    def batch(self) -> Batch:
        """Return the net changes in columns."""
        if self._kind is None or not self._rows:
            return EMPTY
        changes, values = zip(*self._rows.values(), strict=True)
        return in_columns([RowBatch(changes, values, self._kind.schema, None, self._kind.origin)])

    def clear(self) -> None:
        """Drop all changes."""
        self._rows = {}
        self._kind = None
