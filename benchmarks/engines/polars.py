"""Polars: `rolling` and `group_by_dynamic` over a frame."""

from __future__ import annotations

from typing import Any

from benchmarks.engines.engine import Engine


def rolling(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """A row for each row: those of the last `size` instants."""
    found: list[list[int]] = _frame(tuples).rolling("t", period=f"{size}i").agg("v")["v"].to_list()
    return found


def dynamic(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """A row for each window."""
    grouped = _frame(tuples).group_by_dynamic("t", every=f"{slide}i", period=f"{size}i")
    found: list[list[int]] = grouped.agg("v")["v"].to_list()
    return found


def _frame(tuples: list[Any]) -> Any:
    import polars as pl

    return pl.DataFrame({"v": [each[0] for each in tuples], "t": [each[1] for each in tuples]})


ENGINES = [
    Engine("polars-rolling", "Polars, `rolling`", rolling, ((5, 1), (3, 1))),
    Engine("polars-dynamic", "Polars, `group_by_dynamic`", dynamic, profile="POLARS_DYNAMIC"),
]
