"""The answers as small tables for people, in New York time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from streamdsl.demo.data import NEW_YORK

if TYPE_CHECKING:
    import pandas as pd

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
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [bool(rows) and not isinstance(value, str) for value in (rows[0] if rows else header)]
    return [_line(row, widths, numeric) for row in cells]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = (
        cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(aligned).rstrip()


def local_time(moment: pd.Timestamp) -> str:
    """Return a moment as a clock in New York shows it."""
    return f"{moment.tz_convert(NEW_YORK):%a %d %b %H:%M}"


def aloft(frame: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return when each of the largest carriers had most aircraft in the air."""
    peaks = frame.loc[frame.groupby("carrier")["aloft"].idxmax()].nlargest(MOST, "aloft")
    rows = [[names.get(row.carrier, row.carrier), int(row.aloft), local_time(row.le)] for row in peaks.itertuples()]
    return text_table(["carrier", "most aloft", "first at"], rows)


def delays(frame: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return the worst hours of all with enough departures."""
    worst = frame[frame["departures"] >= ENOUGH].nlargest(MOST, "median")
    rows = [
        [local_time(row.le), row.origin, int(row.departures), float(row.mean), float(row.median)] for row in worst.itertuples()
    ]
    return text_table(["hour from", "origin", "departures", "mean delay", "median (min)"], rows)


def busiest(frame: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return the routes that were most often the busiest of all."""
    first = frame[frame["rank"] == 1].groupby("name")["count"].agg(["size", "max"])
    rows = [[route, int(row["size"]), int(row["max"])] for route, row in first.nlargest(MOST, "size").iterrows()]
    return text_table(["route", "times the busiest", "most departures in 3 h"], rows)


def windy(frame: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return per origin how many flights were in the air in a strong wind, and for how long."""
    hours = (frame["re"] - frame["le"]).dt.total_seconds() / 3600
    grouped = frame.assign(hours=hours, flight=frame["carrier"] + frame["number"].astype(str)).groupby("origin")
    rows = [[origin, len(part), float(part["hours"].sum()), float(part["wind"].max())] for origin, part in grouped]
    return text_table(["origin", "stretches of flight", "hours aloft", "strongest wind (mph)"], rows)


def grounded(frame: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return the hours themselves."""
    rows = [[local_time(row.le), local_time(row.re), int(row.scheduled)] for row in frame.itertuples()]
    return text_table(["from", "to", "scheduled departures"], rows)


TABLES: Final[Mapping[str, Callable[[pd.DataFrame, Mapping[str, str]], list[str]]]] = {
    "aloft": aloft,
    "delays": delays,
    "busiest": busiest,
    "windy": windy,
    "grounded": grounded,
}
