"""The net changes of rows by a micro-batch of physical events, in whatever order the events come."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.errors import EventError, SinkError
from streamdsl.io.arrow_types import settled_type
from streamdsl.temporal.pandas_frames import MEMO

KEY: Final = ("id", "le")
"""The key of a row: an id may be reused, but only for rows with a later LE."""
CONTROL: Final = ("kind", "re_new")
"""The columns of events that tables do not have."""
_EVENTS: Final = (*KEY, "re", *CONTROL)


class RowChanges(NamedTuple):
    """The rows that a micro-batch changes, with their state after it (`re` = `le` if they are fully retracted).

    `existed` says for each row whether the table holds it, `old_ends` its RE there.
    """

    rows: Any
    existed: Any
    old_ends: Any

    @property
    def num_rows(self) -> int:
        """The number of changed rows."""
        return int(self.rows.num_rows)

    @property
    def remain(self) -> Any:
        """Which rows remain: those with a non-empty lifetime; a null RE is INFINITY."""
        return pc.fill_null(pc.greater(self.rows.column("re"), self.rows.column("le")), True)

    @property
    def inserted(self) -> Any:
        """The rows to insert."""
        return self.rows.filter(pc.and_(self.remain, pc.invert(self.existed)))

    @property
    def updated(self) -> Any:
        """The rows to update, with their new RE."""
        return self.rows.filter(pc.and_(self.remain, self.existed))

    @property
    def deleted(self) -> Any:
        """The rows to delete."""
        return self.rows.filter(pc.and_(pc.invert(self.remain), self.existed))

    @property
    def before(self) -> Any:
        """The keys and old REs of the rows that the table must hold."""
        found = self.rows.select(KEY).append_column("re", self.old_ends)
        return found.filter(self.existed)


def row_changes(events: Any) -> RowChanges:
    """Return the net changes of an Arrow table of physical events; the key of a row is its id and LE.

    Changes that cancel out, and rows that come and go within the micro-batch, are left out. Raises `EventError` for events of a
    row that form no chain in any order. Cost: joins and sorts by key, O(n log n).

    >>> columns = {"kind": ["insert", "retract"], "id": ["a", "a"], "le": [1, 1], "re": [9, 9], "re_new": [None, 4], "v": [7, 7]}
    >>> row_changes(pa.table(columns)).inserted.to_pylist()
    [{'id': 'a', 'le': 1, 're': 4, 'v': 7}]
    """
    changes = _aligned(row_events(events))
    if not pc.any(pc.equal(changes.column("kind"), "retract"), min_count=0).as_py() and _are_distinct(changes):
        new = changes.drop_columns([name for name in CONTROL if name in changes.column_names])
        ends = pa.nulls(new.num_rows, new.schema.field("re").type)
        found = RowChanges(new, pa.repeat(False, new.num_rows), ends)
        return found if pc.all(found.remain, min_count=0).as_py() else RowChanges(*(each.filter(found.remain) for each in found))
    ends = _end_changes(changes).group_by([*KEY, "end"]).aggregate([("sign", "sum"), ("row", "min")])
    ends = ends.filter(pc.not_equal(ends.column("sign_sum"), 0))
    _check(ends, changes)
    last, first = (ends.filter(pc.equal(ends.column("sign_sum"), sign)) for sign in (1, -1))
    first = first.select([*KEY, "end"]).rename_columns([*KEY, "was"]).append_column("known", pa.repeat(True, first.num_rows))
    found = last.join(first, list(KEY)).sort_by("row_min")
    rows = changes.drop_columns([name for name in CONTROL if name in changes.column_names]).take(found.column("row_min"))
    rows = rows.set_column(rows.column_names.index("re"), "re", found.column("end"))
    # An event with an empty lifetime can still be lengthened, but is no row of the table.
    was_there = pc.fill_null(pc.greater(found.column("was"), found.column("le")), True)
    existed = pc.and_(pc.fill_null(found.column("known"), False), was_there)
    row_changes = RowChanges(rows, existed, found.column("was"))
    matters = pc.or_(existed, row_changes.remain)
    return RowChanges(*(each.filter(matters) for each in row_changes))


def event_table(events: Any) -> Any:
    """Return a micro-batch as an Arrow table, from what `session.feed` returns, or from a table of physical events.

    Raises `SinkError` for anything else.
    """
    to_arrow = getattr(events, "to_arrow", None)
    table = to_arrow() if callable(to_arrow) else events
    if not isinstance(table, pa.Table):
        what = f"not {type(events).__name__}"
    elif missing := [name for name in _EVENTS if name not in table.column_names]:
        what = f"and this one has no column {', '.join(missing)}; its columns are {', '.join(table.column_names) or '(none)'}"
    else:
        return table
    raise SinkError(
        f"a micro-batch is what session.feed(...) gives, or an Arrow table of physical events, {what}",
        hint="table.write(session.feed(rows), number)",
    )


def row_events(events: Any) -> Any:
    """Return the insertions and retractions, without CTIs and rejected rows."""
    are_rows = pc.is_in(events.column("kind"), pa.array(["insert", "retract"]))
    return events if pc.all(are_rows, min_count=0).as_py() else events.filter(are_rows)


def normalized(table: Any) -> Any:
    """Return an Arrow table with the column types of sinks, in which equal times have equal types (UTC).

    Of its metadata only the memo of the payloads' shape is kept.

    >>> normalized(pa.table({"le": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))})).schema.field("le").type
    TimestampType(timestamp[us, tz=UTC])
    """
    memo = (table.schema.metadata or {}).get(MEMO.encode())
    schema = pa.schema([(field.name, settled_type(field.type)) for field in table.schema], memo and {MEMO: memo})
    return table if table.schema.equals(schema, check_metadata=True) else table.cast(schema)


def _aligned(changes: Any) -> Any:
    """Return events whose REs have the type of their LEs, also where all REs are null."""
    le = changes.schema.field("le").type
    return changes.cast(pa.schema([field.with_type(le) if field.name in ("re", "re_new") else field for field in changes.schema]))


def _are_distinct(changes: Any) -> bool:
    """Say whether no two events have the same key, as where each begins after the one before."""
    return begin_one_after_another(changes) or bool(changes.group_by(list(KEY)).aggregate([]).num_rows == changes.num_rows)


def begin_one_after_another(rows: Any) -> bool:
    """Say whether the LE of each row is greater than that of the one before.

    >>> begin_one_after_another(pa.table({"le": [1, 2, 4]})), begin_one_after_another(pa.table({"le": [1, 1]}))
    (True, False)
    """
    les = rows.column("le").combine_chunks()
    return bool(pc.all(pc.greater(les.slice(1), les.slice(0, max(0, len(les) - 1))), min_count=0).as_py())


def _end_changes(changes: Any) -> Any:
    """Return the REs that each row gains (sign 1) and loses (-1); in a chain all cancel but the first and the last."""
    is_retraction = pc.equal(changes.column("kind"), "retract")
    row = pa.array(np.arange(changes.num_rows))
    got = pc.if_else(is_retraction, changes.column("re_new"), changes.column("re"))
    gained = _signed(changes, row, got, 1)
    lost = _signed(changes, row, changes.column("re"), -1)
    return pa.concat_tables([gained, lost.filter(is_retraction)])


def _signed(changes: Any, row: Any, ends: Any, sign: int) -> Any:
    columns = {name: changes.column(name) for name in KEY}
    return pa.table({**columns, "end": ends, "row": row, "sign": pa.repeat(sign, changes.num_rows)})


def _check(ends: Any, changes: Any) -> None:
    """Raise `EventError` for a row with several first or last REs: two insertions, or a broken chain."""
    counted = ends.group_by([*KEY, "sign_sum"]).aggregate([("row_min", "count"), ("row_min", "min")])
    odd = pc.or_(pc.greater(counted.column("row_min_count"), 1), pc.greater(pc.abs(counted.column("sign_sum")), 1))
    for row in counted.filter(odd).column("row_min_min").slice(0, 1).to_pylist():
        (event,) = changes.slice(row, 1).to_pylist()
        raise EventError(event, "the events of its id and LE in one micro-batch form no chain", where="a sink")
