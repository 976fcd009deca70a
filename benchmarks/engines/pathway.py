"""Pathway: sliding windows of a stream in which each batch is a moment of its own."""

from __future__ import annotations

from typing import Any

from benchmarks.engines.engine import HOPPING, Engine


def changes(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """Each row that is added to the result, in order of window within a moment."""
    return _run(size, slide, tuples, None)


def once(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """With the behaviour that gives each window once."""
    import pathway as pw

    return _run(size, slide, tuples, pw.temporal.exactly_once_behavior())


def _run(size: int, slide: int, tuples: list[Any], behavior: Any) -> list[list[int]]:
    import pathway as pw
    from pathway.internals.parse_graph import G

    G.clear()
    schema = pw.schema_from_types(v=int, t=int)
    rows = [(value, t_app, 2 * bid, 1) for value, t_app, _, bid in tuples]
    table = pw.debug.table_from_rows(schema, rows, is_stream=True)
    grouped = table.windowby(table.t, window=pw.temporal.sliding(hop=slide, duration=size), behavior=behavior)
    result = grouped.reduce(start=pw.this._pw_window_start, all=pw.reducers.sorted_tuple(pw.this.v))
    out: list[tuple[int, int, list[int]]] = []

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            out.append((time, row["start"], list(row["all"])))

    pw.io.subscribe(result, on_change=changed)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return [values for _, _, values in sorted(out)]


ENGINES = [
    Engine("pathway", "Pathway, `windowby`, each change", changes, HOPPING, "PATHWAY", late="beyond the model"),
    Engine("pathway-once", "Pathway, `exactly_once_behavior`", once, HOPPING, "PATHWAY_ONCE", late="as its profile"),
]
