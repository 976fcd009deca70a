"""The model of a timeline: lanes of rows or windows, in columns, with what is known of corrections and CTIs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from streamdsl.pictures.brief import cut
from streamdsl.temporal.events import MISSING, Cti, Event, Insert, Retract
from streamdsl.temporal.payload import fields_of
from streamdsl.temporal.rejected import TOO_LATE, WAS_DROPPED, Rejected
from streamdsl.temporal.time import Ticks, Unit, format_time

if TYPE_CHECKING:
    from streamdsl.temporal.cht import Row

_NO_TIMES: Final = np.array([], dtype=np.int64)
_READABLE: Final = 6
"""The fewest characters that a name is cut to."""


@dataclass(frozen=True)
class Lane:
    """Rows that are drawn together, in the order in which they are told; lifetimes in ticks.

    `payload` gives the payload of a row by its number: of millions only those that are drawn are asked for.
    """

    title: str
    le: Ticks
    re: Ticks
    payload: Callable[[int], Any]
    was: Ticks = field(default_factory=lambda: _NO_TIMES)
    """The largest RE that each row has ever had, where rows were corrected; empty where none was."""
    ctis: Ticks = field(default_factory=lambda: _NO_TIMES)
    note: str = ""
    """What is not drawn here, and why."""
    role: str = "input"
    """`"input"`, `"output"` or `"windows"`, of which each looks its own way."""
    members: Sequence[Lane] | None = None
    """Of windows: the members of each."""
    columns: Mapping[str, Any] | None = None
    """The fields of the payloads, where they are at hand in columns."""

    def __len__(self) -> int:
        return len(self.le)

    @property
    def ever(self) -> Ticks:
        """The largest RE that each row has ever had."""
        return np.maximum(self.was, self.re) if len(self.was) else self.re

    @property
    def times(self) -> list[Ticks]:
        """All times that are drawn, and those of members."""
        return [self.le, self.re, self.was, self.ctis]

    def fields(self) -> list[str]:
        """Return the names of the payloads' fields."""
        if self.columns is not None:
            return list(self.columns)
        return list(dict.fromkeys(name for row in range(len(self)) for name, _ in fields_of(self.payload(row))))

    def column(self, name: str) -> list[Any] | None:
        """Return a field of each payload, None where one lacks it; None for one that none has."""
        if name not in self.fields():
            return None
        if self.columns is not None:
            return [plain_value(value) for value in self.columns[name]]
        return [dict(fields_of(self.payload(row))).get(name) for row in range(len(self))]

    def noted(self, note: str) -> Lane:
        """Return the same lane with a note beside its title."""
        return replace(self, note=note)

    def name(self, row: int, most: int = 28) -> str:
        """Return a row's payload as a short text."""
        return cut(self.payload(row), most)

    def label(self, row: int, room: float) -> str:
        """Return a row's name cut to so many characters, "" if what is left would say nothing."""
        name = self.name(row)
        return name if len(name) <= room else cut(name, int(room)) if room >= _READABLE else ""

    def tip(self, row: int, unit: Unit | None) -> str:
        """Return what is to be known of a row: its lifetime, its payload, and what it was corrected from."""
        le, re = int(self.le[row]), int(self.re[row])
        text = f"[{format_time(le, unit)}, {format_time(re, unit)}) {cut(self.payload(row), 200, brief=False)}"
        was = int(self.ever[row])
        return text if was == re else f"{text}, its RE was {format_time(was, unit)}"

    def take(self, rows: NDArray[np.intp]) -> Lane:
        """Return some of the rows."""
        numbers = rows.tolist()
        was = self.was[rows] if len(self.was) else self.was
        members = None if self.members is None else [self.members[row] for row in numbers]
        return replace(
            self,
            le=self.le[rows],
            re=self.re[rows],
            was=was,
            members=members,
            columns=None,
            payload=lambda row: self.payload(numbers[row]),
        )

    def sample(self, most: int) -> Lane:
        """Return at most so many rows, evenly spaced among all."""
        return self.take(np.linspace(0, len(self) - 1, most).astype(np.intp)) if len(self) > most else self


def rows_lane(title: str, rows: Sequence[Row], role: str = "input") -> Lane:
    """Return the lane of rows."""
    le, re = (np.fromiter((getattr(row, end) for row in rows), np.int64, len(rows)) for end in ("le", "re"))
    return Lane(title, le, re, lambda row: rows[row].payload, role=role)


def columns_lane(title: str, le: Ticks, re: Ticks, fields: Mapping[str, Any], shape: str, role: str = "output") -> Lane:
    """Return the lane of rows in columns; their payloads are records, tuples or, of one field, scalars."""

    def payload(row: int) -> Any:
        values = {name: plain_value(column[row]) for name, column in fields.items()}
        return values if shape == "record" else tuple(values.values()) if shape == "tuple" else next(iter(values.values()), None)

    return Lane(title, le, re, payload, role=role, columns=fields)


def plain_value(value: Any) -> Any:
    """Return a value of numpy as that of Python."""
    return value.item() if isinstance(value, np.generic) else value


def windows_lane(title: str, windows: Iterable[tuple[Row, Sequence[Row]]]) -> Lane:
    """Return the lane of windows, each with its members; what is written in a window is its payload."""
    found = list(windows)
    lane = rows_lane(title, [window for window, _ in found], "windows")
    return replace(lane, members=[rows_lane("", members) for _, members in found])


def events_lane(title: str, events: Iterable[Event[Any]], role: str = "input", late: Sequence[Rejected] = ()) -> Lane:
    """Return the lane of a physical stream: a row for each insertion, with its last RE and the largest that it ever had.

    A retraction whose insertion is not among the events is a row of its own. Of events that were `late` those that were dropped
    are left out, and how many there were is said.

    >>> from streamdsl.temporal import INFINITY
    >>> lane = events_lane("trips", [Insert("a", 1, INFINITY, "A"), Retract("a", 1, INFINITY, 4), Cti(5)])
    >>> lane.re.tolist(), lane.was.tolist() == [INFINITY], lane.ctis.tolist()
    ([4], True, [5])
    """
    dropped = {(each.event.id, each.event.le) for each in late if each.reason in (TOO_LATE, WAS_DROPPED)}
    rows: list[list[Any]] = []
    place: dict[tuple[Hashable, int], int] = {}
    ctis: list[int] = []
    for event in events:
        if isinstance(event, Cti):
            ctis.append(event.time)
            continue
        if (event.id, event.le) in dropped:
            continue
        end = event.re_new if isinstance(event, Retract) else event.re
        at = place.get((event.id, event.le))
        if isinstance(event, Insert) or at is None:
            place[event.id, event.le] = len(rows)
            rows.append([event.le, end, event.re, str(event.id) if event.payload is MISSING else event.payload])
        else:
            rows[at][1:3] = end, max(rows[at][2], end)
    le, re, was = (np.array([row[n] for row in rows], dtype=np.int64) for n in range(3))
    note = f"{len(late):,} late, see rejected()" if late else ""
    return Lane(title, le, re, lambda row: rows[row][3], was, np.unique(np.array(ctis, dtype=np.int64)), note, role)
