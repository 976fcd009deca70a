"""Which columns of frames and files hold the lifetimes of their rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from streamdsl.errors import QueryError


@dataclass(frozen=True, slots=True)
class LifetimeColumns:
    """The names of the columns of LEs and REs; without an `end` that of REs is `re`, if it exists and LEs are in `le`.

    Raises `QueryError` for what is no name, and for one column that is both.

    >>> LifetimeColumns("at", "at")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: column 'at' is both start and end, so no row lives
    Hint: no end makes point events
    """

    start: str = "le"
    end: str | None = None

    def __post_init__(self) -> None:
        for role, name in (("start", self.start), ("end", self.end)):
            if not (isinstance(name, str) or (role == "end" and name is None)):
                raise QueryError(
                    f"{role}= is the name of a column, not a {type(name).__name__}", hint=f'for example {role}="pickup_time"'
                )
        if self.start == self.end:
            raise QueryError(f"column {self.start!r} is both start and end, so no row lives", hint="no end makes point events")

    def among(self, names: Collection[str]) -> LifetimeColumns:
        """Return these columns with the one of the REs as it is in a frame with these columns: None for point events.

        >>> LifetimeColumns().among(["le", "re"]).end, LifetimeColumns("ts").among(["ts", "re"]).end
        ('re', None)
        """
        return LifetimeColumns(self.start, "re") if self == DEFAULT and "re" in names else self

    @property
    def may_be_physical(self) -> bool:
        """Whether a frame with these columns, and `kind` and `id`, holds physical events, whose times are `le` and `re`."""
        return self.start == "le" and self.end in (None, "re")


DEFAULT: Final = LifetimeColumns()
"""Those that are read where nothing names them."""
