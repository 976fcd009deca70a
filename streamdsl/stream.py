"""The fluent facade: streams whose methods each build one node of a plan. Nothing runs until `run` or `open`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, overload

from typing_extensions import TypeVar

from streamdsl import building, ranking
from streamdsl.building import PAIR, Aggregation, WindowDefinition
from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Expr, Whole
from streamdsl.expr.schema import Schema
from streamdsl.extras import need_pyarrow, need_spark
from streamdsl.missing import Fluent
from streamdsl.pattern import Pattern, Steps, traced
from streamdsl.plan import derived
from streamdsl.plan import node as algebra
from streamdsl.plan.asof import Nearness, Ties
from streamdsl.plan.node import Group, GroupApply, Node
from streamdsl.plan.places import placed
from streamdsl.plan.units import in_calendar, in_unit
from streamdsl.temporal import CHRONON, INFINITY, Lifetime, Unit, to_duration, to_ticks
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.html import text
from streamdsl.udm.bases import AnyUDA, AnyUDO
from streamdsl.udm.stream_operator import UDSO, Sieve
from streamdsl.udm.throttle import OnlyFirst, Throttle, Unrepeated
from streamdsl.udm.top_k import TopK
from streamdsl.windows import CalendarPeriods, Clip, Count, CountBy, Hopping, Output, Period, Sequenced, Snapshot
from streamdsl.windows import Session as SessionWindow

if TYPE_CHECKING:
    import os
    from datetime import timedelta

    import altair
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from streamdsl import connect
    from streamdsl.debugger import EventTrace
    from streamdsl.engine.query_session import Session
    from streamdsl.io.binding import Bound
    from streamdsl.monitoring import Endpoint, Live
    from streamdsl.papers.secret import Profile, Trace
    from streamdsl.pictures.flow_chart import FlowChart
    from streamdsl.pictures.timeline_picture import Timeline
    from streamdsl.plan.asof import Direction
    from streamdsl.plan.derived import BandTime
    from streamdsl.result import Result
    from streamdsl.running import EngineName
    from streamdsl.spark import OnSpark
    from streamdsl.temporal import CHT, CHTRow, DurationLike, Event, Record, TimeLike
    from streamdsl.udm.bases import Agg
    from streamdsl.window import GroupedWindow, Window
    from streamdsl.windows.sequences.description import AnySequence

T = TypeVar("T", covariant=True)
K = TypeVar("K", covariant=True)
W = TypeVar("W", covariant=True)
U = TypeVar("U")
V = TypeVar("V")
V1 = TypeVar("V1")
V2 = TypeVar("V2")
V3 = TypeVar("V3")
V4 = TypeVar("V4")
V5 = TypeVar("V5")
V6 = TypeVar("V6")
V7 = TypeVar("V7")
V8 = TypeVar("V8")
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
L = TypeVar("L")
R = TypeVar("R")

On: TypeAlias = str | list[str] | tuple[Callable[[L], object], Callable[[R], object]]
"""What makes two rows match: a field's name, a list of names, or a pair of lambdas for the left and the right key."""
Condition: TypeAlias = Callable[[L, R], object]
"""A condition over a left row and a right one."""
By: TypeAlias = Callable[[L], object] | str | Sequence[str]
"""A key: a lambda, a field's name, or a list of names."""

__all__ = ["GroupedStream", "GroupedWindowedStream", "Stream", "WindowedStream"]


class _Windowing(Fluent, Displayed, ABC, Generic[W]):
    """The window kinds, for streams and for groups; W is what they give."""

    __slots__ = ()

    @property
    @abstractmethod
    def _unit(self) -> Unit | None:
        """The unit of time."""

    @abstractmethod
    def _timed(self, *times: object) -> _Windowing[W]:
        """Return the same, in microseconds if the unit is not known and one of these times is not in ticks."""

    @abstractmethod
    def _windowed(self, frame: WindowDefinition) -> W:
        """Return this stream divided into windows."""

    def hopping_window(
        self,
        size: DurationLike,
        hop: DurationLike,
        offset: DurationLike = 0,
        *,
        clip: Clip = Clip.NONE,
        output: Output = Output.ALIGN,
    ) -> W:
        """Divide time into the windows `[offset + k * hop, + size)` for every integer k; an event is in each that it overlaps.

            time        0    5    10   15   20
            size 10     [---------)
            hop 5            [---------)
                                  [---------)

        A size below the hop leaves gaps, whose rows are in no window: a `WindowGapsWarning` says so.

        >>> import streamdsl as sd
        >>> sd.from_rows([(6, 7, "a")]).hopping_window(10, 5).aggregate(n=sd.count()).run().cht()
        CHT
          [0, 10) n=1
          [5, 15) n=1
        """
        timed = self._timed(size, hop, offset)
        ticks = [to_duration(d, timed._unit) for d in (size, hop, offset)]
        windows = Hopping(*ticks)
        if windows.has_gaps:
            building.warn_of_gaps(size, hop)
        return timed._windowed(WindowDefinition(windows, clip, output))

    def tumbling_window(
        self, size: DurationLike, offset: DurationLike = 0, *, clip: Clip = Clip.NONE, output: Output = Output.ALIGN
    ) -> W:
        """Divide time into adjoining windows of one size: hopping windows with hop = size.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 2, "a"), (8, 12, "b")]).tumbling_window(10).aggregate(n=sd.count()).run().cht()
        CHT
          [0, 10) n=2
          [10, 20) n=1
        """
        return self.hopping_window(size, size, offset, clip=clip, output=output)

    def trailing_window(
        self, size: DurationLike, hop: DurationLike | None = None, offset: DurationLike = 0, *, clip: Clip = Clip.NONE
    ) -> W:
        """Look back at every `offset + k * hop`: the result over the last `size` holds from then until the next time.

            time        0         10        20        30
            size 10     [---------)
            result                [---------)

        `hop` is `size` if it is not given. The rows of a window are those of a hopping window; the CTI is `size` later than its.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 2, "a"), (8, 12, "b")]).trailing_window(10).aggregate(n=sd.count()).run().cht()
        CHT
          [10, 20) n=2
          [20, 30) n=1
        """
        every = size if hop is None else hop
        timed = self._timed(size, every, offset)
        length, step, first = (to_duration(d, timed._unit) for d in (size, every, offset))
        return timed._windowed(WindowDefinition(Hopping(length, step, first - length), clip, Output.ALIGN, step))

    def calendar_window(
        self, period: Period, every: int = 1, *, tz: str = "UTC", clip: Clip = Clip.NONE, output: Output = Output.ALIGN
    ) -> W:
        """Divide time into days, weeks, months, quarters or years as the clocks of a time zone show them.

            Europe/Berlin   March 28   March 29   March 30
            day             [---24h----)[---23h---)[---24h----)

        A window is `[start of a period, start of the next)`, of `every` periods, counted from 1970; weeks start on Monday. A
        period starts at the first instant at which a date of it, or a later one, is shown: a day may have 23 or 25 hours, and one
        that a place has left out is no window. Before its first change a zone has the offset that it begins with; its last rule
        goes on for ever. Raises `UnitError` for a stream of plain ticks, `QueryError` for a zone that is not known.

        >>> import streamdsl as sd
        >>> rides = sd.from_rows([(f"2026-03-28T{time}", f"2026-03-28T{time}:01", 9) for time in ("22:59", "23:00")], unit="s")
        >>> rides.calendar_window("day", tz="Europe/Berlin").aggregate(n=sd.count()).run().cht()
        CHT
          [2026-03-27T23:00:00Z, 2026-03-28T23:00:00Z) n=1
          [2026-03-28T23:00:00Z, 2026-03-29T22:00:00Z) n=1
        """
        timed = self._timed(period)
        return timed._windowed(WindowDefinition(CalendarPeriods(period, every, tz, timed._unit or "us"), clip, output))

    def snapshot_window(self, *, clip: Clip = Clip.NONE, output: Output = Output.ALIGN) -> W:
        """Divide time at every LE and RE: the windows are the maximal periods in which nothing changes.

            events      [------------)
                            [------------)
            snapshots   [---)[-------)[--)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 8, "a"), (4, 12, "b")]).snapshot_window().aggregate(n=sd.count()).run().cht()
        CHT
          [1, 4) n=1
          [4, 8) n=2
          [8, 12) n=1
        """
        return self._windowed(WindowDefinition(Snapshot(), clip, output))

    def count_window(self, n: int, by: CountBy = "start", *, clip: Clip = Clip.NONE, output: Output = Output.ALIGN) -> W:
        """For every n consecutive distinct starts (ends) make the window from the first to just after the last.

            starts      |   |      |
            n = 2       [----)
                            [-------)

        An event belongs if its start (finite end) is inside; with fewer than n there is no window.

        >>> import streamdsl as sd
        >>> numbers = sd.from_rows([(1, 2, 5), (4, 5, 7), (11, 12, 9)])
        >>> numbers.count_window(2).aggregate(total=sd.sum(lambda e: e)).run().cht()
        CHT
          [1, 5) total=12
          [4, 12) total=16
        """
        return self._windowed(WindowDefinition(Count(n, by), clip, output))

    def session_window(
        self,
        gap: DurationLike,
        max_duration: DurationLike | None = None,
        *,
        clip: Clip = Clip.NONE,
        output: Output = Output.ALIGN,
    ) -> W:
        """Make a window of events that follow one another within a gap: from the first LE to the largest RE + gap.

            events      [--)   [-)          [--)
            gap 4       [------------)      [------)
            max 8       [------)[----)      [------)

        In order of LE, an event joins if its LE < the largest RE so far + gap; a late event may join two sessions, and without
        one a session may fall apart. With a `max_duration` a session is cut at every first LE + k * max_duration, and an event is
        in each window that it overlaps. A CTI inside a session goes as far as the start of the window that it is in.

        >>> import streamdsl as sd
        >>> clicks = sd.from_rows([(0, 4, "a"), (7, 10, "b"), (20, 24, "c")])
        >>> clicks.session_window(4).aggregate(n=sd.count()).run().cht()
        CHT
          [0, 14) n=2
          [20, 28) n=1
        >>> clicks.session_window(4, max_duration=8).aggregate(n=sd.count()).run().cht()
        CHT
          [0, 8) n=2
          [8, 14) n=1
          [20, 28) n=1
        """
        timed = self._timed(gap, max_duration)
        longest = None if max_duration is None else to_duration(max_duration, timed._unit)
        return timed._windowed(WindowDefinition(SessionWindow(to_duration(gap, timed._unit), longest), clip, output))

    def windows(
        self, spec: AnySequence, start: TimeLike | None = None, *, clip: Clip = Clip.NONE, output: Output = Output.ALIGN
    ) -> W:
        """Make the windows of a sequence of `streamdsl.astral`, by time or by position, of a query that starts at `start`.

            rows              |  |  |     |
            range_slide(6, 6) [-----]              what is seen at 6
            result                  [-----)        holds until 12
            rows_slide(2, 2)  [--]  [-----]
            result               [--------)[-----

        A row is a tuple at t = LE, for a query that sees those from `start` on, by default from the first LE; where it ends does
        not count. Numbers of time in a sequence are ticks. The result over a window holds from the first instant at which it is
        the last one created to the first at which another one is, or for ever. Simultaneous rows are seen at once; positions go
        by (LE, payload). The CTI is that of the input. In groups each key has its own sequence.

        A sequence of which new windows hold rows for ever needs `run(until=t)`, and raises `UnboundedOutputError` without.
        Raises `QueryError` for time-sensitive modules, for other output policies, and for what only a `View` can follow.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(0, 1, 1), (3, 4, 2), (6, 7, 3), (12, 13, 4)])
        >>> rows.windows(sd.astral.range_slide(6, 6)).aggregate(seen=sd.collect(lambda e: e)).run().cht()
        CHT
          [0, 6) seen=[1]
          [6, 12) seen=[1, 2, 3]
          [12, 18) seen=[3, 4]
          [18, 24) seen=[4]
        >>> rows.windows(sd.astral.rows_slide(2, 2, partial=False)).aggregate(seen=sd.collect(lambda e: e)).run().cht()
        CHT
          [3, 12) seen=[1, 2]
          [12, inf) seen=[3, 4]
        """
        timed = self._timed(start)
        first = None if start is None else to_ticks(start, timed._unit)
        return timed._windowed(WindowDefinition(Sequenced(spec, first), clip, output))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream(_Windowing["WindowedStream[T]"], Generic[T]):
    """A stream of payloads of type T, and the query that makes it. Immutable: each method gives a new one and does no work.

    >>> import streamdsl as sd
    >>> prices = sd.from_rows([(1, 5, {"symbol": "A", "price": 12.0}), (3, 9, {"symbol": "B", "price": 8.0})])
    >>> prices.where(lambda e: e.price > 10).select(lambda e: e.symbol).run().cht()
    CHT
      [1, 5) 'A'
    """

    _node: Node
    _bindings: Mapping[str, Bound] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Stream of {_payloads(self._node)}, made by {self._node.name}>"

    def _picture(self) -> FlowChart | None:
        return self._node._picture()

    def _below(self) -> str:
        return text(self.explain())

    # Span-based operators: one row at a time.

    @overload
    def where(self, p: Callable[[T], object]) -> Stream[T]: ...
    @overload
    def where(self, p: Callable[[T, Lifetime], object]) -> Stream[T]: ...
    def where(self, p: Any) -> Any:
        """Keep the rows for which `p(row)` is true (docs/expressions.md says what counts as true); lifetimes and CTIs stay.

        `p` is a lambda over the row, or over the row and its lifetime, or an expression written with `sd.col`.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, 10), (3, 9, 4)]).where(lambda e: e > 5).run().cht()
        CHT
          [1, 5) 10
        """
        return self._over(algebra.Where(self._node, building.row_expression(p, self._node.schema)))

    @overload
    def select(self, f: Callable[[T], U], /) -> Stream[U]: ...
    @overload
    def select(self, f: Callable[[T, Lifetime], U], /) -> Stream[U]: ...
    @overload
    def select(self, f: Callable[[T], dict[str, Any]], /) -> Stream[Record]: ...  # type: ignore[overload-cannot-match]
    @overload
    def select(self, /, **fields: Callable[[T], object]) -> Stream[Record]: ...
    @overload
    def select(self, /, **fields: Callable[[T, Lifetime], object]) -> Stream[Record]: ...
    def select(self, f: Any = None, /, **fields: Any) -> Any:
        """Replace each payload by what the lambda builds of it, or by a record of named fields; lifetimes and CTIs stay.

        >>> import streamdsl as sd
        >>> quotes = sd.from_rows([(1, 5, {"bid": 10, "ask": 12})])
        >>> quotes.select(mid=lambda e: (e.bid + e.ask) / 2).run().cht()
        CHT
          [1, 5) mid=11.0
        >>> quotes.select(lambda e: e.ask - e.bid).run().cht()
        CHT
          [1, 5) 2
        """
        if (f is None) == (not fields):
            raise QueryError(
                "select takes one lambda, or named ones", hint="for example select(mid=lambda e: (e.bid + e.ask) / 2)"
            )
        schema = self._node.schema
        projection = building.row_expression(f, schema) if f is not None else building.record(fields, schema)
        return self._over(algebra.Select(self._node, projection))

    def select_many(self, f: Callable[[T], Iterable[U]]) -> Stream[U]:
        """Give one row for each item of what the lambda returns, with the lifetime of its row; CTIs stay.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, {"tags": ["x", "y"]})]).select_many(lambda e: e.tags).run().cht()
        CHT
          [1, 5) 'x'
          [1, 5) 'y'
        """
        return self._over(algebra.SelectMany(self._node, building.row_expression(f, self._node.schema, life=False, yields=True)))

    @overload
    def alter_lifetime(
        self, start: Callable[[T], int] | TimeLike | None = None, duration: Callable[[T], int] | DurationLike | None = None
    ) -> Stream[T]: ...
    @overload
    def alter_lifetime(
        self, start: Callable[[T, Lifetime], int], duration: Callable[[T], int] | DurationLike | None = None
    ) -> Stream[T]: ...
    @overload
    def alter_lifetime(
        self, start: Callable[[T], int] | TimeLike | None = None, *, duration: Callable[[T, Lifetime], int]
    ) -> Stream[T]: ...
    @overload
    def alter_lifetime(self, start: Callable[[T, Lifetime], int], duration: Callable[[T, Lifetime], int]) -> Stream[T]: ...
    def alter_lifetime(self, start: Any = None, duration: Any = None) -> Any:
        """Make each lifetime `[start, start + duration)`; without `start` LE stays, and a duration <= 0 drops the row.

        Both are constants or lambdas over the row, or over the row and its lifetime, that give ticks. CTIs pass on if LE is kept
        and the duration does not read RE; otherwise there is none before the last.

            time      0         10        20
            row           [-----------)
            out             [----)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, 3), (2, 6, 0)]).alter_lifetime(lambda e, life: life.le + 10, lambda e: e).run().cht()
        CHT
          [11, 14) 3
        """
        if duration is None:
            raise QueryError(
                "alter_lifetime needs a duration",
                hint="for example alter_lifetime(start=lambda e, life: life.re, duration=1); shift(d) keeps durations",
            )
        node = in_calendar(self._node, start, duration)
        unit = node.unit
        moved = None if start is None else building.start(start, node.schema, unit)
        return self._over(algebra.alter_lifetime(node, moved, building.duration(duration, node.schema, unit)))

    @overload
    def alter_duration(self, d: Callable[[T], int] | DurationLike) -> Stream[T]: ...
    @overload
    def alter_duration(self, d: Callable[[T, Lifetime], int]) -> Stream[T]: ...
    def alter_duration(self, d: Any) -> Any:
        """Keep LE and make RE = LE + duration: a constant, or ticks computed from the row; a duration <= 0 drops the row.

        CTIs pass on unless the duration reads RE.

            time      0         10        20
            rows        [-----------)  [-)
            5           [----)         [----)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 2, "a"), (4, 5, "b")]).alter_duration(10).run().cht()
        CHT
          [1, 11) 'a'
          [4, 14) 'b'
        """
        return self.alter_lifetime(duration=d)

    def shift(self, d: DurationLike) -> Stream[T]:
        """Move LE, RE and the CTIs by a duration, which may be negative.

            time      0         10        20
            row         [------)
            shift 5          [------)

        >>> import streamdsl as sd
        >>> sd.from_rows([(11, 15, "a")]).shift(-10).run().cht()
        CHT
          [1, 5) 'a'
        """
        node = in_calendar(self._node, d)
        return self._over(algebra.shift(node, to_duration(d, node.unit)))

    def to_points(self) -> Stream[T]:
        """Make each row the point `[LE, LE + 1)`; CTIs stay.

            time      0         10        20
            rows        [------)  [-------)
            out         |         |

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, "a")]).to_points().run().cht()
        CHT
          [1, 2) 'a'
        """
        return self._over(algebra.alter_duration(self._node, CHRONON))

    def to_edges(self, key: By[T] | None = None) -> Stream[T]:
        """Let each row live until the next strictly later LE of the same key, else for ever: samples become a signal. CTIs stay.

            time      0         10        20
            rows        |      |    |
            out         [------)
                               [----)
                                    [------->

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 2, 20.5), (4, 5, 21.0)]).to_edges().run().cht()
        CHT
          [1, 4) 20.5
          [4, inf) 21.0
        """
        return self._over(algebra.ToEdges(self._node, None if key is None else building.key(key, self._node.schema)))

    def clip_interval(self, lo: TimeLike, hi: TimeLike) -> Stream[T]:
        """Intersect each lifetime with `[lo, hi)`; rows outside vanish, CTIs stay. Raises `QueryError` where lo > hi.

            time      0         10        20
            rows        [------)  [-------)
            5 to 15        [---)  [--)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, "a"), (8, 9, "b")]).clip_interval(3, 7).run().cht()
        CHT
          [3, 5) 'a'
        """
        node = in_calendar(self._node, lo, hi)
        return self._over(algebra.clip_interval(node, to_ticks(lo, node.unit), to_ticks(hi, node.unit)))

    def to_points_at_end(self) -> Stream[T]:
        """Make each row the point `[RE, RE + 1)`; a row without end gives none, CTIs stay.

            time      0         10        20
            rows        [------)  [-------)
            out                |          |

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, "a"), (2, sd.INFINITY, "b")]).to_points_at_end().run().cht()
        CHT
          [5, 6) 'a'
        """
        return self._over(algebra.to_points_at_end(self._node))

    def extend(self, d: DurationLike) -> Stream[T]:
        """Move RE by a duration; a negative one shortens, and a row whose RE would not be after its LE vanishes.

        The CTI stays, or moves by a negative duration: until then a row that ends at the CTI may be lengthened.

            time      0         10        20
            row         [------)
            by 5        [-----------)
            by -4       [--)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, "a"), (2, 4, "b")]).extend(-2).run().cht()
        CHT
          [1, 3) 'a'
        """
        node = in_calendar(self._node, d)
        return self._over(algebra.extend(node, to_duration(d, node.unit)))

    def clip_duration(self, d: DurationLike) -> Stream[T]:
        """Make RE no later than LE + a duration, which drops all rows if it is <= 0; CTIs stay.

            time      0         10        20
            rows        [-----------)  [-)
            to 5        [----)         [-)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 9, "a"), (2, 4, "b")]).clip_duration(3).run().cht()
        CHT
          [1, 4) 'a'
          [2, 4) 'b'
        """
        node = in_calendar(self._node, d)
        return self._over(algebra.clip_duration(node, to_duration(d, node.unit)))

    def quantize(self, size: DurationLike, period: DurationLike, offset: DurationLike = 0) -> Stream[T]:
        """Move LE down and RE up to a grid: to the windows `[offset + k * period, + size)`, from the last that starts by LE.

            time        0         10        20        30
            rows              [--)   [--------)
            10, 10      [---------)
                                  [-------------------)

        RE becomes the first end of a window that is neither before RE nor less than a size after the new LE. The CTI goes down to
        the grid. Raises `QueryError` for a size or a period <= 0.

        >>> import streamdsl as sd
        >>> rows = sd.from_rows([(6, 9, "a"), (13, 22, "b")])
        >>> rows.quantize(10, 10).run().cht()
        CHT
          [0, 10) 'a'
          [10, 30) 'b'
        >>> rows.quantize(10, 5).run().cht()
        CHT
          [5, 15) 'a'
          [10, 25) 'b'
        """
        node = in_calendar(self._node, size, period, offset)
        ticks = [to_duration(d, node.unit) for d in (size, period, offset)]
        return self._over(algebra.quantize(node, *ticks))

    @overload
    def distinct(self, f: Callable[[T], U]) -> Stream[U]: ...
    @overload
    def distinct(self) -> Stream[T]: ...
    def distinct(self, f: Any = None) -> Any:
        """Give each value of `f` (by default each payload) once, for the time that some row has it, as maximal pieces; CTIs stay.

            time    0    5    10
            A       [----)
            A          [-----)
            out     [--------)

        >>> import streamdsl as sd
        >>> visits = sd.from_rows([(0, 5, {"zone": "A"}), (3, 9, {"zone": "A"}), (4, 6, {"zone": "B"})])
        >>> visits.distinct(lambda e: e.zone).run().cht()
        CHT
          [0, 9) 'A'
          [4, 6) 'B'
        """
        values = self if f is None else self.select(f)
        return self._over(algebra.Distinct(values._node))

    def chop(self, period: DurationLike, offset: DurationLike = 0) -> Stream[T]:
        """Cut each row at every time `offset + k * period`. CTIs stay.

            time    0         10        20
            row       [-----------------------)
            out       [-------)[--------)[----)

        The pieces come as tumbling windows do: those between two cuts when the high water, the largest LE or CTI, reaches the
        first. A row that never ends needs a run that is bounded, else it raises `UnboundedOutputError`. `stitch()` undoes it.

        >>> import streamdsl as sd
        >>> sd.from_rows([(2, 26, "a")]).chop(10).run().cht()
        CHT
          [2, 10) 'a'
          [10, 20) 'a'
          [20, 26) 'a'
        """
        node = in_calendar(self._node, period, offset)
        size, start = (to_duration(d, node.unit) for d in (period, offset))
        if size <= 0:
            raise QueryError(f"chop cuts rows at multiples of a positive period, not of {period!r}", hint="chop(10), chop('1m')")
        return self._over(algebra.Chop(node, Hopping(size, size, start)))

    @overload
    def scan(self, module: UDSO[T, Any, U]) -> Stream[U]: ...
    @overload
    def scan(self, module: Callable[[], UDSO[T, Any, U]]) -> Stream[U]: ...
    def scan(self, module: Any) -> Any:
        """Give what a stream operator makes of each row in order of (LE, payload, RE) and of the state after the rows before it.

        Results have their row's lifetime; CTIs stay. A row that comes late, or goes, has all after it in its group computed anew.
        A group's state is kept for ever, unless the module says that it is empty. Raises `QueryError` for what is none.

        >>> import streamdsl as sd
        >>> from streamdsl.udm import UDSO
        >>> class Total(UDSO[float, float, float]):
        ...     def create_state(self) -> float:
        ...         return 0.0
        ...     def process(self, state: float, payload: float, le: int) -> tuple[float, list[float]]:
        ...         return state + payload, [state + payload]
        >>> sd.from_rows([(1, 5, 2.0), (7, 8, 1.0), (3, 4, 4.0)]).scan(Total).run().cht()
        CHT
          [1, 5) 2.0
          [3, 4) 6.0
          [7, 8) 7.0
        """
        return self._over(algebra.Scan(self._node, building.stream_operator(module)))

    def throttle(self, period: DurationLike, key: By[T] | None = None) -> Stream[T]:
        """Let a row pass if its LE is at least `period` after that of the last row of the same key that passed; drop the others.

            time      0         10        20
            rows      [---)
                        [---)  [---)
                                 [---)
            by 5      [---)    [---)

        Rows are taken in order of (LE, payload, RE): of those with the same LE and key only the first can pass. Lifetimes and
        CTIs stay. A row that comes late, or goes, has all after it of its key decided anew. Of each key the LE of the last row
        that passed is kept until the CTI is `period` after it. Raises `QueryError` for a period that is not positive.

        >>> import streamdsl as sd
        >>> alarms = sd.from_rows([(1, 3, {"id": "x"}), (2, 4, {"id": "y"}), (5, 7, {"id": "x"}), (6, 8, {"id": "x"})])
        >>> alarms.throttle(5, key="id").run().cht()
        CHT
          [1, 3) id='x'
          [2, 4) id='y'
          [6, 8) id='x'
        """
        timed = self._timed(period)
        module = Throttle(to_duration(period, timed._unit))
        return timed._over(algebra.Scan(timed._node, module)) if key is None else timed._sieved(key, module)

    def drop_duplicates(
        self, key: By[T] | None = None, *, within: DurationLike | None = None, order: By[T] | None = None
    ) -> Stream[T]:
        """Keep the first row of each key, and drop later ones that start less than `within` after the last row kept (None: all).

            time         0         10        20
            rows         [-A-)
                           [-A-)   [-A-)
                             [-B-)
            within 8     [-A-) [-B-)
                                   [-A-)

        Rows are taken in order of (LE, payload, RE); with `order`, as a sequence number, of (LE, order, payload, RE). The order
        in which they came is no part of what a stream means. `key` is by default the payload. Lifetimes and CTIs stay, where
        `distinct` joins lifetimes. When a row that was kept goes, or an earlier one comes, those after it of its key are decided
        anew. A key is remembered until the CTI is `within` after its last row kept; without `within`, for ever. Raises
        `QueryError` for a duration that is not positive.

        >>> import streamdsl as sd
        >>> sent = sd.from_rows([(1, 2, {"id": "x", "try": 1}), (4, 5, {"id": "y", "try": 1}), (6, 7, {"id": "x", "try": 2})])
        >>> sent.drop_duplicates("id").run().cht()
        CHT
          [1, 2) id='x' try=1
          [4, 5) id='y' try=1
        >>> len(sent.drop_duplicates("id", within=5).run())
        3
        """
        timed = self._timed(within)
        module = OnlyFirst() if within is None else Unrepeated(to_duration(within, timed._unit))
        ordered = None if order is None else building.key(order, timed._node.schema)
        return timed._sieved((lambda e: e) if key is None else key, module, ordered)

    @overload
    def fill(
        self: Stream[Record],
        every: DurationLike,
        value: Mapping[str, object],
        *,
        start: TimeLike | None = None,
        end: TimeLike = INFINITY,
        offset: DurationLike = 0,
    ) -> Stream[Record]: ...
    @overload
    def fill(
        self: Stream[U],
        every: DurationLike,
        value: U,
        *,
        start: TimeLike | None = None,
        end: TimeLike = INFINITY,
        offset: DurationLike = 0,
    ) -> Stream[U]: ...
    def fill(self, every: Any, value: Any, *, start: Any = None, end: Any = INFINITY, offset: Any = 0) -> Any:
        """Add a row with `value` for the time in which there is none, cut at every time `offset + k * every`.

        From `start` (None: from the first row, as in a group always) until `end`. A cell is filled when the CTI reaches it; CTIs
        stay. Raises `QueryError` for a value with other fields, `UnboundedOutputError` where a run without `until` has no `end`.

            time    0         10        20        30
            counts  [---3----)          [---1----)
            out     [---3----)[---0----)[---1----)

        >>> import streamdsl as sd
        >>> counts = sd.from_rows([(3, 4, "a"), (25, 26, "b")]).tumbling_window(10).aggregate(n=sd.count())
        >>> counts.fill(10, {"n": 0}, end=40).run().cht()
        CHT
          [0, 10) n=1
          [10, 20) n=0
          [20, 30) n=1
          [30, 40) n=0
        """
        timed = self._timed(every, offset, *(time for time in (start, end) if time is not None))
        length, shift = (to_duration(d, timed._unit) for d in (every, offset))
        first = None if start is None else to_ticks(start, timed._unit)
        cells = Hopping(length, length, shift)
        return timed._over(
            derived.fill(timed._node, building.constant(value, timed._node.schema), cells, first, to_ticks(end, timed._unit))
        )

    def stitch(self) -> Stream[T]:
        """Make rows with equal payloads that meet, one's RE the other's LE, one row: undo what divides lifetimes. CTIs stay.

            time    0    5    10
            rows    [----)[---)
                       [--)
            out     [---------)
                       [--)

        Where several end, in order of LE, and several start, in order of RE, they are joined one to one.

        >>> import streamdsl as sd
        >>> sd.from_rows([(0, 5, "a"), (5, 9, "a"), (3, 5, "a"), (9, 12, "b")]).stitch().run().cht()
        CHT
          [0, 9) 'a'
          [3, 5) 'a'
          [9, 12) 'b'
        """
        return self._over(algebra.Stitch(self._node))

    # Patterns.

    @overload
    def match(
        self, pattern: Callable[[Steps[T]], Pattern[Any]], *, by: By[T] | None = None, overlapping: bool = False
    ) -> Stream[Record]: ...
    @overload
    def match(
        self,
        pattern: Callable[[Steps[T]], Pattern[Any]],
        *,
        by: By[T] | None = None,
        overlapping: bool = False,
        select: Callable[[Record], V],
    ) -> Stream[V]: ...
    def match(self, pattern: Any, *, by: Any = None, overlapping: bool = False, select: Any = None) -> Any:
        """Give the matches of a pattern of events, in order of LE, for each key by itself: see docs/patterns.md.

            time     0    5    10   15
            events   a b  b  c
            match            [---)      a, then b+, then c, within 12

        A match lives from the LE of its last event until `within` after the LE of its first; no RE plays a part. It is a record
        of the steps: of each the payload that it took, None if it was left out, of a many step a tuple. `select` makes its
        payload of that record. A match of a key begins after the last event of the one before; with `overlapping` every
        instant may begin one. CTIs stay. Raises `QueryError` for a pattern without `within`, or whose last step is many or
        optional.

        >>> import streamdsl as sd
        >>> prices = sd.from_rows([(t, t + 1, {"price": p}) for t, p in [(1, 10), (3, 12), (4, 9), (6, 8), (9, 11)]])
        >>> prices.match(
        ...     lambda p: p.top.then(p.falls.many().where(lambda e, m: e.price < m.top.price))
        ...     .then(p.back.where(lambda e, m: e.price > m.falls[-1].price))
        ...     .within(10),
        ...     select=lambda m: (m.top.price, m.back.price),
        ... ).run().cht()
        CHT
          [9, 11) _0=10 _1=11
        """
        written = traced(pattern, self._node.schema)
        timed = self._timed(written.within)
        key = None if by is None else building.key(by, self._node.schema)
        within = to_duration(written.within, timed._unit)
        found = timed._over(algebra.Match(timed._node, written.steps, within, key, written.unless, overlapping))
        return found if select is None else found.select(select)

    # Combining streams.

    def union(self, *others: Stream[U]) -> Stream[T | U]:
        """Give all rows of all inputs; the CTI is the smallest of theirs. Raises `UnitError` where the units of time differ.

            time      0         10        20
            left        [------)
            right          [--------)
            out         [------)
                           [--------)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, "a")]).union(sd.from_rows([(3, 9, "b")])).run().cht()
        CHT
          [1, 5) 'a'
          [3, 9) 'b'
        """
        return self._over(algebra.Union((self._node, *(_stream(other)._node for other in others))), *others)

    @overload
    def join(self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None) -> Stream[tuple[T, U]]: ...
    @overload
    def join(
        self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None, *, select: Callable[[T, U], V]
    ) -> Stream[V]: ...
    def join(self, other: Any, on: Any = None, where: Any = None, *, select: Any = None) -> Any:
        """Give every matching pair for the time that both rows live; the CTI is the smaller of the two.

        `on` is a field name, a list of names, a pair of lambdas for the left and the right key, or absent; `where` is a condition
        over both rows. The payload is the pair `(l, r)`, or what `select` makes of it. With neither `on` nor `where` it is a
        cross join, of all that lives at the same time; one that makes very many pairs warns (`errors.CrossJoinWarning`).

            time      0         10        20
            left        [---------)
            right          [---)[-------)
            pairs          [---)[-)

        >>> import streamdsl as sd
        >>> trades = sd.from_rows([(3, 4, {"symbol": "A", "n": 5}), (8, 9, {"symbol": "A", "n": 1})])
        >>> quotes = sd.from_rows([(1, 6, {"symbol": "A", "bid": 10})])
        >>> trades.join(quotes, on="symbol", select=lambda t, q: t.n * q.bid).run().cht()
        CHT
          [3, 4) 50
        """
        return self._over(algebra.Join(*self._joined(other, on, where, select)), other)

    @overload
    def left_join(
        self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None
    ) -> Stream[tuple[T, U | None]]: ...
    @overload
    def left_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        select: Callable[[T, U | None], V],
    ) -> Stream[V]: ...
    def left_join(self, other: Any, on: Any = None, where: Any = None, *, select: Any = None) -> Any:
        """Give what `join` does, and each left row for the time that it has no match, as maximal pieces, with None for the right.

        The CTI is the smaller of the two. `select` is given None for the missing row too.

            time      0         10        20
            left        [---------)
            right          [---)
            pair           [---)
            alone       [--)   [--)

        >>> import streamdsl as sd
        >>> machines = sd.from_rows([(1, 10, {"id": "x"})])
        >>> jobs = sd.from_rows([(3, 5, {"id": "x", "job": "drill"})])
        >>> machines.left_join(jobs, on="id", select=lambda m, j: (m.id, j.job if j else "idle")).run().cht()
        CHT
          [1, 3) _0='x' _1='idle'
          [3, 5) _0='x' _1='drill'
          [5, 10) _0='x' _1='idle'
        """
        return self._over(derived.left_join(*self._joined(other, on, where, select)), other)

    @overload
    def full_join(
        self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None
    ) -> Stream[tuple[T | None, U | None]]: ...
    @overload
    def full_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        select: Callable[[T | None, U | None], V],
    ) -> Stream[V]: ...
    def full_join(self, other: Any, on: Any = None, where: Any = None, *, select: Any = None) -> Any:
        """Give what `left_join` does, and each right row for the time that it has no match, with None for the left.

        The CTI is the smaller of the two.

            time      0         10        20
            left        [---------)
            right             [---------)
            pair              [---)
            alone       [-----)   [-----)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 4, "a")]).full_join(sd.from_rows([(3, 6, "b")])).run().cht()
        CHT
          [1, 3) _0='a' _1=None
          [3, 4) _0='a' _1='b'
          [4, 6) _0=None _1='b'
        """
        return self._over(derived.full_join(*self._joined(other, on, where, select)), other)

    def anti_join(self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None) -> Stream[T]:
        """Give each left row for the time that no matching right row lives, as maximal pieces; `on` and `where` as for `join`.

        The CTI is the smaller of the two.

            time      0         10        20
            left        [-----------)
            right          [---)
            out         [--)   [----)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 10, "busy")]).anti_join(sd.from_rows([(3, 5, "pause")])).run().cht()
        CHT
          [1, 3) 'busy'
          [5, 10) 'busy'
        """
        right = _stream(other)._node
        return self._over(algebra.AntiJoin(self._node, right, self._matching(right, on, where)), other)

    @overload
    def band_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        before: DurationLike,
        after: DurationLike,
        time: BandTime = "max",
    ) -> Stream[tuple[T, U]]: ...
    @overload
    def band_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        before: DurationLike,
        after: DurationLike,
        time: BandTime = "max",
        select: Callable[[T, U], V],
    ) -> Stream[V]: ...
    def band_join(
        self,
        other: Any,
        on: Any = None,
        where: Any = None,
        *,
        before: Any,
        after: Any,
        time: BandTime = "max",
        select: Any = None,
    ) -> Any:
        """Pair rows that start near each other: the right LE in `[left LE - before, left LE + after]`, whatever their REs.

        A pair is a point at the later of both LEs, or by `time` at the earlier, `"min"`, at the `"left"` or at the `"right"` one;
        by `"both"` it lives from the one to the other, `[earlier, later + 1)`, and so keeps both times. The CTI is the smaller of
        the two; by `"left"` it is `after`, by `"right"` `before` earlier, as the other row may come so much later, by `"min"` and
        `"both"` the larger of them. Either bound may be negative; raises `QueryError` for an empty band.

            time     0    5    10
            order        |
            quotes     |  |     |
            -2 to 4    [------]

        >>> import streamdsl as sd
        >>> orders = sd.from_rows([(5, 6, "order")])
        >>> quotes = sd.from_rows([(3, 4, "a"), (6, 7, "b"), (12, 13, "c")])
        >>> orders.band_join(quotes, before=2, after=4).run().cht()
        CHT
          [5, 6) _0='order' _1='a'
          [6, 7) _0='order' _1='b'
        """
        timed = self._timed(before, after)
        lo, hi = (to_duration(d, timed._unit) for d in (before, after))
        return timed._over(derived.band_join(*timed._joined(other, on, where, select), lo, hi, time), other)

    @overload
    def asof_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        tolerance: DurationLike | None = None,
        how: Literal["inner"] = "inner",
        direction: Direction = "back",
        ties: Ties = "all",
    ) -> Stream[tuple[T, U]]: ...
    @overload
    def asof_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        tolerance: DurationLike | None = None,
        how: Literal["left"],
        direction: Direction = "back",
        ties: Ties = "all",
    ) -> Stream[tuple[T, U | None]]: ...
    @overload
    def asof_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        tolerance: DurationLike | None = None,
        how: Literal["inner"] = "inner",
        direction: Direction = "back",
        ties: Ties = "all",
        select: Callable[[T, U], V],
    ) -> Stream[V]: ...
    @overload
    def asof_join(
        self,
        other: Stream[U],
        on: On[T, U] | None = None,
        where: Condition[T, U] | None = None,
        *,
        tolerance: DurationLike | None = None,
        how: Literal["left"],
        direction: Direction = "back",
        ties: Ties = "all",
        select: Callable[[T, U | None], V],
    ) -> Stream[V]: ...
    def asof_join(
        self,
        other: Any,
        on: Any = None,
        where: Any = None,
        *,
        tolerance: Any = None,
        how: Literal["inner", "left"] = "inner",
        direction: Direction = "back",
        ties: Ties = "all",
        select: Any = None,
    ) -> Any:
        """Give each left row with the matching right rows that last started by its LE: those of the greatest LE <= left LE.

            time     0    5    10
            quotes   a    b     c
            trade            |
            pair             (trade, b)

        The left lifetime stays, and the right one plays no part. Right rows that start together all match; with `ties="last"` the
        last by payload of those that do, whatever the order in which they came. `tolerance` is the longest time between both LEs.
        A left row without a match is dropped or, by `how="left"`, paired with None. `direction="forward"` looks for the smallest
        LE >= left LE, `"nearest"` both ways, of two as near back. The CTI is the smaller of the two; where it looks forward, no
        later than the first left LE for which a nearer row may still come: give a tolerance. With `where` and no tolerance no
        right row is ever forgotten.

        >>> import streamdsl as sd
        >>> quotes = sd.from_rows([(0, 1, 10.0), (5, 6, 11.5), (5, 6, 11.0), (11, 12, 12.0)])
        >>> trades = sd.from_rows([(8, 9, "buy"), (11, 12, "sell")])
        >>> trades.asof_join(quotes, ties="last").run().cht()
        CHT
          [8, 9) _0='buy' _1=11.5
          [11, 12) _0='sell' _1=12.0
        """
        if how not in ("inner", "left"):
            raise QueryError(f'how is "inner" or "left", not {how!r}', hint='how="left" keeps the rows that match nothing')
        timed = self._timed(tolerance)
        longest = INFINITY if tolerance is None else to_duration(tolerance, timed._unit)
        left, right, matching, projection = timed._joined(other, on, where, select)
        node = algebra.AsofJoin(left, right, matching, projection, Nearness(direction, longest), how == "left", ties)
        return timed._over(node, other)

    def semi_join(self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None) -> Stream[T]:
        """Give each left row for the time that some matching right row lives, as maximal pieces; `on` and `where` as for `join`.

        The CTI is the smaller of the two.

            time      0         10        20
            left        [-----------)
            right          [---)
                             [---)
            out            [-----)

        >>> import streamdsl as sd
        >>> lit = sd.from_rows([(3, 5, "lamp"), (4, 7, "moon")])
        >>> sd.from_rows([(1, 6, "reading")]).semi_join(lit).run().cht()
        CHT
          [3, 6) 'reading'
        """
        right = _stream(other)._node
        return self._over(algebra.SemiJoin(self._node, right, self._matching(right, on, where)), other)

    def clip_by(self, other: Stream[U], on: On[T, U] | None = None, where: Condition[T, U] | None = None) -> Stream[T]:
        """End each left row at the first matching right LE strictly after its own LE; `on` and `where` as for `join`.

        The CTI is the smaller of the two.

            time      0         10        20
            left        [-----------)
            right       [--)   [--)
            out         [------)

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 10, "on")]).clip_by(sd.from_rows([(1, 2, "off"), (6, 7, "off")])).run().cht()
        CHT
          [1, 6) 'on'
        """
        right = _stream(other)._node
        return self._over(algebra.ClipBy(self._node, right, self._matching(right, on, where)), other)

    def multicast(self, f: Callable[[Stream[T]], U]) -> U:
        """Return what `f` builds of this stream, which it may use more than once.

        >>> import streamdsl as sd
        >>> late = sd.from_rows([(1, 5, "a")]).multicast(lambda s: s.union(s.shift(10)))
        >>> late.run().cht()
        CHT
          [1, 5) 'a'
          [11, 15) 'a'
        """
        return building.callable_given(f, "multicast", "multicast(lambda s: s.union(s.shift(10)))")(self)

    # Grouping.

    @overload
    def group_by(self, key: Callable[[T], U]) -> GroupedStream[U, T]: ...
    @overload
    def group_by(self, key: str) -> GroupedStream[Any, T]: ...
    @overload
    def group_by(self, key: Sequence[str]) -> GroupedStream[Record, T]: ...
    def group_by(self, key: Any) -> Any:
        """Divide the stream by a key: a lambda, a field name, or a list of names (the key is then a record).

        Windows and `apply` then run for each key by itself.

        >>> import streamdsl as sd
        >>> trips = sd.from_rows([(1, 2, {"zone": "A"}), (3, 4, {"zone": "A"}), (5, 6, {"zone": "B"})])
        >>> trips.group_by("zone").tumbling_window(10).aggregate(n=sd.count()).run().cht()
        CHT
          [0, 10) zone='A' n=2
          [0, 10) zone='B' n=1
        """
        return GroupedStream(self, building.key(key, self._node.schema))

    def bind(self, **named: Any) -> Stream[T]:
        """Give parameters (`sd.functions.param`) their values, and named sources their inputs: data, or other queries.

        A query in the place of a source is read as if the source were fed with its output: its LEs, REs and CTIs. Both then run
        as one plan. Raises `QueryError` for a name that is neither a source nor a parameter, and for a value of another type,
        and `SchemaError` or `UnitError` for a query that is not what the source declares.

        >>> import streamdsl as sd
        >>> limit = sd.functions.param("limit", int)
        >>> dear = sd.source("fares").where(lambda e: e > limit)
        >>> fares = sd.from_rows([(1, 2, 7), (3, 4, 12)])
        >>> dear.bind(limit=10, fares=fares.shift(100)).run().cht()
        CHT
          [103, 104) 12
        >>> dear.bind(limit=5, fares=[(1, 2, 7)]).run().cht()
        CHT
          [1, 2) 7
        """
        from streamdsl.query_binding import bind

        queries = {name: (value._node, value._bindings) for name, value in named.items() if isinstance(value, Stream)}
        return Stream(*bind((self._node, self._bindings), named, queries))

    # Running.

    def run(
        self,
        bindings: Mapping[str, Any] | None = None,
        engine: EngineName = "local",
        until: TimeLike | None = None,
        engine_options: Mapping[str, Any] | None = None,
        workers: int | None = None,
    ) -> Result[T]:
        """Run the query over its bounded inputs, to `Cti(INFINITY)` or to `Cti(until)`, and return the result.

        `bindings` gives each named source a list of events or a frame. With `workers` the local engine runs in so many processes
        of this machine (docs/workers.md); LEs, REs and CTIs are the same. Raises `QueryError` for an unknown engine, an unbound
        source, a name that is no source, or a query that cannot be cut for workers, and `WorkerError` for one that is gone.

        >>> import streamdsl as sd
        >>> query = sd.source("numbers").where(lambda e: e > 5)
        >>> query.run({"numbers": [sd.point("a", 1, 7), sd.point("b", 2, 3)]}).cht()
        CHT
          [1, 2) 7
        """
        from streamdsl import running

        return running.run(self._node, self._bindings, bindings, engine, until, engine_options, workers)

    def trace(
        self,
        bindings: Mapping[str, Any] | None = None,
        *,
        until: TimeLike | None = None,
        last: int | None = None,
        sample: tuple[float, Any] | None = None,
        engine_options: Mapping[str, Any] | None = None,
    ) -> EventTrace:
        """Run the query over its bounded inputs as `run` does, and record it: the trace says where each answer comes from.

        Events come in one by one, of several inputs the earliest sync time first. `last` and `sample` bound what is recorded, as
        in `session.trace`. Raises what `run` raises. docs/debugger.md says what `why`, `effects` and `why_not` answer.

        >>> import streamdsl as sd
        >>> dear = sd.source("trips").where(lambda e: e > 5).tumbling_window(10).aggregate(dearest=sd.max(lambda e: e))
        >>> trace = dear.trace({"trips": [(1, 2, 7), (3, 4, 12), (5, 6, 3)]})
        >>> print(trace.why((0, 10, {"dearest": 12})))
        [0, 10) dearest=12  <- window_aggregate_1: [0, 10) 2 rows in a window, tumbling(10)
           max over 2 rows gave 12
           [1, 2) 7  <- where_1: e > 5
              [1, 2) 7  <- source:trips: insert 0 [1, 2)  (possible: another could take its place)
           [3, 4) 12  <- where_1: e > 5
              [3, 4) 12  <- source:trips: insert 1 [3, 4)
        """
        from streamdsl import running

        return running.trace(self._node, self._bindings, bindings, until, last, sample, engine_options)

    def open(
        self,
        emit: EmitMode | Emit = "speculative",
        *,
        engine_options: Mapping[str, Any] | None = None,
        workers: int | None = None,
    ) -> Session[T]:
        """Start a session: events are pushed into it, and each push returns the output that it causes.

        With `workers` its operators run in so many processes of this machine (docs/workers.md); LEs, REs and CTIs are the same.
        Raises `QueryError` for a query that cannot be cut for them; a push raises `WorkerError` where one is gone.

        >>> import streamdsl as sd
        >>> session = sd.source("numbers").where(lambda e: e > 5).open()
        >>> session.push([sd.point("a", 1, 7), sd.Cti(4)])
        [Insert(id='a', le=1, re=2, payload=7), Cti(time=4)]
        """
        from streamdsl import running

        return running.open_session(self._node, self._bindings, emit, engine_options, workers)

    def restore(
        self,
        path: str | os.PathLike[str],
        *,
        trust: bool = False,
        types: Iterable[type] = (),
        workers: int | None = None,
    ) -> Session[T]:
        """Go on with a session that `session.checkpoint(path)` has saved: its output is the same as if it had never stopped.

        The query must be the one that was saved; the way to emit and the engine's options come from the file. Values of users'
        classes are restored of those that the query declares, and of `types`. `trust=True` takes any class that is loaded, and
        loads pickled values too, which can run any code: only for files from people you trust. Raises `CheckpointError` for a
        file that is damaged, of another query or version, or that holds what is not trusted (docs/checkpoints.md). What a session
        with workers has saved goes on with any number of `workers`.

        >>> import streamdsl as sd, tempfile
        >>> query = sd.source("numbers").where(lambda e: e > 5)
        >>> session = query.open(emit="final")
        >>> session.push([sd.interval("a", 1, 9, 7)])
        []
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     session.checkpoint(f"{folder}/numbers")
        ...     again = query.restore(f"{folder}/numbers")
        >>> again.push([sd.Cti(20)])
        [Insert(id='a', le=1, re=9, payload=7), Cti(time=20)]
        """
        from streamdsl import running

        return running.restore_session(self._node, self._bindings, path, trust, types, workers)

    def stream(
        self,
        events: AsyncIterable[Any],
        *,
        emit: EmitMode | Emit = "speculative",
        engine_options: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Event[T]]:
        """Push the events of an asynchronous source one by one and yield the output; where it ends, `Cti(INFINITY)` follows.

        >>> import asyncio
        >>> import streamdsl as sd
        >>> async def numbers():
        ...     for id, value in [("a", 7), ("b", 3), ("c", 9)]:
        ...         yield sd.point(id, value, value)
        >>> async def main():
        ...     query = sd.source("numbers").where(lambda e: e > 5)
        ...     return [event async for event in query.stream(numbers())]
        >>> [event.id for event in asyncio.run(main()) if isinstance(event, sd.Insert)]
        ['a', 'c']
        """
        return self.open(emit, engine_options=engine_options).stream(events)

    def serve(
        self,
        sources: connect.Source | Mapping[str, connect.Source],
        sinks: connect.Sink | Sequence[connect.Sink] | Mapping[EmitMode | Emit, connect.Sink | Sequence[connect.Sink]],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: int | str | timedelta = "1s",
        emit: EmitMode | Emit = "speculative",
        once: bool = False,
        dead_letters: connect.Sink | None = None,
        late: connect.Sink | None = None,
        watch: Callable[[Mapping[str, Any]], None] | Live | None = None,
        metrics: str | Endpoint | Sequence[str | Endpoint] = (),
        workers: int | None = None,
    ) -> connect.Served:
        """Run the query as a job: read sources and write sinks until the sources end, or SIGINT or SIGTERM comes.

        What has come for the duration `every`, or so many rows, is a micro-batch. The folder `checkpoint` keeps the state, the
        positions of the sources and the output of each, so that the same call goes on where it stopped, killed or not; without
        it nothing is kept. A source that ends gives `Cti(INFINITY)`; with `once` the job ends when nothing is there just now, and
        the next call goes on. A record that is refused goes to `dead_letters`; without that the job ends with `InputError`,
        which names it. Events that a source drops or adjusts (`on_violation`, `max_jump`) go to `late`, each with the CTI that it
        broke. `watch` gets the figures of each micro-batch, or shows them (`streamdsl.monitoring.live()`);
        `metrics="127.0.0.1:9464"` answers Prometheus and probes of health there, `metrics="otel"` tells OpenTelemetry
        (docs/monitoring.md). `sinks={"speculative": table, "final": archive}` gives each its rows in a way of its own, from one
        state. With `workers` operators run in so many processes of this machine (docs/workers.md); answers, LEs, REs and CTIs
        are the same, and so is the checkpoint for any number of them. Raises `QueryError`, `CheckpointError` for a checkpoint of
        another query or job, `SinkError`, `WorkerError` for a worker that is gone (the same call goes on), and what sources and
        functions of the query raise (docs/connectors.md).

        >>> import sqlite3, tempfile
        >>> import streamdsl as sd
        >>> from streamdsl.connect import iterable
        >>> from streamdsl.sinks import DatabaseTable
        >>> query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
        >>> trips = iterable([sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 9})])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = DatabaseTable(lambda: sqlite3.connect(f"{folder}/trips.db"), "trips")
        ...     query.serve(trips, table, checkpoint=f"{folder}/state")
        ...     sqlite3.connect(f"{folder}/trips.db").execute("SELECT le, re, n FROM trips").fetchall()
        Served(end='ended', micro_batches=1, rows_in=2, rows_out=2, bad_records=0, late_events=0)
        [(0, 10, 1), (10, 20, 1)]
        """
        need_pyarrow("the micro-batches that sinks take")
        from streamdsl.connect.serving import serve

        return serve(self, sources, sinks, checkpoint, every, emit, once, dead_letters, late, watch, metrics, workers)

    async def serve_async(
        self,
        sources: connect.Source | Mapping[str, connect.Source],
        sinks: connect.Sink | Sequence[connect.Sink] | Mapping[EmitMode | Emit, connect.Sink | Sequence[connect.Sink]],
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        every: int | str | timedelta = "1s",
        emit: EmitMode | Emit = "speculative",
        once: bool = False,
        dead_letters: connect.Sink | None = None,
        late: connect.Sink | None = None,
        watch: Callable[[Mapping[str, Any]], None] | Live | None = None,
        metrics: str | Endpoint | Sequence[str | Endpoint] = (),
        workers: int | None = None,
    ) -> connect.Served:
        """Do as `serve` does, in a thread of its own, while the event loop goes on; `watch` is called in that thread.

        Where the task is cancelled, the job ends as after a signal, with its checkpoint written, before the cancellation goes on.

        >>> import asyncio
        >>> import streamdsl as sd
        >>> from streamdsl.connect import calling, iterable
        >>> found = []
        >>> query = sd.source("trips").where(lambda e: e.fare > 5)
        >>> trips = iterable([sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 2})])
        >>> asyncio.run(query.serve_async(trips, calling(found.extend))).end
        'ended'
        >>> found
        [Insert(id='a', le=3, re=4, payload=Record(fare=7)), Cti(time=INFINITY)]
        """
        need_pyarrow("the micro-batches that sinks take")
        from streamdsl.connect.serving import in_thread, serve

        return await in_thread(
            partial(serve, self, sources, sinks, checkpoint, every, emit, once, dead_letters, late, watch, metrics, workers)
        )

    def to_pandas(self, start: str = "le", end: str = "re") -> pd.DataFrame:
        """Run the query and return its CHT as a pandas frame: `le`, `re`, and the payload's fields.

        `start` and `end` are other names for the columns of the times, as in `sd.from_pandas`: `frame.le` is a method of pandas.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, {"n": 3})]).to_pandas()[["le", "re", "n"]].values.tolist()
        [[1, 5, 3]]
        >>> frame = sd.from_rows([(1, 5, {"n": 3})]).to_pandas(start="start", end="end")
        >>> frame.start.tolist(), sd.from_pandas(frame, start="start", end="end").run().cht().rows
        ([1], [CHTRow(le=1, re=5, payload=Record(n=3))])
        """
        return self.run().to_pandas(start, end)

    def to_arrow(self, start: str = "le", end: str = "re") -> pa.Table:
        """Run the query and return its CHT as an Arrow table; `start` and `end` name the columns of the times.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, {"n": 3})]).to_arrow().column_names
        ['le', 're', 'n']
        """
        return self.run().to_arrow(start, end)

    def to_polars(self, start: str = "le", end: str = "re") -> pl.DataFrame:
        """Run the query and return its CHT as a polars frame; `start` and `end` name the columns of the times.

        >>> import streamdsl as sd
        >>> sd.from_rows([(1, 5, {"n": 3})]).to_polars().columns
        ['le', 're', 'n']
        """
        return self.run().to_polars(start, end)

    def as_of(
        self,
        profile: Profile,
        bindings: Mapping[str, Any] | None = None,
        *,
        t_app: str | None = None,
        t_sys: str | None = None,
        bid: str | None = None,
    ) -> Trace:
        """Run an aggregation over hopping or tumbling windows as another engine would, and return its trace.

        The source's rows are the tuples, in order of arrival: application time is LE, system time the place, each is a batch,
        unless fields of the source are named for them; a CTI is a heartbeat, unless they are. `where` and `select` come before
        the windows. The profile says where windows start, so their offset does not count. `.outputs` are the payloads, of groups
        the list of them (docs/secret-profiles.md). Raises `QueryError` for other queries.

        >>> import streamdsl as sd
        >>> from streamdsl import secret
        >>> rows = sd.from_rows([(t, t + 1, v) for v, t in [(10, 30), (20, 31), (30, 36), (40, 37)]])
        >>> query = rows.hopping_window(5, 1).aggregate(mean=sd.avg(lambda e: e))
        >>> [payload.mean for payload in query.as_of(secret.CORAL8).outputs]
        [10.0, 15.0, 20.0, 30.0]
        >>> [payload.mean for payload in query.as_of(secret.STREAMBASE).outputs]
        [10.0, 15.0, 15.0, 15.0, 15.0, 20.0, 30.0]
        """
        from streamdsl import running

        return running.as_of(self._node, self._bindings, bindings, profile, (t_app, t_sys, bid))

    def explain(self, engine: EngineName = "local", *, rules: bool = False, workers: int | None = None) -> str:
        """Return the plan as text, as an engine would run it; with `rules` also each step of the optimizer, before and after.

        With `workers` it says below how the plan is cut for them: which stages run there, and which in this process, and why.

        >>> import streamdsl as sd
        >>> print(sd.source("trips").shift(5).explain())
        shift_1 [LE + 5, RE + 5)  <alter_lifetime (columnar)>
        └─ source:trips
        >>> distant = sd.source("trips").to_points().where(lambda e: e.km > 9)
        >>> print(distant.explain(rules=True).partition("step 1: ")[2])
        push_filter_below_lifetimes at where_1, before:
        where_1 e.km > 9 [points]
        └─ alter_lifetime_1 [LE, LE + 1) [points]
           └─ source:trips
        after:
        alter_lifetime_1 [LE, LE + 1) [points]
        └─ where_1 e.km > 9
           └─ source:trips
        """
        from streamdsl import running

        return running.explain(self._node, engine, rules, workers)

    def timeline(
        self, windows: bool = False, bindings: Mapping[str, Any] | None = None, until: TimeLike | None = None
    ) -> Timeline:
        """Run the query over its bounded inputs, and return a picture of them above the output, on one axis of time.

        Lifetimes are bars, points and edges, CTIs lines, and what a retraction has taken away is struck through. With `windows`
        each window operator's windows are between the two, with their members. `print` shows text, Jupyter SVG, and
        `.save("query.svg")` writes it; of many rows it shows how many live when, and some of them (docs/pictures.md).
        `bindings` and `until` are those of `run`. Raises `QueryError` for an unbound source.

        >>> import streamdsl as sd
        >>> trips = sd.from_rows([(1, 5, "A"), (4, 12, "B")])
        >>> trips.tumbling_window(10).aggregate(n=sd.count()).timeline(windows=True)
        time    : 0    5    10   15   20
        input   :
          A     : -[===)
          B     : ----[=======)
        windows :                        # tumbling(10) of window_aggregate_1
          2 rows: [=========)
            A   : -[===)
            B   : ----[=======)
          1 row : ----------[=========)
            B   : ----[=======)
        output  :
          n=2   : [=========)
          n=1   : ----------[=========)
        """
        from streamdsl import query_timeline

        return query_timeline.timeline(self._node, self._bindings, bindings, windows, until)

    def chart(
        self,
        y: str | Sequence[str] | None = None,
        by: str | None = None,
        windows: bool = False,
        bindings: Mapping[str, Any] | None = None,
        until: TimeLike | None = None,
    ) -> altair.VConcatChart:
        """Run the query over its bounded inputs, and return a chart of Altair that zooms: input above output, as in `timeline`.

        With `y`, a numeric field of the output or several, the output is drawn as steps, with a line for each value of the field
        `by` (docs/pictures.md). The others are those of `timeline`. Needs `streamdsl[viz]`; raises `QueryError` for an unbound
        source, and as `Timeline.chart` does.

        >>> import streamdsl as sd
        >>> trips = sd.from_rows([(1, 5, "A"), (4, 12, "B")])
        >>> chart = trips.snapshot_window().aggregate(n=sd.count()).chart(y="n")
        >>> [panel["title"]["text"] for panel in chart.to_dict()["vconcat"]]
        ['input', 'output']
        """
        return self.timeline(windows, bindings, until).chart(y, by)

    def draw(self) -> FlowChart:
        """Return a picture of the plan: `print` shows it as Mermaid text, Jupyter as SVG, and `.save("plan.svg")` writes it.

        >>> import streamdsl as sd
        >>> print(sd.source("trips").shift(5).draw())
        flowchart TD
            n0[("source:trips")]
            n1["<b>shift_1</b><br>[LE + 5, RE + 5)"]
            n0 --> n1
        """
        return self._node.draw()

    def plan(self) -> Node:
        """Return the plan: the immutable algebra that this query is.

        >>> import streamdsl as sd
        >>> sd.source("trips").shift(5).plan().name
        'Shift'
        """
        return self._node

    def to_sql(self) -> str:
        """Return the query as text for `sd.sql`; raises `QueryError` for what the language has no words for.

        >>> import streamdsl as sd
        >>> sd.source("trips").where(lambda e: e.fare > 5).select(zone=lambda e: e.zone).to_sql()
        'SELECT zone FROM (SELECT * FROM trips WHERE fare > 5) AS t'
        """
        from streamdsl.sql.writing import written

        return written(self._node)

    def on_spark(self, spark: Any) -> OnSpark:
        """Return the query on a `SparkSession`: `batch(frame, start="ts")` takes a DataFrame and gives that of the output.

        `start` and `end` name the columns of LE and RE, as in `sd.from_pandas`. `stream(frame)` takes a streaming DataFrame and
        gives one of physical events. Several sources have theirs by name: `batch({"bids": frame, ...})` (docs/spark.md).

        `batch` raises `UnsupportedOnSpark` for what has no Spark form; `explain(engine="spark")` says how each operator runs.

        >>> import streamdsl as sd
        >>> query = sd.source("numbers", int).where(lambda e: e > 5)
        >>> print(query.explain(engine="spark"))
        where_1 e > 5  (value)  <native>
        └─ source:numbers  (value)  <native>
        >>> query.on_spark(spark=None).batch({})
        Traceback (most recent call last):
            ...
        streamdsl.errors.QueryError: the source 'numbers' is bound to nothing; bound are: (none)
        Hint: give a DataFrame: batch({'numbers': frame})
        """
        need_spark()
        from streamdsl.plan.parameters import settled
        from streamdsl.rewrite import optimize
        from streamdsl.spark import OnSpark

        return OnSpark(optimize(settled(self._node), engine="spark"), spark, self._bindings)

    # What the methods share.

    @property
    def _unit(self) -> Unit | None:
        return self._node.unit

    def _sieved(self, key: Any, module: Sieve[Any], order: Expr | None = None) -> Stream[T]:
        """Return the rows of each key that a module lets pass, which sees those that start together by `order`."""
        groups: GroupedStream[Any, T] = GroupedStream(self, building.key(key, self._node.schema))
        group = groups._group()
        return groups._applied(
            algebra.Scan(group, module) if order is None else derived.scan_in_order(group, module, order), Whole()
        )

    def _timed(self, *times: object) -> Stream[T]:
        return Stream(in_calendar(self._node, *times), self._bindings)

    def _windowed(self, frame: WindowDefinition) -> WindowedStream[T]:
        return WindowedStream(self, frame)

    def _over(self, node: Node, *others: Stream[Any]) -> Stream[Any]:
        node = placed(in_unit(node, node.unit))
        return Stream(node, building.merge_bindings(node, self._bindings, *(other._bindings for other in others)))

    def _joined(self, other: Any, on: Any, where: Any, select: Any) -> tuple[Node, Node, algebra.Matching, Expr | None]:
        right = _stream(other)._node
        projection = None if select is None else building.expression(select, self._node.schema, right.schema)
        return self._node, right, self._matching(right, on, where), projection

    def _matching(self, right: Node, on: Any, where: Any) -> algebra.Matching:
        return building.matching(on, where, self._node.schema, right.schema)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedStream(_Windowing["GroupedWindowedStream[K, T]"], Generic[K, T]):
    """A stream divided by a key: windows and `apply` run for each key by itself."""

    _input: Stream[T]
    _key: Expr

    def apply(self, q: Callable[[Stream[T]], Stream[U]]) -> Stream[tuple[K, U]]:
        """Run a query for each key by itself; the payload is `(key, result)`, and the CTI the smallest of all groups.

        The fields of such a pair, and the columns of its frames, are `_0` and `_1`; a `select` gives them names. Raises
        `QueryError` where the query is not built from the lambda's own parameter.

        >>> import streamdsl as sd
        >>> readings = sd.from_rows([(1, 2, {"id": "x", "t": 20}), (4, 5, {"id": "x", "t": 21}), (2, 3, {"id": "y", "t": 7})])
        >>> readings.group_by("id").apply(lambda g: g.to_edges().select(lambda e: e.t)).run().cht()
        CHT
          [1, 4) _0='x' _1=20
          [2, inf) _0='y' _1=7
          [4, inf) _0='x' _1=21
        >>> counted = readings.group_by("id").apply(lambda g: g.tumbling_window(10).aggregate(n=sd.count()))
        >>> counted.select(lambda pair: {"id": pair[0], "n": pair[1].n}).to_pandas()
           le  re id  n
        0   0  10  x  2
        1   0  10  y  1
        """
        group = self._group()
        made = building.callable_given(q, "apply", "apply(lambda g: g.tumbling_window(10).aggregate(n=sd.count()))")(
            Stream(group)
        )
        if not isinstance(made, Stream):
            raise QueryError(
                f"the query inside group_by(...).apply(...) gave {made!r}, not a stream",
                hint="end it with a stream: apply(lambda g: g.tumbling_window(10).aggregate(n=sd.count()))",
            )
        return self._applied(building.check_body(made._node, group), PAIR)

    @property
    def _unit(self) -> Unit | None:
        return self._input._unit

    def _timed(self, *times: object) -> GroupedStream[K, T]:
        return GroupedStream(self._input._timed(*times), self._key)

    def _windowed(self, frame: WindowDefinition) -> GroupedWindowedStream[K, T]:
        return GroupedWindowedStream(self, frame)

    def _group(self) -> Group:
        return building.group_of(self._input._node)

    def _applied(self, body: Node, projection: Expr) -> Stream[Any]:
        return self._input._over(GroupApply(in_unit(self._input._node, body.unit), self._key, body, projection))

    def _picture(self) -> FlowChart | None:
        return self._input._picture()

    def _below(self) -> str:
        return text(repr(self))

    def __repr__(self) -> str:
        return f"<GroupedStream of {_payloads(self._input._node)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WindowedStream(Fluent, Displayed, Generic[T]):
    """A stream divided into windows: an aggregate or an operator is invoked for each that is not empty."""

    _input: Stream[T]
    _frame: WindowDefinition

    @overload
    def aggregate(self, query: Callable[[Window[T]], O], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: Agg[T, O], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: AnyUDA[T, O], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: Callable[[], AnyUDA[T, O]], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: AnyUDA[I, O], f: Callable[[T], I], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: Callable[[], AnyUDA[I, O]], f: Callable[[T], I], /) -> Stream[O]: ...
    @overload
    def aggregate(self, /, **named: Agg[T, object]) -> Stream[Record]: ...
    def aggregate(self, query: Any = None, f: Any = None, /, **named: Any) -> Any:
        """Give one row per non-empty window: a module's result, what a window lambda builds, or a record of named aggregates.

        Lifetimes and CTIs are those of the window kind under its output policy. Raises `QueryError` for an output policy that
        keeps a module's own timestamps, which aggregates do not have.

        >>> import streamdsl as sd
        >>> fares = sd.from_rows([(1, 2, 10.0), (3, 4, 20.0), (12, 13, 5.0)]).tumbling_window(10)
        >>> fares.aggregate(n=sd.count(), mean=sd.avg(lambda e: e)).run().cht()
        CHT
          [0, 10) n=2 mean=15.0
          [10, 20) n=1 mean=5.0
        >>> fares.aggregate(lambda w: w.max(lambda e: e) - w.min(lambda e: e)).run().cht()
        CHT
          [0, 10) 10.0
          [10, 20) 0.0
        >>> @sd.uda
        ... def spread(prices):
        ...     return max(prices) - min(prices)
        >>> fares.aggregate(spread).run().cht() == fares.aggregate(spread, lambda e: e).run().cht()
        True
        """
        node = self._input._node
        return self._made(building.without_key(building.aggregation(query, f, named, node.schema), node))

    @overload
    def aggregate_as(self, cls: Callable[[V1], U], a1: Agg[T, V1], /) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: Callable[[V1, V2], U], a1: Agg[T, V1], a2: Agg[T, V2], /) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: Callable[[V1, V2, V3], U], a1: Agg[T, V1], a2: Agg[T, V2], a3: Agg[T, V3], /) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self, cls: Callable[[V1, V2, V3, V4], U], a1: Agg[T, V1], a2: Agg[T, V2], a3: Agg[T, V3], a4: Agg[T, V4], /
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[V1, V2, V3, V4, V5], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[V1, V2, V3, V4, V5, V6], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[V1, V2, V3, V4, V5, V6, V7], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        a7: Agg[T, V7],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[V1, V2, V3, V4, V5, V6, V7, V8], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        a7: Agg[T, V7],
        a8: Agg[T, V8],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: type[U], /, **named: Agg[T, object]) -> Stream[U]: ...
    def aggregate_as(self, cls: Any, /, *given: Any, **named: Any) -> Any:
        """Give one instance of a dataclass or `NamedTuple` per non-empty window, its fields the named aggregates.

        Without names they are the fields in the order of the class, up to eight of them, and type checkers hold each to its type.
        Raises `QueryError` where the names are not the class's fields, or the aggregates not as many.

        >>> import streamdsl as sd
        >>> from typing import NamedTuple
        >>> class Stats(NamedTuple):
        ...     n: int
        ...     mean: float
        >>> fares = sd.from_rows([(1, 2, 10.0), (3, 4, 20.0)])
        >>> fares.tumbling_window(10).aggregate_as(Stats, n=sd.count(), mean=sd.avg(lambda e: e)).run().cht().rows
        [CHTRow(le=0, re=10, payload=Stats(n=2, mean=15.0))]
        >>> fares.tumbling_window(10).aggregate_as(Stats, sd.count(), sd.avg(lambda e: e)).run().cht().rows
        [CHTRow(le=0, re=10, payload=Stats(n=2, mean=15.0))]
        """
        fields = building.fields_in_order(cls, given, named)
        return self._made(building.named_aggregation(fields, self._input._node.schema).as_class(cls))

    @overload
    def apply(self, module: AnyUDO[T, O], /) -> Stream[O]: ...
    @overload
    def apply(self, module: Callable[[], AnyUDO[T, O]], /) -> Stream[O]: ...
    @overload
    def apply(self, module: AnyUDO[I, O], f: Callable[[T], I], /) -> Stream[O]: ...
    @overload
    def apply(self, module: Callable[[], AnyUDO[I, O]], f: Callable[[T], I], /) -> Stream[O]: ...
    def apply(self, module: Any, f: Any = None, /) -> Any:
        """Give what a user-defined operator makes of each non-empty window: zero or more rows, of `f` of the members.

        A time-sensitive operator's own timestamps are kept by `Output.UNCHANGED`, `CLIP` and `TIME_BOUND`, replaced by the window
        under `ALIGN`. Raises `QueryError` for a policy that the operator does not fit.

        >>> import streamdsl as sd
        >>> @sd.udo
        ... def extremes(values):
        ...     return [min(values), max(values)]
        >>> sd.from_rows([(1, 2, 10), (3, 4, 20), (5, 6, 15)]).tumbling_window(10).apply(extremes).run().cht()
        CHT
          [0, 10) 10
          [0, 10) 20
        """
        node = self._input._node
        return self._input._over(self._frame.operate(node, building.operator(module), building.argument(f, node.schema)))

    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: Literal[False] = False) -> Stream[T]: ...
    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: Literal[True]) -> Stream[tuple[int, T]]: ...
    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: str) -> Stream[Record]: ...
    def top_k(self, k: int, by: Any, rank: Any = False) -> Any:
        """Give the k rows of each window that are the largest by a value, and all that equal the last of them.

        `by` is a lambda over the row or a field's name; NaN is the largest, rows with None are left out. With `rank` the payload
        is `(rank, row)`, where a rank is 1 + the number of larger rows; with a name it is a record of the rank, so called, and
        of the row's fields. Raises `QueryError` for k < 1, and for a name that the row has.

        >>> import streamdsl as sd
        >>> fares = sd.from_rows([(1, 2, 10), (3, 4, 20), (5, 6, 15), (7, 8, 15)]).tumbling_window(10)
        >>> fares.top_k(2, by=lambda e: e, rank=True).run().cht()
        CHT
          [0, 10) _0=1 _1=20
          [0, 10) _0=2 _1=15
          [0, 10) _0=2 _1=15
        >>> fares.top_k(1, by=lambda e: e, rank="place").run().cht()
        CHT
          [0, 10) place=1 value=20
        """
        node, name = self._input._node, ranking.rank_name(rank)
        found = self._input._over(self._frame.operate(node, TopK(k, rank is not False), ranking.ranked(by, node.schema)))
        return found if name is None else found._over(algebra.Select(found._node, ranking.named_ranks(name, node.schema)))

    def describe(self, cht: CHT[Any], until: TimeLike = INFINITY) -> list[tuple[tuple[int, int], list[CHTRow[Any]]]]:
        """List the non-empty windows over an input with this CHT, each with its members, unclipped: for tests and docs.

        Raises `UnboundedOutputError` where there would be infinitely many; `until` bounds W.RE.

        >>> import streamdsl as sd
        >>> stream = sd.from_rows([(1, 5, "a"), (8, 12, "b")])
        >>> for window, members in stream.tumbling_window(10).describe(stream.run().cht()):
        ...     print(window, [row.payload for row in members])
        (0, 10) ['a', 'b']
        (10, 20) ['b']
        """
        found = self._frame.windows.divide(cht.rows, to_ticks(until, self._unit(cht)))
        return [((window.le, window.re), rows) for window, rows in found]

    def output_cti(self, cht: CHT[Any], c: TimeLike, *, time_sensitive: bool = False) -> int | None:
        """Return the output CTI after `Cti(c)` over an input with this CHT, or None where none can be sent yet.

        >>> import streamdsl as sd
        >>> stream = sd.from_rows([(1, 5, "a"), (8, 12, "b")])
        >>> stream.tumbling_window(10).output_cti(stream.run().cht(), 17)
        10
        """
        lifetimes = [Lifetime(row.le, row.re) for row in cht.rows]
        return self._frame.output_cti(lifetimes, to_ticks(c, self._unit(cht)), time_sensitive)

    def _unit(self, cht: CHT[Any]) -> Unit | None:
        return self._input._node.unit or cht.unit

    def _made(self, made: Aggregation) -> Stream[Any]:
        return self._input._over(self._frame.aggregate(self._input._node, made))

    def _picture(self) -> FlowChart | None:
        return self._input._picture()

    def _below(self) -> str:
        return text(repr(self))

    def __repr__(self) -> str:
        return f"<WindowedStream {self._frame.windows.describe(self._input._unit)} of {_payloads(self._input._node)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedWindowedStream(Fluent, Displayed, Generic[K, T]):
    """The windows of each group: results come with the group's key."""

    _input: GroupedStream[K, T]
    _frame: WindowDefinition

    @overload
    def aggregate(self, query: Callable[[GroupedWindow[K, T]], O], /) -> Stream[O]: ...
    @overload
    def aggregate(self, query: Agg[T, O], /) -> Stream[tuple[K, O]]: ...
    @overload
    def aggregate(self, query: AnyUDA[T, O], /) -> Stream[tuple[K, O]]: ...
    @overload
    def aggregate(self, query: Callable[[], AnyUDA[T, O]], /) -> Stream[tuple[K, O]]: ...
    @overload
    def aggregate(self, query: AnyUDA[I, O], f: Callable[[T], I], /) -> Stream[tuple[K, O]]: ...
    @overload
    def aggregate(self, query: Callable[[], AnyUDA[I, O]], f: Callable[[T], I], /) -> Stream[tuple[K, O]]: ...
    @overload
    def aggregate(self, /, **named: Agg[T, object]) -> Stream[Record]: ...
    def aggregate(self, query: Any = None, f: Any = None, /, **named: Any) -> Any:
        """Give one row per key and non-empty window of its rows, as `WindowedStream.aggregate` does.

        A module's result comes as the pair `(key, result)`; named aggregates as a record with the key first, called by its
        field's name or its fields' names, else `key`; a window lambda reads it as `w.key`. The CTI is the smallest of all groups.

        >>> import streamdsl as sd
        >>> trips = sd.from_rows([(1, 2, {"zone": "A", "fare": 10}), (3, 4, {"zone": "B", "fare": 4})])
        >>> zones = trips.group_by(lambda e: e.zone).tumbling_window(10)
        >>> zones.aggregate(n=sd.count()).run().cht()
        CHT
          [0, 10) zone='A' n=1
          [0, 10) zone='B' n=1
        >>> zones.aggregate(lambda w: (w.key, w.sum(lambda e: e.fare))).run().cht()
        CHT
          [0, 10) _0='A' _1=10
          [0, 10) _0='B' _1=4
        """
        return self._made(building.aggregation(query, f, named, self._schema))

    @overload
    def aggregate_as(self, cls: Callable[[K, V1], U], a1: Agg[T, V1], /) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: Callable[[K, V1, V2], U], a1: Agg[T, V1], a2: Agg[T, V2], /) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: Callable[[K, V1, V2, V3], U], a1: Agg[T, V1], a2: Agg[T, V2], a3: Agg[T, V3], /) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self, cls: Callable[[K, V1, V2, V3, V4], U], a1: Agg[T, V1], a2: Agg[T, V2], a3: Agg[T, V3], a4: Agg[T, V4], /
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[K, V1, V2, V3, V4, V5], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[K, V1, V2, V3, V4, V5, V6], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[K, V1, V2, V3, V4, V5, V6, V7], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        a7: Agg[T, V7],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(
        self,
        cls: Callable[[K, V1, V2, V3, V4, V5, V6, V7, V8], U],
        a1: Agg[T, V1],
        a2: Agg[T, V2],
        a3: Agg[T, V3],
        a4: Agg[T, V4],
        a5: Agg[T, V5],
        a6: Agg[T, V6],
        a7: Agg[T, V7],
        a8: Agg[T, V8],
        /,
    ) -> Stream[U]: ...
    @overload
    def aggregate_as(self, cls: type[U], /, **named: Agg[T, object]) -> Stream[U]: ...
    def aggregate_as(self, cls: Any, /, *given: Any, **named: Any) -> Any:
        """Give one instance of a dataclass or `NamedTuple` per key and non-empty window: of the key and the named aggregates.

        Without names they are the fields in the order of the class, the key first, as in `WindowedStream.aggregate_as`. Raises
        `QueryError` where the names of the key and of the aggregates are not the class's fields, or they are not as many.

        >>> import streamdsl as sd
        >>> from typing import NamedTuple
        >>> class Stats(NamedTuple):
        ...     zone: str
        ...     n: int
        >>> trips = sd.from_rows([(1, 2, {"zone": "A"}), (3, 4, {"zone": "B"})])
        >>> [row.payload for row in trips.group_by("zone").tumbling_window(10).aggregate_as(Stats, n=sd.count()).run().cht()]
        [Stats(zone='A', n=1), Stats(zone='B', n=1)]
        >>> found = trips.group_by(lambda e: e.zone * 2).tumbling_window(10).aggregate_as(Stats, sd.count())
        >>> [row.payload for row in found.run().cht()]
        [Stats(zone='AA', n=1), Stats(zone='BB', n=1)]
        """
        key = building.key_parts(self._input._key)
        made = building.named_aggregation(building.fields_in_order(cls, given, named, len(key)), self._schema)
        return self._made(made, cls, in_order=not named)

    @overload
    def apply(self, module: AnyUDO[T, O], /) -> Stream[tuple[K, O]]: ...
    @overload
    def apply(self, module: Callable[[], AnyUDO[T, O]], /) -> Stream[tuple[K, O]]: ...
    @overload
    def apply(self, module: AnyUDO[I, O], f: Callable[[T], I], /) -> Stream[tuple[K, O]]: ...
    @overload
    def apply(self, module: Callable[[], AnyUDO[I, O]], f: Callable[[T], I], /) -> Stream[tuple[K, O]]: ...
    def apply(self, module: Any, f: Any = None, /) -> Any:
        """Give what a user-defined operator makes of each key's non-empty windows, as pairs `(key, result)`.

        >>> import streamdsl as sd
        >>> @sd.udo
        ... def extremes(values):
        ...     return [min(values), max(values)]
        >>> trips = sd.from_rows([(1, 2, {"zone": "A", "fare": 10}), (3, 4, {"zone": "A", "fare": 4})])
        >>> trips.group_by("zone").tumbling_window(10).apply(extremes, lambda e: e.fare).run().cht()
        CHT
          [0, 10) _0='A' _1=4
          [0, 10) _0='A' _1=10
        """
        body = self._frame.operate(self._input._group(), building.operator(module), building.argument(f, self._schema))
        return self._input._applied(body, PAIR)

    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: Literal[False] = False) -> Stream[tuple[K, T]]: ...
    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: Literal[True]) -> Stream[tuple[K, tuple[int, T]]]: ...
    @overload
    def top_k(self, k: int, by: Callable[[T], object] | str, rank: str) -> Stream[Record]: ...
    def top_k(self, k: int, by: Any, rank: Any = False) -> Any:
        """Give the k largest rows of each key's windows, with ties, as pairs `(key, row)`; as `WindowedStream.top_k`.

        With a name for the rank it is one record: the key, as in `aggregate`, the rank, and the row's fields.

        >>> import streamdsl as sd
        >>> trips = sd.from_rows([(1, 2, {"zone": "A", "fare": 10}), (3, 4, {"zone": "A", "fare": 4})])
        >>> trips.group_by("zone").tumbling_window(10).top_k(1, by="fare").select(lambda e: e[1].fare).run().cht()
        CHT
          [0, 10) 10
        >>> trips.group_by("zone").tumbling_window(10).top_k(1, by="fare", rank="place").run().cht()
        CHT
          [0, 10) zone='A' place=1 fare=10
        """
        name, group = ranking.rank_name(rank), self._input
        body = self._frame.operate(group._group(), TopK(k, rank is not False), ranking.ranked(by, self._schema))
        return group._applied(body, PAIR if name is None else ranking.named_ranks(name, self._schema, group._key))

    @property
    def _schema(self) -> Schema | None:
        return self._input._input._node.schema

    def _made(self, made: Aggregation, cls: type | None = None, in_order: bool = False) -> Stream[Any]:
        projection = made.with_key(self._input._key, cls, in_order)
        return self._input._applied(self._frame.aggregate(self._input._group(), made), projection)

    def _picture(self) -> FlowChart | None:
        return self._input._picture()

    def _below(self) -> str:
        return text(repr(self))

    def __repr__(self) -> str:
        return (
            f"<GroupedWindowedStream {self._frame.windows.describe(self._input._unit)} of {_payloads(self._input._input._node)}>"
        )


def _payloads(node: Node) -> str:
    return "payloads known at run time" if node.schema is None else repr(node.schema)


def _stream(other: object) -> Stream[Any]:
    if isinstance(other, Stream):
        return other
    raise QueryError(
        f"a stream is combined with a stream, not with {type(other).__name__}",
        hint="make one with sd.from_rows(...) or sd.from_pandas(...); of groups or windows take the result of aggregate or apply",
    )
