"""Reading of what a server sends when it likes: a thread keeps the connection, and makes it anew when it is lost."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, Final, NamedTuple

from streamdsl.connect.protocols import END, BadRecord, Batch, End, OpenSource, Position
from streamdsl.errors import InputError

_AT_ONCE: Final = 1_000
_WAIT: Final = 3.0
"""Seconds before the next connection, unless the server says otherwise."""
_TRIES: Final = 3


class Pushed(NamedTuple):
    """What a server has sent, and where it is to go on after it, as far as it says so."""

    id: str | None
    text: str | bytes


class ServerEnded(Exception):  # noqa: N818 - it is no error
    """The server has said that there is nothing more."""


class PushReader(OpenSource, ABC):
    """A thread reads what a server sends into a queue that is no longer than a batch.

    Where that is full the thread waits, and so does the server. Three connections in a row that fail are an `InputError`.
    """

    lost: ClassVar[tuple[type[Exception], ...]]
    """The errors of a connection that is lost, after which another one is made."""

    def __init__(self, shown: str, decode: Callable[[Any], Any], id: str | None) -> None:
        self._shown, self._decode, self._id = shown, decode, id
        self._number = 0
        self._wait, self._failures = _WAIT, 0
        self._queue = queue.Queue[Pushed | Exception | End](_AT_ONCE)
        self._closed = threading.Event()
        self._is_at_end = False
        self._thread = threading.Thread(target=self._run, args=(id,), name="streamdsl-events", daemon=True)

    @abstractmethod
    def _connected(self, id: str | None) -> Iterator[Pushed]:
        """Yield what a new connection gives after an id, and set `_failures` to 0 once the server has answered.

        Raises `ServerEnded` if the server has ended for good, `InputError` for an answer that no other try would change.
        """

    @abstractmethod
    def _cut(self) -> None:
        """End the connection that there is, if there is one, so that the thread waits for nothing."""

    @property
    @abstractmethod
    def _position(self) -> Position:
        """Where the source goes on."""

    @abstractmethod
    def _where(self, sent: Pushed) -> str:
        """Return what is said of the place of a message, whose number is `_number`."""

    def poll(self, timeout: float) -> Batch | End | None:
        if self._is_at_end:
            return END
        items, bad, places = list[Any](), list[BadRecord](), list[str]()
        left, found = _AT_ONCE, self._next(timeout)
        while isinstance(found, Pushed):
            self._number, self._id = self._number + 1, found.id
            where = self._where(found)
            try:
                if (item := self._decode(found.text)) is not None:
                    items.append(item)
                    places.append(where)
            except Exception as error:  # of the user's function, or of the text
                bad.append(BadRecord(found.text, f"{type(error).__name__}: {error}", where))
            left -= 1  # messages that mean nothing count too: a server may send those faster than they are read
            found = self._next(0) if left else None
        self._is_at_end = found is END
        if isinstance(found, Exception):
            raise found
        if items or bad:
            return Batch(items, self._position, bad, places)
        return END if self._is_at_end else None

    def close(self) -> None:
        self._closed.set()
        self._cut()
        until = time.monotonic() + 1
        while self._thread.is_alive() and time.monotonic() < until:
            with suppress(queue.Empty):
                self._queue.get_nowait()  # the thread may wait for a place
            self._thread.join(0.01)

    def _next(self, timeout: float) -> Pushed | Exception | End | None:
        try:
            return self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()
        except queue.Empty:
            return None

    def _run(self, id: str | None) -> None:
        while not self._closed.is_set():
            try:
                for sent in self._connected(id):
                    id = sent.id
                    self._queue.put(sent)
                    if self._closed.is_set():
                        return
            except InputError as error:
                self._queue.put(error)
                return
            except ServerEnded:
                self._queue.put(END)
                return
            except self.lost as error:
                self._failures += 1
                if self._failures == _TRIES and not self._closed.is_set():
                    self._queue.put(InputError(f"the server of {self._shown} does not answer: {error}"))
                    return
            self._closed.wait(self._wait)
