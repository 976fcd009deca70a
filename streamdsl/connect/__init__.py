"""Sources and sinks of queries that run for long: what `query.serve` reads from, and writes to (docs/connectors.md)."""

from streamdsl.connect.callables import calling
from streamdsl.connect.iterables import async_iterable, iterable
from streamdsl.connect.output_events import events_of
from streamdsl.connect.protocols import END, BadRecord, Batch, End, OpenSource, Position, Promise, Sink, Source
from streamdsl.connect.runner import Served

__all__ = [
    "END",
    "BadRecord",
    "Batch",
    "End",
    "OpenSource",
    "Position",
    "Promise",
    "Served",
    "Sink",
    "Source",
    "async_iterable",
    "calling",
    "events_of",
    "iterable",
]
