"""Expressions over a pair of rows of which one is missing: in an outer join it is None."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamdsl.expr.nodes import Attribute, Constant, Expr, Field, Opaque, Whole


def without_row(expr: Expr, side: int) -> Expr:
    """Return the expression over the other row alone, with None for the row of this side.

    >>> without_row(Field("x", 1), 0), without_row(Whole(1), 1)
    (Field(name='x', side=0), Constant(value=None))
    """
    return _without(expr, side, {})


def _without(expr: Expr, side: int, done: dict[int, Expr]) -> Expr:
    if isinstance(expr, Field):
        return Attribute(Constant(None), expr.name) if expr.side == side else Field(expr.name)
    if isinstance(expr, Whole):
        return Constant(None) if expr.side == side else Whole()
    if isinstance(expr, Opaque):
        return Opaque(_WithNone(expr.function, side), expr.sides - 1, expr.life, expr.name)
    if id(expr) not in done:
        changes = {f.name: _changed(getattr(expr, f.name), side, done) for f in dataclasses.fields(expr)}
        done[id(expr)] = dataclasses.replace(expr, **changes)
    return done[id(expr)]


def _changed(value: Any, side: int, done: dict[int, Expr]) -> Any:
    if isinstance(value, Expr):
        return _without(value, side, done)
    return tuple(_changed(item, side, done) for item in value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class _WithNone:
    """A function of two rows, one of which is None."""

    function: Callable[..., Any]
    side: int

    def __call__(self, row: Any, *life: Any) -> Any:
        return self.function(None, row, *life) if self.side == 0 else self.function(row, None, *life)
