"""The records of the micro-batches of `query.serve`: how far each source had been read when one was committed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from streamdsl.connect.outbox import ANEW
from streamdsl.connect.protocols import Position
from streamdsl.engine.state.whole_files import write_new
from streamdsl.errors import CheckpointError, QueryError
from streamdsl.temporal import Unit
from streamdsl.temporal.json_text import loads

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far a job has come: the position of each source, those that have ended, their units of time, and its side outputs.

    `letters` and `late` count the rows of side outputs, `letter_batches` and `late_batches` the micro-batches that had some. The
    fields' names are part of the format.
    """

    positions: Mapping[str, Position] = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    units: Mapping[str, Unit] = field(default_factory=dict)
    letters: int = 0
    letter_batches: int = 0
    late: int = 0
    late_batches: int = 0

    def at(self, source: str, position: Position) -> Progressed:
        """Return this with another position of a source. Raises `QueryError` for one that is no plain data."""
        try:
            json.dumps(position, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise QueryError(
                f"the source {source!r} gave a position that JSON does not hold: {position!r:.80}: {error}",
                hint="a position is made of None, numbers, texts, lists, and dicts with texts as keys",
            ) from None
        return replace(self, positions={**self.positions, source: position})


class PositionLedger:
    """A small JSON file for the last micro-batch; a file that is there makes a micro-batch so."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        self.last = self._read()

    def __len__(self) -> int:
        return self._numbers[-1] + 1 if self._numbers else 0

    def take(self, batch: int, progressed: Progressed) -> None:
        """Record a micro-batch. Raises `CheckpointError` if another process has recorded it."""
        try:
            write_new(self._folder / str(batch), json.dumps({"format": _FORMAT, **asdict(progressed)}).encode())
        except FileExistsError:
            raise CheckpointError(
                f"micro-batch {batch} was begun by another process", hint="let one process at a time use a checkpoint"
            ) from None
        self._numbers.append(batch)
        self.last = progressed

    def undo_take(self) -> None:
        """Remove the record of the last micro-batch."""
        (self._folder / str(self._numbers.pop())).unlink()
        self.last = self._read()

    def forget(self) -> None:
        """Remove the records before the last one."""
        while len(self._numbers) > 1:
            (self._folder / str(self._numbers[0])).unlink(missing_ok=True)
            del self._numbers[0]

    def _read(self) -> Progressed:
        if not self._numbers:
            return Progressed()
        path = self._folder / str(self._numbers[-1])
        try:
            found: dict[str, Any] = loads(path.read_bytes())
            if found.pop("format") != _FORMAT:
                raise ValueError("it is of another version")
            return Progressed(**{**found, "ended": tuple(found["ended"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(f"{path} is no record of a micro-batch: {error}", hint=ANEW) from None
