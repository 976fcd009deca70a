"""The last micro-batch of a table, which makes writes idempotent: a repeated one is skipped, a gap is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamdsl.errors import SinkError

COMMIT_FIELDS: Final[dict[str, type | tuple[type, ...]]] = {"batch": int, "stream": (str, type(None))}
"""The fields of a commit file, and their types."""


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The number of the last micro-batch that a table holds, and its stream; `batch` is -1 for a new table."""

    batch: int = -1
    stream: str | None = None

    def needs(self, batch: int, stream: str | None, table: str) -> bool:
        """Say whether the table still lacks this micro-batch.

        Raises `SinkError` for a micro-batch of another stream, and for one whose predecessors the table lacks.

        >>> LastBatch(4).needs(5, None, "trips"), LastBatch(4).needs(4, None, "trips")
        (True, False)
        """
        if self.stream is not None and stream is not None and stream != self.stream:
            raise SinkError(
                f"the table {table} belongs to another stream; a new checkpoint makes a new stream",
                hint="go on with the checkpoint that has written the table, or remove both to begin anew, or name another table",
            )
        if batch > self.batch + 1:
            raise SinkError(
                f"the table {table} has {self._shown()}, and micro-batch {batch} is to be written: "
                f"{self.batch + 1} to {batch - 1} are missing",
                hint="the table was lost or is another one: restore it, or remove the checkpoint too and begin anew",
            )
        return batch > self.batch

    def _shown(self) -> str:
        return "no micro-batch" if self.batch < 0 else f"the micro-batches up to {self.batch}"
