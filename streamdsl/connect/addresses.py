"""Sources and sinks by address, also those of other packages."""

from __future__ import annotations

import functools
import inspect
import sqlite3
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import parse_qsl

from streamdsl.connect.database_rows import database_rows
from streamdsl.connect.file_folder import file_folder
from streamdsl.connect.jsonl_sink import JsonlFile, stdout_jsonl
from streamdsl.connect.kafka_sink import KafkaTopic
from streamdsl.connect.kafka_source import kafka_topic
from streamdsl.connect.protocols import Sink, Source
from streamdsl.connect.readable_files import without_packing
from streamdsl.connect.text_files import csv_file, jsonl_file, stdin_jsonl
from streamdsl.connect.websocket import websocket
from streamdsl.errors import QueryError
from streamdsl.io.stored_files import is_storage
from streamdsl.sinks import DatabaseTable, ParquetTable


def _of_topic(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `servers/topic` that makes what another one makes of topic and servers."""

    @functools.wraps(make)
    def made(path: str, **settings: Any) -> Any:
        servers, _, topic = path.rpartition("/")
        if not servers or not topic:
            raise QueryError(f"{path!r} does not say servers and topic", hint="kafka://host:9092,other:9092/topic")
        return make(topic, servers, **settings)

    return made


def _sqlite_rows(
    path: str, *, table: str, by: str, start: str | None = None, end: str | None = None, where: str | None = None
) -> Source:
    return database_rows(_sqlite(path), table, by, start=start, end=end, where=where)


def _sqlite_table(path: str, *, table: str) -> Sink:
    return DatabaseTable(_sqlite(path), table)


def _sqlite(path: str) -> Callable[[], sqlite3.Connection]:
    """Return how to reach the database `sqlite:///trips.db`; a path from the root has a slash more, as in SQLAlchemy."""
    return lambda: sqlite3.connect(path.removeprefix("/"))


def _websocket(scheme: str) -> Callable[..., Source]:
    @functools.wraps(websocket)
    def made(path: str, **settings: Any) -> Source:
        return websocket(f"{scheme}://{path}", **settings)

    return made


_OF_SERVER: Final = ("ws", "wss")
"""The kinds whose servers are told what stands behind `?`, so that settings are given by name alone."""
_SOURCES: Final[dict[str, Callable[..., Source]]] = {
    "csv": csv_file,
    "folder": file_folder,
    "jsonl": jsonl_file,
    "kafka": _of_topic(kafka_topic),
    "sqlite": _sqlite_rows,
    "stdin": lambda path, *, start=None, end=None: stdin_jsonl(start=start, end=end),
    "ws": _websocket("ws"),
    "wss": _websocket("wss"),
}
_SINKS: Final[dict[str, Callable[..., Sink]]] = {
    "jsonl": JsonlFile,
    "kafka": _of_topic(KafkaTopic),
    "parquet": ParquetTable,
    "sqlite": _sqlite_table,
    "stdout": lambda path: stdout_jsonl(),
}


def source_at(address: str, **settings: Any) -> Source:
    """Return the source of an address such as `jsonl://trips.jsonl`, or of a path, which its suffix tells (a folder: its files).

    `s3://bucket/trips.jsonl`, or another address of a store that fsspec knows, is such a path too.

    Settings are given by name, or by the address: `kafka://host:9092/trips?slack=10s`, of which numbers, `true` and `false` are
    values; one that is a mapping is given by its items, `settings.client.id=trips`. A package makes other kinds known by an
    entry point of the group `streamdsl.sources`, whose name is what stands before `://`: a function of the whole address and of
    settings by name, which returns a source. Raises `QueryError` for an address of no kind that is known, and for a setting
    that its kind does not have.

    >>> from streamdsl.connect import source_at
    >>> source_at("trips.csv"), source_at("jsonl:///data/trips.txt?follow=true")
    (csv_file('trips.csv'), jsonl_file('/data/trips.txt'))
    """
    made: Source = _made("source", _SOURCES, address, settings, {})
    return made


def sink_at(address: str, **settings: Any) -> Sink:
    """Return the sink of an address such as `parquet://trips?every=1d`, as `source_at` does; the group is `streamdsl.sinks`.

    >>> from streamdsl.connect import sink_at
    >>> sink_at("/data/counts.jsonl")
    JsonlFile('/data/counts.jsonl')
    """
    made: Sink = _made("sink", _SINKS, address, settings, {})
    return made


def source_of(address: str, wishes: Mapping[str, Any]) -> Source:
    """Return the source of an address, with those of the settings that are wished which its kind has, and it does not say."""
    made: Source = _made("source", _SOURCES, address, {}, wishes)
    return made


def _suffix(path: str) -> str:
    return PurePosixPath(without_packing(path)).suffix[1:]


def _made(
    what: str, own: Mapping[str, Callable[..., Any]], address: str, settings: Mapping[str, Any], wishes: Mapping[str, Any]
) -> Any:
    """Make a source or a sink: its settings are wishes, those of the address, and others, of which the last one counts."""
    scheme, separator, path = address.partition("://")
    if not separator:
        scheme, path = "folder" if Path(address).is_dir() else _suffix(address), address
    others = entry_points(group=f"streamdsl.{what}s")
    if what == "source" and scheme not in own and scheme not in others.names and is_storage(address):
        kind = _suffix(address.partition("?")[0])
        scheme, path = kind if kind in own else "folder", address
    if scheme in own:
        path, _, query = path.partition("?") if separator and scheme not in _OF_SERVER else (path, "", "")
        make, place, given = own[scheme], path, {**_settings_in(query), **settings}
    elif scheme in others.names:
        make, place, given = others[scheme].load(), address, dict(settings)
    else:
        known = ", ".join(sorted({*own, *others.names}))
        raise QueryError(
            f"no {what} is known for {address!r}; the kinds are: {known}",
            hint=f"kind://path, or the package that has it, by an entry point of the group streamdsl.{what}s",
        )
    named = [each for each in inspect.signature(make).parameters.values() if each.kind is not each.VAR_KEYWORD]
    has = [each.name for each in named if each.kind is each.KEYWORD_ONLY or each.default is not each.empty]
    if scheme in own and (unknown := [name for name in given if name not in has]):
        raise QueryError(
            f"a {what} of the kind {scheme!r} has no setting {unknown[0]!r}; its settings are: {', '.join(has) or '(none)'}",
            hint=f"{scheme}://path?setting=value",
        )
    needed = [each.name for each in named if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if lacking := [name for name in needed if name not in given]:
        hint = f"{scheme}://path?{lacking[0]}=value"
        raise QueryError(f"the address of a {what} of the kind {scheme!r} lacks {', '.join(lacking)}", hint=hint)
    return make(place, **{**{name: each for name, each in wishes.items() if name in has}, **given})


def _settings_in(query: str) -> dict[str, Any]:
    """Return the settings that the end of an address says.

    >>> _settings_in("slack=10s&at_once=100&follow=true&settings.client.id=a")
    {'slack': '10s', 'at_once': 100, 'follow': True, 'settings': {'client.id': 'a'}}
    """
    found: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        value = {"true": True, "false": False}.get(text, int(text) if text.isdecimal() else text)
        first, dot, item = name.partition(".")
        if dot:
            found.setdefault(first, {})[item] = value
        else:
            found[name] = value
    return found
