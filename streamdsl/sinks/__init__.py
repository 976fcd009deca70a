"""Exactly-once sinks of streams: tables of the history, and files of physical events, written micro-batch by micro-batch."""

from streamdsl.sinks.database import DatabaseTable
from streamdsl.sinks.delta import DeltaEvents
from streamdsl.sinks.event_files import ParquetEvents
from streamdsl.sinks.iceberg import IcebergEvents
from streamdsl.sinks.table_files import ParquetTable

__all__ = ["DatabaseTable", "DeltaEvents", "IcebergEvents", "ParquetEvents", "ParquetTable"]
