"""The micro-batches of a stream in a checkpoint: each counts once, though the process may die at any moment."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamdsl import running
from streamdsl.connect.outbox import ANEW, Outbox
from streamdsl.emit import Emit, EmitMode
from streamdsl.engine.query_session import Session
from streamdsl.engine.state.whole_files import read_whole, write_whole
from streamdsl.errors import CheckpointError, without_hint
from streamdsl.io.binding import Bound
from streamdsl.io.locks import Lock

if TYPE_CHECKING:
    from streamdsl.stream import Stream


class BatchRecords(Protocol):
    """The records of the micro-batches that are committed."""

    def __len__(self) -> int: ...

    def undo_take(self) -> None:
        """Remove the record of the last micro-batch."""


class MicroBatches:
    """The states of a stream between its micro-batches, and the order in which a micro-batch becomes durable.

    What comes of it and the session's state are stored first; then its record is written, which is the commit; then the output
    goes to the sinks. Before the commit nothing has happened, and after it the input is no longer needed.
    """

    def __init__(self, folder: Path, records: BatchRecords, outboxes: Sequence[Outbox], lock: Lock) -> None:
        self._states, self._records, self._outboxes, self._lock = folder / "state", records, outboxes, lock
        self._states.mkdir(parents=True, exist_ok=True)
        self.stream = self._identity(folder / "stream")
        self._check_states()

    @property
    def last(self) -> int:
        """The number of the last micro-batch, -1 if there is none."""
        return len(self._records) - 1

    def commit(self, tables: Sequence[Any], data: bytes, record: Callable[[int], None]) -> int:
        """Make the next micro-batch so, of its output (a table for each outbox) and the state after it; return its number.

        The call `record` records it.
        """
        batch = self.last + 1
        for outbox, table in zip(self._outboxes, tables, strict=True):
            outbox.store(batch, table)
        write_whole(self._states / str(batch), data)
        self._lock.check()
        record(batch)
        return batch

    def deliver(self, batch: int, tables: Sequence[Any]) -> None:
        """Write the output of a committed micro-batch to the sinks, and forget the states before it."""
        for outbox, table in zip(self._outboxes, tables, strict=True):
            outbox.deliver(batch, table, self.stream)
        for number in self._numbers():
            if number < batch:
                (self._states / str(number)).unlink()

    def check(self) -> None:
        """Raise `CheckpointError` if a sink has the next micro-batch already."""
        for outbox in self._outboxes:
            outbox.check(self.last + 1, self.stream)

    def resume(self) -> None:
        """Write the output of the last micro-batch to the sinks that lack it."""
        for outbox in self._outboxes if self.last >= 0 else ():
            outbox.resume(self.last, self.stream)

    def session(
        self,
        query: Stream[Any],
        bound: Mapping[str, Bound],
        emits: Sequence[EmitMode | Emit],
        where: object,
        workers: int | None = None,
    ) -> Session[Any]:
        """Return the session of a query in the state after the last micro-batch; the inputs tell the units of time.

        It emits as the first of `emits`, and has subscriptions to the others.
        """
        own = {**query._bindings, **bound}
        if self.last < 0:
            session = running.open_session(query._node, own, emits[0], {}, workers)
            for emit in emits[1:]:
                session.subscribe(emit)
            return session
        # The state is from the stream's own checkpoint, which nobody else writes: so pickles in it are trusted.
        try:
            data = read_whole(self._states / str(self.last))
            session = running.session_of(query._node, own, data, trust=True, workers=workers)
        except CheckpointError as error:
            as_it_was = "as it was" if workers is None else "as it was, without workers= if it had none"
            raise CheckpointError(
                f"the checkpoint {where} cannot be gone on with: {without_hint(error)}",
                hint=f"run the query {as_it_was}, or begin a new checkpoint and a new output",
            ) from error
        then = [session.emit, *(each.emit for each in session.subscriptions)]
        if then != list(emits):
            was, wanted = (" and ".join(map(repr, each)) for each in (then, emits))
            raise CheckpointError(f"the checkpoint is of a job that emits {was}, not {wanted}")
        return session

    def _identity(self, path: Path) -> str:
        if not path.exists() and not len(self._records):
            write_whole(path, uuid.uuid4().hex.encode())
        found = path.read_text() if path.exists() else ""
        if not re.fullmatch("[0-9a-f]{32}", found):
            raise CheckpointError(f"{path} does not say which stream the checkpoint is of", hint=ANEW)
        return found

    def _check_states(self) -> None:
        """Raise `CheckpointError` unless the state after the last micro-batch exists.

        A micro-batch with neither state nor output was not committed, and its record is removed.
        """
        states, last = self._numbers(), self.last
        if last >= 0 and last not in states:
            if (last and last - 1 not in states) or any(outbox.is_delivered(last, self.stream) for outbox in self._outboxes):
                raise CheckpointError(
                    f"the checkpoint has no state of micro-batch {last}, which has begun",
                    hint=f"go on with the version of streamdsl that has begun it, if that was an earlier one; else {ANEW}",
                )
            self._records.undo_take()
        if max(states, default=-1) > last + 1:
            raise CheckpointError(
                f"the checkpoint has states up to micro-batch {max(states)}, and records of {last + 1}", hint=ANEW
            )

    def _numbers(self) -> set[int]:
        return {int(path.name) for path in self._states.iterdir() if path.name.isdigit()}
