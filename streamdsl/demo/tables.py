"""The answers as small tables for people, in New York time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import streamdsl as sd
from streamdsl.demo.data import NEW_YORK
from streamdsl.temporal.html import columns

Rows: TypeAlias = Sequence[sd.CHTRow[Any]]
Names: TypeAlias = Mapping[str, str]

MOST: Final = 5
"""How many lines a table has at most."""
ENOUGH: Final = 10
"""An hour's median delay counts as telling from this many departures on."""


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return lines with aligned columns: text to the left, numbers to the right.

    >>> text_table(["carrier", "most"], [["United Air Lines", 30], ["Envoy Air", 8]])
    ['carrier           most', 'United Air Lines    30', 'Envoy Air            8']
    """
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    numbers = [n for n, value in enumerate(rows[0] if rows else ()) if not isinstance(value, str)]
    return columns(cells, numbers).splitlines()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def local_time(time: int) -> str:
    """Return a time in New York's time zone as text.

    >>> local_time(1360404000)
    'Sat 09 Feb 05:00'
    """
    return f"{datetime.fromtimestamp(time, NEW_YORK):%a %d %b %H:%M}"


def aloft(rows: Rows, names: Names) -> list[str]:
    """Return when each of the largest carriers had most aircraft in the air."""
    peaks: dict[str, sd.CHTRow[Any]] = {}
    for row in rows:
        if row.payload.carrier not in peaks or row.payload.aloft > peaks[row.payload.carrier].payload.aloft:
            peaks[row.payload.carrier] = row
    highest = sorted(peaks.values(), key=lambda row: (-row.payload.aloft, row.payload.carrier))[:MOST]
    lines = [[names.get(row.payload.carrier, row.payload.carrier), row.payload.aloft, local_time(row.le)] for row in highest]
    return text_table(["carrier", "most aloft", "first at"], lines)


def delays(rows: Rows, names: Names) -> list[str]:
    """Return the worst of the hours with enough departures."""
    telling = [row for row in rows if row.payload.departures >= ENOUGH]
    worst = sorted(telling, key=lambda row: (-row.payload.median, row.le))[:MOST]
    lines = [
        [local_time(row.le), row.payload.origin, row.payload.departures, row.payload.mean, row.payload.median] for row in worst
    ]
    return text_table(["hour from", "origin", "departures", "mean delay", "median (minutes)"], lines)


def busiest(rows: Rows, names: Names) -> list[str]:
    """Return the routes that were most often the busiest of all."""
    counts: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.payload.rank == 1:
            counts[row.payload.name].append(row.payload.count)
    often = sorted(counts.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST]
    lines = [[route, len(found), max(found)] for route, found in often]
    return text_table(["route", "times the busiest", "most departures in 3 hours"], lines)


def windy(rows: Rows, names: Names) -> list[str]:
    """Return per origin how many flights were in the air in a strong wind, and for how long."""
    found: dict[str, list[sd.CHTRow[Any]]] = defaultdict(list)
    for row in rows:
        found[row.payload.origin].append(row)
    lines = [
        [origin, len(part), sum(row.re - row.le for row in part) / 3600, max(row.payload.wind for row in part)]
        for origin, part in sorted(found.items())
    ]
    return text_table(["origin", "stretches of flights", "hours aloft", "strongest wind (mph)"], lines)


def grounded(rows: Rows, names: Names) -> list[str]:
    """Return the hours themselves."""
    lines = [[local_time(row.le), local_time(row.re), row.payload.scheduled] for row in rows]
    return text_table(["from", "to", "scheduled departures"], lines)


TABLES: Final[Mapping[str, Callable[[Rows, Names], list[str]]]] = {
    "aloft": aloft,
    "delays": delays,
    "busiest": busiest,
    "windy": windy,
    "grounded": grounded,
}
"""How each question's answer is shown."""
