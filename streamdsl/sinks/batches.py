"""Which micro-batches a table has: one that it has changes nothing, one that cannot come next is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamdsl.errors import SinkError

NOTED: Final[dict[str, type | tuple[type, ...]]] = {"batch": int, "stream": (str, type(None))}
"""What a note of the last micro-batch says."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The last micro-batch that a table has taken, and of which stream; `batch` is -1 for a new table."""

    batch: int = -1
    stream: str | None = None

    def misses(self, batch: int, stream: str | None, table: str) -> bool:
        """Say whether the table has yet to take this micro-batch of this stream.

        Raises `SinkError` for a micro-batch of another stream, and for one that comes after others which the table lacks.

        >>> Taken(4).misses(5, None, "trips"), Taken(4).misses(4, None, "trips")
        (True, False)
        """
        if self.stream is not None and stream is not None and stream != self.stream:
            raise SinkError(
                f"the table {table} belongs to another stream: a checkpoint that is begun anew is another stream",
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
