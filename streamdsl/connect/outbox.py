"""The output of the newest micro-batch, kept in the checkpoint until every sink has it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from streamdsl.connect.protocols import Sink
from streamdsl.engine.state.whole_files import write_whole
from streamdsl.errors import CheckpointError

ANEW: Final = "restore the checkpoint as a whole, or begin a new one, and a new output"


class Outbox:
    """A folder that holds what sinks may lack: `store` before the commit, `deliver` after it, `resume` after a crash."""

    def __init__(self, folder: Path, sinks: Sequence[Sink]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._sinks = folder, sinks
        self.seconds: list[tuple[Sink, float]] = []
        """How long each sink has taken for the last micro-batch."""

    def check(self, batch: int, stream: str) -> None:
        """Raise `CheckpointError` if a sink has a micro-batch that is still to be made."""
        for sink in self._sinks:
            if has(sink, batch, stream):
                raise CheckpointError(
                    f"{sink!r} has taken micro-batch {batch}, and the checkpoint has no record of it",
                    hint="the checkpoint is older than the output: restore both as of one time, or begin both anew",
                )

    def is_delivered(self, batch: int, stream: str) -> bool:
        """Say whether a sink holds a micro-batch, as far as sinks tell."""
        return any(has(sink, batch, stream) for sink in self._sinks)

    def store(self, batch: int, table: Any) -> None:
        """Keep a micro-batch that is about to be committed."""
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        write_whole(self._folder / str(batch), bytes(out.getvalue()))

    def deliver(self, batch: int, table: Any, stream: str) -> None:
        """Write a committed micro-batch to each sink, and then forget it."""
        self.seconds = []
        for sink in self._sinks:
            begun = time.perf_counter()
            sink.write(table, batch, stream)
            self.seconds.append((sink, time.perf_counter() - begun))
        self.drop(batch)

    def drop(self, batch: int) -> None:
        """Forget a micro-batch."""
        (self._folder / str(batch)).unlink(missing_ok=True)

    def resume(self, batch: int, stream: str) -> None:
        """Write the newest committed micro-batch to the sinks that lack it, as the process may have died before.

        Raises `CheckpointError` if a sink lacks it, and it is not kept any more.
        """
        path = self._folder / str(batch)
        held = [(sink, has(sink, batch, stream)) for sink in self._sinks]
        # What is not kept any more was delivered, also to sinks that do not tell.
        lacking = [sink for sink, holds in held if holds is False or (holds is None and path.exists())]
        if lacking:
            try:
                table = pa.ipc.open_file(path.read_bytes()).read_all()
            except (FileNotFoundError, pa.ArrowException) as error:
                raise CheckpointError(f"the output of micro-batch {batch} is lost: {error}", hint=ANEW) from None
            for sink in lacking:
                sink.write(table, batch, stream)
        self.drop(batch)


def has(sink: Sink, batch: int, stream: str) -> bool | None:
    """Say whether a sink holds a micro-batch; None for a sink that does not tell."""
    asked = getattr(sink, "has", None)
    return None if asked is None else bool(asked(batch, stream))
