"""How far long work is: a bar on the standard error or in a notebook, after a second, and gone at the end (docs/live.md)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
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


class ProgressMeter:
    """Shows how much of a piece of work is done, if it is the only one that is shown.

    >>> with ProgressMeter("counting", sys.stdout) as meter:
    ...     for done in range(5):
    ...         meter.show(done, 4)
    """

    _shown: ClassVar[ProgressMeter | None] = None

    def __init__(self, label: str, out: TextIO | None = None) -> None:
        self._label, self._out = label, sys.stderr if out is None else out
        self._due = time.monotonic() + _AFTER
        self._bar: ProgressBar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.clear()
        if ProgressMeter._shown is self:
            ProgressMeter._shown = None

    @property
    def is_due(self) -> bool:
        """Whether it is time to show progress: a second after the begin, then now and then."""
        return time.monotonic() >= self._due

    def show(self, done: int, total: int | None) -> None:
        """Show how many of how many are done, unless the work has just begun."""
        if not self.is_due:
            return
        self._due = time.monotonic() + _EACH
        if self._bar is None and ProgressMeter._shown is None:
            ProgressMeter._shown, self._bar = self, _bar(self._label, self._out)
        if self._bar is not None:
            self._bar.show(done, total)


class ProgressBar(Protocol):
    """What shows progress."""

    def show(self, done: int, total: int | None) -> None:
        """Show how many of how many are done; None: nobody knows."""

    def clear(self) -> None:
        """Remove what is shown."""


def _bar(label: str, out: TextIO) -> ProgressBar | None:
    asked = os.environ.get(ASKED)
    if asked == "0":
        return None
    if in_notebook():
        return _NotebookBar(label)
    if draws(out):
        return _RichBar(label, out)
    return _LineBar(label, out) if out.isatty() else _TenthsBar(label, out) if asked == "1" else None


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
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        parts = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress: Progress = Progress(*parts, console=Console(file=out), auto_refresh=False, transient=True)
        self._task = self._progress.add_task(label, total=None)
        self._progress.start()

    def show(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total, refresh=True)

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
