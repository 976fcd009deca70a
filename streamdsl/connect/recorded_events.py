"""A source of what was recorded, at once or as fast as it was, or so many times as fast."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamdsl.connect.made_source import MadeSource
from streamdsl.connect.protocols import Batch, End, OpenSource, Source
from streamdsl.connect.text_files import jsonl_file
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.temporal import Unit, to_ticks

_AT_ONCE: Final = 1_000
_SECONDS: Final[Mapping[Unit, float]] = {"tick": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def replay(
    path: str | os.PathLike[str], *, follow: bool = False, speed: float | None = None, unit: Unit = "tick", start: str = "le"
) -> Source:
    """Return a source of the physical events that a `JsonlFile` has written, CTIs included; ids are texts.

    With `speed` an event comes when the clock has gone on since the first one as its sync time has, so many times as fast: late
    ones come at once, after those before them. Numbers are times in the `unit` of the query, a tick is a second; `start` is the
    column of LEs. Raises `QueryError` for a speed that is no number above 0.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamdsl.connect import replay
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.jsonl")
    ...     _ = path.write_text('{"le": 5, "fare": 7}\\n{"le": 4, "fare": 8}\\n{"le": 3600, "fare": 9}\\n')
    ...     replay(path, speed=60).open(None).poll(0.1).data
    [{'le': 5, 'fare': 7}, {'le': 4, 'fare': 8}]
    """

    if speed is None:
        return jsonl_file(path, follow=follow)
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0 < speed < float("inf"):
        raise QueryError(f"a speed is a number above 0, not {speed!r}", hint="replay(path, speed=60): a minute in a second")
    clock = _Clock(speed, unit, start)
    recorded = jsonl_file(path, follow=follow, at_once=1)
    return MadeSource(f"replay({os.fspath(path)!r}, speed={speed})", lambda position: _Replaying(recorded.open(position), clock))


@dataclass(frozen=True, slots=True)
class _Clock:
    """Says at how many seconds an event comes."""

    speed: float
    unit: Unit
    start: str

    def seconds(self, event: Mapping[str, Any]) -> float | None:
        """Return when an event comes; None if that cannot be told, as of a CTI at the end of time."""
        names = ("re", "re_new") if event.get("kind") == "retract" else (self.start,)
        times = [time for name in names if (time := self._at(event.get(name))) is not None]
        return min(times) / self.speed if times else None

    def _at(self, value: object) -> float | None:
        try:
            if isinstance(value, str):
                return to_ticks(value, "ns") / 10**9
            return to_ticks(value) * _SECONDS[self.unit]
        except StreamDslError:
            return None  # the query says what is wrong with it


class _Replaying(OpenSource):
    """Holds back the next event until it is due."""

    def __init__(self, recorded: OpenSource, clock: _Clock) -> None:
        self._recorded, self._clock = recorded, clock
        self._next: Batch | None = None
        self._began: float | None = None
        """When an event at second 0 would have come."""

    def poll(self, timeout: float) -> Batch | End | None:
        until, due = time.monotonic() + timeout, list[Batch]()
        while len(due) < _AT_ONCE:
            if self._next is None:
                polled = self._recorded.poll(0.0 if due else max(0.0, until - time.monotonic()))
                if not isinstance(polled, Batch):
                    return _together(due) if due else polled
                self._next = polled
            left = self._wait()
            if left > 0:
                if due:
                    break
                time.sleep(max(0.0, min(left, until - time.monotonic())))
                if time.monotonic() >= until and self._wait() > 0:
                    return None
                continue
            due.append(self._next)
            self._next = None
        return _together(due)

    def _wait(self) -> float:
        """Return for how many seconds the next event is not due."""
        assert self._next is not None
        at = next((self._clock.seconds(event) for event in self._next.data), None)
        if at is None:
            return 0.0
        now = time.monotonic()
        self._began = now - at if self._began is None else self._began
        return self._began + at - now

    def close(self) -> None:
        self._recorded.close()


def _together(due: list[Batch]) -> Batch:
    data, bad, places = ([item for batch in due for item in getattr(batch, name)] for name in ("data", "bad", "places"))
    return Batch(data, due[-1].position, bad, places)
