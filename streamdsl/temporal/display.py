"""What Jupyter shows of a value by itself: a picture, where there is something to see, above a table or a text."""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

_WIDTH: Final = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)"')
_LEAST: Final = 720
"""The width below which pictures are not shrunk: their small texts have nine pixels then."""


class Picture(Protocol):
    """What can be drawn."""

    def svg(self) -> str:
        """Return the text of an SVG document."""


class Displayed:
    """The base of what has a picture of its own in Jupyter: a subclass says which one, and what stands below it."""

    __slots__ = ()

    def _picture(self) -> Picture | None:
        """Return what is drawn; None where there is nothing to see, or too much of it."""
        return None

    def _below(self) -> str:
        """Return what stands below the picture, as HTML."""
        return ""

    def _repr_html_(self) -> str:
        drawn = self._picture()
        return ("" if drawn is None else scrolled(drawn.svg())) + self._below()


class Lines(str):
    """A text of several lines, which Jupyter shows as `print` does."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self)


def scrolled(svg: str, share: float = 1.0) -> str:
    """Return a picture that shrinks with the page, but not so far that its texts cannot be read: then it is scrolled.

    A picture that is not wide shrinks to a share of its size.

    >>> scrolled('<svg width="960" height="66"></svg>')
    '<div style="overflow-x:auto"><svg style="min-width:720px" width="960" height="66"></svg></div>'
    """
    width = _WIDTH.search(svg)
    least = min(float(width[1]) * share, _LEAST) if width else _LEAST
    styled = svg.replace("<svg ", f'<svg style="min-width:{least:g}px" ', 1)
    return f'<div style="overflow-x:auto">{styled}</div>'
