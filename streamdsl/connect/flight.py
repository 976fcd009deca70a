"""A source of what a server of Arrow Flight gives."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import END, Batch, End, OpenSource, Source
from streamdsl.errors import InputError, QueryError
from streamdsl.extras import need_pyarrow
from streamdsl.redaction import without_secrets

_AHEAD: Final = 2
"""The number of batches that are read before they are asked for."""


def flight_stream(
    location: str,
    what: bytes | str | os.PathLike[str],
    *,
    start: str | None = None,
    end: str | None = None,
    headers: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Source:
    """Return a source of the record batches of a server of Arrow Flight: of a ticket in bytes, or of a flight by its path.

    Their columns are `le`, `re` (or `start` and `end`) and the payload's fields, or those of physical events. The endpoints of a
    flight are read one after the other, each from the first of its locations, or from this server. The position is the number of
    batches: a restart reads the stream again and skips so many, so the server must give the same again. The source ends where the
    stream does. `headers` go with each call, as for `authorization`, and `settings` are those of `pyarrow.flight.FlightClient`.
    Raises `InputError` for what the server says.

    >>> from streamdsl.connect import flight_stream
    >>> flight_stream("grpc://localhost:8815", "trips/2026")
    flight_stream('grpc://localhost:8815', 'trips/2026')
    """
    need_pyarrow("sources of Arrow Flight")
    if not isinstance(what, (bytes, str, os.PathLike)):
        raise QueryError(
            f"{what!r:.80} is no ticket and no path of a flight", hint='a ticket is bytes: b"trips", a path "trips/2026"'
        )
    shown = without_secrets(location)
    name = f"flight_stream({shown!r}, {'a ticket' if isinstance(what, bytes) else repr(os.fspath(what))})"
    calls = [(key.lower().encode(), value.encode()) for key, value in (headers or {}).items()]

    def frames() -> Iterator[Any]:
        return _frames(location, what, calls, settings or {})

    return MadeSource(name, lambda position: _FlightReader(shown, frames, position or 0), lifetimes(start, end))


def _frames(location: str, what: Any, headers: list[tuple[bytes, bytes]], settings: Mapping[str, Any]) -> Iterator[Any]:
    from pyarrow import flight

    options = flight.FlightCallOptions(headers=headers)
    with closing(flight.connect(location, **settings)) as client:
        if isinstance(what, bytes):
            yield from _chunks(client.do_get(flight.Ticket(what), options))
            return
        path = os.fspath(what).split("/")
        for endpoint in client.get_flight_info(flight.FlightDescriptor.for_path(*path), options).endpoints:
            if not endpoint.locations:
                yield from _chunks(client.do_get(endpoint.ticket, options))
                continue
            with closing(flight.connect(endpoint.locations[0], **settings)) as other:
                yield from _chunks(other.do_get(endpoint.ticket, options))


def _chunks(stream: Any) -> Iterator[Any]:
    import pyarrow as pa

    for chunk in stream:
        if chunk.data is not None:
            yield pa.Table.from_batches([chunk.data])


class _FlightReader(OpenSource):
    """A thread waits for the server, as its answers cannot be waited for with a timeout; it is few batches ahead."""

    def __init__(self, shown: str, frames: Callable[[], Iterator[Any]], position: int) -> None:
        self._shown, self._position = shown, position
        self._queue = queue.Queue[Any](_AHEAD)
        self._closed, self._is_at_end = threading.Event(), False
        self._thread = threading.Thread(target=self._run, args=(frames, position), name="streamdsl-flight", daemon=True)
        self._thread.start()

    def poll(self, timeout: float) -> Batch | End | None:
        if self._is_at_end:
            return END
        try:
            found = self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise InputError(f"the server of Flight {self._shown} cannot be read: {found}") from found
        self._is_at_end = found is END
        if self._is_at_end:
            return END
        self._position += 1
        return Batch(found, self._position)

    def close(self) -> None:
        self._closed.set()
        self._thread.join(1)

    def _run(self, frames: Callable[[], Iterator[Any]], position: int) -> None:
        try:
            number = 0
            for number, frame in enumerate(frames(), 1):
                if number > position and not self._put(frame):
                    return
            missing = InputError(f"there are {number} batches, and {position} had been read")
            self._put(END if number >= position else missing)
        except Exception as error:  # whatever the library has
            self._put(error)

    def _put(self, what: Any) -> bool:
        """Put something into the queue once there is a place; say whether the reader is still open."""
        while not self._closed.is_set():
            try:
                self._queue.put(what, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False
