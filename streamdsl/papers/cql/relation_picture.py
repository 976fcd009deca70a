"""A picture of a relation: its batches side by side, and below them a bar per row over its lifetime."""

from __future__ import annotations

from collections.abc import Container, Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

from streamdsl.papers.cql.group_timeline import Timeline
from streamdsl.pictures import COLOURS, bar, cut, grid_line, label, picture
from streamdsl.temporal import CHTRow
from streamdsl.temporal.display import scrolled
from streamdsl.temporal.html import table, text

LEFT, ROW, TOP, TEXT = 20, 18, 44, 330
MOST: Final = 60
"""Rows that are drawn."""
WIDEST: Final = 20
"""Instants that are drawn."""


def relation_html(timeline: Timeline | None, places: Container[int], rows: Sequence[CHTRow[Any]]) -> str:
    """Return the HTML of a relation for Jupyter: a picture, or its rows for a table and for very many batches.

    >>> relation_html(None, [], [CHTRow(0, 1, "a")]).count("<td")
    1
    """
    if timeline is None:
        return table(["row"], ([escape(repr(row.payload))] for row in rows[:MOST])) + _more(len(rows))
    if timeline.end <= WIDEST:
        return scrolled(draw(timeline, places, rows))
    seen = _by_time(rows, timeline)
    spans = (((row.le, row.re), row.payload) for row in seen[:MOST])
    cells = ([*(str(timeline.batch_at(n)) if n < timeline.end else "" for n in span), escape(repr(p))] for span, p in spans)
    return table(["from", "until", "row"], cells) + _more(len(seen))


def _by_time(rows: Sequence[CHTRow[Any]], timeline: Timeline) -> list[CHTRow[Any]]:
    return sorted((row for row in rows if row.le < timeline.end), key=lambda row: (row.le, row.re))


def _more(count: int) -> str:
    return text(f"... {count - MOST} rows more") if count > MOST else ""


def draw(timeline: Timeline, places: Container[int], rows: Sequence[CHTRow[Any]]) -> str:
    """Return the picture of rows whose lifetimes are on a timeline; `places` are the batches that have tuples.

    >>> draw(Timeline([(1, 1), (1, 2)], (1, 3)), [0, 1], [CHTRow(0, 1, "a"), CHTRow(1, 4, "b")]).count('rx="3"')
    2
    """
    wide = 7 * max((len(str(at)) for at in timeline), default=6) + 16
    edges = [float(LEFT + wide * n) for n in range(timeline.end - timeline.base + 1)]
    seen = _by_time(rows, timeline)
    bottom = TOP + ROW * (min(len(seen), MOST) + (len(seen) > MOST)) + 6
    parts = [*_heads(timeline, places, edges), *(grid_line(x, TOP - 8, bottom) for x in edges)]
    for number, row in enumerate(seen[:MOST]):
        low, high = (edges[min(place, timeline.end) - timeline.base] for place in (row.le, row.re))
        top = TOP + number * ROW
        parts.append(bar(low + 2, high - 2, top + 3, ROW - 6, COLOURS[0]))
        parts.append(label(edges[-1] + 12, top + 13, cut(row.payload, 48)))
    if len(seen) > MOST:
        parts.append(label(LEFT, bottom - 8, f"... {len(seen) - MOST} rows more", "quiet"))
    return picture(parts, int(edges[-1]) + TEXT, bottom + 6)


def _heads(timeline: Timeline, places: Container[int], edges: Sequence[float]) -> list[str]:
    """Return each timestamp over its batches; what is between batches has no number."""
    parts = []
    for t, same in groupby(enumerate(timeline), key=lambda each: each[1][0]):
        batches = [(n, i) for n, (_, i) in same]
        first, last = edges[batches[0][0]], edges[batches[-1][0] + 1]
        parts.append(label((first + last) / 2, 14, f"t={t}", "name", "middle"))
        named = ((n, f"({t}, {i})" if n + timeline.base in places else "empty") for n, i in batches)
        parts.extend(label((edges[n] + edges[n + 1]) / 2, 30, name, "quiet", "middle") for n, name in named)
    return parts
