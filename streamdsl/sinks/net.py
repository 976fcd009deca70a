"""What a micro-batch of physical events leaves of each row that it changes, whatever the order of its events."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.errors import EventError, SinkError
from streamdsl.io.arrow_types import settled_type
from streamdsl.temporal.pandas_frames import MEMO

KEY: Final = ("id", "le")
"""What names a row for ever: an id may be used again, for rows that begin later."""
CONTROL: Final = ("kind", "re_new")
"""The columns of events that rows of a table do not have."""
_EVENTS: Final = (*KEY, "re", *CONTROL)


class Net(NamedTuple):
    """The rows that a micro-batch changes, as they are after it (fully retracted: `re` = `le`), and as they were.

    `is_there` says which of them the table has, `ends` with which `re`.
    """

    rows: Any
    is_there: Any
    ends: Any

    @property
    def num_rows(self) -> int:
        """How many rows change."""
        return int(self.rows.num_rows)

    @property
    def lives(self) -> Any:
        """Which rows are there after it: those that end after they begin; null is INFINITY."""
        return pc.fill_null(pc.greater(self.rows.column("re"), self.rows.column("le")), True)

    @property
    def new(self) -> Any:
        """The rows that the table gets."""
        return self.rows.filter(pc.and_(self.lives, pc.invert(self.is_there)))

    @property
    def changed(self) -> Any:
        """The rows that the table has, with another end."""
        return self.rows.filter(pc.and_(self.lives, self.is_there))

    @property
    def gone(self) -> Any:
        """The rows that the table has no longer."""
        return self.rows.filter(pc.and_(pc.invert(self.lives), self.is_there))

    @property
    def before(self) -> Any:
        """The keys and ends of the rows that the table must have."""
        found = self.rows.select(KEY).append_column("re", self.ends)
        return found.filter(self.is_there)


def net(events: Any) -> Net:
    """Return what an Arrow table of physical events changes, row by row; a row is named by its id and its LE.

    One that is shortened and prolonged again, as it was, is not there, and neither is one that comes and goes. Raises
    `EventError` for events of a row that no order makes a sequence.

    >>> columns = {"kind": ["insert", "retract"], "id": ["a", "a"], "le": [1, 1], "re": [9, 9], "re_new": [None, 4], "v": [7, 7]}
    >>> net(pa.table(columns)).new.to_pylist()
    [{'id': 'a', 'le': 1, 're': 4, 'v': 7}]
    """
    changes = _aligned(rows_of(events))
    ends = _ends(changes).group_by([*KEY, "end"]).aggregate([("sign", "sum"), ("row", "min")])
    ends = ends.filter(pc.not_equal(ends.column("sign_sum"), 0))
    _check(ends, changes)
    last, first = (ends.filter(pc.equal(ends.column("sign_sum"), sign)) for sign in (1, -1))
    first = first.select([*KEY, "end"]).rename_columns([*KEY, "was"]).append_column("known", pa.repeat(True, first.num_rows))
    found = last.join(first, list(KEY)).sort_by("row_min")
    rows = changes.drop_columns([name for name in CONTROL if name in changes.column_names]).take(found.column("row_min"))
    rows = rows.set_column(rows.column_names.index("re"), "re", found.column("end"))
    # An empty event is known, so that it can be prolonged, and no row of the table.
    was_there = pc.fill_null(pc.greater(found.column("was"), found.column("le")), True)
    is_there = pc.and_(pc.fill_null(found.column("known"), False), was_there)
    net = Net(rows, is_there, found.column("was"))
    matters = pc.or_(is_there, net.lives)
    return Net(*(each.filter(matters) for each in net))


def physical(events: Any) -> Any:
    """Return a micro-batch as an Arrow table: what `session.feed` gives, or physical events of another library.

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


def rows_of(events: Any) -> Any:
    """Return the insertions and retractions of events: without CTIs, and rows that were rejected."""
    return events.filter(pc.is_in(events.column("kind"), pa.array(["insert", "retract"])))


def plain(table: Any) -> Any:
    """Return an Arrow table of the types that tables have, without what tells equal tables apart, such as zones of a session.

    Of its notes it keeps the memo of the payloads' shape.

    >>> plain(pa.table({"le": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))})).schema.field("le").type
    TimestampType(timestamp[us, tz=UTC])
    """
    memo = (table.schema.metadata or {}).get(MEMO.encode())
    schema = pa.schema([(field.name, settled_type(field.type)) for field in table.schema], memo and {MEMO: memo})
    return table if table.schema.equals(schema, check_metadata=True) else table.cast(schema)


def _aligned(changes: Any) -> Any:
    """Return events whose ends are of the type of their LEs, also where all are null."""
    le = changes.schema.field("le").type
    return changes.cast(pa.schema([field.with_type(le) if field.name in ("re", "re_new") else field for field in changes.schema]))


def _ends(changes: Any) -> Any:
    """Return the ends that each row gets (sign 1) and loses (-1): what is left of them is its first end and its last."""
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
    """Raise for a row with more than one last end, or more than one first: two insertions, or a broken chain."""
    counted = ends.group_by([*KEY, "sign_sum"]).aggregate([("row_min", "count"), ("row_min", "min")])
    odd = pc.or_(pc.greater(counted.column("row_min_count"), 1), pc.greater(pc.abs(counted.column("sign_sum")), 1))
    for row in counted.filter(odd).column("row_min_min").slice(0, 1).to_pylist():
        (event,) = changes.slice(row, 1).to_pylist()
        raise EventError(event, "what comes of its id and LE in one micro-batch does not fit together", where="a sink")
