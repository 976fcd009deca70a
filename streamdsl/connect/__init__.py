"""Sources and sinks of queries that run for long: what `query.serve` reads from, and writes to (docs/connectors.md)."""

from streamdsl.connect.addresses import sink_at, source_at
from streamdsl.connect.callables import calling
from streamdsl.connect.database_rows import database_rows
from streamdsl.connect.file_folder import file_folder
from streamdsl.connect.flight import flight_stream
from streamdsl.connect.iterables import async_iterable, iterable
from streamdsl.connect.jsonl_sink import JsonlFile, stdout_jsonl
from streamdsl.connect.kafka_sink import KafkaTopic
from streamdsl.connect.kafka_source import kafka_topic
from streamdsl.connect.output_events import events_of
from streamdsl.connect.protocols import END, BadRecord, Batch, End, OpenSource, PartitionProgress, Position, Promise, Sink, Source
from streamdsl.connect.recorded_events import replay
from streamdsl.connect.runner import Served
from streamdsl.connect.server_sent_events import server_sent_events
from streamdsl.connect.text_files import csv_file, jsonl_file, stdin_jsonl
from streamdsl.connect.webhook import Webhook
from streamdsl.connect.websocket import websocket

__all__ = [
    "END",
    "BadRecord",
    "Batch",
    "End",
    "JsonlFile",
    "KafkaTopic",
    "OpenSource",
    "PartitionProgress",
    "Position",
    "Promise",
    "Served",
    "Sink",
    "Source",
    "Webhook",
    "async_iterable",
    "calling",
    "csv_file",
    "database_rows",
    "events_of",
    "file_folder",
    "flight_stream",
    "iterable",
    "jsonl_file",
    "kafka_topic",
    "replay",
    "server_sent_events",
    "sink_at",
    "source_at",
    "stdin_jsonl",
    "stdout_jsonl",
    "websocket",
]
