"""Signals that end a job in order: what is there is processed and committed, and then it stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set an event at the first SIGINT or SIGTERM; a second one interrupts. Outside of the main thread nothing is caught."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def caught(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, caught) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
