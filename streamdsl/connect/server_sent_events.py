"""A source of the events that a server sends over HTTP, as `text/event-stream`."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from streamdsl.connect.made_source import MadeSource
from streamdsl.connect.protocols import END, BadRecord, Batch, End, OpenSource, Source
from streamdsl.errors import InputError, QueryError
from streamdsl.redaction import without_secrets

_AT_ONCE: Final = 1_000
_WAIT: Final = 3.0
"""Seconds before the next connection, unless the server says otherwise."""


def server_sent_events(
    url: str,
    *,
    decode: Callable[[str], Any] = json.loads,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Source:
    """Return a source of the events that a server sends, each of which `decode` makes an item of, by default of JSON.

    Items are those of `iterable`: objects with `le` and the fields, rows or events, all of one form.

    The position is the last id that the server gave; the server is asked to go on after it (`Last-Event-ID`), after a restart
    as after a connection that was lost, or silent for `timeout` seconds. So nothing is lost as far as the server gives ids, and
    keeps what comes after them. The source ends where the server answers 204; `once=True` makes no sense of it, as it may always
    say more. Raises `InputError` for an answer that is neither that nor 200, and where three connections in a row fail.

    >>> from streamdsl.connect import server_sent_events
    >>> server_sent_events("http://localhost:8000/trips")
    server_sent_events('http://localhost:8000/trips')
    """
    connection(url, timeout)
    name, sent = f"server_sent_events({without_secrets(url)!r})", sendable(headers)
    return MadeSource(name, lambda position: _EventReader(url, decode, sent, timeout, position or {}))


def connection(url: str, timeout: float) -> http.client.HTTPConnection:
    """Return a connection to a server, which is made when it is used. Raises `QueryError` for an address of another kind."""
    try:
        parts = urlsplit(url)
        is_of_http, port = parts.scheme in ("http", "https") and bool(parts.hostname), parts.port
    except ValueError:
        is_of_http = False
    if not is_of_http or any(char <= " " for char in url):
        raise QueryError(
            f"{url.partition('?')[0]!r} is no address of HTTP", hint="https://host/path; other characters are written as %20"
        )
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", port, timeout=timeout)


def sendable(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return headers. Raises `QueryError` for one that cannot be sent, without its value, which may be a secret."""
    for name, value in (headers or {}).items():
        if not value.isascii() or not value.isprintable():
            raise QueryError(
                f"the header {name!r} has characters that are not sent, as a line break at its end",
                hint="strip() what a file says",
            )
    return dict(headers or {})


def target(url: str) -> str:
    """Return what a server is asked for.

    >>> target("http://localhost:8000/trips?zone=A")
    '/trips?zone=A'
    """
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class SentText(NamedTuple):
    """The text of an event, and the last id that the server gave before or with it."""

    id: str | None
    text: str


def sent_texts(
    lines: Iterable[bytes], id: str | None, waits: Callable[[int], None] = lambda milliseconds: None
) -> Iterator[SentText]:
    """Yield the events of the lines of an event stream, after the one with an id.

    >>> list(sent_texts([b": hello", b"id: 7", b"data: a", b"data: b", b"", b"data: c", b"", b"data: cut off"], None))
    [SentText(id='7', text='a\\nb'), SentText(id='7', text='c')]
    """
    data = list[str]()
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield SentText(id, "\n".join(data))
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "id":
            id = value
        elif name == "retry" and value.isdigit():
            waits(int(value))


class _EventReader(OpenSource):
    """A thread reads what the server sends into a queue that is no longer than a batch."""

    def __init__(
        self, url: str, decode: Callable[[str], Any], headers: Mapping[str, str], timeout: float, position: Mapping[str, Any]
    ) -> None:
        self._url, self._decode, self._headers, self._timeout = url, decode, headers, timeout
        self._shown = without_secrets(url)
        self._id: str | None = position.get("id")
        self._number = 0
        self._wait, self._failures = _WAIT, 0
        self._queue = queue.Queue[SentText | Exception | End](_AT_ONCE)
        self._closed = threading.Event()
        self._socket: socket.socket | None = None
        self._is_at_end = False
        self._thread = threading.Thread(target=self._run, args=(self._id,), name="streamdsl-events", daemon=True)
        self._thread.start()

    def poll(self, timeout: float) -> Batch | End | None:
        if self._is_at_end:
            return END
        items, bad, places = list[Any](), list[BadRecord](), list[str]()
        found = self._next(timeout)
        while isinstance(found, SentText):
            self._number, self._id = self._number + 1, found.id
            where = f"event {self._number if found.id is None else repr(found.id)} of {self._shown}"
            try:
                items.append(self._decode(found.text))
                places.append(where)
            except Exception as error:  # of the user's function, or of the text
                bad.append(BadRecord(found.text, f"{type(error).__name__}: {error}", where))
            found = self._next(0) if len(items) + len(bad) < _AT_ONCE else None
        self._is_at_end = found is END
        if isinstance(found, Exception):
            raise found
        if items or bad:
            return Batch(items, None if self._id is None else {"id": self._id}, bad, places)
        return END if self._is_at_end else None

    def close(self) -> None:
        self._closed.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + 1
        while self._thread.is_alive() and time.monotonic() < until:
            with suppress(queue.Empty):
                self._queue.get_nowait()  # the thread may wait for a place
            self._thread.join(0.01)

    def _next(self, timeout: float) -> SentText | Exception | End | None:
        try:
            return self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()
        except queue.Empty:
            return None

    def _run(self, id: str | None) -> None:
        while not self._closed.is_set():
            try:
                for sent in self._texts(id):
                    id = sent.id
                    self._queue.put(sent)
                    if self._closed.is_set():
                        return
            except InputError as error:
                self._queue.put(error)
                return
            except _Ended:
                self._queue.put(END)
                return
            except (OSError, http.client.HTTPException) as error:
                self._failures += 1
                if self._failures == 3 and not self._closed.is_set():
                    self._queue.put(InputError(f"the server of {self._shown} does not answer: {error}"))
                    return
            self._closed.wait(self._wait)

    def _texts(self, id: str | None) -> Iterator[SentText]:
        client = connection(self._url, self._timeout)
        try:
            asked = {"Accept": "text/event-stream", "Cache-Control": "no-cache", **self._headers}
            client.request("GET", target(self._url), headers={**asked, **({} if id is None else {"Last-Event-ID": id})})
            self._socket = client.sock
            answer = client.getresponse()
            if answer.status == http.client.NO_CONTENT:
                raise _Ended
            if answer.status != http.client.OK:
                raise InputError(f"the server of {self._shown} answers {answer.status} {answer.reason}")
            self._failures = 0
            yield from sent_texts(answer, id, self._set_wait)
        finally:
            client.close()

    def _set_wait(self, milliseconds: int) -> None:
        self._wait = milliseconds / 1000


class _Ended(Exception):  # noqa: N818 - it is no error
    """The server has said that there is nothing more."""
