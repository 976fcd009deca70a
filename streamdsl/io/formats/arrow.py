"""Arrow, in the IPC file or stream format: memory-mapped, and read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamdsl.io.columns import Columns
from streamdsl.io.files import Files, Format, no_such_file
from streamdsl.result import Result


@dataclass(frozen=True, slots=True)
class ArrowFiles(Files):
    """Arrow files."""

    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield the file's batches; a large one is split."""
        from streamdsl.io.arrow_columns import ArrowColumns

        schema, batches = _opened(path)
        for batch in batches:
            for first in range(0, batch.num_rows, rows):
                yield ArrowColumns(batch.slice(first, rows))
        if needed is None:
            yield ArrowColumns(schema.empty_table())


def _opened(path: str) -> tuple[Any, Iterator[Any]]:
    """Return the schema of an Arrow file, and its batches."""
    import pyarrow as pa

    source = pa.memory_map(path)
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        try:
            stream = pa.ipc.open_stream(source)
        except pa.ArrowInvalid as error:
            raise no_such_file(path, FORMAT.title, error) from None
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(number) for number in range(file.num_record_batches))


def _write(result: Result[Any], path: Path) -> None:
    import pyarrow as pa

    table = result.to_arrow()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


FORMAT: Final = Format("arrow", "Arrow", (".arrow", ".feather"), ArrowFiles, _write, needs=("pyarrow", "arrow"))
