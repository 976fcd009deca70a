"""Sources and sinks by address, also those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath
from typing import Any, Final

from streamdsl.connect.file_folder import file_folder
from streamdsl.connect.jsonl_sink import JsonlFile
from streamdsl.connect.kafka_sink import KafkaTopic
from streamdsl.connect.kafka_source import kafka_topic
from streamdsl.connect.protocols import Sink, Source
from streamdsl.connect.readable_files import without_packing
from streamdsl.connect.text_files import csv_file, jsonl_file, stdin_jsonl
from streamdsl.connect.websocket import websocket
from streamdsl.errors import QueryError
from streamdsl.io.stored_files import is_storage
from streamdsl.sinks import ParquetTable

_SOURCES: Final[dict[str, Callable[..., Source]]] = {
    "csv": csv_file,
    "folder": file_folder,
    "jsonl": jsonl_file,
    "kafka": lambda path, **settings: kafka_topic(*_topic_and_servers(path), **settings),
    "stdin": lambda path, **settings: stdin_jsonl(**settings),
    "ws": lambda path, **settings: websocket(f"ws://{path}", **settings),
    "wss": lambda path, **settings: websocket(f"wss://{path}", **settings),
}
_SINKS: Final[dict[str, Callable[..., Sink]]] = {
    "jsonl": JsonlFile,
    "kafka": lambda path, **settings: KafkaTopic(*_topic_and_servers(path), **settings),
    "parquet": ParquetTable,
}


def source_at(address: str, **settings: Any) -> Source:
    """Return the source of an address such as `jsonl://trips.jsonl`, or of a path, which its suffix tells (a folder: its files).

    `s3://bucket/trips.jsonl`, or another address of a store that fsspec knows, is such a path too.

    A package makes others known by an entry point of the group `streamdsl.sources`, whose name is what stands before `://`: a
    function of the address and of settings by name, which returns a source. Raises `QueryError` for an address of no kind that
    is known.

    >>> from streamdsl.connect import source_at
    >>> source_at("trips.csv"), source_at("jsonl:///data/trips.txt", follow=True)
    (csv_file('trips.csv'), jsonl_file('/data/trips.txt'))
    """
    made: Source = _made("source", _SOURCES, address, settings)
    return made


def sink_at(address: str, **settings: Any) -> Sink:
    """Return the sink of an address such as `parquet://trips`, as `source_at` does; the group is `streamdsl.sinks`.

    >>> from streamdsl.connect import sink_at
    >>> sink_at("/data/counts.jsonl")
    JsonlFile('/data/counts.jsonl')
    """
    made: Sink = _made("sink", _SINKS, address, settings)
    return made


def _topic_and_servers(path: str) -> tuple[str, str]:
    servers, _, topic = path.rpartition("/")
    if not servers or not topic:
        raise QueryError(f"{path!r} does not say servers and topic", hint="kafka://host:9092,other:9092/topic")
    return topic, servers


def _suffix(path: str) -> str:
    return PurePosixPath(without_packing(path)).suffix[1:]


def _made(what: str, own: Mapping[str, Callable[..., Any]], address: str, settings: Mapping[str, Any]) -> Any:
    scheme, separator, path = address.partition("://")
    if not separator:
        scheme, path = "folder" if Path(address).is_dir() else _suffix(address), address
    if scheme in own:
        return own[scheme](path, **settings)
    others = entry_points(group=f"streamdsl.{what}s")
    if scheme in others.names:
        return others[scheme].load()(address, **settings)
    if what == "source" and is_storage(address):
        return own[kind if (kind := _suffix(address)) in own else "folder"](address, **settings)
    known = ", ".join(sorted({*own, *others.names}))
    raise QueryError(
        f"no {what} is known for {address.rpartition('@')[2]!r}; the kinds are: {known}",
        hint=f"kind://path, or the package that has it, by an entry point of the group streamdsl.{what}s",
    )
