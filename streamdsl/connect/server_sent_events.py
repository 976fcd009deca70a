"""A source of the events that a server sends over HTTP, as `text/event-stream`."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import OpenSource, Position, Source
from streamdsl.connect.pushed import Pushed, PushReader, ServerEnded
from streamdsl.errors import InputError, QueryError
from streamdsl.redaction import without_secrets


def server_sent_events(
    url: str,
    *,
    decode: Callable[[str], Any] = json.loads,
    headers: Mapping[str, str] | None = None,
    start: str | None = None,
    end: str | None = None,
    timeout: float = 60.0,
) -> Source:
    """Return a source of the events that a server sends, each of which `decode` makes an item of, by default of JSON.

    Items are those of `iterable`: objects with `le` (or `start` and `end`) and the fields, rows or events, all of one form.

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

    def reader(position: Position) -> OpenSource:
        return _EventReader(url, decode, sent, timeout, position or {})

    return MadeSource(name, reader, lifetimes(start, end))


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


def sent_texts(
    lines: Iterable[bytes], id: str | None, waits: Callable[[int], None] = lambda milliseconds: None
) -> Iterator[Pushed]:
    """Yield the events of the lines of an event stream, after the one with an id.

    >>> list(sent_texts([b": hello", b"id: 7", b"data: a", b"data: b", b"", b"data: c", b"", b"data: cut off"], None))
    [Pushed(id='7', text='a\\nb'), Pushed(id='7', text='c')]
    """
    data = list[str]()
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield Pushed(id, "\n".join(data))
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


class _EventReader(PushReader):
    lost: ClassVar = (OSError, http.client.HTTPException)

    def __init__(
        self, url: str, decode: Callable[[str], Any], headers: Mapping[str, str], timeout: float, position: Mapping[str, Any]
    ) -> None:
        super().__init__(without_secrets(url), decode, position.get("id"))
        self._url, self._headers, self._timeout = url, headers, timeout
        self._socket: socket.socket | None = None
        self._thread.start()

    @property
    def _position(self) -> Position:
        return None if self._id is None else {"id": self._id}

    def _where(self, sent: Pushed) -> str:
        return f"event {self._number if sent.id is None else repr(sent.id)} of {self._shown}"

    def _cut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connected(self, id: str | None) -> Iterator[Pushed]:
        client = connection(self._url, self._timeout)
        try:
            asked = {"Accept": "text/event-stream", "Cache-Control": "no-cache", **self._headers}
            client.request("GET", target(self._url), headers={**asked, **({} if id is None else {"Last-Event-ID": id})})
            self._socket = client.sock
            answer = client.getresponse()
            if answer.status == http.client.NO_CONTENT:
                raise ServerEnded
            if answer.status != http.client.OK:
                raise InputError(f"the server of {self._shown} answers {answer.status} {answer.reason}")
            self._failures = 0
            yield from sent_texts(answer, id, self._set_wait)
        finally:
            client.close()

    def _set_wait(self, milliseconds: int) -> None:
        self._wait = milliseconds / 1000
