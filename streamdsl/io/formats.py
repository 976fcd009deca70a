"""The registry of file formats that jobs read and write."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.extras import need_pyarrow
from streamdsl.io.binding import Bound
from streamdsl.io.sources import read_csv, read_ipc, read_jsonl, read_parquet
from streamdsl.result import Result


@dataclass(frozen=True, slots=True)
class SparkFormat:
    """Spark's name of a format, and its options for reading and writing."""

    name: str
    reading: Mapping[str, str] = field(default_factory=dict)
    writing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: its suffixes, its reader, its writer of a history, and its counterpart in Spark, if there is one."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[..., Bound]
    write: Callable[[Result[Any], Path], None]
    spark: SparkFormat | None

    def on_spark(self) -> SparkFormat:
        """Return Spark's format. Raises `QueryError` if Spark has none."""
        if self.spark is None:
            known = [each.name for each in FORMATS.values() if each.spark is not None]
            raise QueryError(
                f"Spark reads and writes no files of the format {self.name}", hint=f"{', '.join(known)}; or --engine local"
            )
        return self.spark


def _write_parquet(result: Result[Any], path: Path) -> None:
    need_pyarrow("Parquet files")
    import pyarrow.parquet as pq

    pq.write_table(result.to_arrow(), path)


def _write_csv(result: Result[Any], path: Path) -> None:
    result.to_pandas().to_csv(path, index=False)


def _write_json_lines(result: Result[Any], path: Path) -> None:
    need_pyarrow("files of JSON lines")
    with path.open("w", encoding="utf-8") as file:
        for row in result.to_arrow().to_pylist():
            file.write(json.dumps(row, default=str, ensure_ascii=False) + "\n")


def _write_arrow(result: Result[Any], path: Path) -> None:
    need_pyarrow("Arrow files")
    import pyarrow as pa

    table = result.to_arrow()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        Format("parquet", (".parquet",), read_parquet, _write_parquet, SparkFormat("parquet")),
        Format(
            "csv",
            (".csv",),
            read_csv,
            _write_csv,
            SparkFormat("csv", {"header": "true", "inferSchema": "true"}, {"header": "true"}),
        ),
        Format(
            "jsonl",
            (".jsonl", ".ndjson", ".json"),
            read_jsonl,
            _write_json_lines,
            SparkFormat("json", {"inferTimestamp": "true"}),
        ),
        Format("arrow", (".arrow", ".feather"), read_ipc, _write_arrow, None),
    )
}
"""The formats, by name."""
BY_SUFFIX: Final[Mapping[str, Format]] = {suffix: each for each in FORMATS.values() for suffix in each.suffixes}
"""The formats, by suffix of the file name."""
