"""Aggregates as values: a module with the expression it is taken of, before and after it is bound to a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from streamdsl.expr.nodes import Constant, Expr, Whole
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.builtin import Count

T_contra = TypeVar("T_contra", contravariant=True)
O_co = TypeVar("O_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Agg(Generic[T_contra, O_co]):
    """An aggregate of an expression over rows of type T, giving O; `aggregate(...)` binds it to a stream.

    Without an expression the module is given whole payloads.
    """

    function: AnyUDA[Any, O_co]
    argument: Callable[[T_contra], Any] | None = None
    where: Callable[[T_contra], Any] | None = None


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
