"""ORC, read stripe by stripe; only needed columns are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from streamdsl.io.columns import Columns
from streamdsl.io.files import Files, Format, SparkFormat, no_such_file, projection
from streamdsl.result import Result


@dataclass(frozen=True, slots=True)
class OrcFiles(Files):
    """ORC files."""

    in_columns: ClassVar[bool] = True

    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield the file's stripes; a large one is split."""
        from streamdsl.io.arrow_columns import ArrowColumns

        file = _opened(path)
        columns = projection(needed if needed is None else [name for name in needed if name in file.schema.names])
        for number in range(file.nstripes):
            stripe = file.read_stripe(number, columns)
            for first in range(0, stripe.num_rows, rows):
                yield ArrowColumns(stripe.slice(first, rows))
        if needed is None:
            yield ArrowColumns(file.schema.empty_table())

    @property
    def rows(self) -> int | None:
        """The number of rows, from the files' footers."""
        return sum(int(_opened(path).nrows) for path in self.paths)


def _opened(path: str) -> Any:
    import pyarrow as pa
    from pyarrow import orc

    try:
        return orc.ORCFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise no_such_file(path, FORMAT.title, error) from None


def _write(result: Result[Any], path: Path) -> None:
    from pyarrow import orc

    orc.write_table(result.to_arrow(), str(path))


FORMAT: Final = Format("orc", "ORC", (".orc",), OrcFiles, _write, SparkFormat("orc"), needs=("pyarrow", "arrow"))
