"""What a micro-batch of physical events leaves of each row that it changes, whatever the order of its events."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamdsl.errors import EventError

_CONTROL: Final = ("kind", "re_new", "shard")
"""The columns of events that rows of a table do not have."""


def net(events: Any) -> Any:
    """Return the rows that an Arrow table of physical events changes, as they are after it: `id`, `le`, `re` and the payload.

    A row that is fully retracted is there with `re` = `le`. One that is shortened and prolonged again, as it was, is not there.
    Raises `EventError` for events of an id that no order makes a sequence.

    >>> columns = {"kind": ["insert", "retract"], "id": ["a", "a"], "le": [1, 1], "re": [9, 9], "re_new": [None, 4], "v": [7, 7]}
    >>> net(pa.table(columns)).to_pylist()
    [{'id': 'a', 'le': 1, 're': 4, 'v': 7}]
    """
    changes = rows_of(events)
    ends = _ends(changes).group_by(["id", "end"]).aggregate([("sign", "sum"), ("row", "min")])
    ends = ends.filter(pc.not_equal(ends.column("sign_sum"), 0))
    _check(ends, changes)
    last = ends.filter(pc.equal(ends.column("sign_sum"), 1))
    rows = changes.drop_columns([name for name in _CONTROL if name in changes.column_names]).take(last.column("row_min"))
    return rows.set_column(rows.column_names.index("re"), "re", last.column("end"))


def rows_of(events: Any) -> Any:
    """Return the insertions and retractions of events: without CTIs, and rows that were rejected."""
    return events.filter(pc.is_in(events.column("kind"), pa.array(["insert", "retract"])))


def living(rows: Any) -> Any:
    """Return the rows that end after they begin; null is INFINITY.

    >>> living(pa.table({"le": [1, 2, 3], "re": [1, 5, None]})).column("le").to_pylist()
    [2, 3]
    """
    return rows.filter(pc.fill_null(pc.greater(rows.column("re"), rows.column("le")), True))


def _ends(changes: Any) -> Any:
    """Return the ends that each id gets (sign 1) and loses (-1): what is left of them is its first end and its last."""
    is_retraction = pc.equal(changes.column("kind"), "retract")
    row = pa.array(np.arange(changes.num_rows))
    got = pc.if_else(is_retraction, changes.column("re_new"), changes.column("re"))
    gained = _signed(changes, row, got, 1)
    lost = _signed(changes, row, changes.column("re"), -1)
    return pa.concat_tables([gained, lost.filter(is_retraction)])


def _signed(changes: Any, row: Any, ends: Any, sign: int) -> Any:
    return pa.table({"id": changes.column("id"), "end": ends, "row": row, "sign": pa.repeat(sign, changes.num_rows)})


def _check(ends: Any, changes: Any) -> None:
    """Raise for an id with more than one last end, or more than one first: two insertions, or a broken chain."""
    counted = ends.group_by(["id", "sign_sum"]).aggregate([("row_min", "count"), ("row_min", "min")])
    odd = pc.or_(pc.greater(counted.column("row_min_count"), 1), pc.greater(pc.abs(counted.column("sign_sum")), 1))
    for row in counted.filter(odd).column("row_min_min").slice(0, 1).to_pylist():
        (event,) = changes.slice(row, 1).to_pylist()
        raise EventError(event, "what comes of its id in one micro-batch does not fit together", where="a sink")


def in_utc(table: Any) -> Any:
    """Return an Arrow table whose timestamps have the zone UTC, whatever that of the session is.

    >>> in_utc(pa.table({"le": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))})).schema.field("le").type
    TimestampType(timestamp[us, tz=UTC])
    """
    zoned = [pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC") for field in table.schema]
    if not any(zoned):
        return table
    fields = [
        field.with_type(pa.timestamp(field.type.unit, "UTC")) if other else field
        for field, other in zip(table.schema, zoned, strict=True)
    ]
    return table.cast(pa.schema(fields))
