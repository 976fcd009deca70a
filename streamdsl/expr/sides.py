"""Expressions over a pair of rows, seen from the other side, or with one of the rows missing: in an outer join it is None."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from streamdsl.expr.nodes import Attribute, Choose, Constant, Expr, Field, Life, Make, Opaque, Unary, Whole, rebuilt
from streamdsl.expr.schema import Schema

PAIR: Final = Make(Schema.tuple(2), (Whole(0), Whole(1)))
"""Both rows, which is what joins give that have no projection."""


def without_row(expr: Expr, side: int) -> Expr:
    """Return the expression over the other row alone, with None for this side's row; conditions `is_none(row)` are resolved.

    >>> without_row(Field("x", 1), 0), without_row(Whole(1), 1)
    (Field(name='x', side=0), Constant(value=None))
    >>> without_row(Choose(((Unary("is_none", Whole(1)), Constant(0)),), Field("x", 1)), 1)
    Constant(value=0)
    """
    missing = Unary("is_none", Whole(side))

    def change(part: Expr) -> Expr | None:
        if isinstance(part, Choose) and any(condition == missing for condition, _ in part.branches):
            return rebuilt(_assume(part, missing), change)
        if isinstance(part, Field):
            return Attribute(Constant(None), part.name, written=part.written) if part.side == side else replace(part, side=0)
        if isinstance(part, Whole):
            return Constant(None) if part.side == side else Whole()
        if isinstance(part, Opaque):
            return replace(part, function=_WithNone(part.function, side), sides=part.sides - 1)
        return None

    return rebuilt(expr, change)


def swapped(expr: Expr) -> Expr:
    """Return the expression over the same pair with its sides exchanged.

    >>> swapped(Field("x", 1)), swapped(Whole(0))
    (Field(name='x', side=0), Whole(side=1))
    """

    def change(part: Expr) -> Expr | None:
        if isinstance(part, (Field, Whole, Life)):
            return replace(part, side=1 - part.side)
        return replace(part, function=_Swapped(part.function)) if isinstance(part, Opaque) else None

    return rebuilt(expr, change)


def _assume(choice: Choose, condition: Expr) -> Expr:
    """Return a choice simplified under the assumption that one of its conditions holds."""
    position = next(i for i, (asked, _) in enumerate(choice.branches) if asked == condition)
    chosen = choice.branches[position][1]
    return Choose(choice.branches[:position], chosen) if position else chosen


@dataclass(frozen=True, slots=True)
class _WithNone:
    """A function of two rows, one of which is None."""

    function: Callable[..., Any]
    side: int

    def __call__(self, row: Any, *life: Any) -> Any:
        return self.function(None, row, *life) if self.side == 0 else self.function(row, None, *life)


@dataclass(frozen=True, slots=True)
class _Swapped:
    """A function of two rows that come the other way round."""

    function: Callable[..., Any]

    def __call__(self, right: Any, left: Any, *life: Any) -> Any:
        return self.function(left, right, *life)
