"""Sources and the sink of an object store, on one that speaks S3 (`tests/object_store.py`)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.connect import Batch, calling, events_of, file_folder, jsonl_file
from streamdsl.errors import InputError, SinkError
from streamdsl.sinks import ParquetEvents
from streamdsl.temporal import CHT
from streamdsl.testing import check_sink, check_source
from tests.object_store import object_store
from tests.unit.connect.test_conformance import folder, packed


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    if missing := [name for name in ("moto", "flask", "s3fs") if importlib.util.find_spec(name) is None]:
        message = f"{', '.join(missing)} not installed: make check-connectors"
        if os.environ.get("STREAMDSL_CONNECTORS") == "all":
            pytest.fail(message)
        pytest.skip(message)
    with object_store() as options:
        yield options


@pytest.fixture
def store(options: dict[str, Any]) -> Any:
    return fsspec.filesystem("s3", **options)


def stored(store: Any, address: str) -> list[Any]:
    names = sorted(store.glob(f"{address}/events_*.parquet")) if store.exists(address) else []
    return [event for name in names for event in events_of(pq.read_table(store.open(name)))]


def test_sources_give_the_same_from_each_position(options: dict[str, Any], store: Any, tmp_path: Path) -> None:
    folder(tmp_path / "in"), packed(tmp_path / "in" / "p.jsonl.zst")
    store.put(f"{tmp_path}/in/", "s3://bucket/in/", recursive=True)
    report = check_source(lambda: file_folder("s3://bucket/in", storage_options=options, follow=True), slack=60)
    assert (report.records, report.bad_records) == (154, 4)
    packed_lines = check_source(lambda: jsonl_file("s3://bucket/in/p.jsonl.zst", at_once=9, storage_options=options), slack=60)
    assert packed_lines.records == 26


def test_the_sink_keeps_its_promise(options: dict[str, Any], store: Any) -> None:
    address = "s3://bucket/sink"
    report = check_sink(lambda: ParquetEvents(address, storage_options=options), lambda: stored(store, address))
    assert report.promise == "exactly_once"


def test_a_job_from_store_to_store_goes_on_where_it_failed(options: dict[str, Any], store: Any, tmp_path: Path) -> None:
    query = sd.source("trips", unit="tick").tumbling_window(10).aggregate(n=sd.count())
    out = ParquetEvents("s3://bucket/out", storage_options=options)
    source = file_folder("s3://bucket/trips", storage_options=options, follow=True)

    def failing(events: list[Any]) -> None:
        raise RuntimeError("no")

    store.pipe("bucket/trips/monday.jsonl", b'{"le": 1}\n{"le": 12}\n')
    with pytest.raises(RuntimeError, match="no"):
        query.serve(source, [out, calling(failing)], checkpoint=tmp_path / "state", once=True)
    store.pipe("bucket/trips/tuesday.jsonl", b'{"le": 2}\n{"le": 23}\n')
    assert query.serve(source, [out, calling(list)], checkpoint=tmp_path / "state", once=True).rows_in == 2
    rows = CHT.from_events(stored(store, "bucket/out"))
    assert sorted((row.le, row.payload.n) for row in rows) == [(0, 2), (10, 1), (20, 1)]
    store.rm("bucket/out/_streamdsl/events.json")
    with pytest.raises(SinkError):
        query.serve(source, [out, calling(list)], checkpoint=tmp_path / "state", once=True)


def test_what_cannot_be_reached_is_said_without_the_key(options: dict[str, Any]) -> None:
    away = {**options, "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"}, "config_kwargs": {"retries": {"max_attempts": 0}}}
    reader = jsonl_file("s3://bucket/a.jsonl", storage_options=away).open(None)
    with pytest.raises(InputError, match=r"s3://bucket/a.jsonl cannot be read: ") as error:
        reader.poll(0)
    assert "secret" not in str(error.value)
    with pytest.raises(SinkError, match="the folder s3://bucket/sink cannot be read or written") as raised:
        ParquetEvents("s3://bucket/sink", storage_options=away).has(0)
    assert "secret" not in str(raised.value)
    there = jsonl_file("s3://bucket/none.jsonl", storage_options=options).open(None)
    with pytest.raises(InputError, match=r"none.jsonl cannot be read: "):
        assert not isinstance(there.poll(0), Batch)
