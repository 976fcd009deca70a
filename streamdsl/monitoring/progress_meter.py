"""How far long work is: a bar on the standard error or in a notebook, after a second, and gone at the end (docs/live.md)."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TextIO, TypeVar

from streamdsl.monitoring.terminal_line import TerminalLine
from streamdsl.monitoring.views import draws, in_notebook
from streamdsl.temporal.html import escape

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
ASKED: Final = "STREAMDSL_PROGRESS"
"""The variable of the environment: "1" shows progress also where the standard error is no terminal, "0" nowhere."""
_AFTER: Final = 1.0
_EACH: Final = 0.1
"""Seconds between two looks."""
_TICK: Final = 1.0
"""Seconds between two looks at work of which only the time is known."""


def tracked(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield items, and show how many have been done once that has taken a second.

    >>> list(tracked([3, 1, 2], "sorting"))
    [3, 1, 2]
    """
    total = len(items) if total is None and isinstance(items, Sized) else total
    with ProgressMeter(label) as meter:
        for done, item in enumerate(items):
            meter.show(done, total)
            yield item


@contextmanager
def timed(label: str) -> Iterator[None]:
    """Show for how many seconds work takes, once that is more than two; what counts how much of it is done is shown instead.

    A thread of its own looks, so that it is shown within one long step too; where nobody would see it there is none.

    >>> with timed("sorting"):
    ...     sorted([3, 1, 2])
    [1, 2, 3]
    """
    if not _is_seen(sys.stderr):
        yield
        return
    ended = threading.Event()
    looking = threading.Thread(target=_tick, args=(label, sys.stderr, ended), name="streamdsl-progress", daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()


def _tick(label: str, out: TextIO, ended: threading.Event) -> None:
    begun = time.monotonic()
    with ProgressMeter(f"{label}, seconds", out, gives_way=True) as meter:
        ended.wait(_TICK)  # what counts may begin to be shown
        while not ended.wait(_TICK):
            meter.show(round(time.monotonic() - begun), None)


class ProgressMeter:
    """Shows how much of a piece of work is done. One is shown at a time; one that `gives_way` is replaced by any other.

    >>> with ProgressMeter("counting", sys.stdout) as meter:
    ...     for done in range(5):
    ...         meter.show(done, 4)
    """

    _shown: ClassVar[ProgressMeter | None] = None
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, label: str, out: TextIO | None = None, gives_way: bool = False) -> None:
        self._label, self._out, self._gives_way = label, sys.stderr if out is None else out, gives_way
        self._due = time.monotonic() + _AFTER
        self._bar: ProgressBar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._hide()

    @property
    def is_due(self) -> bool:
        """Whether it is time to show progress: a second after the begin, then now and then."""
        return time.monotonic() >= self._due

    def show(self, done: int, total: int | None) -> None:
        """Show how many of how many are done, unless the work has just begun."""
        if not self.is_due:
            return
        self._due = time.monotonic() + _EACH
        with self._lock:
            shown = ProgressMeter._shown
            if shown is not None and shown._gives_way and not self._gives_way:
                shown._hide()
            if ProgressMeter._shown is None:
                ProgressMeter._shown, self._bar = self, _bar(self._label, self._out)
            if self._bar is not None:
                self._bar.show(done, total)

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._bar = None
        if ProgressMeter._shown is self:
            ProgressMeter._shown = None


class ProgressBar(Protocol):
    """What shows progress."""

    def show(self, done: int, total: int | None) -> None:
        """Show how many of how many are done; None: nobody knows."""

    def clear(self) -> None:
        """Remove what is shown."""


def _is_seen(out: TextIO | None) -> bool:
    """Say whether progress is shown where this runs."""
    asked = os.environ.get(ASKED)
    return out is not None and asked != "0" and (asked == "1" or in_notebook() or out.isatty())


def _bar(label: str, out: TextIO) -> ProgressBar | None:
    if not _is_seen(out):
        return None
    if in_notebook():
        return _NotebookBar(label)
    if draws(out):
        return _RichBar(label, out)
    return _LineBar(label, out) if out.isatty() else _TenthsBar(label, out)


class _LineBar:
    def __init__(self, label: str, out: TextIO) -> None:
        self._label, self._line = label, TerminalLine(out)

    def show(self, done: int, total: int | None) -> None:
        self._line.show(_text(self._label, done, total))

    def clear(self) -> None:
        self._line.clear()


class _TenthsBar(_LineBar):
    """A line for each tenth that is done, and one where nobody knows how much there is."""

    _tenths = -1

    def show(self, done: int, total: int | None) -> None:
        tenths = 10 * done // total if total else 0
        if tenths > self._tenths:
            self._tenths = tenths
            super().show(done, total)


class _RichBar:
    def __init__(self, label: str, out: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        parts = (BarColumn(), TextColumn("{task.description}", markup=False), TimeRemainingColumn())
        self._label = label
        self._progress: Progress = Progress(*parts, console=Console(file=out), auto_refresh=False, transient=True)
        self._task = self._progress.add_task(label, total=None)
        self._progress.start()

    def show(self, done: int, total: int | None) -> None:
        text = _text(self._label, done, total)
        self._progress.update(self._task, description=text, completed=done, total=total, refresh=True)

    def clear(self) -> None:
        self._progress.stop()


class _NotebookBar:
    def __init__(self, label: str) -> None:
        import IPython.display

        display: Any = IPython.display.display
        self._label = label
        self._handle = display(self._data(0, None), raw=True, display_id=True)

    def show(self, done: int, total: int | None) -> None:
        self._handle.update(self._data(done, total), raw=True)

    def clear(self) -> None:
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)

    def _data(self, done: int, total: int | None) -> dict[str, str]:
        text = _text(self._label, done, total)
        share = f' value="{done}" max="{total}"' if total else ""
        return {"text/html": f"<progress{share}></progress> {escape(text)}", "text/plain": text}


def _text(label: str, done: int, total: int | None) -> str:
    """Return progress as text.

    >>> _text("reading", 1_300, 2_600), _text("reading", 7, None)
    ('reading: 50 %, 1,300 of 2,600', 'reading: 7')
    """
    return f"{label}: {100 * done // total} %, {done:,} of {total:,}" if total else f"{label}: {done:,}"
