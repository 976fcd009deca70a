"""Windows by a window sequence, of times or of positions, in a query that starts at a time t0 (paper 003)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from streamdsl.errors import QueryError, UnboundedOutputError
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_order, plain
from streamdsl.temporal.time import INFINITY, Unit
from streamdsl.windows.policies import Output
from streamdsl.windows.sequences.description import AnySequence, GenericWindowSequence, Partitioned
from streamdsl.windows.sequences.named import ForLoop, Linear
from streamdsl.windows.sequences.numbers import LAST
from streamdsl.windows.sequences.view import View
from streamdsl.windows.spec import Ends, R, Windows

_CHOICES: Final = "linear, five_uplet, range_slide, rows_slide, last_n_every, landmark, fixed, for_loop, WindowSequence"


@dataclass(frozen=True, slots=True)
class Sequenced(Windows):
    """The windows of a sequence over rows as tuples at t = LE; `start` is t0, or None for the first LE.

    The period of window j is the time for which it is the last one: while gamma is j. Its rows are those between its bounds that
    have arrived, in application time, when it is created. Simultaneous rows are one batch, with positions in order of (LE,
    payload). The ends of rows do not matter.

        rows        |  |     |  |
        seen        [-----]             t0 = 0, range_slide(6, 4)
        result            [---)
        seen           [------]
        result                [---)

    >>> from streamdsl.astral import range_slide
    >>> Sequenced(range_slide(4, 2)).over([Lifetime(10, 11), Lifetime(13, 20)])
    [Lifetime(le=10, re=12), Lifetime(le=12, re=14), Lifetime(le=14, re=16), Lifetime(le=16, re=18)]
    """

    sequence: AnySequence
    start: int | None = None

    def __post_init__(self) -> None:
        check_runs(self.sequence)

    @property
    def by_position(self) -> bool:
        """Whether the order of simultaneous rows can affect windows."""
        return self.sequence.domain == "position"

    are_apart = True

    @property
    def ends(self) -> Ends:
        return Ends.NEVER if self.sequence.lasts else Ends.ALWAYS

    ends_count = False
    completed_by_rows = True

    @property
    def horizon(self) -> int:
        return 1 + abs(self.start or 0)

    def settled(self, lives: Sequence[Lifetime], c: int, time_sensitive: bool, reads_re: bool) -> int:
        """c: a window's result starts when the window is created, and no later row changes it."""
        return c

    def fewest(self) -> Sequenced:
        return self

    @property
    def by_clock(self) -> bool:
        return self.start is not None and self.sequence.by_clock

    def check_use(self, output: Output, sensitive: Sequence[str] = ()) -> None:
        if sensitive:
            raise QueryError(
                f"{sensitive[0]} is time-sensitive, and the windows of a sequence hold rows as points at LE, without their ends",
                hint="use a time-insensitive module, or windows by time, such as trailing_window(size, hop)",
            )
        if output is not Output.ALIGN:
            raise QueryError(
                f"the results of a window sequence live until the next window is created; output={output} cannot apply to them",
                hint="leave output out; to_points() after it gives the instants at which windows are created",
            )

    def over(self, lifetimes: Iterable[Lifetime], until: int = INFINITY) -> list[Lifetime]:
        """Return the non-empty windows, which depend on starts alone; an endless sequence needs a finite `until`."""
        times = sorted(life.le for life in lifetimes if not life.is_empty)
        return [window for window, _ in self._windows([(time, time) for time in times], until)]

    def divide(self, rows: Iterable[R], until: int = INFINITY) -> list[tuple[Lifetime, list[R]]]:
        alive = [row for row in rows if row.le < row.re]
        alive.sort(key=lambda row: (row.le, payload_order(row.payload)))
        return list(self._windows([(row, row.le) for row in alive], until))

    def belongs(self, life: Lifetime, window: Lifetime) -> bool:
        raise TypeError("which rows are in a window of a sequence depends on all rows: see divide")

    def _windows(self, tuples: Sequence[tuple[Any, int]], until: int) -> Iterator[tuple[Lifetime, list[Any]]]:
        """Yield each non-empty window with its tuples, by evaluating the view at each instant at which gamma may change."""
        view = View(tuples, self._origin(tuples))
        if view.last < 0:
            return
        time = int(view.tau(0)[0])
        state, begun, held = self._state(view, time - 1), time, list[Any]()
        while time <= until and time < INFINITY:
            now = self._state(view, time)
            if now != state:
                if held:
                    yield Lifetime(begun, time), held
                state, begun, held = now, time, view.content(self.sequence, time)
            time = self._next(view, time, until, bool(held))
        if held and until == INFINITY:
            yield Lifetime(begun, INFINITY), held

    def _origin(self, tuples: Sequence[tuple[Any, int]]) -> int:
        if self.start is not None or not tuples:
            return self.start or 0
        return tuples[0][1]

    def _state(self, view: View, time: int) -> Any:
        at = (time, LAST)
        return self.sequence.state(at, view.by(at)) if time >= view.t0 else None

    def _next(self, view: View, time: int, until: int, held: bool) -> int:
        """Return the next instant at which the window may change, INFINITY if no later window holds a tuple."""
        at = (time, LAST)
        seen = view.by(at)
        change = self.sequence.next_change(at, seen)
        coming = int(view.tau(seen.last + 1)[0]) if seen.last < view.last else INFINITY
        if not held and self.sequence.is_over(at, seen):
            return coming
        if change is None or change >= INFINITY:
            return coming
        if coming == INFINITY == until and self.sequence.endless:
            raise endless(self, view.payloads[-1])
        return min(coming, ceil(change))

    def describe(self, unit: Unit | None = None) -> str:
        """Return `sequence(...)` with its bounds, and the start if there is one."""
        start = "" if self.start is None else f", start={self.start}"
        return f"sequence({self.sequence.describe()}{start})"


def check_runs(sequence: object) -> None:
    """Raise `QueryError` for values that are not window sequences, and for sequences that a query cannot evaluate.

    >>> from streamdsl.astral import linear
    >>> check_runs(linear((1, 0), (3, 0), 2))
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: the windows of [max(j, t0), 3j] by time, every 2 end later and later after they are created
    Hint: the upper bound rises by at most the rate, so that a window's end has come when it is created (paper 003, definition 8)
    """
    if isinstance(sequence, Partitioned):
        raise QueryError(
            "a partitioned sequence has windows of its own for each key",
            hint="stream.group_by(key).windows(sequence) gives the results of each key; for all keys together apply a module "
            "there that returns the rows, and then use snapshot_window()",
        )
    if not isinstance(sequence, AnySequence):
        raise QueryError(f"{sequence!r} is no window sequence", hint=f"streamdsl.astral has {_CHOICES}")
    if isinstance(sequence, GenericWindowSequence):
        raise QueryError(
            "gamma of a GenericWindowSequence is a function of each moment, and a query cannot know when its value changes",
            hint=f"astral.View evaluates it at any moment; a query can use {_CHOICES}",
        )
    if isinstance(sequence, Linear):
        _check_linear(sequence)


def _check_linear(sequence: Linear) -> None:
    if sequence.start[0] < 0 or sequence.end[0] < 0:
        raise QueryError(f"the bounds of {sequence.describe()} go back", hint="the slopes of both bounds are at least 0")
    if sequence.rate is not None and sequence.end[0] > sequence.rate:
        raise QueryError(
            f"the windows of {sequence.describe()} end later and later after they are created",
            hint="the upper bound rises by at most the rate, so that a window's end has come when it is created "
            "(paper 003, definition 8)",
        )


def endless(windows: Sequenced, row: object) -> UnboundedOutputError:
    """Return the error for a sequence that creates non-empty windows for ever, even without further rows."""
    loop = " (or end the loop)" if isinstance(windows.sequence, ForLoop) else ""
    return UnboundedOutputError(
        f"after the last row, {plain(row)!r}, {windows.describe()} makes windows with rows for ever",
        hint=f"bound the run with run(until=t){loop}, or leave the session open",
    )
