"""A source that is made of a function which opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamdsl.connect.protocols import OpenSource, Position
from streamdsl.temporal import LifetimeColumns


@dataclass(frozen=True, slots=True, repr=False)
class MadeSource:
    """A source with a name, which is its `repr`, that a function opens at a position."""

    name: str
    reader: Callable[[Position], OpenSource]
    lifetime_columns: LifetimeColumns | None = None
    """The fields of its rows that are LE and RE, None where the query says which these are."""

    def __repr__(self) -> str:
        return self.name

    def open(self, position: Position) -> OpenSource:
        """Return a reader that goes on at a position; None is the begin."""
        return self.reader(position)


def lifetimes(start: str | None, end: str | None) -> LifetimeColumns | None:
    """Return the fields that are LE and RE, None if neither is named. Raises `QueryError` for what is no name.

    >>> lifetimes("at", None), lifetimes(None, None)
    (LifetimeColumns(start='at', end=None), None)
    """
    return None if start is None and end is None else LifetimeColumns("le" if start is None else start, end)
