"""Operators over several inputs: unions and joins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr
from streamdsl.expr.schema import Schema
from streamdsl.plan.asof import Nearness, Ties, check_ties
from streamdsl.plan.base import Node
from streamdsl.plan.facts import NO_FIELDS, Fields, Keeps, Open, all_of, fields_read, perhaps, surely
from streamdsl.plan.nodes.rows import RowWise, projected
from streamdsl.temporal import INFINITY, common_unit


@dataclass(frozen=True, slots=True)
class Union(RowWise):
    """All rows of all inputs, as a bag; the CTI is the smallest of the inputs'."""

    passes_payload = True

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        common_unit(*(node.unit for node in self.parts))

    @property
    def schema(self) -> Schema | None:
        schemas = {node.schema for node in _makers(self)}
        return schemas.pop() if len(schemas) == 1 else None

    def describe(self) -> str:
        return ""

    @property
    def fixed_duration(self) -> int | None:
        durations = {part.fixed_duration for part in self.parts}
        return durations.pop() if len(durations) == 1 else None

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return wanted

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return surely(inputs)


def _makers(union: Union) -> Iterator[Node]:
    """Yield the nodes that define the payload schemas of a union's inputs, each once even if many paths lead to it."""
    seen: set[int] = set()
    waiting: list[Node] = [union]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Union):
            waiting += node.parts
        elif node.keeps_schema:
            waiting.append(node.inputs[0])
        else:
            yield node


@dataclass(frozen=True, slots=True)
class Matching:
    """The match condition of two inputs: equal keys (if any), and a residual predicate (if any)."""

    left_key: Expr | None = None
    right_key: Expr | None = None
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class TwoInputs(Node):
    """The base of operators over two inputs: left rows, right rows, and a match condition.

    Both sides are kept while they live, and are partitioned by their keys, unless a class overrides that.
    """

    row_wise = False
    passes_payload = False
    opens_cells = False
    follows_ctis = True
    keeps = Keeps.ROWS

    left: Node
    right: Node
    matching: Matching

    def __post_init__(self) -> None:
        common_unit(self.left.unit, self.right.unit)

    def describe(self) -> str:
        left, right, where = self.matching.left_key, self.matching.right_key, self.matching.where
        parts = []
        if left is not None and right is not None:
            parts.append(f"on {describe(left)} == {describe(right)}")
        if where is not None:
            parts.append(f"where {describe(where)}")
        return ", ".join(parts + self.describe_more())

    def describe_more(self) -> list[str]:
        """Return the settings besides the match condition, for `describe`."""
        return []

    @property
    def partition_by(self) -> tuple[Expr | None, ...]:
        return self.matching.left_key, self.matching.right_key

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        key = self.matching.right_key if position else self.matching.left_key
        where = self.matching.where
        return all_of(
            NO_FIELDS if key is None else fields_read([key]),
            NO_FIELDS if where is None else fields_read([where], position),
            self.fields_put_out(position, wanted),
        )

    @abstractmethod
    def fields_put_out(self, position: int, wanted: Fields) -> Fields:
        """Return the fields of an input from which the fields `wanted` of the output are built."""


@dataclass(frozen=True, slots=True)
class LeftRows(TwoInputs):
    """The base of operators whose output rows are pieces of left rows, with their payloads."""

    def fields_put_out(self, position: int, wanted: Fields) -> Fields:
        return wanted if position == 0 else NO_FIELDS

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class AntiJoin(LeftRows):
    """Each left row for the time that no matching right row lives, as maximal pieces."""

    removes = "rows with others"
    shows_unmatched = True


@dataclass(frozen=True, slots=True)
class SemiJoin(LeftRows):
    """Each left row for the time that some matching right row lives, as maximal pieces."""

    removes = "rows without others"

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """A piece ends with the earlier of its two rows."""
        return perhaps(inputs)


@dataclass(frozen=True, slots=True)
class ClipBy(LeftRows):
    """Each left row, ended at the first matching right LE strictly after its own LE."""

    removes = "rows with others"

    @property
    def kept_inputs(self) -> tuple[Node, ...]:
        """Right rows count as points."""
        return (self.left,)


@dataclass(frozen=True, slots=True)
class PairJoin(TwoInputs):
    """The base of joins whose payload is the pair of both rows, or what `projection` makes of it."""

    projection: Expr | None = None

    @property
    def schema(self) -> Schema | None:
        if self.projection is None:
            return Schema.tuple(2)
        return projected(self.projection, self.left, self.right)

    def describe_more(self) -> list[str]:
        return [] if self.projection is None else [f"select {describe(self.projection)}"]

    def fields_put_out(self, position: int, wanted: Fields) -> Fields:
        return None if self.projection is None else fields_read([self.projection], position)


@dataclass(frozen=True, slots=True)
class Join(PairJoin):
    """Every matching pair, for the time that both live."""

    def describe(self) -> str:
        matching = TwoInputs.describe(self)
        return ", ".join(filter(None, ["cross join" if self.matching == Matching() else "", matching]))

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """A pair ends with the earlier of its two rows."""
        return perhaps(inputs)


@dataclass(frozen=True, slots=True)
class AsofJoin(PairJoin):
    """Each left row, with its own lifetime, and each matching right row with the nearest LE; if `outer` with None if none is."""

    passes_lifetime = True
    follows_ctis = False
    """If it looks forward, a left row holds the CTI back until its right row arrives."""

    near: Nearness = field(default_factory=Nearness)
    outer: bool = False
    ties: Ties = "all"

    def __post_init__(self) -> None:
        TwoInputs.__post_init__(self)
        check_ties(self.ties)

    def fields_put_out(self, position: int, wanted: Fields) -> Fields:
        """The last of ties is the last by the whole right payload."""
        return None if position == 1 and self.ties == "last" else PairJoin.fields_put_out(self, position, wanted)

    @property
    def shows_unmatched(self) -> bool:
        return self.outer

    def describe_more(self) -> list[str]:
        within = "" if self.near.tolerance == INFINITY else f" within {self.near.tolerance}"
        near = f"{self.near.direction}{within}" + (" or alone" if self.outer else "") + (", last of ties" * (self.ties == "last"))
        return [*PairJoin.describe_more(self), near]

    @property
    def kept_inputs(self) -> tuple[Node, ...]:
        """Right rows count as points."""
        return (self.left,)

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]
