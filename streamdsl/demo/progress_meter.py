"""A progress meter on standard error: one line that is rewritten on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import Final, TextIO

_QUARTERS: Final = 4


class ProgressMeter:
    """Shows how much of a piece of work is done.

    >>> meter = ProgressMeter("counting", sys.stdout)
    >>> for done in range(5):
    ...     meter.show(done, 4)
    counting: 25 %
    counting: 50 %
    counting: 75 %
    counting: 100 %
    >>> meter.clear()
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        self._stream = stream if stream is not None else sys.stderr
        self._live = self._stream.isatty()
        self._shown = 0

    def show(self, done: int, total: int) -> None:
        """Show the share that is done, if it has changed."""
        steps = 100 if self._live else _QUARTERS
        reached = done * steps // max(total, 1)
        if reached > self._shown:
            self._shown = reached
            self._write(f"{self.label}: {100 * reached // steps} %")

    def say(self, what: str) -> None:
        """Show a text, where no share is known."""
        self._write(f"{self.label}: {what}")

    def clear(self) -> None:
        """Erase the line on a terminal."""
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K  {text}" if self._live else f"{text}\n")
        self._stream.flush()
