"""What Jupyter shows of a value by itself: a picture, where there is something to see, above a table or a text."""

from __future__ import annotations

from typing import Protocol


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
        return ("" if drawn is None else drawn.svg()) + self._below()
