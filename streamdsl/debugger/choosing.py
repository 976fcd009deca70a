"""Rows that a question names by a predicate of the payload, and of the lifetime if it takes that too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from streamdsl.debugger.answers import row_text
from streamdsl.errors import QueryError, UserCodeError
from streamdsl.temporal import CHTRow, Lifetime, Unit, payload_key

R = TypeVar("R")
_LISTED: Final = 5
"""The most rows that an error lists."""


def matching(wanted: Callable[..., object], question: str) -> Callable[[CHTRow[Any]], bool]:
    """Return a predicate of rows; an exception of it becomes a `UserCodeError` that names the question."""
    takes_life = len(inspect.signature(wanted).parameters) > 1

    def holds_for(row: CHTRow[Any]) -> bool:
        try:
            return bool(wanted(row.payload, Lifetime(row.le, row.re)) if takes_life else wanted(row.payload))
        except AttributeError as error:
            if error.name in ("payload", "le", "re"):
                hint = "lambda e: e.n == 2, and with the lifetime lambda e, life: life.le == 0"
                raise QueryError(
                    f"the predicate of {question} takes the payload, which has no {error.name!r}", hint=hint
                ) from None
            raise UserCodeError(error, operator=f"the predicate of {question}", event=row) from error
        except Exception as error:
            raise UserCodeError(error, operator=f"the predicate of {question}", event=row) from error

    return holds_for


def the_only(found: Sequence[R], row_of: Callable[[R], CHTRow[Any]], unit: Unit | None, what: str, hint: str) -> R:
    """Return the only one that was found; raises `QueryError` for none, and for several, which it lists."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise QueryError(f"the predicate holds for no {what}", hint=hint)
    more = f", and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    listed, le = "; ".join(row_text(row_of(each), unit) for each in found[:_LISTED]), row_of(found[0]).le
    raise QueryError(
        f"the predicate holds for {len(found)} {what}s: {listed}{more}",
        hint=f"say more of the one that is meant, also of its lifetime: lambda e, life: ... and life.le == {le:_}, for the first",
    )


def distinct(rows: Iterable[CHTRow[Any]]) -> list[CHTRow[Any]]:
    """Return the first of equal rows."""
    return list({(row.le, row.re, payload_key(row.payload)): row for row in reversed(list(rows))}.values())[::-1]
