"""Aggregation on Spark in Spark's own three steps: update a buffer with rows, merge buffers, evaluate results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamdsl.spark.column_types import ColumnType
from streamdsl.spark.sql_text import Sql


@dataclass(frozen=True, slots=True)
class BufferColumn:
    """One column of an aggregation buffer: the SQL that updates it with rows, whose argument is `{x}`.

    `merge` names the function that merges buffers, None where they cannot be merged. `signed` is the update with rows of the sign
    `s`, 1 for an insertion and -1 for a retraction; None where rows cannot be retracted.
    """

    update: str
    merge: str | None = "sum"
    signed: str | None = None


@dataclass(frozen=True, slots=True)
class NativeAggregate:
    """An aggregate as SQL: its argument (null where a row does not count), its buffer, and its result from the buffer."""

    argument: Sql
    buffer: tuple[BufferColumn, ...]
    evaluate: Callable[[Sequence[str]], str]
    type: ColumnType

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

    @property
    def arguments(self) -> list[str]:
        """The arguments as columns `x0`, `x1`, ..."""
        return [f"{agg.argument.text} as x{i}" for i, agg in enumerate(self.aggregates)]

    @property
    def buffer(self) -> list[tuple[str, BufferColumn, str]]:
        """For each buffer column its name, itself, and the column of its argument."""
        return [(f"c{i}_{j}", column, f"x{i}") for i, agg in enumerate(self.aggregates) for j, column in enumerate(agg.buffer)]

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
        return [f"{column.update.format(x=x)} as {name}" for name, column, x in self.buffer]

    def signed(self) -> list[str]:
        """Return the aggregation of rows with a sign `s` into changes of the buffers."""
        return [f"{(column.signed or '').format(x=x)} as {name}" for name, column, x in self.buffer]

    def merge(self, window: str = "") -> list[str]:
        """Return the merging of buffers, over groups or over a window clause."""
        return [f"{column.merge}({name}){window} as {name}" for name, column, _ in self.buffer]

    def evaluate(self) -> list[str]:
        """Return the results of the aggregates as columns `a0`, `a1`, ..."""
        made = []
        for i, agg in enumerate(self.aggregates):
            made.append(f"{agg.evaluate([f'c{i}_{j}' for j in range(len(agg.buffer))])} as a{i}")
        return made
