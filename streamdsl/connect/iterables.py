"""Sources of what Python iterates over, plainly or asynchronously."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Final

from streamdsl.connect.made_source import MadeSource
from streamdsl.connect.protocols import END, Batch, End, OpenSource, Position, Source
from streamdsl.errors import InputError, QueryError

_AT_ONCE: Final = 1_000
_SHORTEST: Final = 0.01
"""Seconds for which items are taken at least, so that quick ones come in batches."""
_AGAIN: Final = "the items must be the same each time: give a list, or a function that makes the iterator anew"


def iterable(items: Iterable[Any] | Callable[[], Iterable[Any]], at_once: int = _AT_ONCE) -> Source:
    """Return a source of the items of a list, or of what a function makes each time: events, rows `(le, re, payload)` or dicts.

    Its position is the number of items; a restart makes the iterator again and skips so many, so it must give the same ones. A
    batch has at most `at_once` items, and ends where the iterator has taken longer than `poll` may wait. A generator, which
    can be read only once, is refused with `QueryError`.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import iterable
    >>> iterable([sd.point("a", 3, 7), sd.Cti(5)]).open(1).poll(0)
    Batch(data=[Cti(time=5)], position=2, bad=(), places=())
    """

    if isinstance(items, (GeneratorType, Iterator)) or not (callable(items) or isinstance(items, Iterable)):
        maker = getattr(items, "__name__", "")
        such = f", iterable({maker}) for iterable({maker}())" if maker.isidentifier() else ""
        raise QueryError(f"{items!r:.80} cannot be read again after a restart", hint=_AGAIN + such)

    def reader(position: Position) -> OpenSource:
        return _Reader(iter(items() if callable(items) else items), position or 0, at_once)

    return MadeSource(f"iterable({items!r:.40})", reader)


class _Reader(OpenSource):
    def __init__(self, items: Iterator[Any], position: int, at_once: int) -> None:
        self._items, self._position, self._at_once = items, position, at_once
        if (skipped := sum(1 for _ in islice(items, position))) < position:
            raise _fewer(skipped, position)

    def poll(self, timeout: float) -> Batch | End | None:
        until, found = time.monotonic() + max(timeout, _SHORTEST), []
        for item in islice(self._items, self._at_once):
            found.append(item)
            if time.monotonic() > until:
                break
        if not found:
            return END
        self._position += len(found)
        return Batch(found, self._position)


def async_iterable(make: Callable[[], AsyncIterable[Any]], at_once: int = _AT_ONCE) -> Source:
    """Return a source of the items of an asynchronous iterator, which a function makes each time.

    Position, restart and items are as for `iterable`. Items that are there at once are one batch, of at most `at_once`. The
    iterator runs in an event loop of its own, only while it is polled: what it awaits waits while the engine works. Where a loop
    is running, as in Jupyter, that takes `await query.serve_async(...)`.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import async_iterable
    >>> async def trips():
    ...     for n in range(3):
    ...         yield sd.point(n, n, {"fare": 7})
    >>> with_rest = async_iterable(trips).open(1)
    >>> [event.le for event in with_rest.poll(1).data]
    [1, 2]
    >>> with_rest.poll(1), with_rest.close()
    (END, None)
    """

    if isinstance(make, AsyncGeneratorType) or not callable(make):
        raise QueryError(f"{make!r:.80} cannot be read again after a restart", hint=_AGAIN)
    return MadeSource(f"async_iterable({make!r:.40})", lambda position: _AsyncReader(make, position or 0, at_once))


class _AsyncReader(OpenSource):
    """The task of the next item is kept from one poll to the next, so that no item is lost to a timeout."""

    def __init__(self, make: Callable[[], AsyncIterable[Any]], position: int, at_once: int) -> None:
        self._make, self._position, self._at_once = make, position, at_once
        self._loop = asyncio.new_event_loop()
        self._skip = position
        self._items: AsyncIterator[Any] | None = None
        self._next: asyncio.Task[Any] | None = None
        self._is_at_end = False

    def poll(self, timeout: float) -> Batch | End | None:
        if self._is_at_end:
            return END
        found = self._loop.run_until_complete(self._found(timeout))
        self._position += len(found)
        if found:
            return Batch(found, self._position)
        return END if self._is_at_end else None

    async def _found(self, timeout: float) -> list[Any]:
        if self._items is None:
            self._items = aiter(self._make())
        until, found = time.monotonic() + timeout, list[Any]()
        while len(found) < self._at_once:
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._items))
            await asyncio.wait([self._next], timeout=0 if found else max(0.0, until - time.monotonic()))
            if not self._next.done():
                break
            task, self._next = self._next, None
            try:
                item = task.result()
            except StopAsyncIteration:
                self._is_at_end = True
                if self._skip:
                    raise _fewer(self._position - self._skip, self._position) from None
                break
            if self._skip:
                self._skip -= 1
            else:
                found.append(item)
        return found

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._loop.run_until_complete(asyncio.wait([self._next]))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


def _fewer(items: int, position: int) -> InputError:
    return InputError(f"there are {items} items, and {position} had been read", hint=_AGAIN)
