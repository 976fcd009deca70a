"""A source that is made of a function which opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamdsl.connect.protocols import OpenSource, Position


@dataclass(frozen=True, slots=True, repr=False)
class MadeSource:
    """A source with a name, which is its `repr`, that a function opens at a position."""

    name: str
    reader: Callable[[Position], OpenSource]

    def __repr__(self) -> str:
        return self.name

    def open(self, position: Position) -> OpenSource:
        """Return a reader that goes on at a position; None is the begin."""
        return self.reader(position)
