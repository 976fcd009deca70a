"""How the sources and sinks of a job stand, for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from streamdsl.connect.outbox import Outbox
from streamdsl.connect.protocols import OpenSource, PartitionProgress
from streamdsl.monitoring import SourceStatus
from streamdsl.redaction import without_secrets
from streamdsl.temporal.time import PER_SECOND, Unit, is_calendar


def with_partitions(
    sources: Iterable[SourceStatus], readers: Mapping[str, OpenSource], unit: Unit | None
) -> tuple[SourceStatus, ...]:
    """Return how sources stand, with what their readers say of partitions."""
    return tuple(_with_partitions(each, readers.get(each.name), unit) for each in sources)


def seconds_of_sinks(outboxes: Sequence[Outbox]) -> dict[str, float]:
    """Return how long the sinks have taken for the last micro-batch, by what they are called: the place, and the `repr` or type.

    >>> from streamdsl.connect import calling
    >>> outbox = Outbox.__new__(Outbox)
    >>> outbox.seconds = [(calling(print), 0.5)]
    >>> seconds_of_sinks([outbox])
    {'0 calling(print)': 0.5}
    """
    found = [each for outbox in outboxes for each in outbox.seconds]
    return {f"{n} {_name(sink)}": seconds for n, (sink, seconds) in enumerate(found)}


def _with_partitions(source: SourceStatus, reader: OpenSource | None, unit: Unit | None) -> SourceStatus:
    stands: Mapping[str, PartitionProgress] = getattr(reader, "partitions", dict)()
    if not stands:
        return source
    ctis = {name: _ticks(each.cti, unit) for name, each in stands.items() if each.cti is not None}
    lags = {name: each.lag for name, each in stands.items() if each.lag is not None}
    return replace(source, partition_ctis=ctis, partition_lags=lags)


def _ticks(cti: datetime | int, unit: Unit | None) -> int:
    if not isinstance(cti, datetime):
        return cti
    return int(cti.timestamp() * PER_SECOND[unit if unit and is_calendar(unit) else "us"])


def _name(sink: object) -> str:
    text = without_secrets(repr(sink))
    return type(sink).__name__ if " object at 0x" in text else text
