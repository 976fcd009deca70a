"""DuckDB: SQL over its own tables in memory, one thread, to Arrow; the whole table at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.answer import from_arrow
from benchmarks.data import Data
from benchmarks.workload import Way


def sql(text: str) -> Way:
    """Run a query over tables named like the inputs."""

    def prepare(data: Data) -> Callable[[], Any]:
        import duckdb
        import pyarrow as pa

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        for name, columns in data.items():
            connection.register("given", pa.table(dict(columns)))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        return lambda: connection.sql(text).to_arrow_table()

    return Way(prepare, from_arrow)
