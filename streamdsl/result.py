"""What running a query gives: its output as a history, as physical events, or as frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from streamdsl.temporal import CHT, INFINITY, CHTRow, Cti, Event, Insert, Rejected, Unit
from streamdsl.temporal.events import PhysicalEvent

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

T = TypeVar("T")


class Result(Generic[T]):
    """The output of a run: iterable as `(le, re, payload)` in order of the history, times in ticks of `unit`.

    >>> result = Result.from_events([Insert("a", 1, 5, "x"), Cti(INFINITY)])
    >>> result
    Result
      [1, 5) 'x'
    >>> [payload for le, re, payload in result]
    ['x']
    """

    __slots__ = ("_cht", "_events", "_fields", "_rejected", "unit")

    def __init__(
        self,
        cht: CHT[T] | None,
        events: list[Event[T]] | None,
        unit: Unit | None,
        rejected: Sequence[Rejected],
        fields: Sequence[str] = (),
    ) -> None:
        self._cht = cht
        self._events = events
        self._rejected = rejected
        self._fields = fields
        self.unit = unit

    @classmethod
    def from_cht(cls, cht: CHT[T], unit: Unit | None = None, rejected: Sequence[Rejected] = ()) -> Result[T]:
        """Return the result that is a history; its physical form is insertions numbered in order, then `Cti(INFINITY)`.

        >>> Result.from_cht(CHT.from_rows([(1, 5, "x")])).events()[0]
        Insert(id=0, le=1, re=5, payload='x')
        """
        unit = unit or cht.unit
        return cls(cht if cht.unit == unit else CHT(cht, unit), None, unit, rejected)

    @classmethod
    def from_events(
        cls, events: Iterable[PhysicalEvent[T]], unit: Unit | None = None, rejected: Sequence[Rejected] = ()
    ) -> Result[T]:
        """Return the result that is a physical stream with times in ticks; it is folded to a history when that is asked for."""
        return cls(None, list(cast(Iterable[Event[T]], events)), unit, rejected)

    def with_fields(self, fields: Sequence[str]) -> Result[T]:
        """Return the same result with fields that are columns of its frames even where there is no row.

        >>> Result.from_events([]).with_fields(["k"]).to_pandas().columns.tolist()
        ['le', 're', 'k']
        """
        return Result(self._cht, self._events, self.unit, self._rejected, fields)

    def cht(self) -> CHT[T]:
        """Return the output as a canonical history table."""
        if self._cht is None:
            self._cht = CHT.from_events(self._events or [], self.unit)
        return self._cht

    def events(self) -> list[Event[T]]:
        """Return the output as physical events, CTIs included."""
        if self._events is None:
            inserts = [Insert(number, row.le, row.re, row.payload) for number, row in enumerate(self.cht())]
            self._events = [*inserts, Cti(INFINITY)]
        return list(self._events)

    def rejected(self) -> list[Rejected]:
        """Return the events that the sources have dropped or adjusted, source by source, each with the CTI that it broke.

        >>> import streamdsl as sd
        >>> late = [sd.point("a", 9, "x"), sd.Cti(5), sd.point("late", 3, "y")]
        >>> [(r.event.id, r.cti) for r in sd.from_events(late, on_violation="drop").run().rejected()]
        [('late', 5)]
        """
        return list(self._rejected)

    def to_pandas(self) -> pd.DataFrame:
        """Return the history as a pandas frame: `le`, `re` (UTC timestamps for a calendar unit, INFINITY null), the fields.

        >>> Result.from_cht(CHT.from_rows([(1, 5, {"k": "a"})])).to_pandas().columns.tolist()
        ['le', 're', 'k']
        """
        from streamdsl.temporal.frames import cht_to_pandas

        return cht_to_pandas(self.cht(), self._fields)

    def to_arrow(self) -> Any:
        """Return the history as an Arrow table; raises `SchemaError` for values that Arrow has no type for."""
        from streamdsl.io.frames import cht_to_arrow

        return cht_to_arrow(self.cht(), self._fields)

    def to_polars(self) -> pl.DataFrame:
        """Return the history as a polars frame."""
        from streamdsl.io.frames import cht_to_polars

        return cht_to_polars(self.cht(), self._fields)

    def __iter__(self) -> Iterator[CHTRow[T]]:
        return iter(self.cht())

    def __len__(self) -> int:
        return len(self.cht())

    def __repr__(self) -> str:
        return repr(self.cht()).replace("CHT", "Result", 1)

    def _repr_html_(self) -> str:
        return self.cht()._repr_html_()
