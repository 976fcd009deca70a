"""What a node of a plan is on Spark: a DataFrame to be, and what is known of it before it is made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from streamdsl.spark.expressions import Env, RowAt
from streamdsl.spark.sql import Sql
from streamdsl.spark.types import Type
from streamdsl.temporal import Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Make: TypeAlias = "Callable[[], DataFrame]"


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of an enclosing group-apply: a column that every grouping, window and join of its body takes along."""

    level: int
    type: Type

    @property
    def column(self) -> str:
        """The column's name."""
        return f"k{self.level}"


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Rows with columns `le`, `re` (ticks, `le < re`), `p` (the payload), and a column for each group around.

    `points`: each row is known to live for one chronon, as it comes from a frame without ends.
    """

    type: Type
    unit: Unit | None
    make: Make
    keys: tuple[GroupKey, ...] = ()
    points: bool = False

    @staticmethod
    def of(type: Type, unit: Unit | None, make: Make, keys: tuple[GroupKey, ...] = ()) -> Flow:
        """Return a flow whose frame is made once, when it is first asked for."""
        return Flow(type, unit, functools.cache(make), keys)

    @property
    def key_columns(self) -> list[str]:
        """The columns of the group keys."""
        return [key.column for key in self.keys]

    @property
    def columns(self) -> list[str]:
        """All columns, in order."""
        return ["le", "re", "p", *self.key_columns]

    def then(self, change: Callable[[DataFrame], DataFrame], type: Type | None = None) -> Flow:
        """Return the flow of a changed frame."""
        return Flow.of(type or self.type, self.unit, lambda: change(self.make()), self.keys)

    def same_lives(self, change: Callable[[DataFrame], DataFrame], type: Type | None = None) -> Flow:
        """Return the flow of a changed frame, whose rows live as they did."""
        return replace(self.then(change, type), points=self.points)

    def select(self, type: Type | None = None, **columns: str) -> Flow:
        """Return the flow with some columns replaced by SQL; rows that it leaves without a lifetime vanish."""
        wanted = [f"{columns[name]} as {name}" if name in columns else name for name in self.columns]
        if not {"le", "re"} & columns.keys():
            return self.same_lives(lambda df: df.selectExpr(*wanted), type)
        return self.then(lambda df: df.selectExpr(*wanted).where("le < re"), type)

    def has(self, level: int) -> bool:
        """Say whether the rows know their key of a group around."""
        return any(key.level == level for key in self.keys)

    def with_keys(self, keys: tuple[GroupKey, ...]) -> Flow:
        """Return the flow with other group keys; its frame has their columns."""
        return replace(self, keys=keys)


@dataclass(frozen=True, slots=True)
class Scope:
    """The groups around a node, from level to rows, and the level of the innermost."""

    groups: Mapping[int, Flow] = field(default_factory=dict)
    level: int | None = None

    def key(self, flow: Flow) -> Sql | None:
        """Return the innermost group's key as rows of this flow know it."""
        return next((Sql(key.column, key.type) for key in flow.keys if key.level == self.level), None)

    def env(self, flow: Flow, operator: str = "") -> Env:
        """Return what an operator's expression over the flow's rows can read."""
        return Env((RowAt(flow.type),), key=self.key(flow), operator=operator)


def columns_of(keys: Sequence[GroupKey], prefix: str = "") -> list[str]:
    """Return the columns of group keys, each behind a prefix."""
    return [f"{key.column} as {prefix}{key.column}" if prefix else key.column for key in keys]


def over(partition: Sequence[str], order: str = "", frame: str = "") -> str:
    """Return the text of a window clause.

    >>> over(["k0"], "t")
    'OVER (PARTITION BY k0 ORDER BY t)'
    """
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    parts += [f"ORDER BY {order}"] if order else []
    return f"OVER ({' '.join([*parts, frame]).strip()})"
