"""DuckDB: a window function over all rows, and rows grouped by `time_bucket`."""

from __future__ import annotations

from typing import Any

from benchmarks.engines.engine import Engine


def by_range(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """A row for each row: those of the last `size` instants."""
    frame = f"RANGE BETWEEN {size - 1} PRECEDING AND CURRENT ROW"
    return _query(f"SELECT list(v) OVER (ORDER BY t {frame}) FROM s ORDER BY t, n", tuples)


def by_bucket(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """A row for each group."""
    bucket = f"time_bucket(INTERVAL {size} SECONDS, make_timestamp(t * 1000000), TIMESTAMP '1970-01-01')"
    return _query(f"SELECT list(v ORDER BY n) FROM s GROUP BY {bucket} ORDER BY {bucket}", tuples)


def _query(sql: str, tuples: list[Any]) -> list[list[int]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE s (v BIGINT, t BIGINT, n BIGINT)")
        connection.executemany("INSERT INTO s VALUES (?, ?, ?)", [each[:3] for each in tuples])
        return [values for (values,) in connection.execute(sql).fetchall()]


ENGINES = [
    Engine("duckdb-range", "DuckDB, `RANGE` frame", by_range, ((5, 1), (3, 1))),
    Engine(
        "duckdb-bucket",
        "DuckDB, `time_bucket`",
        by_bucket,
        ((3, 3), (4, 4)),
        "DUCKDB_BUCKET",
        late="as its profile",
        gaps=False,
    ),
]
