"""An aggregation on Spark in steps: columns that are aggregated of rows, merged, and made into results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamdsl.spark.sql import Sql
from streamdsl.spark.types import Type


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregated column: of rows with the argument `{x}`; the function that merges it, None if it cannot be merged.

    `signed` gives the sum of what rows with the sign `s`, 1 or -1, add to it; None if rows cannot be taken away again.
    """

    first: str
    merge: str | None = "sum"
    signed: str | None = None


@dataclass(frozen=True, slots=True)
class NativeAgg:
    """An aggregate on Spark: its argument, null where a row does not count; its parts; the result, made of their columns."""

    argument: Sql
    parts: tuple[Part, ...]
    result: Callable[[Sequence[str]], str]
    type: Type

    @property
    def subtracts(self) -> bool:
        """Say whether rows can be taken away from partial results."""
        return all(part.signed is not None for part in self.parts)

    @property
    def merges(self) -> bool:
        """Say whether partial results can be merged."""
        return all(part.merge is not None for part in self.parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows to be aggregated: their keys, the aggregates, and the columns that hold the aggregates' arguments and parts."""

    keys: list[str]
    aggregates: list[NativeAgg]
    points: bool = False
    """Each row lives for one chronon."""

    @property
    def arguments(self) -> list[str]:
        """The columns of the arguments."""
        return [f"{agg.argument.text} as x{i}" for i, agg in enumerate(self.aggregates)]

    @property
    def parts(self) -> list[tuple[str, Part, str]]:
        """The columns of the parts, the parts, and the columns of their arguments."""
        return [(f"c{i}_{j}", part, f"x{i}") for i, agg in enumerate(self.aggregates) for j, part in enumerate(agg.parts)]

    @property
    def part_columns(self) -> list[str]:
        """The names of the columns of the parts."""
        return [name for name, _, _ in self.parts]

    @property
    def merges(self) -> bool:
        """Say whether all aggregates can be merged."""
        return all(agg.merges for agg in self.aggregates)

    @property
    def subtracts(self) -> bool:
        """Say whether all aggregates can be computed from running sums."""
        return all(agg.subtracts for agg in self.aggregates)

    def first(self) -> list[str]:
        """Return the aggregation of rows to parts."""
        return [f"{part.first.format(x=x)} as {name}" for name, part, x in self.parts]

    def signed(self) -> list[str]:
        """Return the aggregation of rows with a sign `s` to what they add to the parts."""
        return [f"{(part.signed or '').format(x=x)} as {name}" for name, part, x in self.parts]

    def merge(self, window: str = "") -> list[str]:
        """Return the merging of parts, over groups or over a window clause."""
        return [f"{part.merge}({name}){window} as {name}" for name, part, _ in self.parts]

    def results(self) -> list[str]:
        """Return the aggregates, made of their parts."""
        made = []
        for i, agg in enumerate(self.aggregates):
            made.append(f"{agg.result([f'c{i}_{j}' for j in range(len(agg.parts))])} as a{i}")
        return made
