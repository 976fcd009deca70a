"""The canonical history table: the meaning of a physical stream (paper 001, II.A)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat
from operator import attrgetter, eq
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar, cast, get_args

from streamdsl.errors import EventError
from streamdsl.temporal.completion import Completed
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.event_reader import EventReader
from streamdsl.temporal.event_table import EventTable
from streamdsl.temporal.events import Cti, Event, Insert, PhysicalEvent
from streamdsl.temporal.html import escape, table, text
from streamdsl.temporal.payload import payload_key, payload_order, show
from streamdsl.temporal.time import INFINITY, Unit, format_time, is_calendar, time_repr
from streamdsl.temporal.value_arrays import distinct

if TYPE_CHECKING:
    import altair
    import pandas as pd

    from streamdsl.pictures.timeline_picture import Timeline

T = TypeVar("T")
_SHOWN: Final = 50
"""The maximal number of rows in the table of a CHT."""
_LIFE: Final = attrgetter("le", "re")


class CHTRow(NamedTuple, Generic[T]):
    """One row of a CHT: a lifetime in ticks and a payload."""

    le: int
    re: int
    payload: T

    def __repr__(self) -> str:
        return self._shown(None)

    def _shown(self, unit: Unit | None) -> str:
        return f"CHTRow(le={time_repr(self.le, unit)}, re={time_repr(self.re, unit)}, payload={self.payload!r})"


class DatedRow(CHTRow[T]):
    """A row of a CHT over dates, which prints them; it is equal to the `CHTRow` with the same values."""

    __slots__ = ()
    _unit: ClassVar[Unit] = "us"

    def __repr__(self) -> str:
        return self._shown(self._unit)

    def __reduce__(self) -> tuple[Any, ...]:
        return CHTRow, tuple(self)


_ROWS: Final[Mapping[Unit | None, type[CHTRow[Any]]]] = {
    unit: type("CHTRow", (DatedRow,), {"__slots__": (), "_unit": unit}) for unit in get_args(Unit) if is_calendar(unit)
}
"""The class of rows by unit; others are plain."""


def dated_row(row: CHTRow[T], unit: Unit | None) -> CHTRow[T]:
    """Return the same row, which prints its times as dates if that is what the unit makes of them.

    >>> dated_row(CHTRow(0, 60, "x"), "s")
    CHTRow(le='1970-01-01T00:00:00Z', re='1970-01-01T00:01:00Z', payload='x')
    """
    return tuple.__new__(_ROWS.get(unit, CHTRow), row)


class Row(Protocol):
    """A row with a lifetime and a payload."""

    @property
    def le(self) -> int: ...
    @property
    def re(self) -> int: ...
    @property
    def payload(self) -> Any: ...


R = TypeVar("R", bound=Row)


def _payload_rank(row: Row) -> tuple[Any, ...]:
    return payload_order(row.payload)


def sort_rows(rows: list[R], rank: Callable[[R], Any] = _payload_rank) -> None:
    """Sort rows in place by LE, RE, payload; `rank`, the sort key of a payload, is computed only for rows with equal lifetimes.

    >>> rows = [CHTRow(1, 3, "b"), CHTRow(1, 3, "a"), CHTRow(0, 4, "c")]
    >>> sort_rows(rows)
    >>> [row.payload for row in rows]
    ['c', 'a', 'b']
    """
    rows.sort(key=_LIFE)
    lives = list(map(_LIFE, rows))
    if any(map(eq, lives, lives[1:])):
        ties = {life for life, other in pairwise(lives) if life == other}
        rows.sort(key=lambda row: (life := (row.le, row.re), rank(row) if life in ties else ()))


class CHT(Completed, Displayed, Generic[T]):
    """A multiset of rows `(le, re, payload)`, without ids and order of arrival; rows with empty lifetimes are left out.

    >>> CHT.from_rows([(4, 9, "P2"), (1, 5, "P1"), (7, 7, "gone")])
    CHT
      [1, 5) 'P1'
      [4, 9) 'P2'
    """

    __slots__ = ("_rows", "unit")
    _internal = frozenset({"ordered"})

    def __init__(self, rows: Iterable[CHTRow[T]], unit: Unit | None = None) -> None:
        held = list(rows)
        if not distinct(map(type, chain.from_iterable(map(_LIFE, held)))) <= {int}:
            held = _read(held, EventReader(unit))
        self._rows = [row for row in held if row.le < row.re]
        if kind := _ROWS.get(unit):
            self._rows = list(map(tuple.__new__, repeat(kind), self._rows))
        sort_rows(self._rows)
        self.unit = unit

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, Any, T]], unit: Unit | None = None) -> CHT[T]:
        """Return the CHT of `(le, re, payload)` tuples; times are ticks, or dates, which become ticks of `unit` (default `"us"`).

        Raises `EventError` for a row with `le > re`, a null time, or an LE that is not finite; `UnitError` and `TimeOverflow`
        for a value that is no time.

        >>> CHT.from_rows([(1, 5, "P1")]).rows
        [CHTRow(le=1, re=5, payload='P1')]
        """
        reader = EventReader(unit)
        found = _read(rows, reader)
        return cls(map(_checked, found), _unit(reader))

    @classmethod
    def from_events(cls, events: Iterable[PhysicalEvent[T]], unit: Unit | None = None) -> CHT[T]:
        """Return the CHT of physical events: each retraction changes the RE of the insertion with its id.

        Raises `EventError` for a malformed event, `CtiViolation` for one that breaks an earlier CTI, `UnitError` and
        `TimeOverflow` for a value that is no time.

        >>> from streamdsl.temporal.events import Retract
        >>> CHT.from_events([Insert("E0", 1, 10, "P1"), Retract("E0", 1, 10, 5)]).rows
        [CHTRow(le=1, re=5, payload='P1')]
        """
        table, reader = EventTable(), EventReader(unit)
        rows: list[CHTRow[T]] = []
        row_of: dict[Hashable, int] = {}
        for event in map(reader.event, cast(Iterable[Event[T]], events)):
            if isinstance(event, Cti):
                table.advance(event.time)
                continue
            admitted = table.admit(event)
            table.commit()
            assert admitted is not None
            if isinstance(admitted, Insert):
                row_of[admitted.id] = len(rows)
                rows.append(CHTRow(admitted.le, admitted.re, admitted.payload))
            else:
                row = row_of[admitted.id]
                rows[row] = rows[row]._replace(re=admitted.re_new)
        return cls(rows, _unit(reader))

    @classmethod
    def ordered(cls, le: Sequence[int], re: Sequence[int], payloads: Sequence[T], unit: Unit | None = None) -> CHT[T]:
        """Return the CHT of rows that are already sorted by `(le, re, payload)`, and not empty; nothing is checked.

        >>> CHT.ordered([1], [5], ["P1"]).rows
        [CHTRow(le=1, re=5, payload='P1')]
        """
        cht = cls((), unit)
        cht._rows = list(map(tuple.__new__, repeat(_ROWS.get(unit, CHTRow)), zip(le, re, payloads, strict=True)))
        return cht

    @property
    def rows(self) -> list[CHTRow[T]]:
        """The rows in order of `(le, re, payload)`."""
        return list(self._rows)

    def to_pandas(self, start: str = "le", end: str = "re") -> pd.DataFrame:
        """Return a frame with columns `le`, `re` (UTC timestamps for a calendar unit, INFINITY null) and the payload's fields.

        `start` and `end` are other names for `le` and `re`, as in `sd.from_pandas`.
        """
        from streamdsl.temporal.pandas_frames import HistoryColumns, history_to_pandas

        return history_to_pandas(HistoryColumns.of(self).named(start, end))

    def timeline(self) -> Timeline:
        """Return a picture of the rows: text that `print` shows, SVG in Jupyter, `.save("rows.svg")` (docs/pictures.md).

        >>> CHT.from_rows([(1, 5, "P1"), (4, INFINITY, "P2"), (8, 9, "P3")]).timeline()
        time: 0    5
        P1  : -[===)
        P2  : ----[=====>
        P3  : --------*
        """
        from streamdsl.pictures.lanes import rows_lane
        from streamdsl.pictures.timeline_picture import Timeline

        return Timeline([rows_lane("", self._rows, "output")], self.unit)

    def chart(self, y: str | Sequence[str] | None = None, by: str | None = None) -> altair.VConcatChart:
        """Return the rows as a chart of Altair that zooms: `timeline().chart(y, by)` (docs/pictures.md).

        Lifetimes are bars and points. With `y`, a numeric field or several, their values are steps, with a line for each value of
        the field `by`; of many rows it shows bins, and says so. Needs `streamdsl[viz]`; raises as `Timeline.chart` does.

        >>> chart = CHT.from_rows([(1, 5, {"n": 2}), (4, 9, {"n": 3})]).chart()
        >>> [row["name"] for row in chart.to_dict()["data"]["values"]]
        ['n=2', 'n=3']
        """
        return self.timeline().chart(y, by)

    def _multiset(self) -> Counter[tuple[int, int, Hashable]]:
        return Counter((row.le, row.re, payload_key(row.payload)) for row in self._rows)

    def __eq__(self, other: object) -> bool:
        return self._multiset() == other._multiset() if isinstance(other, CHT) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[CHTRow[T]]:
        return iter(self._rows)

    def __repr__(self) -> str:
        times = [(format_time(row.le, self.unit), format_time(row.re, self.unit)) for row in self._rows[:_SHOWN]]
        shown = [f"  [{le}, {re}) {show(row.payload)}" for (le, re), row in zip(times, self._rows, strict=False)]
        more = [f"  ... {len(self) - _SHOWN:,} rows more"] if len(self) > _SHOWN else []
        return "\n".join(["CHT" if shown else "CHT (empty)", *shown, *more])

    def _picture(self) -> Timeline | None:
        return self.timeline() if self._rows else None

    def _below(self) -> str:
        from streamdsl.temporal.pandas_frames import payload_columns

        rows = self._rows[:_SHOWN]
        columns, _ = payload_columns([row.payload for row in rows])
        times = ([format_time(row.le, self.unit) for row in rows], [format_time(row.re, self.unit) for row in rows])
        shown = [*times, *(map(repr, values) for values in columns.values())]
        more = text(f"... {len(self) - _SHOWN:,} rows more") if len(self) > _SHOWN else ""
        return table(["le", "re", *columns], (map(escape, cells) for cells in zip(*shown, strict=True))) + more


def _read(rows: Iterable[tuple[Any, Any, T]], reader: EventReader) -> list[CHTRow[T]]:
    """Return rows with their times in ticks; errors name the number of a row."""
    return [CHTRow(*reader.lifetime(number, le, re), payload) for number, (le, re, payload) in enumerate(rows)]


def _unit(reader: EventReader) -> Unit | None:
    """Return the unit of a CHT; None if there were only integers and no unit was given."""
    return reader.found if is_calendar(reader.found) else reader.unit


def _checked(row: CHTRow[T]) -> CHTRow[T]:
    if row.le > row.re or row.le == INFINITY:
        rule = "its LE is not finite" if row.le == INFINITY else f"its LE {row.le} is after its RE {row.re}"
        raise EventError(row, rule)
    return row
