"""The types of the facts about operators: the state they keep, the fields they read, and which of their rows never end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamdsl.expr.nodes import Expr, Field, Opaque, Whole

if TYPE_CHECKING:
    from streamdsl.plan.base import Node

Fields: TypeAlias = frozenset[str] | None
"""Names of fields of a payload, None for the whole payload."""
NO_FIELDS: Final[frozenset[str]] = frozenset()
FilterBelow: TypeAlias = Literal["the same rows", "more rows"]
"""Whether a filter pushed below an operator is evaluated on the rows of its output, or also on rows that the operator drops."""


Removes: TypeAlias = Literal["rows as they are", "rows without others", "rows with others"]
"""Why rows of the first input, or parts of them, are left out: for what they are, for lack of others, or for their sake."""


class Keeps(Enum):
    """The part of its input that an operator keeps in its state."""

    NOTHING = "nothing"
    FIRST_START = "the first LE"
    ROWS = "each row, with its payload, as long as the row lives"
    LAST_ROWS = "the last row of each key, with its payload"
    MEMBERS = "what the modules of its windows are given, as long as a window may change"
    MATCHES = "the events of matches that have begun"


@dataclass(frozen=True, slots=True)
class Open:
    """Rows that never end, and the operator `origin` that makes them; `depends_on_data` if a source may also have none."""

    origin: Node
    depends_on_data: bool = False


def surely(rows: Sequence[Open | None]) -> Open | None:
    """Return the open rows of an operator that passes the rows of all inputs; certain ones are preferred."""
    return _first(rows, of_data=False)


def perhaps(rows: Sequence[Open | None]) -> Open | None:
    """Return the open rows of an operator whose output ends with the first of its rows: None if some input has none."""
    return None if None in rows else _first(rows, of_data=True)


def _first(rows: Sequence[Open | None], of_data: bool) -> Open | None:
    found = [each for each in rows if each is not None]
    return min(found, key=lambda each: each.depends_on_data != of_data, default=None)


def fields_read(expressions: Iterable[Expr], side: int = 0) -> Fields:
    """Return the fields of one input that expressions read, None if they read its whole payload.

    >>> fields_read([Field("fare")]), fields_read([Whole()])
    (frozenset({'fare'}), None)
    """
    parts = [part for expr in expressions for part in expr.walk()]
    if any(isinstance(part, Opaque) or (isinstance(part, Whole) and part.side == side) for part in parts):
        return None
    return frozenset(part.name for part in parts if isinstance(part, Field) and part.side == side)


def all_of(*fields: Fields) -> Fields:
    """Return the union of sets of fields, None if one of them is a whole payload.

    >>> all_of(frozenset({"fare"}), NO_FIELDS), all_of(None, NO_FIELDS)
    (frozenset({'fare'}), None)
    """
    known = [each for each in fields if each is not None]
    return NO_FIELDS.union(*known) if len(known) == len(fields) else None
