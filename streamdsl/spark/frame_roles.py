"""What a query on Spark is given: the DataFrame of each source, and which of its columns are the rows' lifetimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from streamdsl.errors import QueryError
from streamdsl.io.layout import check_roles


@dataclass(frozen=True, slots=True)
class SourceFrame:
    """The DataFrame of a source, with LE in the column `start` and RE in the column `end`, as in `sd.from_pandas`.

    By default these are `le` and, if it exists, `re`; rows without an end are point events. The other columns are the payload.
    With `start=None` the rows of a table hold at all times, as those of `sd.sources.from_table`.
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
        for role, name in (("start", self.start), ("end", self.end)):
            if not isinstance(name, str | None):
                raise _no_name(role, name, f'for example {role}="pickup_time"')
        if self.start is not None:
            check_roles(self.start, self.end)


def _no_name(role: str, given: object, hint: str) -> QueryError:
    return QueryError(f"{role}= is the name of a column, not a {type(given).__name__}", hint=hint)


Frames: TypeAlias = DataFrame | SourceFrame | Mapping[str, DataFrame | SourceFrame]
"""The frame of each source by its name, or that of the only one."""


def frames_by_source(frames: Frames, open_sources: Sequence[str], start: str, end: str | None) -> dict[str, SourceFrame]:
    """Return the frame of each source; `start` and `end` are the roles in frames that are not a `SourceFrame` with its own.

    One frame alone is that of the only source that is not bound in the query. Raises `QueryError` if there is no such source,
    or are several, and for roles that no frame would take.
    """
    if start is None:
        raise _no_name("start", start, "SourceFrame(rows, start=None) is a table whose rows hold at all times")
    named = frames if isinstance(frames, Mapping) else {_only(open_sources): frames}
    roles = {"start": start} if end is None else {"start": start, "end": end}
    if roles != {"start": "le"} and named and all(isinstance(frame, SourceFrame) for frame in named.values()):
        raise QueryError(
            f"each frame says its own roles, so {' and '.join(f'{role}={name!r}' for role, name in roles.items())} are of none",
            hint="name the columns either in SourceFrame(rows, start=..., end=...) or beside the frames",
        )
    checked = {name: frame if isinstance(frame, SourceFrame) else SourceFrame(frame, start, end) for name, frame in named.items()}
    for name, frame in checked.items():
        _check_rows(name, frame.rows)
    return checked


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
