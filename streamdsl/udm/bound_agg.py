"""Aggregates in a plan: a module with its argument and filter as expressions over a stream's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Constant, Expr, Whole
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.builtin import Count


@dataclass(frozen=True, slots=True)
class BoundAgg:
    """An aggregate in a plan: a module, its argument (None: the payload), and the filter of its rows (None: all rows)."""

    function: AnyUDA[Any, Any]
    argument: Expr | None = None
    where: Expr | None = None

    @property
    def given(self) -> Expr:
        """The argument as an expression: by default the payload, or for `count` a constant, as it does not read rows.

        >>> BoundAgg(Count()).given
        Constant(value=True)
        """
        if self.argument is not None:
            return self.argument
        return Constant(True) if isinstance(self.function, Count) else Whole()

    @property
    def described(self) -> str:
        """The aggregate as text.

        >>> BoundAgg(Count(), where=Constant(True)).described
        'count() where True'
        """
        argument = describe(self.argument) if self.argument is not None else ""
        return f"{self.function.label}({argument})" + (f" where {describe(self.where)}" if self.where is not None else "")

    @property
    def counts_rows(self) -> bool:
        """Whether the aggregate is the number of all rows of a window."""
        return self.argument is None and self.where is None and isinstance(self.function, Count)
