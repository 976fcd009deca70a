"""Pathway: tables of static rows, one thread, to a subscriber that gathers the final rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.answer import Answer, from_rows
from benchmarks.data import Data, rows
from benchmarks.workload import Way


def tables(query: Callable[..., Any], at_most: int = 100_000) -> Way:
    """Run a function of tables, one for each input, to rows."""

    def prepare(data: Data) -> Callable[[], Any]:
        import pathway as pw
        from pathway.internals.parse_graph import G

        G.clear()
        given = []
        for columns in data.values():
            schema = pw.schema_from_types(**dict.fromkeys(columns, int))
            given.append(pw.debug.table_from_rows(schema, rows(columns)))
        out: dict[Any, dict[str, Any]] = {}
        pw.io.subscribe(query(*given), on_change=lambda key, row, time, is_addition: _change(out, key, row, is_addition))
        return lambda: _run(out)

    return Way(prepare, _read, at_most, "streamdsl tuples")


def _change(out: dict[Any, Any], key: Any, row: Any, added: bool) -> None:
    if added:
        out[key] = row
    elif out.get(key) == row:
        del out[key]


def _run(out: dict[Any, Any]) -> dict[Any, Any]:
    import pathway as pw

    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return out


def _read(out: dict[Any, dict[str, Any]], names: Sequence[str]) -> Answer:
    return from_rows(([row[name] for name in names] for row in out.values()), names)
