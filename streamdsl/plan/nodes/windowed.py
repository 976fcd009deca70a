"""Operators over windows: aggregates, and user-defined operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Expr, Life, Whole, schema_of
from streamdsl.expr.schema import Schema
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, Keeps, Open, fields_read
from streamdsl.temporal.time import common_unit
from streamdsl.udm.bases import AnyModule, AnyUDO
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.incremental import describe_state
from streamdsl.udm.invoke import seen_clip
from streamdsl.udm.methods import check_methods
from streamdsl.windows import Clip, Ends, Output, Windows, check_policies


@dataclass(frozen=True, slots=True)
class Windowed(Node):
    """The base of operators over windows; many of their facts are facts of the window kind."""

    row_wise = False
    passes_payload = False
    opens_cells = True
    keeps = Keeps.MEMBERS

    input: Node
    windows: Windows
    clip: Clip
    output: Output

    def __post_init__(self) -> None:
        check_policies(self.clip, self.output)
        for module in self.modules:
            check_methods(type(module))
        self.windows.check_use(self.output, [module.label for module in self.modules if module.time_sensitive])
        _refuse_lifetimes(self.given())
        if (unit := self.windows.time_unit) is not None:
            common_unit(self.input.unit, unit)

    @abstractmethod
    def given(self) -> tuple[BoundAgg, ...]:
        """Return each module with its argument, and the filter of its rows."""

    @property
    def modules(self) -> tuple[AnyModule, ...]:
        return tuple(agg.function for agg in self.given())

    @property
    def time_sensitive(self) -> bool:
        """Whether a module reads lifetimes."""
        return any(module.time_sensitive for module in self.modules)

    @property
    def sees_ends(self) -> bool:
        """Whether a module sees members' ends beyond the window."""
        return self.time_sensitive and not seen_clip(self.modules, self.clip).right

    @abstractmethod
    def describe_results(self) -> list[str]:
        """Return the aggregates or the module as `describe` prints them."""

    def describe(self) -> str:
        parts = [self.windows.describe(self.unit)]
        if self.clip is not Clip.NONE:
            parts.append(f"clip {self.clip.value}")
        if self.output is not Output.ALIGN:
            parts.append(f"output {self.output.value}")
        return ", ".join(parts + self.describe_results())

    @property
    def follows_ctis(self) -> bool:
        return self.windows.follows_ctis and not self.sees_ends

    @property
    def fixed_duration(self) -> int | None:
        if self.output is Output.POINT_AT_END:
            return 1
        return self.windows.fixed_size if self.output is Output.ALIGN else None

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        """All fields if the order of members matters: they are ordered by whole payloads."""
        if not self.takes_any_order:
            return None
        return fields_read([expr for agg in self.given() for expr in (agg.given, agg.where) if expr is not None])

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        if self.output is Output.POINT_AT_END:
            return None
        if self.output in (Output.UNCHANGED, Output.TIME_BOUND) or self.windows.ends is Ends.WITH_ROWS:
            return inputs[0]
        return Open(self) if self.windows.ends is Ends.NEVER else None

    @property
    def takes_any_order(self) -> bool:
        """Whether the order of simultaneous rows affects neither the windows nor the result of any module."""
        return not self.windows.by_position and all(module.order_insensitive for module in self.modules)


def _refuse_lifetimes(aggregates: Iterable[BoundAgg]) -> None:
    """Refuse module arguments that read a row's lifetime, which may still change."""
    given = [expr for agg in aggregates for expr in (agg.argument, agg.where) if expr is not None]
    if any(isinstance(part, Life) for expr in given for part in expr.walk()):
        raise QueryError(
            "the argument of a module reads the row's lifetime, which may still change",
            hint="write a time-sensitive module: it receives the lifetimes of its members",
        )


@dataclass(frozen=True, slots=True)
class WindowAggregate(Windowed):
    """One row per non-empty window: `projection` of the aggregates, which it reads as the fields `a0`, `a1`, ..."""

    aggregates: tuple[BoundAgg, ...]
    projection: Expr

    def __post_init__(self) -> None:
        Windowed.__post_init__(self)
        if self.output.keeps_stamps:
            raise QueryError(
                f"an aggregate has no timestamps of its own, so output={self.output} cannot apply to it",
                hint="use Output.ALIGN or Output.POINT_AT_END",
            )

    def given(self) -> tuple[BoundAgg, ...]:
        return self.aggregates

    def describe_results(self) -> list[str]:
        described = [_describe_aggregate(f"a{i}", agg) for i, agg in enumerate(self.aggregates)]
        return [*described, f"-> {describe(self.projection)}"]

    @property
    def one_at_a_time(self) -> bool:
        """Each window has one result, so results are disjoint if windows are, or if they are points at different ends."""
        return self.windows.are_apart or (self.windows.fixed_size is not None and self.output is Output.POINT_AT_END)

    @property
    def schema(self) -> Schema | None:
        return schema_of(self.projection, (None,))


@dataclass(frozen=True, slots=True)
class WindowApply(Windowed):
    """Zero or more rows per non-empty window: the results of `module` over the `argument` of each member."""

    projection = Whole()
    """The identity: results are payloads as they are."""
    schema = None

    module: AnyUDO[Any, Any]
    argument: Expr | None = None

    def __post_init__(self) -> None:
        Windowed.__post_init__(self)
        if self.output.keeps_stamps and not self.module.time_sensitive:
            raise QueryError(
                f"{self.module.label} is time-insensitive and sets no timestamps, so output={self.output} cannot apply to it",
                hint="use Output.ALIGN or Output.POINT_AT_END",
            )
        if self.output is Output.TIME_BOUND and not self.module.time_bound:
            raise QueryError(
                f"{self.module.label} does not declare time_bound = True, which Output.TIME_BOUND requires",
                hint="set time_bound = True on the class if a change at time s changes no output before s",
            )

    @property
    def aggregates(self) -> tuple[BoundAgg, ...]:
        """The module as the only aggregate, whose value is the list of a window's results, as the engine runs both alike."""
        return (BoundAgg(self.module, self.argument),)  # type: ignore[arg-type]

    def given(self) -> tuple[BoundAgg, ...]:
        return self.aggregates

    def describe_results(self) -> list[str]:
        argument = describe(self.argument) if self.argument is not None else ""
        parts = [f"{self.module.label}({argument}){describe_state(self.module)}"]
        if self.time_sensitive and not self.output.keeps_stamps:
            parts.append("the module's own timestamps are replaced")
        return parts


def _describe_aggregate(name: str, agg: BoundAgg) -> str:
    return f"{name} = {agg.described}{describe_state(agg.function)}"
