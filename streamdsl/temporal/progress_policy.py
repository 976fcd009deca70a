"""Progress policies: how a source without CTIs of its own generates them (paper 001, II.C)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from streamdsl.errors import QueryError, UnitError
from streamdsl.temporal.time import INFINITY, MIN_TIME, PER_SECOND, DurationLike, Unit, is_integer, to_duration

ProgressKind: TypeAlias = Literal["slack", "count", "period", "imported", "wall"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The rule by which the CTI follows the largest LE, a clock, or the CTI of another source.

    Made by `ordered`, `slack`, `every`, `wall_clock` and `imported_from`.

    Whether an event is late is decided event by event, so it never depends on batch sizes.
    """

    kind: ProgressKind
    delay: DurationLike = 0
    step: DurationLike = 1
    source: str = ""
    clock: Callable[[], int] | None = None
    max_jump: DurationLike | None = None
    idle: DurationLike | None = None

    @staticmethod
    def ordered(*, max_jump: DurationLike | None = None) -> Progress:
        """Return the policy for an input in order of LE: the CTI is the largest LE so far. `max_jump` is as in `slack`.

        >>> Progress.ordered().generator(None).after(7)
        7
        """
        return Progress("slack", max_jump=max_jump)

    @staticmethod
    def slack(duration: DurationLike, *, max_jump: DurationLike | None = None) -> Progress:
        """Return the policy for an input that is out of order by at most `duration`: the CTI is the largest LE so far minus it.

        An event that starts more than `max_jump` after the largest LE and CTI before it moves no CTI: it is dropped, whatever
        `on_violation` says, and `rejected()` has it. After a silence that is longer push a `Cti`.

        >>> Progress.slack("5s").generator("s").after(60)
        55
        """
        return Progress("slack", duration, max_jump=max_jump)

    @staticmethod
    def every(step: int | DurationLike, delay: DurationLike = 0, *, max_jump: DurationLike | None = None) -> Progress:
        """Return the policy with a CTI after every `step` events (an int) or whenever LE enters a new period (a duration).

        The CTI is the largest LE so far, for a period the start of the period of that LE, minus `delay`. `max_jump` is as
        in `slack`.

        >>> Progress.every("1m").generator("s").after(130)
        120
        """
        return Progress("count" if is_integer(step) else "period", delay, step, max_jump=max_jump)

    @staticmethod
    def wall_clock(period: DurationLike, delay: DurationLike = 0, clock: Callable[[], int] | None = None) -> Progress:
        """Return the policy for a source in real time: in sessions the CTI is the clock's time minus `delay`.

        It is rounded down to a multiple of `period`, and updated after each push into any source of the query; `push([])` only
        lets time pass. `clock` returns nanoseconds since 1970, by default `time.time_ns`. Bounded runs read no clock.

        >>> Progress.wall_clock("10s", clock=lambda: 47 * 10**9).time_of_day("s")
        40
        """
        return Progress("wall", delay, period, clock=clock)

    def time_of_day(self, unit: Unit | None) -> int:
        """Return the CTI by the clock; raises `UnitError` for a source that counts plain ticks."""
        if unit == "tick":
            raise UnitError("a clock cannot measure plain ticks", hint='give the source a unit of the calendar, such as unit="s"')
        generator = self.generator(unit)
        now = (self.clock or time.time_ns)() * PER_SECOND[unit or "us"] // PER_SECOND["ns"]
        return now // generator.step * generator.step - generator.delay

    @staticmethod
    def imported_from(stream: object, delay: DurationLike = 0) -> Progress:
        """Return the policy for a source that is slow or may fall silent: in sessions its CTI is another source's minus `delay`.

        So it holds no join or union back. `stream` is the other source, or its name. Events may be late for such a CTI as for any
        other. Bounded runs need no CTIs, and import none. Raises `QueryError` for a stream that is not a source.

        >>> Progress.imported_from("trips", "5m").source
        'trips'
        """
        name = stream if isinstance(stream, str) else getattr(getattr(stream, "_node", None), "source", None)
        if not isinstance(name, str) or not name:
            raise QueryError(
                f"CTIs are imported from a source, not from {stream!r}", hint='Progress.imported_from(sd.source("trips"))'
            )
        return Progress("imported", delay, source=name)

    def __str__(self) -> str:
        """Return the policy as it is written.

        >>> print(Progress.slack("5m"), Progress.every(10, delay=2))
        Progress.slack('5m') Progress.every(10, 2)
        """
        named = {"slack": ("slack", self.delay), "wall": ("wall_clock", self.step, self.delay)}
        named["imported"] = ("imported_from", self.source, self.delay)
        name, *settings = (
            ("ordered",) if self.kind == "slack" and not self.delay else named.get(self.kind, ("every", self.step, self.delay))
        )
        shown = [repr(each) for place, each in enumerate(settings) if each or not place]
        shown += [] if self.max_jump is None else [f"max_jump={self.max_jump!r}"]
        return f"Progress.{name}({', '.join(shown)})" + ("" if self.idle is None else f".idle_after({self.idle!r})")

    def idle_after(self, duration: DurationLike) -> Progress:
        """Return this policy for a source that may fall silent: then its CTI follows, `duration` behind, the furthest other one.

        In sessions, after each push into another source, the CTI is at least the largest CTI that another source has, minus
        `duration`; one at INFINITY, whose source has ended, does not count, nor does a table's. It is application time, so the
        answer depends on no clock. What comes after all is late as any other event. Bounded runs wait for no source.

        >>> print(Progress.slack("5m").idle_after("1h"))
        Progress.slack('5m').idle_after('1h')
        """
        return replace(self, idle=duration)

    def generator(self, unit: Unit | None) -> ProgressGenerator:
        """Return a fresh generator of CTIs for a stream with this unit."""
        delay = to_duration(self.delay, unit)
        step = to_duration(self.step, unit)
        if delay < 0 or step <= 0:
            raise QueryError(f"a progress policy needs a delay >= 0 and a step > 0, not {self.delay!r} and {self.step!r}")
        jump = INFINITY if self.max_jump is None else _positive("max_jump", self.max_jump, unit)
        return ProgressGenerator(self.kind, delay, step, jump)

    def idleness(self, unit: Unit | None) -> int | None:
        """Return in ticks how far the CTI may be behind the furthest of the other sources; None: as far as it is."""
        return None if self.idle is None else _positive("idle_after", self.idle, unit)


def _positive(name: str, duration: DurationLike, unit: Unit | None) -> int:
    ticks = to_duration(duration, unit)
    if ticks <= 0:
        raise QueryError(f"{name} is a duration > 0, not {duration!r}", hint='for example sd.Progress.slack("5m", max_jump="1d")')
    return ticks


@dataclass(slots=True)
class ProgressGenerator:
    """The state of a progress policy in a session: the largest LE, the number of events, and the CTI. O(1) per event."""

    kind: ProgressKind
    delay: int
    step: int
    max_jump: int = INFINITY
    largest: int = MIN_TIME
    seen: int = 0
    cti: int = MIN_TIME

    def after(self, le: int | None) -> int:
        """Take the LE of the next event (None for a retraction) and return the CTI that now holds."""
        if le is not None and le > self.largest:
            self.largest = le
        self.seen += 1
        if self.largest == MIN_TIME or self.kind in ("imported", "wall") or (self.kind == "count" and self.seen % self.step):
            return self.cti
        base = self.largest // self.step * self.step if self.kind == "period" else self.largest
        self.cti = max(self.cti, base - self.delay, MIN_TIME)
        return self.cti

    def is_jump(self, le: int, cti: int) -> bool:
        """Say whether an event starts too far ahead of all LEs and CTIs before it; nothing does before the first of them."""
        known = max(self.largest, cti)
        return known > MIN_TIME and le - known > self.max_jump

    def copy(self) -> ProgressGenerator:
        """Return an independent copy."""
        return ProgressGenerator(self.kind, self.delay, self.step, self.max_jump, self.largest, self.seen, self.cti)
