"""What a query on Spark is given: the DataFrame of each source, and which of its columns are the rows' lifetimes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from streamdsl.errors import QueryError
from streamdsl.plan.node import Source
from streamdsl.temporal import LifetimeColumns
from streamdsl.temporal.lifetime_columns import DEFAULT


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """The DataFrame of a source, with LE in the column `start` and RE in the column `end`, as in `sd.from_pandas`.

    By default these are those that the source names, else `le` and, if it exists, `re`; rows without an end are point events. The
    other columns are the payload. With `start=None` the rows of a table hold at all times, as those of `sd.sources.from_table`.
    Where sources name their times in different ways, each says its own: `batch({"bids": SourceFrame(bids, start="ts"), ...})`.
    Raises `QueryError` for what is no name of a column, and for one column that is both.

    >>> SourceFrame("the DataFrame", start="ts", end="ts")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: column 'ts' is both start and end, so no row lives
    Hint: no end makes point events
    """

    rows: DataFrame
    start: str | None = "le"
    end: str | None = None

    def __post_init__(self) -> None:
        if self.start is None and self.end is not None:
            raise QueryError(f"rows with the end {self.end!r} have a start", hint="start=None is for rows that hold at all times")
        _ = self.lives

    @property
    def lives(self) -> LifetimeColumns | None:
        """The columns of the lifetimes, None for a table whose rows hold at all times."""
        return None if self.start is None else LifetimeColumns(self.start, self.end)

    def of(self, source: Source) -> SourceFrame:
        """Return the frame of a source: where it names no columns of lifetimes, with those that the source names."""
        named = source.lifetime_columns
        return SourceFrame(self.rows, named.start, named.end) if self.lives == DEFAULT else self


Frames: TypeAlias = DataFrame | SourceFrame | Mapping[str, DataFrame | SourceFrame]
"""The frame of each source by its name, or that of the only one."""


def frames_by_source(
    frames: Frames, named_sources: Mapping[str, Source], own: Collection[str], start: str, end: str | None
) -> dict[str, SourceFrame]:
    """Return the frame of each source; `start` and `end` are the roles in frames that are not a `SourceFrame` with its own.

    Sources in `own` are bound in the query. One frame alone is that of the only other source. Raises `QueryError` if there is
    no such source, or are several, and for roles that no frame would take.
    """
    if start is None:
        raise QueryError(
            "start= is the name of a column, not a NoneType",
            hint="SourceFrame(rows, start=None) is a table whose rows hold at all times",
        )
    named = frames if isinstance(frames, Mapping) else {_only([name for name in named_sources if name not in own]): frames}
    roles = {"start": start} if end is None else {"start": start, "end": end}
    if roles != {"start": "le"} and named and all(isinstance(frame, SourceFrame) for frame in named.values()):
        raise QueryError(
            f"each frame says its own roles, so {' and '.join(f'{role}={name!r}' for role, name in roles.items())} are of none",
            hint="name the columns either in SourceFrame(rows, start=..., end=...) or beside the frames",
        )
    checked = {name: frame if isinstance(frame, SourceFrame) else SourceFrame(frame, start, end) for name, frame in named.items()}
    for name, frame in checked.items():
        _check_rows(name, frame.rows)
    return {name: frame.of(named_sources[name]) if name in named_sources else frame for name, frame in checked.items()}


def _only(sources: Sequence[str]) -> str:
    """Return the name of the only source."""
    if len(sources) == 1:
        return sources[0]
    if not sources:
        raise QueryError("one frame is given, but all sources of the query are bound in it", hint="give no frame: {}")
    raise QueryError(
        f"one frame is given, but the query has {len(sources)} sources: {', '.join(sources)}",
        hint=f"name the source of each: {{{', '.join(f'{name!r}: frame' for name in sources)}}}",
    )


def _check_rows(name: str, rows: object) -> None:
    if not isinstance(rows, DataFrame):
        raise QueryError(
            f"the input of the source {name!r} is no DataFrame of Spark but a {type(rows).__name__}",
            hint="make one with spark.createDataFrame(...), or run the query with run(...)",
        )
