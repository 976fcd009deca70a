"""Sources of streams: bounded inputs, and named sources that are bound later."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, overload

from typing_extensions import TypeVar

from streamdsl.errors import QueryError
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Source
from streamdsl.plan.places import placed
from streamdsl.stream import Stream
from streamdsl.temporal import LifetimeColumns, OnViolation, Progress, Record, TimeLike, Unit, check_unit
from streamdsl.temporal.events import PhysicalEvent
from streamdsl.temporal.lifetime_columns import DEFAULT

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from streamdsl.io.binding import Bound
    from streamdsl.io.files import Paths

T = TypeVar("T")
Named = TypeVar("Named", default=Any)
"""The payload type of a named source: the declared one, else unknown."""
Row = TypeVar("Row", default=Record)
"""The payload type of a frame's rows: the declared one, else records."""

Frame: TypeAlias = "pd.DataFrame | pl.DataFrame | pl.LazyFrame"

_numbers = itertools.count(1)

__all__ = [
    "from_arrow",
    "from_csv",
    "from_events",
    "from_files",
    "from_jsonl",
    "from_pandas",
    "from_parquet",
    "from_polars",
    "from_rows",
    "from_table",
    "source",
]


def source(
    name: str,
    payload: type[Named] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Named]:
    """Return a named source, bound later by `query.run({"trips": ...})`, or fed by `session.push(events, source="trips")`.

    `payload` is the exact type of its payloads (an instance of a subclass may have other fields, and is refused); without it the
    schema is inferred at run time. `unit` is the unit of its times, `progress` generates CTIs if the input has none of its own,
    and `on_violation` is the policy for events that break a CTI. The frames and files that come to it have LE
    in the column `start` and RE in `end`, as in `from_pandas`. Raises `QueryError` for an invalid argument.

    >>> from streamdsl.temporal import Insert
    >>> source("numbers").run({"numbers": [Insert("a", 1, 5, 7)]}).cht()
    CHT
      [1, 5) 7
    >>> import pandas as pd
    >>> source("trips", start="at").run({"trips": pd.DataFrame({"at": [3], "fare": [7]})}).cht()
    CHT
      [3, 4) fare=7
    """
    from streamdsl.io.layout import as_schema

    return Stream(_node(name, as_schema(payload), unit, progress, on_violation, LifetimeColumns(start, end)))


@overload
def from_events(
    events: Iterable[PhysicalEvent[Any]],
    payload: type[T],
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[T]: ...
@overload
def from_events(
    events: Iterable[PhysicalEvent[Mapping[str, Any]]],
    payload: None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Record]: ...
@overload
def from_events(
    events: Iterable[PhysicalEvent[T]],
    payload: None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[T]: ...
def from_events(
    events: Iterable[PhysicalEvent[Any]],
    payload: type[Any] | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Any]:
    """Return a bounded stream of physical events in order of arrival, CTIs included.

    Raises `UnitError` and `TimeOverflow` for a value that is no time. Malformed events, and payloads of another type (without
    `payload`: than that of the first), are refused when the stream is run.

    >>> from streamdsl.temporal import Cti, Insert, Retract
    >>> from_events([Insert("a", 1, 9, "x"), Cti(3), Retract("a", 1, 9, 5)]).run().cht()
    CHT
      [1, 5) 'x'
    """
    from streamdsl.io.readers import read_events

    return _bounded("events", read_events(events, payload, unit), progress, on_violation)


@overload
def from_rows(
    rows: Iterable[tuple[TimeLike, TimeLike, Any]],
    payload: type[T],
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[T]: ...
@overload
def from_rows(
    rows: Iterable[tuple[TimeLike, TimeLike, Mapping[str, Any]]],
    payload: None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Record]: ...
@overload
def from_rows(
    rows: Iterable[tuple[TimeLike, TimeLike, T]],
    payload: None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[T]: ...
def from_rows(
    rows: Iterable[tuple[TimeLike, TimeLike, Any]],
    payload: type[Any] | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Any]:
    """Return a bounded stream of `(le, re, payload)` rows, inserted in the given order; `payload` is the type of their payloads.

    Raises `UnitError` and `TimeOverflow` for a value that is no time, and `SchemaError` for a payload of another type (without
    `payload`: than that of the first); all name the row by its number.

    >>> from_rows([(1, 5, "x"), (3, 4, "y")]).run().cht()
    CHT
      [1, 5) 'x'
      [3, 4) 'y'
    """
    from streamdsl.io.readers import read_rows

    return _bounded("rows", read_rows(rows, unit, payload), progress, on_violation)


def from_pandas(
    frame: pd.DataFrame,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of a pandas frame's rows: LE in column `start`, RE in column `end`.

    By default these are `le` and, if it exists, `re`; rows without an end are point events. The other columns are the payload, a
    record or an instance of `payload`. Dates become ticks of `unit` (`"us"` by default), naive ones are in UTC, a null RE is
    INFINITY.

    >>> import pandas as pd
    >>> from_pandas(pd.DataFrame({"at": [1, 4], "n": [10, 20]}), start="at").run().cht()
    CHT
      [1, 2) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_pandas

    return _bounded("pandas", read_pandas(frame, payload, start, end, unit), progress, on_violation)


def from_arrow(
    table: pa.Table | Paths,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of the rows of an Arrow table, or of Arrow IPC files (a directory stands for its `*.arrow` files).

    >>> import pyarrow as pa
    >>> from_arrow(pa.table({"le": [1, 4], "re": [3, 5], "n": [10, 20]}), end="re").run().cht()
    CHT
      [1, 3) n=10
      [4, 5) n=20
    """
    from streamdsl.io.files import are_paths
    from streamdsl.io.readers import read_arrow, read_files

    read: Any = partial(read_files, form="arrow") if are_paths(table) else read_arrow
    return _bounded("arrow", read(table, payload, start, end, unit), progress, on_violation)


def from_polars(
    frame: pl.DataFrame,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of a polars frame's rows; columns and times as in `from_pandas`.

    >>> import polars as pl
    >>> from_polars(pl.DataFrame({"le": [1, 4], "re": [3, 5], "n": [10, 20]}), end="re").run().cht()
    CHT
      [1, 3) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_polars

    return _bounded("polars", read_polars(frame, payload, start, end, unit), progress, on_violation)


def from_files(
    paths: Paths,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of the rows of files in any format of jobs (docs/jobs.md), which their suffix says.

    Columns and times are as in `from_pandas`. A directory stands for the files in it whose suffixes are of a format; folders such
    as `month=01` in it give their rows a column, a text unless `payload` declares another type. Raises `QueryError` for files of
    several formats, `SchemaError` for files that are not in folders of the same names.

    >>> import pathlib, tempfile, pandas as pd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> pd.DataFrame({"le": [1, 4], "n": [10, 20]}).to_csv(path, index=False)
    >>> from_files(path.parent).run().cht()
    CHT
      [1, 2) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_files

    return _bounded("files", read_files(paths, payload, start, end, unit), progress, on_violation)


def from_parquet(
    paths: Paths,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of the rows of Parquet files, read in batches; columns and times as in `from_pandas`.

    A directory stands for the `*.parquet` files in it.

    >>> import pathlib, tempfile, pandas as pd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.parquet"
    >>> pd.DataFrame({"le": [1, 4], "n": [10, 20]}).to_parquet(path)
    >>> from_parquet(path).run().cht()
    CHT
      [1, 2) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_files

    return _bounded("parquet", read_files(paths, payload, start, end, unit, "parquet"), progress, on_violation)


def from_csv(
    paths: Paths,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of the rows of CSV files with a header, as in `from_pandas`; an empty field is None.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("le,n\\n1,10\\n4,20\\n")
    >>> from_csv(path).run().cht()
    CHT
      [1, 2) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_files

    return _bounded("csv", read_files(paths, payload, start, end, unit, "csv"), progress, on_violation)


def from_jsonl(
    paths: Paths,
    payload: type[Row] | None = None,
    start: str = "le",
    end: str | None = None,
    *,
    unit: Unit | None = None,
    progress: Progress | None = None,
    on_violation: OnViolation = "error",
) -> Stream[Row]:
    """Return a bounded stream of the rows of JSON Lines files, one object per line; columns and times as in `from_pandas`.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> _ = path.write_text('{"le": 1, "n": 10}\\n{"le": 4, "n": 20}\\n')
    >>> from_jsonl(path).run().cht()
    CHT
      [1, 2) n=10
      [4, 5) n=20
    """
    from streamdsl.io.readers import read_files

    return _bounded("jsonl", read_files(paths, payload, start, end, unit, "jsonl"), progress, on_violation)


@overload
def from_table(rows: Frame, payload: type[Row] | None = None, *, unit: Unit | None = None) -> Stream[Row]: ...
@overload
def from_table(rows: Iterable[Any], payload: type[T], *, unit: Unit | None = None) -> Stream[T]: ...
@overload
def from_table(rows: Iterable[Mapping[str, Any]], payload: None = None, *, unit: Unit | None = None) -> Stream[Record]: ...
@overload
def from_table(rows: Iterable[T], payload: None = None, *, unit: Unit | None = None) -> Stream[T]: ...
@overload
def from_table(rows: pa.Table, payload: type[Row] | None = None, *, unit: Unit | None = None) -> Stream[Row]: ...
def from_table(rows: Any, payload: Any = None, *, unit: Unit | None = None) -> Stream[Any]:
    """Return reference data as a stream: rows, or a frame, with the lifetime [MIN_TIME, INFINITY).

    Its CTI is INFINITY from the beginning, so it holds nothing back in a join. A session reads it when it is opened, and the
    first push returns the results of that. Raises `QueryError` for a value that is neither rows nor a frame.

    >>> zones = from_table([{"zone": "A", "name": "Airport"}, {"zone": "B", "name": "Bay"}])
    >>> trips = from_rows([(1, 8, {"zone": "B"}), (4, 12, {"zone": "A"})])
    >>> trips.join(zones, on="zone", select=lambda trip, zone: zone.name).run().cht()
    CHT
      [1, 8) 'Bay'
      [4, 12) 'Airport'
    """
    from streamdsl.io.readers import read_table

    data = read_table(rows, payload, check_unit(unit))
    node = Source(f"table_{next(_numbers)}", data.schema, data.unit, table=True)
    return Stream(node, {node.source: data})


def _bounded(kind: str, data: Bound, progress: Progress | None, on_violation: OnViolation) -> Stream[Any]:
    node = _node(f"{kind}_{next(_numbers)}", data.schema, data.unit, progress, on_violation)
    return Stream(node, {node.source: data})


def _node(
    name: str,
    payload: Schema | None,
    unit: str | None,
    progress: Progress | None,
    on_violation: OnViolation,
    lives: LifetimeColumns = DEFAULT,
) -> Source:
    if on_violation not in get_args(OnViolation):
        raise QueryError(
            f"there is no on_violation={on_violation!r}; the choices are: {', '.join(get_args(OnViolation))}",
            hint='on_violation="drop" drops late events',
        )
    if not isinstance(name, str) or not name:
        raise QueryError(f"a source has a name, not {name!r}", hint='for example sd.source("trips", Trip)')
    if progress is not None and not isinstance(progress, Progress):
        raise QueryError(f"{progress!r} is not a progress policy", hint='for example progress=sd.Progress.slack("5m")')
    return placed(Source(name, payload, check_unit(unit), progress, on_violation, lifetime_columns=lives))
