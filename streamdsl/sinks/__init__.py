"""What a stream is written to, micro-batch by micro-batch, each of which counts once: tables that hold what its events mean."""

from streamdsl.sinks.database import DatabaseTable
from streamdsl.sinks.events import ParquetEvents
from streamdsl.sinks.files import ParquetTable

__all__ = ["DatabaseTable", "ParquetEvents", "ParquetTable"]
