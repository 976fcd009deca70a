"""The source of a websocket, with a real server on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import END, Batch, OpenSource, calling, pushed, websocket
from streamdsl.errors import InputError, QueryError
from streamdsl.testing import check_source

pytest.importorskip("websockets")

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve


class Feed:
    """Sends readings 1 to `last`, each once in all, `per_connection` at a time; then it closes with `code`, or stays silent."""

    def __init__(self) -> None:
        self.sent, self.last, self.per_connection, self.code = 0, 10, 100, 1000
        self.said, self.headers, self.refusal = list[Any](), list[str | None](), 0
        self.waits_for = 0
        self.stopped = threading.Event()

    def handle(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.headers.append(connection.request.headers.get("X-Key"))
        self.said += [connection.recv() for _ in range(self.waits_for)]
        for _ in range(min(self.per_connection, self.last - self.sent)):
            self.sent += 1
            connection.send("no json" if self.sent == 7 else json.dumps({"le": self.sent, "v": self.sent * 10}))
        if self.sent == self.last and not self.code:
            self.stopped.wait(10)
        else:
            connection.close(self.code if self.sent == self.last else 1011)

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        return Response(self.refusal, "Forbidden", Headers(), b"") if self.refusal else None


@contextmanager
def running(feed: Feed) -> Iterator[str]:
    with serve(feed.handle, "127.0.0.1", 0, process_request=feed.answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/readings"
        feed.stopped.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def url(feed: Feed) -> Iterator[str]:
    with running(feed) as url:
        yield url


def quick(reader: OpenSource) -> OpenSource:
    """Let a reader wait for a moment only before it connects again."""
    reader._wait = 0.01  # type: ignore[attr-defined]
    return reader


def test_it_keeps_what_a_source_promises_that_gives_nothing_again(url: str) -> None:
    report = check_source(lambda: websocket(url), patience=1, gives_again=False)
    assert (report.records, report.bad_records, report.promise) == (9, 1, "goes on")


def test_what_comes_is_the_input_of_a_job(url: str, feed: Feed) -> None:
    found, letters = list[Any](), list[Any]()
    query = sd.source("readings", unit="tick").where(lambda e: e.v > 80)
    ended = query.serve(websocket(url, headers={"X-Key": "a"}), calling(found.extend), dead_letters=calling(letters.extend))
    assert (ended.end, ended.rows_in, ended.bad_records) == ("ended", 10, 1)
    assert [event.payload.v for event in found if isinstance(event, sd.Insert)] == [90, 100]
    assert [each.payload.place for each in letters if isinstance(each, sd.Insert)] == [f"message 7 of {url}"]
    assert feed.headers == ["a"]


def batches(reader: OpenSource) -> list[Batch]:
    """Return what comes until the end: a poll that finds nothing, or nothing that means something, gives None."""
    found = []
    while (polled := reader.poll(5)) is not END:
        if polled is not None:
            assert isinstance(polled, Batch)
            found.append(polled)
    return found


def test_a_lost_connection_is_made_again_and_told_what_is_wanted(url: str, feed: Feed) -> None:
    feed.per_connection, feed.waits_for = 4, 2
    with closing(quick(websocket(url, subscribe=["hello", {"op": "all"}], decode=str).open(5))) as reader:
        assert sum(len(batch.data) for batch in batches(reader)) == 10
    assert feed.said == ["hello", '{"op": "all"}'] * 3


def test_the_position_counts_on_and_messages_that_mean_nothing_are_passed_over(url: str) -> None:
    with closing(websocket(url, decode=lambda text: None if text == "no json" else json.loads(text)).open(5)) as reader:
        found = batches(reader)
    assert sum(len(batch.data) for batch in found) == 9
    assert found[-1].position == 15


def test_a_poll_ends_though_nothing_that_comes_means_anything(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "_AT_ONCE", 2)
    heard = list[Any]()
    with closing(websocket(url, decode=heard.append).open(None)) as reader:
        assert reader.poll(5) is None
        assert 1 <= len(heard) <= 2
        assert batches(reader) == []
    assert len(heard) == 10


def test_a_server_that_refuses_is_told(url: str, feed: Feed) -> None:
    feed.refusal = 403
    with closing(websocket(url).open(None)) as reader, pytest.raises(InputError, match="answers 403 Forbidden"):
        reader.poll(5)


def test_a_server_that_is_gone_is_told_after_three_tries() -> None:
    with running(Feed()) as url:
        pass
    with closing(quick(websocket(url).open(None))) as reader, pytest.raises(InputError, match=r"does not answer: .*refused"):
        reader.poll(5)


def test_a_silent_one_is_closed_at_once(url: str, feed: Feed) -> None:
    feed.code = 0
    reader = websocket(url).open(None)
    found = 0
    while found < 9:
        polled = reader.poll(5)
        assert isinstance(polled, Batch)
        found += len(polled.data)
    assert reader.poll(0.05) is None
    begun = time.monotonic()
    reader.close()
    assert time.monotonic() - begun < 5  # not the ten seconds for which the server is silent
    assert not [thread for thread in threading.enumerate() if thread.name == "streamdsl-events"]


def test_an_address_of_another_kind_is_refused_without_its_secrets() -> None:
    with pytest.raises(QueryError, match="is no address of a websocket") as error:
        websocket("http://me:secret@localhost/readings?token=secret")
    assert "secret" not in str(error.value)
