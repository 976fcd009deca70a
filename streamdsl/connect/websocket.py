"""A source of the messages that a server sends over a websocket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import OpenSource, Position, Source
from streamdsl.connect.pushed import Pushed, PushReader, ServerEnded
from streamdsl.connect.server_sent_events import sendable
from streamdsl.errors import InputError, QueryError
from streamdsl.extras import need
from streamdsl.redaction import without_secrets

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_MEANT: Final = 1000
"""The code with which a server closes that has nothing more to say."""


def websocket(
    url: str,
    *,
    start: str | None = None,
    end: str | None = None,
    decode: Callable[[Any], Any] = json.loads,
    subscribe: Sequence[Any] = (),
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> Source:
    """Return a source of the messages that a server sends over a websocket, each of which `decode` makes an item of, or None.

    Items are those of `iterable`: objects with `le` (or `start` and `end`) and the fields, rows or events, all of one form; by
    default of JSON.
    `subscribe` is what is said to the server on each new connection: texts, bytes, or what JSON makes texts of.

    A websocket gives nothing again. Its position is the number of messages, and a restart goes on with what comes then: what is
    sent between the last micro-batch of one run and the connection of the next is lost, and what is sent while a connection is
    made anew; nothing counts twice. A connection that is lost, or whose server does not answer a ping for `timeout` seconds, is
    made anew after three seconds; the source ends where the server closes normally (1000). Raises `InputError` for a server that
    refuses, and where three connections in a row fail, `QueryError` for an address of another kind.

    >>> from streamdsl.connect import websocket
    >>> websocket("wss://me:secret@example.org/ticker", subscribe=[{"op": "subscribe", "symbol": "ABC"}])
    websocket('wss://***@example.org/ticker')
    """
    need("websockets", "sources of websockets", "websocket")
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise QueryError(f"{without_secrets(url)!r} is no address of a websocket", hint="wss://host/path")
    said = [each if isinstance(each, (str, bytes)) else json.dumps(each) for each in subscribe]
    name, sent = f"websocket({without_secrets(url)!r})", sendable(headers)

    def reader(position: Position) -> OpenSource:
        return _MessageReader(url, decode, said, sent, timeout, position or 0)

    return MadeSource(name, reader, lifetimes(start, end))


class _MessageReader(PushReader):
    lost: ClassVar = (OSError, EOFError)

    def __init__(
        self,
        url: str,
        decode: Callable[[Any], Any],
        said: Sequence[str | bytes],
        headers: Mapping[str, str],
        timeout: float,
        position: int,
    ) -> None:
        super().__init__(without_secrets(url), decode, None)
        self._url, self._said, self._headers, self._timeout = url, said, headers, timeout
        self._number = position
        self._connection: ClientConnection | None = None
        self._thread.start()

    @property
    def _position(self) -> Position:
        return self._number

    def _where(self, sent: Pushed) -> str:
        return f"message {self._number} of {self._shown}"

    def _cut(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()

    def _connected(self, id: str | None) -> Iterator[Pushed]:
        from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidHandshake, InvalidStatus
        from websockets.sync.client import connect

        try:
            with connect(
                self._url, additional_headers=dict(self._headers), ping_timeout=self._timeout, close_timeout=1, max_size=None
            ) as self._connection:
                for each in self._said:
                    self._connection.send(each)
                self._failures = 0
                while True:
                    yield Pushed(None, self._connection.recv())
        except InvalidStatus as error:
            answer = error.response
            if answer.status_code < 500:
                refusal = f"the server of {self._shown} answers {answer.status_code} {answer.reason_phrase}"
                raise InputError(refusal) from None
            raise OSError(str(error)) from error
        except ConnectionClosedOK as closed:
            if closed.rcvd is not None and closed.rcvd.code == _MEANT:
                raise ServerEnded from None
        except (ConnectionClosed, InvalidHandshake) as error:
            raise OSError(str(error)) from error
