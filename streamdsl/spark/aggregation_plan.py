"""Aggregation on Spark in Spark's own three steps: update a buffer with rows, merge buffers, evaluate results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.sql_text import Sql
from streamdsl.temporal import Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class BufferColumn:
    """One column of an aggregation buffer: the SQL that updates it with rows, whose argument is `{x}`, and its parts `{x1}`, ...

    `merge` names the function that merges buffers, None where they cannot be merged. `signed` is the update with rows of the sign
    `s`, 1 for an insertion and -1 for a retraction; None where rows cannot be retracted.
    """

    update: str
    merge: str | None = "sum"
    signed: str | None = None


Step: TypeAlias = Callable[[Sequence[str]], list[str]]
"""Computes further columns of a result from those that are there."""


@dataclass(frozen=True, slots=True)
class NativeAggregate:
    """An aggregate as SQL: its argument (null where a row does not count), its buffer, and its result from the buffer.

    `parts` are computed before the aggregation from the argument `{x}` and the parts before them. Each of `steps` returns columns
    that are computed after it, given all that are there; the result is computed from the buffer's columns and those of all steps.
    """

    argument: Sql
    buffer: tuple[BufferColumn, ...]
    evaluate: Callable[[Sequence[str]], str]
    type: ColumnType
    parts: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def retractable(self) -> bool:
        """Whether rows can be retracted from buffers."""
        return all(column.signed is not None for column in self.buffer)

    @property
    def mergeable(self) -> bool:
        """Whether buffers can be merged."""
        return all(column.merge is not None for column in self.buffer)


@dataclass(frozen=True, slots=True)
class AggregationPlan:
    """An aggregation: the key columns, the aggregates, and the names of the columns of their arguments and buffers."""

    keys: list[str]
    aggregates: list[NativeAggregate]
    points: bool = False
    """Whether each row is a point event, which lives for one chronon."""
    has_text_key: bool = False
    unit: Unit | None = None

    @property
    def arguments(self) -> list[str]:
        """The arguments as columns `x0`, `x1`, ..., and their parts as `x0_1`, ..., which read the columns before them."""
        made = []
        for agg, names in zip(self.aggregates, self._names, strict=True):
            given = _columns(names)
            made += [f"{agg.argument.text} as {names[0]}"]
            made += [f"{part.format(**given)} as {name}" for part, name in zip(agg.parts, names[1:], strict=True)]
        return made

    @property
    def _names(self) -> list[list[str]]:
        return [[f"x{i}", *(f"x{i}_{j}" for j in range(1, len(agg.parts) + 1))] for i, agg in enumerate(self.aggregates)]

    @property
    def buffer(self) -> list[tuple[str, BufferColumn, dict[str, str]]]:
        """For each buffer column its name, itself, and the columns of its argument and parts."""
        found = []
        for i, (agg, names) in enumerate(zip(self.aggregates, self._names, strict=True)):
            found += [(f"c{i}_{j}", column, _columns(names)) for j, column in enumerate(agg.buffer)]
        return found

    @property
    def buffer_columns(self) -> list[str]:
        """The names of the buffer columns."""
        return [name for name, _, _ in self.buffer]

    @property
    def mergeable(self) -> bool:
        """Whether the buffers of all aggregates can be merged."""
        return all(agg.mergeable for agg in self.aggregates)

    @property
    def retractable(self) -> bool:
        """Whether all aggregates can be computed from running sums."""
        return all(agg.retractable for agg in self.aggregates)

    def update(self) -> list[str]:
        """Return the aggregation of rows into buffers."""
        return [f"{column.update.format(**given)} as {name}" for name, column, given in self.buffer]

    def signed(self) -> list[str]:
        """Return the aggregation of rows with a sign `s` into changes of the buffers."""
        return [f"{(column.signed or '').format(**given)} as {name}" for name, column, given in self.buffer]

    def merge(self, window: str = "") -> list[str]:
        """Return the merging of buffers, over groups or over a window clause."""
        return [f"{column.merge}({name}){window} as {name}" for name, column, _ in self.buffer]

    def results(self, df: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Return these columns of a frame of buffers, and the results of the aggregates as `a0`, `a1`, ..."""
        known = [[f"c{i}_{j}" for j in range(len(agg.buffer))] for i, agg in enumerate(self.aggregates)]
        for number in range(max((len(agg.steps) for agg in self.aggregates), default=0)):
            made = []
            for i, agg in enumerate(self.aggregates):
                for text in agg.steps[number](known[i]) if number < len(agg.steps) else ():
                    known[i] = [*known[i], f"c{i}_{len(known[i])}"]
                    made.append(f"{text} as {known[i][-1]}")
            df = df.selectExpr("*", *made)
        texts = [f"{agg.evaluate(known[i])} as a{i}" for i, agg in enumerate(self.aggregates)]
        return df.selectExpr(*columns, *texts)


def _columns(names: Sequence[str]) -> dict[str, str]:
    """Return the columns of an argument and its parts by the names that templates have for them."""
    return {"x" + (str(j) if j else ""): name for j, name in enumerate(names)}
