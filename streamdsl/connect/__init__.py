"""Sources and sinks of queries that run for long: what `query.serve` reads from, and writes to (docs/connectors.md)."""

from streamdsl.connect.output_events import events_of
from streamdsl.connect.protocols import END, BadRecord, Batch, End, OpenSource, Position, Promise, Sink, Source

__all__ = ["END", "BadRecord", "Batch", "End", "OpenSource", "Position", "Promise", "Sink", "Source", "events_of"]
