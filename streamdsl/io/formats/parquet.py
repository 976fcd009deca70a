"""Parquet, read in batches of rows; only needed columns are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from streamdsl.io.columns import Columns
from streamdsl.io.files import Files, Format, SparkFormat, no_such_file, projection
from streamdsl.result import Result


@dataclass(frozen=True, slots=True)
class ParquetFiles(Files):
    """Parquet files."""

    in_columns: ClassVar[bool] = True

    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield the file's batches."""
        from streamdsl.io.arrow_columns import ArrowColumns

        with _opened(path) as file:
            yield from map(ArrowColumns, file.iter_batches(batch_size=rows, columns=projection(needed)))
            if needed is None:
                yield ArrowColumns(file.schema_arrow.empty_table())

    @property
    def rows(self) -> int | None:
        """The number of rows, from the files' footers."""
        return sum(int(_opened(path).metadata.num_rows) for path in self.paths)


def _opened(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise no_such_file(path, FORMAT.title, error) from None


def _write(result: Result[Any], path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(result.to_arrow(), path)


FORMAT: Final = Format(
    "parquet", "Parquet", (".parquet",), ParquetFiles, _write, SparkFormat("parquet"), needs=("pyarrow", "arrow")
)
