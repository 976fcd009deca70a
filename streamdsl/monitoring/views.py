"""Where panels are shown, each in place of the one before: in a notebook, in a terminal with rich, else as lines."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from streamdsl.monitoring.panel import Panel
from streamdsl.monitoring.terminal_line import TerminalLine

if TYPE_CHECKING:
    from rich.console import Console


class PanelView(Protocol):
    """A place that shows one panel at a time."""

    def show(self, panel: Panel) -> None:
        """Show a panel in place of the one before."""

    def end(self) -> None:
        """Leave what is shown as it is."""


def in_notebook() -> bool:
    """Say whether this runs in the kernel of a notebook.

    >>> in_notebook()
    False
    """
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


def view(out: TextIO | None = None) -> PanelView:
    """Return the view that suits where this runs: the output of a cell, else a stream of text, by default the standard error."""
    if in_notebook():
        return NotebookView()
    out = sys.stderr if out is None else out
    if draws(out):
        from rich.console import Console

        return RichView(Console(file=out))
    return LineView(out)


def draws(out: TextIO) -> bool:
    """Say whether a stream is a terminal, and rich is installed: `pip install 'streamdsl[terminal]'`."""
    return out.isatty() and find_spec("rich") is not None


class NotebookView:
    """The output of the cell that has made it, which is replaced: no other output moves."""

    def __init__(self) -> None:
        import IPython.display

        display: Any = IPython.display.display
        self._handle = display(self._data(Panel("nothing yet", ())), raw=True, display_id=True)

    def show(self, panel: Panel) -> None:
        self._handle.update(self._data(panel), raw=True)

    def end(self) -> None:
        """Leave the output as it is."""

    def _data(self, panel: Panel) -> dict[str, str]:
        return {"text/html": panel.html(), "text/plain": str(panel)}


class RichView:
    """A part of a terminal, which rich draws again in place; what is printed meanwhile goes above it."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, panel: Panel) -> None:
        self._live.update(_drawn(panel), refresh=True)

    def end(self) -> None:
        self._live.stop()


def _drawn(panel: Panel) -> Any:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    drawn: list[Any] = [Text(panel.headline, style="bold")]
    for figures in panel.tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        for place, title in enumerate(figures.titles):
            if figures.words:
                table.add_column(title)
                continue
            width = max(len(row[place]) for row in figures.rows) if place < 2 else None  # these two are never cut
            table.add_column(title, justify="right" if place else "left", no_wrap=True, min_width=width)
        for row in figures.rows:
            table.add_row(*map(Text, row))
        drawn.append(table)
    return Group(*drawn)


class LineView:
    """One line, which is written over in a terminal; elsewhere a line for each panel."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._line = TerminalLine(out)

    def show(self, panel: Panel) -> None:
        self._line.show(panel.line())

    def end(self) -> None:
        self._line.end()
