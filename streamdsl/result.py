"""Results of runs: the output as a history, as physical events, or as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from streamdsl.temporal import CHT, INFINITY, CHTRow, Cti, Event, Insert, Rejections, Unit
from streamdsl.temporal.completion import Completed
from streamdsl.temporal.display import Displayed, Picture
from streamdsl.temporal.events import PhysicalEvent, dated

if TYPE_CHECKING:
    import altair
    import pandas as pd
    import polars as pl

    from streamdsl.pictures.timeline_picture import Timeline
    from streamdsl.temporal.pandas_frames import HistoryColumns

T = TypeVar("T")


class RunOutput(Protocol[T]):
    """The output of a run, in the representation of the engine; conversions are lazy."""

    unit: Unit | None

    def events(self) -> list[Event[T]]:
        """Return the output as physical events, CTIs included."""

    def cht(self) -> CHT[T]:
        """Return the output as a canonical history table, without caching it."""

    def history(self, fields: Sequence[str]) -> HistoryColumns:
        """Return the history in columns; `fields` are columns even if there are no rows."""


class HistoryOutput(Generic[T]):
    """An output that holds a history; its physical events are insertions, numbered in order, then `Cti(INFINITY)`."""

    def __init__(self, cht: CHT[T]) -> None:
        self.unit = cht.unit
        self._cht = cht

    def events(self) -> list[Event[T]]:
        """Return insertions numbered in order, then `Cti(INFINITY)`."""
        return [*(Insert(number, row.le, row.re, row.payload) for number, row in enumerate(self._cht)), Cti(INFINITY)]

    def cht(self) -> CHT[T]:
        """Return the history."""
        return self._cht

    def history(self, fields: Sequence[str]) -> HistoryColumns:
        """Return the history in columns."""
        from streamdsl.temporal.pandas_frames import HistoryColumns

        return HistoryColumns.of(self._cht, fields)


class EventsOutput(Generic[T]):
    """An output that holds physical events with times in ticks; it is folded to a history on demand."""

    def __init__(self, events: Iterable[PhysicalEvent[T]], unit: Unit | None) -> None:
        self.unit = unit
        self._events = list(cast(Iterable[Event[T]], events))

    def events(self) -> list[Event[T]]:
        """Return the events."""
        return list(self._events)

    def cht(self) -> CHT[T]:
        """Return the history of the events."""
        return CHT.from_events(self._events, self.unit)

    def history(self, fields: Sequence[str]) -> HistoryColumns:
        """Return the history of the events in columns."""
        return HistoryOutput(self.cht()).history(fields)


class Result(Completed, Displayed, Generic[T]):
    """The output of a run: iterable as `(le, re, payload)` in order of the history, times in ticks of `unit`.

    Events, rows and frames are computed on demand; the history is cached.

    >>> result = Result.from_cht(CHT.from_rows([(1, 5, "x")]))
    >>> result
    Result
      [1, 5) 'x'
    >>> [payload for le, re, payload in result]
    ['x']
    """

    __slots__ = ("_cht", "_fields", "_output", "_rejected", "_types")
    _internal = frozenset({"with_fields"})

    def __init__(
        self,
        output: RunOutput[T],
        rejected: Rejections | None = None,
        fields: Sequence[str] = (),
        types: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._output = output
        self._rejected = rejected or Rejections()
        self._fields = fields
        self._types = types
        self._cht: CHT[T] | None = None

    @classmethod
    def from_cht(cls, cht: CHT[T], unit: Unit | None = None, rejected: Rejections | None = None) -> Result[T]:
        """Return a result with the history `cht`.

        >>> Result.from_cht(CHT.from_rows([(1, 5, "x")])).events()[0]
        Insert(id=0, le=1, re=5, payload='x')
        """
        unit = unit or cht.unit
        return cls(HistoryOutput(cht if cht.unit == unit else CHT(cht, unit)), rejected)

    @classmethod
    def from_events(
        cls, events: Iterable[PhysicalEvent[T]], unit: Unit | None = None, rejected: Rejections | None = None
    ) -> Result[T]:
        """Return a result with the physical stream `events`.

        >>> Result.from_events([Insert("a", 1, 5, "x"), Cti(INFINITY)])
        Result
          [1, 5) 'x'
        """
        return cls(EventsOutput(events, unit), rejected)

    def with_fields(self, fields: Sequence[str], types: Callable[[], Mapping[str, Any]] | None = None) -> Result[T]:
        """Return the same result with declared fields, which are columns of its frames even without rows, and their types.

        >>> Result.from_cht(CHT([])).with_fields(["k"]).to_pandas().columns.tolist()
        ['le', 're', 'k']
        """
        return Result(self._output, self._rejected, fields, types)

    @property
    def unit(self) -> Unit | None:
        """The unit of the times, None if it is not known."""
        return self._output.unit

    def __eq__(self, other: object) -> bool:
        """Compare the history with that of another result, or with a `CHT`.

        >>> Result.from_cht(CHT.from_rows([(1, 5, "x")])) == CHT.from_rows([(1, 5, "x")])
        True
        """
        return self.cht() == (other.cht() if isinstance(other, Result) else other)

    __hash__ = None  # type: ignore[assignment]

    def cht(self) -> CHT[T]:
        """Return the output as a canonical history table."""
        if self._cht is None:
            self._cht = self._output.cht()
        return self._cht

    def head(self, n: int = 5) -> CHT[T]:
        """Return the first n rows in order of (LE, RE, payload).

        >>> Result.from_cht(CHT.from_rows([(3, 4, "y"), (1, 5, "x")])).head(1)
        CHT
          [1, 5) 'x'
        """
        return CHT(islice(self.cht(), max(n, 0)), self.unit)

    def events(self) -> list[Event[T]]:
        """Return the output as physical events, CTIs included."""
        return dated(self._output.events(), self.unit)

    def rejected(self) -> Rejections:
        """Return the events that the sources have dropped or adjusted, source by source, each with the CTI that it broke.

        Its length is their number, `counts` are the numbers by source and reason; of very many events it keeps the newest.

        >>> import streamdsl as sd
        >>> late = [sd.point("a", 9, "x"), sd.Cti(5), sd.point("late", 3, "y")]
        >>> [(r.event.id, r.cti) for r in sd.from_events(late, on_violation="drop").run().rejected()]
        [('late', 5)]
        """
        return self._rejected.dated(self.unit)

    def to_pandas(self, start: str = "le", end: str = "re") -> pd.DataFrame:
        """Return the history as a pandas frame: `le`, `re` (UTC timestamps for a calendar unit, INFINITY null), the fields.

        `start` and `end` are other names for `le` and `re`, as in `sd.from_pandas`: the method `frame.le` of pandas compares. A
        field called like one of the two gets the prefix `payload_`. Raises `QueryError` for two equal names.

        >>> result = Result.from_cht(CHT.from_rows([(1, 5, {"k": "a"})]))
        >>> result.to_pandas().columns.tolist(), result.to_pandas(start="start", end="end").columns.tolist()
        (['le', 're', 'k'], ['start', 'end', 'k'])
        """
        from streamdsl.temporal.pandas_frames import history_to_pandas

        return history_to_pandas(self._history(start, end))

    def to_arrow(self, start: str = "le", end: str = "re") -> Any:
        """Return the history as an Arrow table, with the types that the query declares, if it does.

        `start` and `end` name the columns of the times, as in `to_pandas`. Raises `SchemaError` for values that Arrow has no type
        for.
        """
        from streamdsl.io.data_frames import history_to_arrow

        return history_to_arrow(self._history(start, end), None if self._types is None else self._types())

    def to_polars(self, start: str = "le", end: str = "re") -> pl.DataFrame:
        """Return the history as a polars frame; `start` and `end` name the columns of the times, as in `to_pandas`."""
        from streamdsl.io.data_frames import history_to_polars

        return history_to_polars(self._history(start, end))

    def _history(self, start: str, end: str) -> HistoryColumns:
        return self._output.history(self._fields).named(start, end)

    def timeline(self) -> Timeline:
        """Return a picture of the history: text that `print` shows, SVG in Jupyter; many rows are binned (docs/pictures.md).

        >>> Result.from_cht(CHT.from_rows([(1, 5, "x"), (3, INFINITY, "y")])).timeline()
        time: 0    5
        x   : -[===)
        y   : ---[==>
        """
        from streamdsl.pictures.lanes import columns_lane
        from streamdsl.pictures.timeline_picture import Timeline

        history = self._output.history(self._fields)
        shape = history.memo["shape"] if history.memo else "record"
        return Timeline([columns_lane("", history.le, history.re, history.fields, shape)], self.unit)

    def chart(self, y: str | Sequence[str] | None = None, by: str | None = None) -> altair.VConcatChart:
        """Return the rows as a chart of Altair that zooms: `timeline().chart(y, by)` (docs/pictures.md).

        Lifetimes are bars and points. With `y`, a numeric field or several, their values are steps, with a line for each value of
        the field `by`; of many rows it shows bins, and says so. Needs `streamdsl[viz]`; raises as `Timeline.chart` does.

        >>> chart = Result.from_cht(CHT.from_rows([(1, 5, {"n": 2}), (5, 9, {"n": 3})])).chart(y="n")
        >>> [row["value"] for row in chart.to_dict()["vconcat"][0]["layer"][0]["data"]["values"]]
        [2.0, 3.0]
        """
        return self.timeline().chart(y, by)

    def __iter__(self) -> Iterator[CHTRow[T]]:
        return iter(self.cht())

    def __len__(self) -> int:
        return len(self.cht())

    def __repr__(self) -> str:
        return repr(self.cht()).replace("CHT", "Result", 1)

    def _picture(self) -> Picture | None:
        return self.timeline() if len(self) else None

    def _below(self) -> str:
        return self.cht()._below()
