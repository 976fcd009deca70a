"""The arguments of aggregates, for single rows."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from streamdsl.engine.columnar.accumulator_columns import RowParts
from streamdsl.engine.columnar.accumulators import Accumulator
from streamdsl.expr.nodes import Choose, Constant, Expr
from streamdsl.expr.row_program import Values
from streamdsl.udm.bound_agg import BoundAgg

_NO_REALS: Final[AbstractSet[int]] = frozenset()


class RowArguments(NamedTuple):
    """The arguments of all aggregates for one row."""

    values: Values
    """The argument of each aggregate that has one, followed by whether its `where` selects the row, if it has one."""
    parts: RowParts
    """What the row adds to the totals of a window."""
    reals: AbstractSet[int]
    """The aggregates to which it certainly adds a float."""


NOTHING: Final = RowArguments((), [], _NO_REALS)
"""The arguments for aggregates that only count rows."""


class ArgumentSlots:
    """The index of each aggregate's argument, and of its `where`, in `RowArguments.values`."""

    def __init__(self, aggregates: Sequence[BoundAgg]) -> None:
        self.places: dict[int, tuple[int, int | None]] = {}
        self.size = 0
        for number, agg in enumerate(aggregates):
            if not agg.counts_rows:
                self.places[number] = self.size, None if agg.where is None else self.size + 1
                self.size += 1 if agg.where is None else 2

    def of_row(self, values: Values, accumulators: Sequence[Accumulator]) -> RowArguments | None:
        """Return the arguments of a row; None if the columnar path must compute them."""
        if not accumulators:
            return RowArguments(values, [], _NO_REALS)
        parts: RowParts = []
        for accumulator in accumulators:
            place = self.places.get(accumulator.number)
            if place is not None:
                each = accumulator.parts_of(values[place[0]])
                if each is None:
                    return None
                parts += each
        return RowArguments(values, parts, {key[0] for key, _ in parts if key[1] == "floats" and self.places[key[0]][1] is None})


def argument_exprs(aggregates: Sequence[BoundAgg]) -> tuple[Expr, ...]:
    """Return the expressions of `RowArguments.values`. The argument is None if `where` does not select the row."""
    found: list[Expr] = []
    for agg in aggregates:
        if agg.where is not None:
            found.append(Choose(((agg.where, agg.given),), Constant(None)))
            found.append(Choose(((agg.where, Constant(True)),), Constant(False)))
        elif not agg.counts_rows:
            found.append(agg.given)
    return tuple(found)
