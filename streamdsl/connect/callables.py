"""A sink that calls a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamdsl.connect.output_events import events_of
from streamdsl.connect.protocols import Sink
from streamdsl.temporal import Event


def calling(function: Callable[[list[Event[Any]]], object]) -> Sink:
    """Return a sink that calls a function with the list of events of each micro-batch, once the checkpoint is written.

    It promises `at_least_once`: after a crash the function may be called with the last micro-batch again. Ids are texts.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import calling
    >>> session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    >>> calling(print).write(session.feed([sd.point("a", 3, {"fare": 7})]), 0)
    [Insert(id="('window_aggregate_1', 0, 0)", le=0, re=10, payload=Record(n=1))]
    """

    return _Calls(function)


class _Calls:
    promise: Final = "at_least_once"

    def __init__(self, function: Callable[[list[Event[Any]]], object]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"calling({getattr(self._function, '__qualname__', repr(self._function))})"

    def write(self, events: Any, batch: int, stream: str | None = None) -> None:
        """Call the function with the events of a micro-batch, unless there are none."""
        if found := events_of(events):
            self._function(found)
