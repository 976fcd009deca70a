"""The protocols of sources and sinks: what `query.serve` asks of what it reads and of what it writes to (docs/connectors.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

Position: TypeAlias = Any
"""Where a source goes on: plain data that JSON holds (None, numbers, texts, lists, dicts with texts as keys); None is its begin.

A source with partitions has a dict by partition. Only the source reads it; the checkpoint keeps it.
"""

Promise: TypeAlias = Literal["exactly_once", "idempotent", "at_least_once"]
"""What a sink makes of a micro-batch that is written again, as after a crash.

`exactly_once`: it counts once, as the sink keeps the number of the last micro-batch with the rows. `idempotent`: rows are written
again and replace themselves, by id and LE, so the sink ends as it should. `at_least_once`: they are there twice.
"""


class End(Enum):
    """The type of `END`, which a source answers that has nothing more and never will."""

    END = "end"

    def __repr__(self) -> str:
        return "END"


END: Final = End.END
"""What `poll` returns when the source has ended for good; None says that nothing is there now."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that a source cannot decode: the record, the `reason` in words, and `where` it is, such as `line 7 of a.jsonl`.

    >>> from streamdsl.connect import BadRecord
    >>> BadRecord('{"le": 3', "is no JSON", "line 7 of a.jsonl")
    BadRecord(record='{"le": 3', reason='is no JSON', where='line 7 of a.jsonl')
    """

    record: Any
    reason: str
    where: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What a source gives at once: data that a query takes, and the position from which the source goes on after it.

    `data` is a list of physical events (CTIs among them, if the source knows them), a list of rows `(le, re, payload)`, or a
    pandas, polars or Arrow frame; it may be empty. `bad` are the records in between that cannot be decoded. `places`, if it is
    given, says for each item of `data` where it comes from, for messages.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import Batch
    >>> Batch([sd.point("a", 3, {"fare": 7}), sd.Cti(5)], position=2).position
    2
    """

    data: Any
    position: Position
    bad: Sequence[BadRecord] = ()
    places: Sequence[str] = ()


class PartitionProgress(NamedTuple):
    """How a partition of a source stands: its CTI, as a date or in ticks, and how many records are there that are not read."""

    cti: datetime | int | None = None
    lag: int | None = None


class OpenSource(Protocol):
    """An open source, from which `query.serve` pulls: nothing is read while the engine works.

    A class that names it as its base needs `poll` alone.
    """

    def poll(self, timeout: float) -> Batch | End | None:
        """Return the next batch; None if there is none within `timeout` seconds; `END` if there will never be one again.

        It holds at most one batch in memory, and does not wait for a batch to be full. After `END` it returns `END` again.
        """
        ...

    def partitions(self) -> Mapping[str, PartitionProgress]:
        """Return how the partitions stand, for metrics: no server is asked, and it costs little. By default there are none."""
        return {}

    def committed(self, position: Position) -> None:
        """Learn that all up to a position is durable: the source may tell others, or forget what is before. By default nothing.

        It is called after the checkpoint is written, so a call can be missing after a crash; whether it fails changes nothing.
        """
        return

    def close(self) -> None:
        """Let go of files and connections; the reader is not used again. By default nothing."""
        return


@runtime_checkable
class Source(Protocol):
    """What a query can be fed from: it can be opened at each position that it has given, and gives the same again from there.

    The same records in the same order; batches may be cut elsewhere. `streamdsl.testing.check_source` holds it to that.
    """

    def open(self, position: Position) -> OpenSource:
        """Return a reader that goes on at a position that a batch of this source had; None is the begin."""
        ...


@runtime_checkable
class Sink(Protocol):
    """What a query's output goes to, micro-batch by micro-batch; the sinks of `streamdsl.sinks` are such.

    `streamdsl.testing.check_sink` holds it to its promise. One that has a `close()` is closed when the job ends; one that has a
    `has(batch, stream)`, which says whether it holds a micro-batch, is asked whether it is ahead of the checkpoint.
    """

    @property
    def promise(self) -> Promise:
        """What becomes of a micro-batch that is written twice."""
        ...

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Write a micro-batch, durably once this returns.

        `events` is an Arrow table of physical events (`kind`, `id`, `le`, `re`, `re_new` and the payload's fields), of which
        `streamdsl.connect.events_of` makes event objects. `batch` is its number: 0, 1, 2, ... without gaps, and the last one
        again after a crash. `stream` is the id of the checkpoint, by which a sink tells two jobs apart. Raises `SinkError`.
        """
        ...
