"""Flows: what plan nodes are lowered to, lazily made DataFrames whose types and keys are known before."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from streamdsl.expr.schema import Schema
from streamdsl.spark.column_types import ColumnType, RecordType
from streamdsl.spark.expressions import Env, PayloadRef
from streamdsl.spark.sql_text import Sql
from streamdsl.temporal import Unit, common_unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FrameFactory: TypeAlias = "Callable[[], DataFrame]"


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of an enclosing group-apply: a column that every grouping, window and join of its body keeps."""

    level: int
    type: ColumnType

    @property
    def column(self) -> str:
        """The column's name."""
        return f"k{self.level}"


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """A lazily made DataFrame: columns `le`, `re` (ticks, `le < re`), `p` (the payload), and a key per enclosing group.

    `points` says that each row is known to be a point event, as its frame has no REs.
    """

    type: ColumnType
    unit: Unit | None
    make: FrameFactory
    keys: tuple[GroupKey, ...] = ()
    points: bool = False

    @staticmethod
    def of(type: ColumnType, unit: Unit | None, make: FrameFactory, keys: tuple[GroupKey, ...] = ()) -> Flow:
        """Return a flow whose frame is made at most once, on first use."""
        return Flow(type, unit, functools.cache(make), keys)

    @property
    def key_columns(self) -> list[str]:
        """The columns of the group keys."""
        return [key.column for key in self.keys]

    @property
    def columns(self) -> list[str]:
        """All columns, in order."""
        return ["le", "re", "p", *self.key_columns]

    def then(self, change: Callable[[DataFrame], DataFrame], type: ColumnType | None = None) -> Flow:
        """Return a flow of the transformed frame."""
        return Flow.of(type or self.type, self.unit, lambda: change(self.make()), self.keys)

    def with_same_lifetimes(self, change: Callable[[DataFrame], DataFrame], type: ColumnType | None = None) -> Flow:
        """Return a flow of the transformed frame, whose lifetimes are unchanged."""
        return replace(self.then(change, type), points=self.points)

    def select(self, type: ColumnType | None = None, **columns: str) -> Flow:
        """Return the flow with some columns replaced by SQL; rows with empty lifetimes are dropped."""
        wanted = [f"{columns[name]} as {name}" if name in columns else name for name in self.columns]
        if not {"le", "re"} & columns.keys():
            return self.with_same_lifetimes(lambda df: df.selectExpr(*wanted), type)
        return self.then(lambda df: df.selectExpr(*wanted).where("le < re"), type)

    def has_key(self, level: int) -> bool:
        """Say whether the rows have the key column of an enclosing group."""
        return any(key.level == level for key in self.keys)

    def with_keys(self, keys: tuple[GroupKey, ...]) -> Flow:
        """Return the flow with other group keys; its frame must have their columns."""
        return replace(self, keys=keys)


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The enclosing groups of a node: the rows of each by level, and the level of the innermost."""

    groups: Mapping[int, Flow] = field(default_factory=dict)
    level: int | None = None

    def key(self, flow: Flow | JoinPairs) -> Sql | None:
        """Return the innermost group's key as a column of the flow, or None."""
        return next((Sql(key.column, key.type) for key in flow.keys if key.level == self.level), None)

    def env(self, flow: Flow, operator: str = "") -> Env:
        """Return the environment of an operator's expressions over the flow's rows."""
        return Env((PayloadRef(flow.type),), key=self.key(flow), operator=operator)


@dataclass(frozen=True, slots=True)
class JoinPairs:
    """A lazily made frame of matching pairs: columns `lle`, `lre`, `lp`, `rle`, `rre`, `rp`, and the group keys."""

    left: Flow
    right: Flow
    make: FrameFactory
    keys: tuple[GroupKey, ...]

    @property
    def type(self) -> ColumnType:
        """The type of the pair."""
        return RecordType(Schema.tuple(2), (self.left.type, self.right.type))

    @property
    def sides(self) -> tuple[ColumnType, ColumnType]:
        """The types of the left and the right payloads."""
        return self.left.type, self.right.type

    @property
    def unit(self) -> Unit | None:
        """The common unit of time."""
        return common_unit(self.left.unit, self.right.unit)

    @property
    def key_columns(self) -> list[str]:
        """The columns of the group keys."""
        return [key.column for key in self.keys]

    def env(self, scope: GroupScope, operator: str = "") -> Env:
        """Return the environment of an operator's expressions over a pair."""
        rows = PayloadRef(self.left.type, "lp"), PayloadRef(self.right.type, "rp")
        return Env(rows, key=scope.key(self), starts=("lle", "rle"), operator=operator)


def ddl_of(keys: Sequence[GroupKey]) -> list[str]:
    """Return the columns of group keys with their types."""
    return [f"{key.column} {key.type.ddl}" for key in keys]


def columns_of(keys: Sequence[GroupKey], prefix: str = "") -> list[str]:
    """Return the columns of group keys, each with a prefix."""
    return [f"{key.column} as {prefix}{key.column}" if prefix else key.column for key in keys]


def window_clause(partition: Sequence[str], order: str = "", frame: str = "") -> str:
    """Return the text of a window clause.

    >>> window_clause(["k0"], "t")
    'OVER (PARTITION BY k0 ORDER BY t)'
    """
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    parts += [f"ORDER BY {order}"] if order else []
    return f"OVER ({' '.join([*parts, frame]).strip()})"
