"""The temporal algebra: one class per operator, ill-formed plans refused when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.answers import check_function
from streamdsl.expr.nodes import Expr, Life, Whole, schema_of
from streamdsl.expr.schema import Schema
from streamdsl.plan.asof import Nearness
from streamdsl.plan.base import Node
from streamdsl.plan.pattern import PatternStep, check_pattern
from streamdsl.temporal import OnViolation, Unit, common_unit
from streamdsl.temporal.progress import Progress
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.bases import UDM, AnyUDO
from streamdsl.udm.methods import check_methods
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Clip, Hopping, Output, Windows, check_policies


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A stream that comes from outside, bound by its name; the rows of a `table` are there before all others."""

    source: str
    payload: Schema | None = None
    time_unit: Unit | None = None
    progress: Progress | None = None
    on_violation: OnViolation = "error"
    table: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.progress is not None and self.progress.clock is not None:
            check_function(self.progress.clock, "the time", instead="return the nanoseconds since 1970")

    @property
    def schema(self) -> Schema | None:
        return self.payload

    @property
    def unit(self) -> Unit | None:
        return self.time_unit


@dataclass(frozen=True, slots=True)
class Group(Node):
    """Inside a `GroupApply`: the rows of one group. `level` tells nested groups apart, 0 is the outermost."""

    payload: Schema | None
    time_unit: Unit | None
    level: int = 0

    @property
    def schema(self) -> Schema | None:
        return self.payload

    @property
    def unit(self) -> Unit | None:
        return self.time_unit


def _projected(projection: Expr, *inputs: Node) -> Schema | None:
    """Return the schema of what a projection makes; only of whole payloads it is an input's, which is long to ask for."""
    return schema_of(projection, tuple(node.schema if isinstance(projection, Whole) else None for node in inputs))


@dataclass(frozen=True, slots=True)
class Where(Node):
    """The rows for which `bool(predicate)` is true; lifetimes and CTIs stay."""

    input: Node
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Select(Node):
    """Each row's payload replaced by the projection; lifetimes and CTIs stay."""

    input: Node
    projection: Expr

    @property
    def schema(self) -> Schema | None:
        return _projected(self.projection, self.input)


@dataclass(frozen=True, slots=True)
class SelectMany(Node):
    """For each row one row per item of the expression's iterable; lifetimes and CTIs stay."""

    input: Node
    items: Expr

    @property
    def schema(self) -> Schema | None:
        return None


@dataclass(frozen=True, slots=True)
class AlterLifetime(Node):
    """Each lifetime becomes `[start, start + duration)`; start None keeps LE, a duration <= 0 drops the row."""

    input: Node
    start: Expr | None
    duration: Expr


@dataclass(frozen=True, slots=True)
class Shift(Node):
    """Both ends and the CTIs moved by a duration."""

    input: Node
    duration: int


@dataclass(frozen=True, slots=True)
class Extend(Node):
    """RE moved by a duration; a row whose RE would not be after its LE vanishes."""

    input: Node
    duration: int


@dataclass(frozen=True, slots=True)
class ClipDuration(Node):
    """RE no later than a duration after LE; with a duration <= 0 no row is left."""

    input: Node
    duration: int


@dataclass(frozen=True, slots=True)
class ToPointsAtEnd(Node):
    """The point `[RE, RE + 1)` of each row that ends."""

    input: Node


@dataclass(frozen=True, slots=True)
class Quantize(Node):
    """LE moved down to a multiple of the period, RE up to the end of a window of this size that starts at one."""

    input: Node
    size: int
    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.size <= 0 or self.period <= 0:
            raise QueryError(
                f"quantize needs a size and a period > 0, not {self.size} and {self.period}", hint="for example quantize(10, 5)"
            )


@dataclass(frozen=True, slots=True)
class ToEdges(Node):
    """RE becomes the next strictly later LE of the same key, else INFINITY; simultaneous rows share their end."""

    input: Node
    key: Expr | None


@dataclass(frozen=True, slots=True)
class ClipInterval(Node):
    """Each lifetime intersected with `[lo, hi)`."""

    input: Node
    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise QueryError(f"clip_interval needs lo <= hi, not [{self.lo}, {self.hi})")


@dataclass(frozen=True, slots=True)
class Chop(Node):
    """Each row in pieces, cut at the starts of the cells of a grid; a cell's pieces come with it, as windows do."""

    input: Node
    cells: Hopping


@dataclass(frozen=True, slots=True)
class Calendar(Node):
    """One row, with the payload None, from `start` (None: the first LE of the input's rows) until `end`."""

    input: Node
    start: int | None
    end: int

    @property
    def schema(self) -> Schema | None:
        return Schema.scalar()


@dataclass(frozen=True, slots=True)
class Distinct(Node):
    """Each payload once, for the time that some row has it, as maximal pieces."""

    input: Node


@dataclass(frozen=True, slots=True)
class Stitch(Node):
    """Rows with equal payloads that meet, made one: at each time those that end there, by LE, with those that start, by RE."""

    input: Node


@dataclass(frozen=True, slots=True)
class Scan(Node):
    """What a stream operator makes of each row, in order of (LE, payload, RE), with its lifetime."""

    input: Node
    module: UDSO[Any, Any, Any]

    def __post_init__(self) -> None:
        check_methods(type(self.module))

    @property
    def schema(self) -> Schema | None:
        return None


@dataclass(frozen=True, slots=True)
class Match(Node):
    """Per key the events that are the steps of a pattern one after the other, less than `within` ticks apart.

    A payload is a record of the steps; a match lives from its last LE until `within` after its first. None of `unless` between.
    """

    input: Node
    steps: tuple[PatternStep, ...]
    within: int
    key: Expr | None = None
    unless: tuple[PatternStep, ...] = ()
    overlapping: bool = False

    def __post_init__(self) -> None:
        check_pattern(self.steps, self.unless, self.within)

    @property
    def schema(self) -> Schema:
        return Schema.record([step.name for step in self.steps])


@dataclass(frozen=True, slots=True)
class Union(Node):
    """All rows of all inputs, as a bag; the CTI is the smallest of the inputs'."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        common_unit(*(node.unit for node in self.parts))

    @property
    def schema(self) -> Schema | None:
        schemas = {node.schema for node in _makers(self)}
        return schemas.pop() if len(schemas) == 1 else None


def _makers(union: Union) -> Iterator[Node]:
    """Yield the nodes that have made the payloads of a union, each once, though many paths may lead to it."""
    seen: set[int] = set()
    waiting: list[Node] = [union]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Union):
            waiting += node.parts
        elif type(node).schema is Node.schema:
            waiting.append(node.inputs[0])
        else:
            yield node


@dataclass(frozen=True, slots=True)
class Matching:
    """Which rows of two inputs match: equal keys (if any), and a residual predicate (if any)."""

    left_key: Expr | None = None
    right_key: Expr | None = None
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class TwoInputs(Node):
    """What operators over two inputs share."""

    left: Node
    right: Node
    matching: Matching

    def __post_init__(self) -> None:
        common_unit(self.left.unit, self.right.unit)


@dataclass(frozen=True, slots=True)
class Join(TwoInputs):
    """Every matching pair, for the time that both live; the payload is the pair, or what `projection` makes of it."""

    projection: Expr | None = None

    @property
    def schema(self) -> Schema | None:
        if self.projection is None:
            return Schema.tuple(2)
        return _projected(self.projection, self.left, self.right)


@dataclass(frozen=True, slots=True)
class AntiJoin(TwoInputs):
    """Each left row for the time that no matching right row lives, as maximal pieces."""


@dataclass(frozen=True, slots=True)
class SemiJoin(TwoInputs):
    """Each left row for the time that some matching right row lives, as maximal pieces."""


@dataclass(frozen=True, slots=True)
class ClipBy(TwoInputs):
    """Each left row, ended at the first matching right LE strictly after its own LE."""


@dataclass(frozen=True, slots=True)
class AsofJoin(TwoInputs):
    """Each left row, its lifetime as it is, with all matching right rows of the LE nearest to its own; `outer`: or with None."""

    projection: Expr | None = None
    near: Nearness = field(default_factory=Nearness)
    outer: bool = False

    @property
    def schema(self) -> Schema | None:
        if self.projection is None:
            return Schema.tuple(2)
        return _projected(self.projection, self.left, self.right)


@dataclass(frozen=True, slots=True)
class GroupApply(Node):
    """`body`, a plan over its own `Group`, run for each key by itself; `projection` makes the payload of key and result.

    In the projection `Key()` is the key and `Whole()` the body's payload.
    """

    input: Node
    key: Expr
    body: Node
    projection: Expr

    @property
    def schema(self) -> Schema | None:
        return _projected(self.projection, self.body)


@dataclass(frozen=True, slots=True)
class Windowed(Node):
    """What operators over windows share."""

    input: Node
    windows: Windows
    clip: Clip
    output: Output

    def __post_init__(self) -> None:
        check_policies(self.clip, self.output)
        for module in self.modules:
            check_methods(type(module))
        self.windows.check_use(self.output, [module.label for module in self.modules if module.time_sensitive])

    @property
    def modules(self) -> tuple[UDM, ...]:
        """The modules that are invoked for each window."""
        return ()

    @property
    def takes_any_order(self) -> bool:
        """Whether it makes no difference in which order simultaneous rows are: to the windows, and to each module."""
        return not self.windows.by_position and all(module.order_insensitive for module in self.modules)


def _refuse_lifetimes(aggregates: Iterable[BoundAgg]) -> None:
    """Refuse modules that are given a row's lifetime in a field, which may still change."""
    given = [expr for agg in aggregates for expr in (agg.argument, agg.where) if expr is not None]
    if any(isinstance(part, Life) for expr in given for part in expr.walk()):
        raise QueryError(
            "what a module is given of a row reads the row's lifetime, which may still change",
            hint="a time-sensitive module is given the lifetimes of its members",
        )


@dataclass(frozen=True, slots=True)
class WindowAggregate(Windowed):
    """One row per non-empty window: `projection` of the aggregates, which it reads as the fields `a0`, `a1`, ..."""

    aggregates: tuple[BoundAgg, ...]
    projection: Expr

    def __post_init__(self) -> None:
        Windowed.__post_init__(self)
        _refuse_lifetimes(self.aggregates)
        if self.output.keeps_stamps:
            raise QueryError(
                f"an aggregate has no timestamps of its own, so output={self.output} means nothing for it",
                hint="aggregates take Output.ALIGN or Output.POINT_AT_END",
            )

    @property
    def modules(self) -> tuple[UDM, ...]:
        return tuple(agg.function for agg in self.aggregates)

    @property
    def time_sensitive(self) -> bool:
        """Whether some aggregate reads lifetimes."""
        return any(agg.function.time_sensitive for agg in self.aggregates)

    @property
    def sees_ends(self) -> bool:
        """Whether some aggregate sees where a member ends outside of the window."""
        sensitive = [agg.function for agg in self.aggregates if agg.function.time_sensitive]
        return not self.clip.right and not all(getattr(function, "always_clipped", False) for function in sensitive)

    @property
    def schema(self) -> Schema | None:
        return schema_of(self.projection, (None,))


@dataclass(frozen=True, slots=True)
class WindowApply(Windowed):
    """Zero or more rows per non-empty window: what the operator `module` makes of its members' `argument`."""

    module: AnyUDO[Any, Any]
    argument: Expr | None = None

    def __post_init__(self) -> None:
        Windowed.__post_init__(self)
        _refuse_lifetimes(self.aggregates)
        if self.output.keeps_stamps and not self.module.time_sensitive:
            raise QueryError(
                f"{self.module.label} is time-insensitive and stamps nothing, so output={self.output} means nothing for it",
                hint="time-insensitive modules take Output.ALIGN or Output.POINT_AT_END",
            )
        if self.output is Output.TIME_BOUND and not self.module.time_bound:
            raise QueryError(
                f"{self.module.label} does not claim time_bound = True, which Output.TIME_BOUND asks for",
                hint="set time_bound = True on the class if a change at time s changes no output before s",
            )

    @property
    def modules(self) -> tuple[UDM, ...]:
        return (self.module,)

    @property
    def aggregates(self) -> tuple[BoundAgg, ...]:
        """What is computed for each window: one aggregate, whose values are the lists of the results."""
        return (BoundAgg(self.module, self.argument),)  # type: ignore[arg-type]

    @property
    def projection(self) -> Expr:
        """What becomes of that."""
        return Whole()

    @property
    def time_sensitive(self) -> bool:
        """Whether the module reads lifetimes."""
        return self.module.time_sensitive

    @property
    def sees_ends(self) -> bool:
        """Whether the module sees where a member ends outside of the window."""
        return self.module.time_sensitive and not self.clip.right

    @property
    def schema(self) -> Schema | None:
        return None


__all__ = [
    "AlterLifetime",
    "AntiJoin",
    "AsofJoin",
    "Calendar",
    "Chop",
    "ClipBy",
    "ClipDuration",
    "ClipInterval",
    "Distinct",
    "Extend",
    "Group",
    "GroupApply",
    "Join",
    "Match",
    "Matching",
    "Node",
    "Quantize",
    "Scan",
    "Select",
    "SelectMany",
    "SemiJoin",
    "Shift",
    "Source",
    "Stitch",
    "ToEdges",
    "ToPointsAtEnd",
    "TwoInputs",
    "Union",
    "Where",
    "WindowAggregate",
    "WindowApply",
    "Windowed",
]
