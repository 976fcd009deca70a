"""Panes: partial aggregates of small windows, and the aggregates of larger windows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamdsl.expr.nodes import Binary, Choose, Constant, Expr, Field, Key, Make, rebuilt
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Group, GroupApply, Node, Select, WindowAggregate
from streamdsl.rewrite.filter_conditions import substituted
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Avg, Count, Max, Min, Sum
from streamdsl.windows import Clip, Hopping, Output

_ROLLED_UP: Final[dict[type[AnyUDA[object, object]], type[AnyUDA[object, object]]]] = {Count: Sum, Sum: Sum, Min: Min, Max: Max}
"""The aggregate that combines the panes of a window, by the aggregate of the rows of a pane."""
_KEY: Final = "key"


def parts_of(agg: BoundAgg) -> list[BoundAgg]:
    """Return the aggregates of panes from which an aggregate is computed.

    >>> [part.function.label for part in parts_of(BoundAgg(Avg(), Field("fare")))]
    ['sum', 'count']
    """
    return [replace(agg, function=Sum()), replace(agg, function=Count())] if isinstance(agg.function, Avg) else [agg]


@dataclass(frozen=True, slots=True)
class Panes:
    """The operator `node` that computes the panes of a grid: records of `parts`, one field per aggregate, and the key if any."""

    node: Node
    grid: Hopping
    parts: Sequence[BoundAgg]

    @classmethod
    def over(cls, node: Node, window: WindowAggregate, grid: Hopping, aggregates: Sequence[BoundAgg]) -> Panes:
        """Return the panes of a window's input, or of its group-apply's input, with the parts of these aggregates."""
        parts: list[BoundAgg] = []
        for part in [part for agg in aggregates for part in parts_of(agg)]:
            if part not in parts:
                parts.append(part)
        names = _names("p", parts)
        record = Make(Schema.record(names), tuple(map(Field, _names("a", parts))))
        panes = WindowAggregate(window.input, grid, Clip.NONE, Output.ALIGN, tuple(parts), record)
        if not isinstance(node, GroupApply):
            return cls(panes, grid, parts)
        keyed = Make(Schema.record([_KEY, *names]), (Key(), *map(Field, names)))
        return cls(GroupApply(node.input, node.key, panes, keyed), grid, parts)

    def results(self, node: Node, window: WindowAggregate) -> Node:
        """Return the operator that computes the results of a window, or of its group-apply, from panes instead of rows."""
        if not isinstance(node, GroupApply):
            return self._of_window(self.node, window)
        assert isinstance(window.input, Group)
        group = replace(window.input, payload=self.node.schema)
        return replace(node, input=self.node, key=Field(_KEY), body=self._of_window(group, window))

    def _of_window(self, panes: Node, window: WindowAggregate) -> Node:
        """Return a window operator over panes, or just a projection if each window is one pane."""
        used = [self.parts.index(part) for agg in window.aggregates for part in parts_of(agg)]
        if _is_grid(window.windows, self.grid) and window.output is Output.ALIGN:
            projection = _projection(window, [f"p{i}" for i in used])
            return Select(panes, rebuilt(projection, lambda part: Field(_KEY) if isinstance(part, Key) else None))
        rolled_up = tuple(BoundAgg(_ROLLED_UP[type(self.parts[i].function)](), Field(f"p{i}")) for i in used)
        return replace(window, input=panes, aggregates=rolled_up, projection=_projection(window, _names("a", used)))


def _is_grid(windows: object, grid: Hopping) -> bool:
    return isinstance(windows, Hopping) and replace(windows, offset=windows.offset % windows.hop) == grid


def _projection(window: WindowAggregate, names: Sequence[str]) -> Expr:
    """Return a window's projection with its aggregates replaced by expressions over their parts, the fields `names`."""
    rest = iter(names)
    return substituted(window.projection, {f"a{i}": _whole(agg, rest) for i, agg in enumerate(window.aggregates)})


def _whole(agg: BoundAgg, names: Iterator[str]) -> Expr:
    """Return an aggregate as an expression over its parts, which take the next names."""
    first = Field(next(names))
    if not isinstance(agg.function, Avg):
        return first
    n = Field(next(names))
    return Choose(((Binary("==", n, Constant(0)), Constant(None)),), Binary("/", first, n))


def _names(letter: str, parts: Sequence[object]) -> list[str]:
    return [f"{letter}{i}" for i in range(len(parts))]
