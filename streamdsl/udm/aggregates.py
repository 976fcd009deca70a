"""Aggregates of a plan: a module with the expression that it is taken of, bound to a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamdsl.expr.nodes import Constant, Expr, Whole
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.builtin import Count


@dataclass(frozen=True, slots=True)
class BoundAgg:
    """An aggregate whose expressions are traced over a stream: part of a plan."""

    function: AnyUDA[Any, Any]
    argument: Expr | None = None
    where: Expr | None = None

    @property
    def given(self) -> Expr:
        """What the module is given of a row: its expression's value, else the payload; a count of rows only that there is one.

        >>> BoundAgg(Count()).given
        Constant(value=True)
        """
        if self.argument is not None:
            return self.argument
        return Constant(True) if isinstance(self.function, Count) else Whole()

    @property
    def counts_rows(self) -> bool:
        """Whether it is the number of rows, whatever they are."""
        return self.argument is None and self.where is None and isinstance(self.function, Count)
