"""Few changes at a time, put together: in columns, and what they amount to row by row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.row_batch import Change, RowBatch, in_columns
from streamdsl.expr.scalars import Values


def coalesced(batches: Iterable[Batch]) -> list[Batch]:
    """Return batches with neighbours made one, in columns, where they hold few changes of one kind.

    >>> from streamdsl.expr.schema import Schema
    >>> few = RowBatch([("a", 0, 3, 3, 4)], [(7,)], Schema.scalar())
    >>> [len(batch) for batch in coalesced([few, few])]
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
    """What few changes of one kind do to each row in all; their rows are in no group.

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

    def take(self, few: RowBatch, cti: int, start: int = 0) -> int:
        """Take changes, from one of them on, and return which is the first that cannot be taken; into an empty net all can.

        It is of another kind, or of another row with an id that is here. Changes of rows that end before the CTI are left out.
        """
        kind, rows = self._kind, self._rows
        if kind is None or not rows:
            self._kind = few
        elif (kind.origin is not few.origin or kind.schema is not few.schema) and not _are_alike(kind, few):
            return start
        for place in range(start, len(few.changes)):
            change = few.changes[place]
            id, version, le, re_old, re_new = change
            if re_old < cti and re_new < cti:
                continue
            before = rows.get((id, version))
            if before is None:
                rows[id, version] = change, few.values[place]
                continue
            _, _, start_before, first, last = before[0]
            if start_before != le or last != re_old or re_old == le:
                return place
            if first == re_new:
                del rows[id, version]
            else:
                rows[id, version] = (id, version, le, first, re_new), few.values[place]
        return len(few.changes)

    def forget(self, cti: int) -> None:
        """Let go changes of rows that end before a CTI."""
        self._rows = {key: row for key, row in self._rows.items() if row[0][3] >= cti or row[0][4] >= cti}

    def batch(self) -> Batch:
        """Return the changes in columns."""
        if self._kind is None or not self._rows:
            return EMPTY
        changes, values = zip(*self._rows.values(), strict=True)
        return in_columns([RowBatch(changes, values, self._kind.schema, None, self._kind.origin)])

    def clear(self) -> None:
        """Forget all changes."""
        self._rows = {}
        self._kind = None
