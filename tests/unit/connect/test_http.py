"""Server-sent events and webhooks, with a real server on loopback."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import Batch, Webhook, calling, events_of, iterable, server_sent_events
from streamdsl.errors import InputError, QueryError, SinkError
from streamdsl.sinks import DatabaseTable
from streamdsl.testing import check_sink, check_source


class Server(ThreadingHTTPServer):
    """Sends readings 1 to `last`, `per_connection` at a time, and takes what is posted; `failures` answers fail first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.last, self.per_connection, self.status, self.failures = 10, 100, 200, 0
        self.asked, self.posted = list[str | None](), list[tuple[str, Any]]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/readings"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        after = self.headers["Last-Event-ID"]
        self.server.asked.append(after)
        begin = int(after or 0) + 1
        numbers = range(begin, min(self.server.last, begin + self.server.per_connection - 1) + 1)
        self.send_response(self.server.status if numbers else 204)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.server.status == 200:
            with suppress(ConnectionError):
                self._send(numbers)

    def _send(self, numbers: range) -> None:
        self.wfile.write(b"retry: 10\n\n")
        for number in numbers:
            text = "no json" if number == 7 else json.dumps({"le": number, "v": number * 10})
            self.wfile.write(f": a comment\nid: {number}\ndata: {text}\n\n".encode())
        self.wfile.write(b"id: 99\ndata: what is cut off does not count\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.failures -= 1
        if self.server.failures < 0:
            self.server.posted.append((self.headers["Idempotency-Key"], json.loads(body)))
        self.send_response(self.server.status if self.server.failures < 0 else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@contextmanager
def running() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_sent_events_are_the_same_from_each_position(server: Server) -> None:
    report = check_source(lambda: server_sent_events(server.url), patience=0.5)
    assert (report.records, report.bad_records) == (9, 1)
    server.per_connection = 3
    report = check_source(lambda: server_sent_events(server.url), patience=0.5)
    assert (report.records, report.bad_records) == (9, 1)
    assert {"3", "6", "9"} <= set(server.asked), "each connection goes on after the last id"


def test_a_job_that_fails_goes_on_after_the_last_id(server: Server, tmp_path: Path) -> None:
    def failing(events: list[Any]) -> None:
        if any(isinstance(event, sd.Insert) and event.le >= 5 for event in events):
            raise RuntimeError("no")

    server.per_connection, server.last = 3, 6
    table = DatabaseTable(lambda: sqlite3.connect(tmp_path / "rows.db"), "rows")
    query, letters = sd.source("readings", unit="tick").where(lambda e: e.v > 0), list[Any]()
    state, dead = tmp_path / "state", calling(letters.extend)
    with pytest.raises(RuntimeError, match="no"):
        query.serve(server_sent_events(server.url), [table, calling(failing)], checkpoint=state, every=1, dead_letters=dead)
    server.asked, server.last = [], 10
    ended = query.serve(server_sent_events(server.url), [table, calling(list)], checkpoint=state, every=1, dead_letters=dead)
    assert ended.end == "ended"
    assert server.asked[0] in ("5", "6")
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        found = connection.execute("SELECT le, v FROM rows ORDER BY le").fetchall()
    assert found == [(number, number * 10) for number in range(1, 11) if number != 7]
    assert [letter.payload.place for letter in letters if isinstance(letter, sd.Insert)] == [f"event '7' of {server.url}"]


def test_answers_that_are_refused_are_told(server: Server) -> None:
    server.status = 403
    with closing(server_sent_events(server.url).open(None)) as reader, pytest.raises(InputError, match="answers 403 Forbidden"):
        reader.poll(5)
    with pytest.raises(QueryError, match="is no address of HTTP"):
        server_sent_events("ftp://127.0.0.1/readings")


def test_a_server_that_is_gone_is_told_after_three_tries() -> None:
    with running() as server:
        url = server.url
    source = server_sent_events(url)
    with closing(source.open(None)) as reader:
        reader._wait = 0.01  # type: ignore[attr-defined]
        with pytest.raises(InputError, match=f"the server of {url} does not answer: .*refused"):
            reader.poll(5)


def test_an_open_stream_is_closed_at_once(server: Server) -> None:
    reader = server_sent_events(server.url).open(None)
    assert isinstance(reader.poll(5), Batch)
    reader.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "streamdsl-events"]


def test_micro_batches_are_posted_at_least_once(server: Server) -> None:
    def posted() -> list[Any]:
        pa = pytest.importorskip("pyarrow")
        rows = [row for _, body in server.posted for row in body["events"]]
        kinds = {**dict.fromkeys(("kind", "id"), pa.string()), **dict.fromkeys(("le", "re", "re_new", "n"), pa.int64())}
        return events_of(pa.Table.from_pylist(rows, pa.schema(kinds)))

    assert check_sink(lambda: Webhook(server.url), posted).promise == "at_least_once"
    keys = [key for key, _ in server.posted]
    assert sorted(set(keys)) == ["check-0", "check-1", "check-3", "check-4"]


def test_a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not(server: Server) -> None:
    server.failures = 2
    sd.source("readings", unit="tick").where(lambda e: e.v > 1).serve(iterable([(1, 2, {"v": 7})]), Webhook(server.url))
    ((_, body),) = server.posted
    assert body["batch"] == 0
    assert body["events"][0] == {"kind": "insert", "id": "0", "le": 1, "re": 2, "re_new": None, "v": 7}
    server.status = 404
    with pytest.raises(SinkError, match="does not take micro-batch 0: 404"):
        sd.source("readings", unit="tick").where(lambda e: e.v > 1).serve(iterable([(1, 2, {"v": 7})]), Webhook(server.url))
    assert len(server.posted) == 2


def test_secrets_of_addresses_are_in_no_message() -> None:
    address = "http://me:secret@localhost:9/events?token=secret"
    source, sink = server_sent_events(address), Webhook(address)
    assert repr(source) == "server_sent_events('http://***@localhost:9/events?***')"
    assert repr(sink) == "Webhook('http://***@localhost:9/events?***')"
    with pytest.raises(QueryError) as error:
        Webhook("ftp://me:secret@localhost/events?token=secret")
    assert "secret" not in str(error.value)
