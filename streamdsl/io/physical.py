"""Physical frames: rows of kind insert, retract or cti; the time of a CTI is in the column `le`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamdsl.errors import EventError
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column
from streamdsl.io.columns import Columns
from streamdsl.io.layout import PHYSICAL, Payloads, payloads_of
from streamdsl.io.times import Place, TimeColumn, unit_of
from streamdsl.temporal import MISSING, Cti, Event, Insert, Retract, Unit
from streamdsl.temporal.payload import is_nan
from streamdsl.temporal.time import Ticks


def has_physical_columns(columns: Columns) -> bool:
    """Say whether columns are those of physical events."""
    return set(PHYSICAL) <= set(columns.names)


@dataclass(frozen=True, slots=True)
class PhysicalLayout:
    """How the rows of a physical frame are read: their unit and payloads; the other columns are fixed."""

    unit: Unit | None
    payloads: Payloads
    file: str | None = None

    @classmethod
    def of(cls, columns: Columns, unit: Unit | None, payload: Schema | None, file: str | None = None) -> PhysicalLayout:
        """Return the layout of physical frames with these columns."""
        found = unit or unit_of(columns.times(name) for name in ("le", "re", "re_new"))
        return cls(found, payloads_of(columns, PHYSICAL, payload, file), file)

    @property
    def needed(self) -> list[str]:
        """The names of the columns that are read."""
        return [*PHYSICAL, *self.payloads.columns]

    def events(self, columns: Columns, first_row: int = 0) -> list[Event[Any]]:
        """Return the events of a piece."""
        kinds = self._kinds(columns.values("kind").tolist(), first_row)
        times = [self._times(columns, name, kinds, first_row) for name in ("le", "re", "re_new")]
        payloads = self._payloads(columns, kinds)
        ids = self._ids(columns.values("id").tolist(), kinds, first_row)
        rows = zip(kinds, ids, *(column.tolist() for column in times), payloads, strict=True)
        return [_event(*row) for row in rows]

    def _kinds(self, kinds: list[Any], first_row: int) -> list[str]:
        for row, kind in enumerate(kinds):
            if kind not in ("insert", "retract", "cti"):
                raise self._refused(row, f"its kind is {kind!r}", Place("kind", self.file, first_row))
        return kinds

    def _ids(self, ids: list[Any], kinds: Sequence[str], first_row: int) -> list[Any]:
        for row, (id, kind) in enumerate(zip(ids, kinds, strict=True)):
            if id is None and kind != "cti":
                raise self._refused(row, "its id is null", Place("id", self.file, first_row))
        return ids

    def _refused(self, row: int, rule: str, where: Place) -> EventError:
        event = Insert(where.first_row + row, None, None, MISSING)  # type: ignore[arg-type]
        return EventError(event, f"{rule} ({where.row(row)})", hint="the kinds are insert, retract and cti, of an id each")

    def _times(self, columns: Columns, name: str, kinds: Sequence[str], first_row: int) -> Ticks:
        where = Place(name, self.file, first_row)
        column = columns.times(name)
        if name != "le":
            return column.ends(self.unit, where)
        changes = np.array([kind != "cti" for kind in kinds], dtype=np.bool_)
        TimeColumn(column.values, column.nulls & changes, column.unit).refuse_nulls(where)
        return column.ends(self.unit, where)

    def _payloads(self, columns: Columns, kinds: Sequence[str]) -> list[Any]:
        """Return the payload of each row, `MISSING` for a row without one."""
        values = self.payloads.values(columns, self.file)
        null = _all_null(list(values.values()), columns.size)
        having = [row for row, kind in enumerate(kinds) if kind == "insert" or (kind == "retract" and not null[row])]
        rows = np.array(having, dtype=np.intp)
        built = self.payloads.table({name: column[rows] for name, column in values.items()}, len(rows)).payloads()
        payloads: list[Any] = [MISSING] * columns.size
        for row, payload in zip(having, built, strict=True):
            payloads[row] = payload
        return payloads


def _all_null(values: Sequence[Column], size: int) -> NDArray[np.bool_]:
    null = np.ones(size, dtype=np.bool_)
    for column in values:
        null &= np.fromiter((value is None or is_nan(value) for value in column.tolist()), dtype=np.bool_, count=size)
    return null


def _event(kind: str, id: Any, le: int, re: int, re_new: int, payload: Any) -> Event[Any]:
    if kind == "cti":
        return Cti(le)
    return Insert(id, le, re, payload) if kind == "insert" else Retract(id, le, re, re_new, payload)
