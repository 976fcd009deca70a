"""The columns of an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.table import Column
from streamdsl.io.columns import check_names
from streamdsl.io.from_arrow import arrow_times, arrow_values
from streamdsl.io.times import TimeColumn
from streamdsl.temporal.pandas_frames import MEMO


class ArrowColumns:
    """The columns of an Arrow table or record batch.

    >>> ArrowColumns(pa.table({"k": [1, None]})).values("k").tolist()
    [1, None]
    """

    def __init__(self, table: Any) -> None:
        self._table = pa.table(table) if isinstance(table, pa.RecordBatch) else table
        names = check_names(self._table.column_names)
        self.names = [name for name in names if not (name.startswith("__index_level_") and name.endswith("__"))]
        self.size: int = self._table.num_rows
        self.memo = _memo(self._table.schema.metadata or {})

    def values(self, name: str) -> Column:
        """Return a column as payload values; a null is None, a NaN stays."""
        return arrow_values(self._table.column(name))

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""
        from streamdsl.io.arrow_held import held_values

        return held_values(self._table.column(name))

    def times(self, name: str) -> TimeColumn:
        """Return a column as times: dates in UTC, integers, or text."""
        return arrow_times(self._table.column(name))


def _memo(metadata: Mapping[bytes, bytes]) -> Mapping[str, Any] | None:
    """Return the payload memo from the schema metadata: our own key, or the `attrs` that pandas has stored there."""
    if MEMO.encode() in metadata:
        own: Mapping[str, Any] = json.loads(metadata[MEMO.encode()])
        return own
    attrs: Mapping[str, Any] = json.loads(metadata.get(b"PANDAS_ATTRS", b"{}"))
    return attrs.get(MEMO)
