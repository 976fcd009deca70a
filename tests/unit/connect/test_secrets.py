"""What is secret in addresses, settings and headers is in no error, log, repr, dead letter or checkpoint."""

from __future__ import annotations

import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import (
    END,
    BadRecord,
    Batch,
    JsonlFile,
    KafkaTopic,
    OpenSource,
    Webhook,
    calling,
    database_rows,
    file_folder,
    flight_stream,
    iterable,
    jsonl_file,
    kafka_topic,
    server_sent_events,
    sink_at,
    source_at,
    websocket,
)
from streamdsl.connect import kafka_source as kafka
from streamdsl.redaction import without_secrets
from streamdsl.sinks import DatabaseTable

SECRET = "s3cret"
USER = f"me:{SECRET}"
TRIPS = [sd.point(n, n, {"fare": n}) for n in range(5)]
trips = sd.source("trips")


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def said(caplog: pytest.LogCaptureFixture, job: Callable[[], object]) -> str:
    """Return all that a failure says: the error, its traceback, and the records of the log, extras included."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception, match=r".") as failure:
        job()
    error = failure.value
    records = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    return "\n".join([str(error), repr(error), _messages(error), *records, caplog.text])


def _messages(error: BaseException | None) -> str:
    """Return the traceback without the lines of code, which are this file's and have the secret."""
    found, seen = list[str](), set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found += traceback.format_exception_only(error)
        found += [_messages(each) for each in getattr(error, "exceptions", ())]
        error = error.__cause__ or error.__context__
    return "\n".join(found)


def raising(error: BaseException) -> Callable[..., Any]:
    def connect(*_: Any) -> Any:
        raise error

    return connect


class Quoting(Exception):
    """An error whose text is not made of its arguments."""

    def __str__(self) -> str:
        return f"no answer of http://{USER}@db"


class OfPackage:
    """A source and a sink of a package of their own, which quote the address when they fail."""

    promise = "at_least_once"

    def __init__(self, error: BaseException) -> None:
        self.open = self.write = raising(error)


def served(source: Any, sink: Any = None, **settings: Any) -> Callable[[], object]:
    return lambda: trips.serve(source, sink or calling(id), once=True, **settings)


ADDRESS = f"postgres://{USER}@db:5432/trips?sslpassword={SECRET}"
QUOTED = [
    ValueError(f"no such database: {ADDRESS}"),
    OSError(2, "no such file", f"https://{USER}@h/trips?sig={SECRET}"),
    RuntimeError("bad setting", {"sasl.password": SECRET}),
    RuntimeError(f"Authorization: Basic {SECRET}"),
    ExceptionGroup("both", [ValueError(f"{ADDRESS} is away")]),
    ExceptionGroup("both", [ValueError("no"), Quoting()]),
    Quoting(),
]


@pytest.mark.parametrize("error", QUOTED, ids=lambda error: type(error).__name__)
def test_what_libraries_quote_is_hidden(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    jobs = [served(OfPackage(error)), served(iterable(TRIPS), OfPackage(error))]
    jobs += [served(database_rows(raising(error), "trips", by="n")), served(iterable(TRIPS), DatabaseTable(raising(error), "t"))]
    for job in jobs:
        assert SECRET not in said(caplog, job)
        assert "the job failed" in caplog.text


@pytest.mark.parametrize("part", ["a://", "a.", "a:b", ":x", "http://x?", "secret='", "secret={", "authorization:"])
def test_a_long_text_takes_a_time_of_its_length(part: str) -> None:
    found = without_secrets(part * (100_000 // len(part)) + f" no answer of http://{USER}@db")  # by its square: a minute
    assert SECRET not in found


@pytest.mark.parametrize(
    "text", ["http://me:{}@db", "me:{}@db", "http://{}@db", "http://db/{path}?key={}", "see?of=http://db?{}"]
)
def test_a_secret_may_be_long(text: str) -> None:
    long = "ab9" * 2000  # a signed token may have some thousand characters
    assert SECRET not in without_secrets(text.format(long + SECRET, path=long))


def test_what_it_came_of_is_hidden_too(caplog: pytest.LogCaptureFixture) -> None:
    try:
        try:
            raise Quoting
        except Quoting as cause:
            raise ValueError("not there") from cause
    except ValueError as error:
        found = said(caplog, served(OfPackage(error)))
    assert SECRET not in found
    assert "no answer of http://***@db" in found


@pytest.mark.parametrize(
    "make",
    [
        lambda: source_at(ADDRESS),
        lambda: sink_at(ADDRESS),
        lambda: source_at(f"kafka://{USER}@db:9092"),
        lambda: sink_at(f"kafka://{USER}@db:9092"),
        lambda: server_sent_events(f"https://me:{SECRET}/x@h/"),
        lambda: server_sent_events(f"https://h/?token=a {SECRET}"),
        lambda: server_sent_events(f"ftp://{USER}@h/?token={SECRET}"),
        lambda: Webhook(f"https://me:a {SECRET}@h/"),
        lambda: Webhook("https://h/", headers={"X-Key": f"{SECRET}\n"}),
        lambda: server_sent_events("https://h/", headers={"Authorization": f"Bearer {SECRET}\r\n"}),
        lambda: kafka_topic("t", "db:9092", settings={"sasl.password": SECRET, "group.id": "own"}),
        served(kafka_topic("t", "db:9092", settings={"sasl.password": SECRET, "no.such": SECRET})),
        served(iterable(TRIPS), KafkaTopic("t", "db:9092", settings={"sasl.password": SECRET, "no.such": 1})),
        served(jsonl_file(f"/nowhere/{ADDRESS}")),
    ],
)
def test_addresses_and_settings_that_are_refused_are_not_quoted(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert SECRET not in said(caplog, make)


def test_servers_that_refuse(refusing: str, caplog: pytest.LogCaptureFixture) -> None:
    address = f"http://{USER}@{refusing}/trips?token={SECRET}"
    webhook = Webhook(address, headers={"Authorization": SECRET})
    jobs = [lambda: trips.serve(server_sent_events(address), calling(id)), served(iterable(TRIPS), webhook)]
    for job in jobs:
        found = said(caplog, job)
        assert SECRET not in found
        assert "401" in found
        assert refusing in found


def test_a_broker_that_is_away(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_PATIENCE", 0.5)
    settings = {"sasl.password": SECRET, "sasl.username": "me", "sasl.mechanisms": "PLAIN", "security.protocol": "SASL_PLAINTEXT"}
    for job in (
        served(kafka_topic("t", "127.0.0.1:1", settings=settings)),
        served(iterable(TRIPS), KafkaTopic("t", "127.0.0.1:1", settings=settings)),
    ):
        found = said(caplog, job)
        assert SECRET not in found
        assert "broker" in found


@pytest.mark.parametrize(
    "address",
    [
        f"postgres://{USER}@127.0.0.1:1/trips",
        f"postgres://me:{SECRET}/x@127.0.0.1:1/trips",
        f"host=127.0.0.1 port=1 password='a {SECRET}'",
        f"host=127.0.0.1 port=1 password=a {SECRET}",
        f"postgres://me:{SECRET}%zz@127.0.0.1:1/trips",
    ],
)
def test_a_database_that_is_away(address: str, caplog: pytest.LogCaptureFixture) -> None:
    psycopg = pytest.importorskip("psycopg")
    for job in (
        served(database_rows(lambda: psycopg.connect(address), "trips", by="n")),
        served(iterable(TRIPS), DatabaseTable(lambda: psycopg.connect(address), "trips")),
    ):
        assert SECRET not in said(caplog, job)


class Undecodable(OpenSource):
    """Gives a record whose decoder quotes the address of its schema."""

    def __init__(self) -> None:
        self.is_read = False

    def open(self, position: Any) -> Undecodable:
        return self

    def poll(self, timeout: float) -> Any:
        if self.is_read:
            return END
        self.is_read = True
        return Batch(TRIPS, 1, [BadRecord("x", f"no schema at https://{USER}@registry/1", f"record 1 of {ADDRESS}")])


def test_dead_letters_and_checkpoints_have_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    letters = JsonlFile(tmp_path / "letters.jsonl")
    with caplog.at_level(logging.DEBUG):
        served(
            Undecodable(),
            DatabaseTable(lambda: sqlite3.connect(tmp_path / "a.db"), "t"),
            dead_letters=letters,
            checkpoint=tmp_path / "state",
        )()
    assert "no schema at https://***@registry/1" in letters.path.read_text()
    assert "no schema at https://***@registry/1" in caplog.text
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 3
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
    assert SECRET not in "".join(f"{vars(record)}" for record in caplog.records)


def test_sources_and_sinks_show_none() -> None:
    address = f"https://{USER}@h/trips?token={SECRET}"
    made = [
        server_sent_events(address, headers={"Authorization": SECRET}),
        Webhook(address, headers={"Authorization": SECRET}),
        kafka_topic("t", "db:9092", settings={"sasl.password": SECRET}),
        KafkaTopic("t", "db:9092", settings={"sasl.password": SECRET}),
        jsonl_file(address),
        file_folder(address),
        websocket(f"wss://{USER}@h/trips?token={SECRET}", headers={"Authorization": SECRET}),
        flight_stream(f"grpc://{USER}@h", b"a", headers={"authorization": SECRET}),
    ]
    assert SECRET not in repr(made)


def test_records_have_extras_with_stable_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="streamdsl"):
        served(iterable(TRIPS), checkpoint=tmp_path)()
    begins, batch, ends = caplog.records
    assert [each.levelname for each in caplog.records] == ["INFO", "DEBUG", "INFO"]
    assert {vars(each)["job"] for each in caplog.records} == {str(tmp_path)}
    assert len({vars(each)["stream"] for each in caplog.records}) == 1
    assert (vars(begins)["sources"], vars(begins)["micro_batch"]) == (["trips"], -1)
    figures = {"micro_batch": 0, "rows_in": 5, "rows_out": 5, "bad_records": 0}
    assert vars(batch).items() >= figures.items()
    assert (vars(ends)["end"], vars(ends)["rows_in"]) == ("ended", 5)
