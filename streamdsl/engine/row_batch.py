"""Row batches: a few changes as Python values. For a handful of rows, columns cost more than they save.

Operators process a row batch by `change_rows` (docs/decisions/10-few-rows-in-scalars.md). To all other code it is a `Batch`,
whose columns are made when they are first read.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import Ids, Incarnations, PairIds, incarnation_of
from streamdsl.engine.order import row_order
from streamdsl.engine.versions import OutRow, RowVersion
from streamdsl.expr.row_program import RowFunction, Values
from streamdsl.expr.schema import Schema, Shape, is_positional
from streamdsl.expr.table import Table, column_of, object_column
from streamdsl.temporal import Event, Insert, Retract
from streamdsl.temporal.payload import records_of
from streamdsl.temporal.time import Ticks

PAIRS: Final = PairIds(object_column([]), object_column([]))
"""The origin of ids that are pairs."""

Change: TypeAlias = tuple[Any, int, int, int, int]
"""A change of one row: `(id, version, le, re_old, re_new)`.

The id of a source's row is the sender's; with the LE it identifies the row. The id of a window's result is a tuple of the
window's start and the leaves of the group's key; only such ids have a version, which counts how often the result has come back.
The id of a pair is spelled out.
"""

Result: TypeAlias = tuple[Change, Values, int]
"""A change of a window's result, its payload as a tuple of values, and the number of its group."""


class RowBatch(Batch):
    """A batch of few changes, row by row, none of which is a no-op. `values` has the fields of each payload as a tuple.

    `groups` are the group numbers of the rows, None outside of a group-apply. `origin` tells the kind of the ids: None for those
    of a source. All columns of `Batch` are there too, and are made at the first read.

    >>> few = RowBatch([("a", 0, 3, 3, 4)], [(7,)], Schema.scalar())
    >>> few.payloads(), len(few), few.le.tolist()
    ([7], 1, [3])
    """

    __slots__ = ("_columns", "changes", "groups", "origin", "schema", "values")

    def __init__(
        self,
        changes: Sequence[Change],
        values: Sequence[Values],
        schema: Schema,
        groups: Sequence[int] | None = None,
        origin: WindowIds | PairIds | None = None,
    ) -> None:
        self.changes = changes
        self.values = values
        self.schema = schema
        self.groups = groups
        self.origin = origin

    @property
    def columns(self) -> Batch:
        """The same changes in columns."""
        try:
            return self._columns
        except AttributeError:
            self._columns: Batch = in_columns([self])
            return self._columns

    ids = property(lambda self: self.columns.ids)
    le = property(lambda self: self.columns.le)
    re_old = property(lambda self: self.columns.re_old)
    re_new = property(lambda self: self.columns.re_new)
    table = property(lambda self: self.columns.table)
    keys = property(lambda self: self.columns.keys)

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def high_water(self) -> int:
        """The largest LE in the batch."""
        changes = self.changes
        return changes[0][2] if len(changes) == 1 else max([le for _, _, le, _, _ in changes])

    @property
    def are_insertions(self) -> bool:
        """Whether each row is an insertion."""
        return all(le == re_old for _, _, le, re_old, _ in self.changes)

    def changed(self) -> Batch:
        """Return the batch itself: it has no no-op changes."""
        return self

    def mapped(self, function: RowFunction, schema: Schema) -> Batch | None:
        """Return the batch after a row program; None if the program cannot tell, or fails: then the columnar path must run."""
        try:
            found = function(self.values, self.groups)
        except Exception:
            return None
        if found is None:
            return None
        values, groups, kept = found
        changes = self.changes
        if kept is not None:
            if not kept:
                return EMPTY
            changes = [changes[row] for row in kept]
        return RowBatch(changes, values, schema, groups, self.origin)

    def payloads(self) -> list[Any]:
        """Return the payloads, as objects."""
        shape, values = self.schema.shape, self.values
        if shape is Shape.RECORD:
            return records_of(self.schema.names, values)
        if shape is Shape.TUPLE:
            return list(values)
        if shape is Shape.SCALAR:
            return [value for (value,) in values]
        cls = self.schema.cls
        if cls is not None and is_positional(cls):
            return [cls(*each) for each in values]
        return list(map(self.schema.build, values))

    def row_ids(self) -> list[Any]:
        if self.origin is None:
            return [incarnation_of((id, le)) for id, _, le, _, _ in self.changes]
        found: list[Hashable] = []
        parts = name = None
        for id, version, _, _, _ in self.changes:
            if id is not parts:
                parts, name = id, self.origin.spelled_one(id)
            found.append(RowVersion(name, version) if version else name)
        return found

    def rows(self) -> list[OutRow]:
        """Return the rows as egress sends them."""
        each = zip(self.row_ids(), self.changes, self.payloads(), strict=True)
        return [OutRow(name, le, re_old, re_new, payload) for name, (_, _, le, re_old, re_new), payload in each]

    def in_order(self) -> RowBatch:
        """Return the batch in output order: retractions, then insertions, each by (LE, RE, payload)."""
        changes = self.changes
        if len(changes) == 1:
            return self
        lifetimes = [(True, le, re_new) if re_old == le else (False, le, re_old) for _, _, le, re_old, re_new in changes]
        order = row_order(lifetimes, self.payloads)
        if order is None:
            return self
        return RowBatch([changes[row] for row in order], [self.values[row] for row in order], self.schema, None, self.origin)

    @property
    def counts_versions(self) -> bool:
        """Whether the changes have versions of their own, so that egress need not assign any."""
        return type(self.origin) is WindowIds

    def events(self, names: Sequence[Any] | None = None) -> list[Event[Any]]:
        """Return the changes as physical events, in order; `names` are used as their ids, if given."""
        origin, parts, name = self.origin, None, None
        found: list[Event[Any]] = []
        for (id, version, le, re_old, re_new), payload in zip(self.changes, self.payloads(), strict=False):
            if names is not None:
                id = names[len(found)]
            elif origin is not None:
                if id is not parts:
                    parts, name = id, origin.spelled_one(id)
                id = RowVersion(name, version) if version else name
            found.append(Insert(id, le, re_new, payload) if re_old == le else Retract(id, le, re_old, re_new, payload))
        return found


def results_batch(results: Sequence[Result], schema: Schema, is_grouped: bool, origin: WindowIds) -> Batch:
    """Return changes of windows' results as a batch."""
    if not results:
        return EMPTY
    changes, values, groups = zip(*results, strict=True)
    return RowBatch(changes, values, schema, groups if is_grouped else None, origin)


def size_of(batch: Batch) -> int:
    """Return the number of rows. It avoids `len`, whose call through `__len__` is slow on the path of single rows."""
    return len(batch.changes) if type(batch) is RowBatch else len(batch)


def in_columns(parts: Sequence[RowBatch]) -> Batch:
    """Return row batches as one batch in columns. They have the same schema, and ids of the same kind."""
    first = parts[0]
    ids, versions, le, re_old, re_new = zip(*[change for part in parts for change in part.changes], strict=True)
    values = zip(*[each for part in parts for each in part.values], strict=True)
    starts = _ticks(le)
    return Batch(
        _ids(ids, versions, starts, first.origin),
        starts,
        starts if re_old == le else _ticks(re_old),
        _ticks(re_new),
        Table(first.schema, dict(zip(first.schema.names, map(column_of, values), strict=False)), len(le)),
        None if first.groups is None else _ticks([group for part in parts for group in part.groups or ()]),
    )


def _ids(ids: Sequence[Any], versions: Sequence[int], starts: Ticks, origin: WindowIds | PairIds | None) -> Ids:
    return Incarnations(object_column(ids), starts) if origin is None else origin.from_rows(ids, versions)


def _ticks(values: Sequence[int]) -> Ticks:
    return np.array(values, dtype=np.int64)
