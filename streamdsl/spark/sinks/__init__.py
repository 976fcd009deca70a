"""Tables that follow a stream: they hold what its physical events mean, and each micro-batch counts once."""

from streamdsl.spark.sinks.database import DatabaseTable
from streamdsl.spark.sinks.files import ParquetTable

__all__ = ["DatabaseTable", "ParquetTable"]
