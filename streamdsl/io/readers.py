"""Readers that turn events, rows, frames and files into bound inputs, and the binding of named sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamdsl.errors import QueryError, SchemaError, UnitError
from streamdsl.expr.deferred import AnyColumn, DeferredColumn
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Column, Table
from streamdsl.extras import need_pyarrow
from streamdsl.io.binding import Bound, Inserts, Piece, known_ends, rereadable
from streamdsl.io.columns import Columns, RowColumns
from streamdsl.io.files import Paths, listed_paths
from streamdsl.io.layout import Layout, PayloadLike, as_schema, frame_schema, payloads_of
from streamdsl.io.libraries import columns_of, is_frame
from streamdsl.io.partition_folders import PartitionedFiles
from streamdsl.io.payloads import schema_for, table_of, uniform_table
from streamdsl.io.physical import PhysicalLayout, has_physical_columns
from streamdsl.io.uniform import Fields, UniformRows
from streamdsl.result import Result
from streamdsl.temporal import (
    CHT,
    INFINITY,
    MIN_TIME,
    Cti,
    Event,
    EventReader,
    Insert,
    LifetimeColumns,
    Retract,
    Unit,
    check_unit,
)
from streamdsl.temporal.events import PhysicalEvent
from streamdsl.temporal.lifetime_columns import DEFAULT
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from streamdsl.plan.node import Source

_AT_ONCE: Final = 4096
_BINDABLE = (
    "bind a list of events (Insert, Retract, Cti) or of (le, re, payload) rows, a CHT, a Result, "
    "or a pandas, polars or Arrow frame with the columns le and re, or kind, id, le, re, re_new"
)


def read_events(events: Iterable[PhysicalEvent[Any]], payload: PayloadLike = None, unit: Unit | None = None) -> Bound:
    """Return a physical stream as a bound input: the events in the given order, CTIs included.

    The unit is the given one, else `"us"` if there are dates among the times and `"tick"` if all are ints. Raises `EventError`
    for a null time, `UnitError` and `TimeOverflow` for values that are no times; they name the event.

    >>> read_events([Insert("a", 1, 5, "x"), Cti(6)]).unit
    'tick'
    """
    return rereadable(partial(_bind_events, list(_items(events, "events"))), as_schema(payload), check_unit(unit))


def _bind_events(events: Sequence[Any], payload: Schema | None, unit: Unit | None) -> Bound:
    reader = EventReader(unit)
    read = list(map(reader.event, events))
    first = next((event for event in read if isinstance(event, Insert)), None)
    schema = payload or (schema_for(None, first.id, first.payload) if first is not None else None)
    return Bound(reader.found, schema, lambda: iter([list(read)]), len(read))


def read_rows(rows: Iterable[tuple[Any, Any, Any]], unit: Unit | None = None, payload: PayloadLike = None) -> Bound:
    """Return `(le, re, payload)` rows as insertions, numbered in their order; unit and errors as with `read_events`.

    >>> list(read_rows([(1, 5, "x")]).events())
    [Insert(id=0, le=1, re=5, payload='x')]
    """
    return rereadable(partial(_bind_rows, list(_items(rows, "rows"))), as_schema(payload), check_unit(unit))


def _bind_rows(rows: Sequence[Any], schema: Schema | None, unit: Unit | None) -> Bound:
    """Read rows in chunks that fit into a processor's cache, as each row is visited several times."""
    reader = EventReader(unit)
    pieces: list[Piece] = []
    uniform = UniformRows.of(rows)
    for first in range(0, len(rows) or 1, _AT_ONCE):
        stop = min(first + _AT_ONCE, len(rows))
        piece = None if uniform is None else _uniform_inserts(uniform.fields(first, stop), reader, schema)
        if piece is None:
            uniform, piece = None, _inserts(rows[first:stop], first, reader, schema)
        schema = piece.table.schema if len(piece) else schema
        pieces.append(piece)
    return Bound(reader.found, schema, lambda: iter(pieces), len(rows))


def _uniform_inserts(fields: Fields | None, reader: EventReader, schema: Schema | None) -> Inserts | None:
    """Return rows read as columns as insertions; None unless they are `(le, re, payload)` of numbers."""
    match fields:
        case [np.ndarray() as le, np.ndarray() as re, payload] if le.dtype == re.dtype == np.int64:
            table = uniform_table(payload, schema)
            return None if table is None else Inserts(None, reader.integers(le), known_ends(le, reader.integers(re)), table)
    return None


def _inserts(rows: Sequence[Any], first: int, reader: EventReader, schema: Schema | None) -> Inserts:
    """Return rows as insertions; raises `QueryError` for an item that is not an `(le, re, payload)` tuple."""
    if not all(issubclass(kind, tuple) for kind in distinct(map(type, rows))) or not distinct(map(len, rows)) <= {3}:
        number, odd = next(at for at in enumerate(rows, first) if not isinstance(at[1], tuple) or len(at[1]) != 3)
        hint = "a payload from time 1 until 5 is the row (1, 5, payload); at time 1 alone the event sd.point(id, 1, payload)"
        if isinstance(odd, PhysicalEvent):
            hint = "events and rows do not mix"
        raise QueryError(f"row {number} is not a tuple (le, re, payload): {odd!r:.80}", hint=hint)
    starts, ends, payloads = (list(map(itemgetter(place), rows)) for place in range(3))
    table = table_of(payloads, schema, first)
    return Inserts(None, *_lifetimes(reader, starts, ends, first), table)


def _lifetimes(reader: EventReader, starts: Sequence[Any], ends: Sequence[Any], first: int) -> tuple[Ticks, Ticks]:
    le, re = reader.ticks(starts), reader.ticks(ends)
    if le is not None and re is not None:
        return le, re
    lifetimes = [reader.lifetime(number, *life) for number, life in enumerate(zip(starts, ends, strict=True), first)]
    both = np.array(lifetimes, dtype=np.int64).reshape(len(lifetimes), 2)
    return both[:, 0].copy(), both[:, 1].copy()


def read_records(
    records: Sequence[Mapping[str, Any]], payload: PayloadLike = None, unit: Unit | None = None, lives: LifetimeColumns = DEFAULT
) -> Bound:
    """Return mappings, such as JSON objects, as the rows of a frame whose columns are their keys.

    All have the same keys; where `payload` says which fields there are, they may have others too. Raises as `read_pandas` does.

    >>> list(read_records([{"le": 3, "v": 7}]).events())
    [Insert(id=0, le=3, re=4, payload=Record(v=7))]
    """
    schema, names = frame_schema(payload), list(records[0]) if records else []
    if schema is not None:
        names = [name for name in names if all(name in record for record in records)]
    for number, record in enumerate(records):
        if schema is None and list(record) != names and record.keys() != set(names):
            wrong = ", ".join(sorted(map(repr, record.keys() ^ set(names))))
            raise SchemaError(
                f"record {number} differs from record 0 in {wrong}; the fields are: {', '.join(names)}",
                hint="every payload of a stream has the same fields; null is a value, and a declared payload picks fields",
            )
    return _bind_columns(RowColumns(names, records), lives, schema, check_unit(unit))


def read_table(rows: object, payload: PayloadLike = None, unit: Unit | None = None) -> Bound:
    """Return payloads, or the rows of a frame, with the lifetime [MIN_TIME, INFINITY).

    >>> list(read_table(["x"]).events()) == [Insert(0, MIN_TIME, INFINITY, "x")]
    True
    """
    columns = columns_of(rows)
    if columns is None:
        table = table_of(list(_items(rows, "rows")), as_schema(payload))
    else:
        payloads = payloads_of(columns, (), frame_schema(payload))
        table = payloads.table(payloads.values(columns), columns.size)
    piece = Inserts(None, np.full(table.size, MIN_TIME), np.full(table.size, INFINITY), table)
    return Bound(unit, table.schema if table.size else as_schema(payload), lambda: iter([piece]), table.size)


def _items(items: Any, what: str) -> Iterable[Any]:
    if isinstance(items, GeneratorType) and items.gi_frame is None:
        raise QueryError(
            f"{what}: the generator has been read to its end", hint="pass a list, which can be read repeatedly: list(...)"
        )
    if isinstance(items, Iterable) and not is_frame(items):
        return items
    raise QueryError(
        f"{what} are expected, not a {type(items).__name__}", hint="from_pandas, from_arrow and from_polars take a frame"
    )


def read_pandas(
    frame: pd.DataFrame, payload: PayloadLike = None, start: str = "le", end: str | None = None, unit: Unit | None = None
) -> Bound:
    """Return a pandas frame's rows as insertions with the lifetime `[start, end)`.

    By default these are the columns `le` and, if it exists, `re`; rows without an end are point events. Times are
    dates (naive ones in UTC), integers or ISO text; a null end is INFINITY, a null start an `EventError`. The payload is a record
    of the other columns, or exactly the fields of the class `payload`. A physical frame is read as its events. Raises
    `SchemaError` for missing columns and `UnitError` for dates that are not a whole number of units.

    >>> import pandas as pd
    >>> list(read_pandas(pd.DataFrame({"t": [3], "v": [7]}), start="t").events())
    [Insert(id=0, le=3, re=4, payload=Record(v=7))]
    """
    return _read_frame(frame, "a pandas frame", payload, start, end, unit)


def read_polars(
    frame: pl.DataFrame | pl.LazyFrame,
    payload: PayloadLike = None,
    start: str = "le",
    end: str | None = None,
    unit: Unit | None = None,
) -> Bound:
    """Return a polars frame's rows as insertions, as `read_pandas` does; a lazy frame is collected."""
    return _read_frame(frame, "a polars frame", payload, start, end, unit)


def read_arrow(
    table: Any, payload: PayloadLike = None, start: str = "le", end: str | None = None, unit: Unit | None = None
) -> Bound:
    """Return an Arrow table's rows as insertions, as `read_pandas` does; any object with an Arrow C stream will do."""
    if columns_of(table) is None and hasattr(table, "__arrow_c_stream__"):
        need_pyarrow("Arrow tables")
        import pyarrow as pa

        table = pa.table(table)
    return _read_frame(table, "an Arrow table", payload, start, end, unit)


def _read_frame(frame: object, what: str, payload: PayloadLike, start: str, end: str | None, unit: Unit | None) -> Bound:
    columns, lives = _frame_columns(frame, what), LifetimeColumns(start, end)
    return rereadable(partial(_bind_columns, columns, lives), frame_schema(payload), check_unit(unit))


def _bind_columns(columns: Columns, lives: LifetimeColumns, payload: Schema | None, unit: Unit | None) -> Bound:
    layout = _layout(columns, payload, lives, unit)
    schema = layout.payloads.schema
    if isinstance(layout, PhysicalLayout):
        return Bound(layout.unit, schema, _Given(layout.events(columns)), columns.size)
    return _in_memory(_Converted(columns), layout, layout.lifetimes(columns))


def _in_memory(columns: Columns, layout: Layout, ends: tuple[Ticks, Ticks | None]) -> Bound:
    reader = _InMemory(columns, layout, *ends)
    if layout.payloads.schema.shape is Shape.OBJECT:
        reader()  # user code builds the payloads: its errors are raised here, not at the first run
    schema = layout.payloads.schema
    return Bound(layout.unit, schema, reader, columns.size, lambda less: _in_memory(columns, layout.narrowed(less), ends))


class _Converted:
    """The columns of a frame, each converted to payload values once and then cached for all runs."""

    def __init__(self, columns: Columns) -> None:
        self.names, self.size, self.memo = columns.names, columns.size, columns.memo
        self.times = columns.times
        self._columns = columns
        self._held: dict[str, AnyColumn] = {}

    def values(self, name: str) -> Column:
        """Return a column as payload values."""
        part = self.held(name)
        return part.column if isinstance(part, DeferredColumn) else part

    def held(self, name: str) -> AnyColumn:
        """Return a column as payload values, deferred where that saves making Python objects."""
        if name not in self._held:
            self._held[name] = self._columns.held(name)
        return self._held[name]


@dataclass(frozen=True, slots=True)
class _Given:
    """The reader of a physical frame: one piece, all its events."""

    events: list[Event[Any]]

    def __call__(self) -> Iterator[Piece]:
        yield list(self.events)


@dataclass(frozen=True, eq=False)
class _InMemory:
    """The reader of a frame: one piece, which shares the memory of the columns; payloads are made on first use."""

    columns: Columns
    layout: Layout
    le: Ticks
    ends: Ticks | None

    def __call__(self) -> Iterator[Piece]:
        return iter([Inserts(None, self.le, self.ends, self._table)])

    @cached_property
    def _table(self) -> Table:
        return self.layout.table(self.columns)


def _layout(
    columns: Columns, payload: Schema | None, lives: LifetimeColumns, unit: Unit | None, file: str | None = None
) -> Layout | PhysicalLayout:
    """Return the layout of a frame: of physical events if it has their columns, else of rows with these lifetimes."""
    if has_physical_columns(columns) and lives.may_be_physical:
        return PhysicalLayout.of(columns, unit, payload, file)
    return Layout.of(columns, lives.among(columns.names), unit, payload, file)


def _piece(columns: Columns, layout: Layout | PhysicalLayout, first_row: int = 0) -> Piece:
    if isinstance(layout, PhysicalLayout):
        return layout.events(columns, first_row)
    return layout.inserts(columns, first_row)


def read_files(
    paths: Paths,
    payload: PayloadLike = None,
    start: str = "le",
    end: str | None = None,
    unit: Unit | None = None,
    form: str | None = None,
    base: Paths = (),
) -> Bound:
    """Return the rows of files, read in pieces, as `read_pandas` does; a directory stands for the files in it.

    Folders such as `month=01` in it, or in `base`, give their rows a column, a text unless `payload` declares another type.
    `form` is the name of their format, by default what their suffixes say. Columns of a CSV file have the types that the class
    `payload` declares, else the narrowest that hold all their fields.
    """
    from streamdsl.io.formats import open_files

    lives = LifetimeColumns(start, end)
    files = PartitionedFiles(open_files(paths, form, payload, start), [*listed_paths(base), *listed_paths(paths)])
    columns, file = files.peek()

    def read(payload: Schema | None, unit: Unit | None) -> Bound:
        return _in_files(files, _layout(columns, payload, lives, unit, file))

    return rereadable(read, frame_schema(payload), check_unit(unit))


def _in_files(files: PartitionedFiles, layout: Layout | PhysicalLayout) -> Bound:
    def pieces() -> Iterator[Piece]:
        for piece, path, first_row in files.pieces(layout.needed):
            yield _piece(piece, replace(layout, file=path), first_row)

    narrow = None
    if isinstance(layout, Layout) and files.in_columns:
        narrow = lambda less: _in_files(files, layout.narrowed(less))  # noqa: E731
    apart = None
    if isinstance(layout, Layout):
        apart = lambda: [_in_files(each, layout) for each in files.one_by_one()]  # noqa: E731
    return Bound(layout.unit, layout.payloads.schema, pieces, files.rows, narrow, apart=apart)


def read_frame(
    frame: object, payload: PayloadLike = None, unit: Unit | None = None, lives: LifetimeColumns = DEFAULT
) -> list[Event[Any]] | Inserts:
    """Return the events of a pushed physical frame, or the insertions of another frame.

    >>> import pandas as pd
    >>> len(read_frame(pd.DataFrame({"le": [1, 2], "re": [5, 6], "v": [7, 8]})))
    2
    """
    columns = _frame_columns(frame)
    return _piece(columns, _layout(columns, frame_schema(payload), lives, check_unit(unit)))


def _frame_columns(frame: object, what: str = "a pandas, polars or Arrow frame") -> Columns:
    columns = columns_of(frame)
    if columns is None:
        raise QueryError(f"{what} is expected, not a {type(frame).__name__}", hint="from_events and from_rows take Python lists")
    return columns


def bind(value: object, source: Source) -> Bound:
    """Return a value as the bound input of a source, with its payload and unit; raises `QueryError` for a value of another kind.

    >>> from streamdsl.plan.node import Source
    >>> bind([(1, 5, "x"), (2, 4, "y")], Source("trips")).size_hint
    2
    """
    bound = _bound(value, source)
    if isinstance(value, Bound) and value.reread is not None:
        bound = value.reread(source.payload, source.time_unit)
    if None not in (source.time_unit, bound.unit) and source.time_unit != bound.unit:
        raise UnitError(
            f"the source {source.source!r} counts time in {source.time_unit}, its input in {bound.unit}",
            hint="give both the same unit=; a source without one counts us once a date or text is used with it",
        )
    return bound


def _bound(value: object, source: Source) -> Bound:
    if isinstance(value, Bound):
        return value
    if isinstance(value, CHT):
        return read_rows(value.rows, value.unit or source.time_unit, source.payload)
    if isinstance(value, Result):
        return read_events(value.events(), source.payload, value.unit or source.time_unit)
    columns = columns_of(value)
    if columns is not None:
        return _bind_columns(columns, source.lifetime_columns, source.payload, source.time_unit)
    if isinstance(value, (list, tuple, Iterator)):
        items = _items(value, f"the input of {source.source!r}")
        return _bind_items(items if isinstance(items, list) else list(items), source)
    raise _unbindable(value, source)


def _bind_items(items: list[Any], source: Source) -> Bound:
    if items and type(items[0]) is tuple:
        return _bind_rows(items, source.payload, check_unit(source.time_unit))
    if all(issubclass(kind, (Insert, Retract, Cti)) for kind in distinct(map(type, items))):
        return read_events(items, source.payload, source.time_unit)
    if isinstance(items[0], tuple):
        return _bind_rows(items, source.payload, check_unit(source.time_unit))
    odd = next(item for item in items if not isinstance(item, (Insert, Retract, Cti)))
    raise _unbindable(odd, source, "an item that is ")


def _unbindable(value: object, source: Source, what: str = "") -> QueryError:
    return QueryError(
        f"source {source.source!r} cannot be bound to {what}a {type(value).__name__}: {value!r:.80}", hint=_BINDABLE
    )
