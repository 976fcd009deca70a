"""Operators that change lifetimes, row by row; payloads stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Constant, Expr, reads_re
from streamdsl.plan import end_expressions as expressions
from streamdsl.plan.base import Node
from streamdsl.plan.end_bounds import Endless
from streamdsl.plan.end_expressions import LE, NEW_LE, RE, ceil, earliest, floor, latest, plus, reach
from streamdsl.plan.ends import NewLifetime
from streamdsl.plan.facts import Fields, FilterBelow, Keeps, Open, all_of, fields_read
from streamdsl.plan.nodes.rows import RowWise
from streamdsl.temporal import CHRONON, Unit
from streamdsl.windows import Hopping


@dataclass(frozen=True, slots=True)
class AlterLifetime(RowWise):
    """Each row with the lifetime `[le, re)`, two expressions (`plan/end_expressions.py`); an empty lifetime drops the row.

    All facts, the rule of the CTI and that of the final frontier are computed from the two expressions. `kind` names the
    operator, in CamelCase, after the method that writes it.
    """

    passes_payload = True

    input: Node
    le: Expr
    re: Expr
    kind: str = "AlterLifetime"

    def __post_init__(self) -> None:
        expressions.check(self.le, self.re)

    @property
    def name(self) -> str:
        return self.kind

    @property
    def ends(self) -> NewLifetime:
        """The two ends, with what follows from them."""
        return NewLifetime(self.le, self.re)

    def in_unit(self, unit: Unit | None) -> NewLifetime:
        """Return the ends, with what users give read in a unit of time."""
        return NewLifetime(expressions.in_unit(self.le, unit), expressions.in_unit(self.re, unit))

    def with_constants_read(self) -> AlterLifetime:
        """Return the operator with its constants as ticks of its unit, where that is known."""
        unit = self.unit
        return replace(self, le=expressions.with_constants_read(self.le, unit), re=expressions.with_constants_read(self.re, unit))

    def describe(self) -> str:
        return self.ends.describe()

    @property
    def starts_computed(self) -> list[Expr]:
        """What users compute in LE."""
        return expressions.computed(self.le)

    @property
    def ends_computed(self) -> list[Expr]:
        """What users compute from RE in RE."""
        return [expr for expr in expressions.computed(self.re) if reads_re(expr)]

    @property
    def fixed_duration(self) -> int | None:
        return self.input.fixed_duration if self.ends.keep_durations else self.ends.duration

    @property
    def one_at_a_time(self) -> bool:
        return self.ends.keep_apart and self.input.one_at_a_time

    @property
    def filter_below(self) -> FilterBelow | None:
        return "the same rows" if self.ends.keep_all_rows else "more rows"

    @property
    def moves_starts_as_ctis(self) -> bool:
        return self.ends.move_starts_as_ctis

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return all_of(wanted, fields_read([self.le, self.re]))

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        which = self.ends.endless
        return Open(self) if which is Endless.ALL else inputs[0] if which is Endless.THE_SAME else None


def alter_lifetime(input: Node, start: Expr | None, duration: Expr) -> AlterLifetime:
    """Make each lifetime `[start, start + duration)`; start None keeps LE, a duration <= 0 drops the row."""
    le = LE if start is None else expressions.read_time(start)
    return AlterLifetime(input, le, plus(NEW_LE, expressions.read_duration(duration)))


def alter_duration(input: Node, duration: int) -> AlterLifetime:
    """Let each row live for a fixed duration from its LE."""
    return alter_lifetime(input, None, Constant(duration))


def shift(input: Node, duration: int) -> AlterLifetime:
    """Move both ends, and the CTIs, by a duration."""
    return AlterLifetime(input, plus(LE, duration), plus(RE, duration), "Shift")


def extend(input: Node, duration: int) -> AlterLifetime:
    """Move RE by a duration; a row whose RE would not be after its LE vanishes."""
    return AlterLifetime(input, LE, plus(RE, duration), "Extend")


def clip_duration(input: Node, duration: int) -> AlterLifetime:
    """Let RE be no later than a duration after LE; with a duration <= 0 no row is left."""
    return AlterLifetime(input, LE, earliest(RE, reach(LE, max(duration, 0))), "ClipDuration")


def clip_interval(input: Node, lo: int, hi: int) -> AlterLifetime:
    """Intersect each lifetime with `[lo, hi)`."""
    if lo > hi:
        raise QueryError(f"clip_interval needs lo <= hi, not [{lo}, {hi})")
    return AlterLifetime(input, latest(LE, lo), earliest(RE, hi), "ClipInterval")


def to_points_at_end(input: Node) -> AlterLifetime:
    """Make each row that ends the point `[RE, RE + 1)`; INFINITY absorbs the chronon, so that a row without end vanishes."""
    return AlterLifetime(input, RE, plus(RE, CHRONON), "ToPointsAtEnd")


def quantize(input: Node, size: int, period: int, offset: int = 0) -> AlterLifetime:
    """Move LE down to a multiple of the period, RE up to the end of a window of this size that starts at one."""
    if size <= 0 or period <= 0:
        raise QueryError(f"quantize needs a size and a period > 0, not {size} and {period}", hint="for example quantize(10, 5)")
    start = floor(LE, period, offset)
    return AlterLifetime(input, start, ceil(latest(RE, plus(NEW_LE, size)), period, offset + size), "Quantize")


@dataclass(frozen=True, slots=True)
class Chop(RowWise):
    """Each row in pieces, cut at the starts of the cells of a grid; a cell's pieces come with it, as windows do."""

    passes_payload = True
    opens_cells = True
    filter_below = "more rows"
    keeps = Keeps.ROWS
    """Rows whose later pieces are still to come."""
    follows_ctis = False
    """With `emit="watermark"` the pieces of a cell that has not ended hold the CTI back."""

    input: Node
    cells: Hopping

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return wanted

    def describe(self) -> str:
        return f"at {self.cells.describe()}"

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return None
