"""streamdsl: columns in and out, tuples in and rows out, and sessions that are pushed to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from benchmarks.answer import Answer, from_arrow, from_rows
from benchmarks.data import Columns, Data
from benchmarks.workload import Way

Query: TypeAlias = Callable[..., Any]
"""Takes a stream for each of the inputs, and returns a stream."""

PUSH = 16_384


def columns(query: Query, at_most: int | None = None) -> Way:
    """Run over Arrow tables, to an Arrow table."""

    def prepare(data: Data) -> Callable[[], Any]:
        asked, tables = over(query, data), _tables(data)
        return lambda: asked.run(tables).to_arrow()

    return Way(prepare, from_arrow, at_most, state=state_of(query))


def tuples(query: Query, at_most: int | None = None) -> Way:
    """Run over Python tuples `(le, re, payload)`, to rows; the fields are called `_0`, `_1`, ..."""

    def prepare(data: Data) -> Callable[[], Any]:
        asked = over(query, data)
        rows = {name: _lifetimes(columns) for name, columns in data.items()}
        return lambda: list(asked.run(rows).cht())

    return Way(prepare, _read_rows, at_most)


def pushes(query: Query, emit: str, slack: int = 0) -> Way:
    """Push 16k rows of an Arrow table at a time, to physical events."""

    def prepare(data: Data) -> Callable[[], Any]:
        import streamdsl as sd

        (table,) = _tables(data).values()
        pieces = [table.slice(start, PUSH) for start in range(0, len(table), PUSH)]
        return lambda: _pushed(over(query, data, sd.Progress.slack(slack)).open(emit=emit), pieces)

    return Way(prepare, _read_events, state=state_of(query))


def feeds(query: Query, emit: str, slack: int = 0) -> Way:
    """Push 16k rows of an Arrow table at a time, to physical events in Arrow tables."""

    def prepare(data: Data) -> Callable[[], Any]:
        import streamdsl as sd

        (table,) = _tables(data).values()
        pieces = [table.slice(start, PUSH) for start in range(0, len(table), PUSH)]

        def fed() -> list[Any]:
            session = over(query, data, sd.Progress.slack(slack)).open(emit=emit)
            return [session.feed(piece).to_arrow() for piece in [*pieces, [sd.Cti(sd.INFINITY)]]]

        return fed

    return Way(prepare, _read_tables)


def events(query: Query, emit: str, size: int) -> Way:
    """Push so many events at a time, each with the CTI that it implies, to physical events."""

    def prepare(data: Data) -> Callable[[], Any]:
        import streamdsl as sd

        (columns,) = data.values()
        payloads = zip(*(columns[name].tolist() for name in columns if name != "le"), strict=True)
        points = [sd.point(n, le, each) for n, (le, each) in enumerate(zip(columns["le"].tolist(), payloads, strict=True))]
        pieces = [points[start : start + size] for start in range(0, len(points), size)]
        return lambda: _pushed(over(query, data, sd.Progress.ordered()).open(emit=emit), pieces)

    return Way(prepare, _read_events)


def over(query: Query, data: Data, progress: Any = None) -> Any:
    """Return the query over sources named like the inputs."""
    import streamdsl as sd

    load_kernels()
    return query(*(sd.source(name, progress=progress) for name in data))


def load_kernels() -> None:
    """Load the compiled loops, as they are in a process through which many rows have come."""
    from streamdsl.engine.columnar.kernels import DIGIT_ADDER, DIGIT_SUMMER
    from streamdsl.expr.encoding import INTEGER_ENCODER

    for kernel in (DIGIT_ADDER, DIGIT_SUMMER, INTEGER_ENCODER):
        kernel.load()


def state_of(query: Query) -> Callable[[Data], int]:
    """Return what tells the bytes of state of a query that has read everything and knows of no progress."""

    def state(data: Data) -> int:
        session = over(query, data).open(emit="final")
        for name, table in _tables(data).items():
            session.push(table, source=name)
        return sum(operator["state_bytes"] for operator in session.stats().values())

    return state


def _tables(data: Data) -> dict[str, Any]:
    import pyarrow as pa

    return {name: pa.table(dict(columns)) for name, columns in data.items()}


def _lifetimes(columns: Columns) -> list[tuple[int, int, tuple[int, ...]]]:
    le = columns["le"].tolist()
    payloads = zip(*(columns[name].tolist() for name in columns if name != "le"), strict=True)
    return [(start, start + 1, payload) for start, payload in zip(le, payloads, strict=True)]


def _pushed(session: Any, pieces: Sequence[Any]) -> list[Any]:
    out = []
    for piece in pieces:
        out.extend(session.push(piece))
    out.extend(session.close())
    return out


def _read_events(events: list[Any], names: Sequence[str]) -> Answer:
    import streamdsl as sd

    return _read_rows(sd.CHT.from_events(events).rows, names)


def _read_tables(tables: list[Any], names: Sequence[str]) -> Answer:
    """Return the rows that have been inserted and not retracted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.concat_tables(tables, promote_options="permissive")
    gone = table.filter(pc.equal(table["kind"], "retract"))["id"]
    inserted = table.filter(pc.equal(table["kind"], "insert"))
    return from_arrow(inserted.filter(pc.invert(pc.is_in(inserted["id"], gone))), names)


def _read_rows(rows: Sequence[Any], names: Sequence[str]) -> Answer:
    def value(row: Any, name: str) -> Any:
        return getattr(row, name) if name in ("le", "re") else row.payload[name]

    return from_rows(([value(row, name) for name in names] for row in rows), names)
