"""How a session stands, as Jupyter shows it: how far each source and the output have come, and what is behind what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from streamdsl.temporal.html import table
from streamdsl.temporal.time import CHRONON, INFINITY, MIN_TIME, PER_SECOND, Unit, format_time, is_calendar

if TYPE_CHECKING:
    from streamdsl.pictures.lanes import Lane
    from streamdsl.pictures.timeline_picture import Timeline


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a source or the output has come: its CTI, the largest time that it has had, and how many events, if known."""

    name: str
    cti: int
    furthest: int
    events: str


@dataclass(frozen=True, slots=True)
class Standing:
    """The sources of a session and its output.

    >>> print(Standing([Reached("trips", 30, 33, "7 in")], Reached("output", 20, 20, "2 out"), None))
    trips 7 in, CTI 30; output 2 out, CTI 20
    """

    sources: Sequence[Reached]
    output: Reached
    unit: Unit | None

    def __str__(self) -> str:
        return "; ".join(f"{each.name}{each.events and ' '}{each.events}, CTI {_time(each.cti, self.unit)}" for each in self.all)

    @property
    def all(self) -> Sequence[Reached]:
        """The sources, then the output."""
        return [*self.sources, self.output]

    @property
    def furthest(self) -> int:
        """The largest finite time that any of them has had, MIN_TIME if none has had one."""
        times = (time for each in self.all for time in (each.cti, each.furthest))
        return max((time for time in times if time != INFINITY), default=MIN_TIME)

    def lag(self, each: Reached) -> str:
        """Return how far a CTI is behind the furthest time, as text; "" if it is not, or has no place on the line of time."""
        return "" if each.cti == MIN_TIME or each.cti >= self.furthest else _long(self.furthest - each.cti, self.unit)

    def timeline(self) -> Timeline | None:
        """Return the picture: a lane for each, with its CTI, and from there a bar as long as its lag; None before any event.

        Of what has no CTI yet the furthest time is a point.
        """
        from streamdsl.pictures.timeline_picture import Timeline

        return None if self.furthest == MIN_TIME else Timeline(map(self._lane, self.all), self.unit)

    def _lane(self, each: Reached) -> Lane:
        from streamdsl.pictures.lanes import Lane

        rows = [(each.cti, self.furthest, f"{self.lag(each)} behind")] if self.lag(each) else []
        if each.cti == MIN_TIME < each.furthest:
            rows = [(each.furthest, each.furthest + CHRONON, "no CTI yet")]
        le, re = (np.array([row[end] for row in rows], dtype=np.int64) for end in (0, 1))
        ctis = np.array([each.cti] if each.cti != MIN_TIME else [], dtype=np.int64)
        role = "output" if each is self.output else "input"
        return Lane(each.name, le, re, lambda row: rows[row][2], ctis=ctis, note=each.events, role=role)

    def html(self, why: str | None) -> str:
        """Return the same as a table, and what holds the output back."""
        rows = [
            [each.name, each.events, _time(each.furthest, self.unit), _time(each.cti, self.unit), self.lag(each)]
            for each in self.all
        ]
        titles = ["", "events", "furthest LE or CTI", "CTI", "behind by"]
        return table(titles, (map(escape, row) for row in rows)) + (f"<p>{escape(why)}</p>" if why else "")


def _time(time: int, unit: Unit | None) -> str:
    return "none yet" if time == MIN_TIME else format_time(time, unit)


def _long(ticks: int, unit: Unit | None) -> str:
    """Return a duration as text: in the units of a clock, or in ticks.

    >>> _long(90_061, "s"), _long(1_500, "ms"), _long(90, None)
    ('1d 1h 1m 1s', '1.5s', '90')
    """
    if not is_calendar(unit):
        return f"{ticks}"
    seconds, part = divmod(ticks, PER_SECOND[unit or "us"])
    found = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        count, seconds = divmod(seconds, size)
        found += [f"{count}{name}"] if count else []
    rest = f"{seconds + part / PER_SECOND[unit or 'us']:.9f}".rstrip("0").rstrip(".")
    return " ".join([*found, *([f"{rest}s"] if rest != "0" or not found else [])])
