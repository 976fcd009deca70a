"""One line of a terminal, which is written over; elsewhere each text is a line."""

from __future__ import annotations

import sys
from typing import Final, TextIO

_CLEAR: Final = "\r\x1b[K"


class TerminalLine:
    """Shows texts on one line of a terminal, the last in place of the one before; on other streams each has a line.

    >>> line = TerminalLine(sys.stdout)
    >>> line.show("1 of 2")
    1 of 2
    >>> line.say("a file was passed")
    a file was passed
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self.is_terminal = self._out.isatty()
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        from shutil import get_terminal_size

        room = get_terminal_size().columns - 1
        self._write(f"{_CLEAR}{text[:room]}" if self.is_terminal else f"{text}\n")
        self._is_shown = True

    def say(self, text: str) -> None:
        """Show a text on lines of its own, which stay."""
        self._write(f"{_CLEAR}{text}\n" if self.is_terminal else f"{text}\n")

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self.is_terminal and self._is_shown:
            self._write(_CLEAR)
        self._is_shown = False

    def end(self) -> None:
        """End the line, so that it stays."""
        if self.is_terminal and self._is_shown:
            self._write("\n")
        self._is_shown = False

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
