"""Live views: the status of a session or a job, shown again and again in place."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from streamdsl.errors import QueryError
from streamdsl.monitoring.panel import Panel, Panels
from streamdsl.monitoring.status import Status
from streamdsl.monitoring.views import PanelView, view

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session

_SHARE: Final = 0.02
"""How much of the time may go into measuring the state."""


class Live:
    """Shows statuses, at most one in `every` seconds, until `stop`: `session.live()` and `monitoring.live()` make it."""

    def __init__(self, every: float = 0.5, shown_in: PanelView | None = None) -> None:
        if not isinstance(every, (int, float)) or not 0 < every <= threading.TIMEOUT_MAX:
            raise QueryError(f"a live view is shown again after some seconds, not after {every!r}", hint="live(every=0.5)")
        self.every = every
        self._view = view() if shown_in is None else shown_in
        self._panels = Panels()
        self._shown: Panel | None = None
        self._waiting: Status | None = None
        self._due = 0.0
        self._look: Callable[[], Status | None] | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def show(self, status: Status) -> None:
        """Show a status, or keep it for later if one was shown just now."""
        with self._lock:
            self._waiting = status
            if time.monotonic() >= self._due and not self._stopped.is_set():
                self._show_waiting()

    def stop(self) -> None:
        """Show how things are, or what was kept for later, and end; what is shown stays."""
        last = self._look() if self._look is not None and not self._stopped.is_set() else None
        with self._lock:
            if not self._stopped.is_set():
                self._waiting = last or self._waiting
                self._show_waiting()
                self._stopped.set()
                self._view.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def follow(self, look: Callable[[], Status | None]) -> None:
        """Show what `look` returns, again and again in a thread of its own, until that is None or no longer open."""

        def run() -> None:
            while not self._stopped.is_set():
                status = look()
                if status is not None:
                    self.show(status)
                if status is None or status.state != "open":
                    self.stop()
                self._stopped.wait(self.every)

        self._look = look

        threading.Thread(target=run, name="streamdsl live", daemon=True).start()

    def _show_waiting(self) -> None:
        status, self._waiting = self._waiting, None
        if status is None:
            return
        panel = self._panels.panel(status)
        self._due = time.monotonic() + self.every
        if panel != self._shown:
            self._view.show(panel)
            self._shown = panel


def live(*, every: float = 0.5) -> Live:
    """Return a view of a job, `query.serve(..., watch=live())`: the output of a notebook's cell, or a part of the terminal.

    It is shown again after a micro-batch, at most once in so many seconds, and stays when the job ends.

    >>> import streamdsl as sd
    >>> from streamdsl.connect import calling, iterable
    >>> trips = iterable([sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 9})])
    >>> query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    >>> query.serve(trips, calling(len), watch=live()).rows_out
    2
    """
    return Live(every)


def follow_session(session: Session[Any], every: float, sizes: bool) -> Live:
    """Return a view that follows a session while it is open, and does not keep it alive."""
    shown, held = Live(every), weakref.ref(session)
    measured: dict[str, int | None] = {}
    due = 0.0

    def look() -> Status | None:
        nonlocal due
        if (open_ := held()) is None:
            return None
        is_due, begun = sizes and time.monotonic() >= due, time.monotonic()
        status = open_.status(sizes=is_due)
        if is_due:
            measured.update({each.name: each.state_bytes for each in status.operators})
            due = time.monotonic() + max(2.0, (time.monotonic() - begun) / _SHARE)
        return replace(status, operators=[replace(each, state_bytes=measured.get(each.name)) for each in status.operators])

    shown.follow(look)
    return shown
