"""Polars: lazy frames in memory, by its eager engine and by its streaming one; the whole table at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.answer import Answer
from benchmarks.data import Data
from benchmarks.workload import Way


def frames(query: Callable[..., Any]) -> dict[str, Way]:
    """Run a function of lazy frames, one for each input, by either engine."""
    return {"polars": _by(query, "in-memory"), "polars streaming": _by(query, "streaming")}


def _by(query: Callable[..., Any], engine: Any) -> Way:
    def prepare(data: Data) -> Callable[[], Any]:
        import polars as pl

        asked = query(*(pl.DataFrame(dict(columns)).lazy() for columns in data.values()))
        return lambda: asked.collect(engine=engine)

    return Way(prepare, _read)


def _read(frame: Any, names: Sequence[str]) -> Answer:
    return {name: frame[name].to_numpy() for name in names}
