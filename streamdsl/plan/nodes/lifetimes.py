"""Operators that change lifetimes, row by row; payloads stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.expr import describe
from streamdsl.expr.nodes import Constant, Expr, reads_re
from streamdsl.plan.base import Node
from streamdsl.plan.facts import Fields, FilterBelow, Keeps, Open, all_of, fields_read
from streamdsl.plan.nodes.rows import RowWise
from streamdsl.temporal import INFINITY
from streamdsl.windows import Hopping


@dataclass(frozen=True, slots=True)
class LifetimeChange(RowWise):
    """The base of operators that give each row another lifetime; a row whose lifetime is empty then vanishes.

    What is so unless a class says otherwise: rows may vanish, so a filter below is evaluated on more of them; durations may
    differ, rows may come to overlap; ends are those of the input.
    """

    passes_payload = True

    input: Node

    @property
    def filter_below(self) -> FilterBelow | None:
        return "more rows"

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return wanted

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0]


@dataclass(frozen=True, slots=True)
class AlterLifetime(LifetimeChange):
    """Each lifetime becomes `[start, start + duration)`; start None keeps LE, a duration <= 0 drops the row."""

    start: Expr | None
    duration: Expr

    def describe(self) -> str:
        start = f"start {describe(self.start)}, " if self.start is not None else ""
        return f"{start}duration {describe(self.duration)}"

    @property
    def reads_re(self) -> bool:
        """Whether a new end may depend on RE."""
        return any(reads_re(expr) for expr in (self.start, self.duration) if expr is not None)

    @property
    def _constant(self) -> Any:
        return self.duration.value if isinstance(self.duration, Constant) else None

    @property
    def fixed_duration(self) -> int | None:
        duration: int | None = self._constant
        return duration

    @property
    def filter_below(self) -> FilterBelow | None:
        keeps_all = self.start is None and isinstance(self._constant, int) and self._constant > 0
        return "the same rows" if keeps_all else "more rows"

    @property
    def moves_starts_as_ctis(self) -> bool:
        return self.start is None and isinstance(self.duration, Constant)

    def fields_needed(self, position: int, wanted: Fields) -> Fields:
        return all_of(wanted, fields_read([expr for expr in (self.start, self.duration) if expr is not None]))

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        """A duration that is computed from the row is taken to end it, unless it is computed from its end."""
        if self._constant is not None:
            return Open(self) if self._constant == INFINITY else None
        return inputs[0] if self.reads_re else None


@dataclass(frozen=True, slots=True)
class Shift(LifetimeChange):
    """Both ends and the CTIs moved by a duration."""

    duration: int

    def describe(self) -> str:
        return f"by {self.duration}"

    @property
    def fixed_duration(self) -> int | None:
        return self.input.fixed_duration

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    @property
    def moves_starts_as_ctis(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Extend(LifetimeChange):
    """RE moved by a duration; a row whose RE would not be after its LE vanishes."""

    duration: int

    def describe(self) -> str:
        return f"by {self.duration}"

    @property
    def filter_below(self) -> FilterBelow | None:
        return "the same rows" if self.duration >= 0 else "more rows"

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return Open(self) if self.duration == INFINITY else inputs[0]


@dataclass(frozen=True, slots=True)
class ClipDuration(LifetimeChange):
    """RE no later than a duration after LE; with a duration <= 0 no row is left."""

    duration: int

    def describe(self) -> str:
        return f"to {self.duration}"

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0] if self.duration == INFINITY else None


@dataclass(frozen=True, slots=True)
class ClipInterval(LifetimeChange):
    """Each lifetime intersected with `[lo, hi)`."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        if self.lo > self.hi:
            raise QueryError(f"clip_interval needs lo <= hi, not [{self.lo}, {self.hi})")

    def describe(self) -> str:
        return f"to [{self.lo}, {self.hi})"

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return inputs[0] if self.hi == INFINITY else None


@dataclass(frozen=True, slots=True)
class ToPointsAtEnd(LifetimeChange):
    """The point `[RE, RE + 1)` of each row that ends."""

    def describe(self) -> str:
        return ""

    @property
    def fixed_duration(self) -> int | None:
        return 1

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return None


@dataclass(frozen=True, slots=True)
class Quantize(LifetimeChange):
    """LE moved down to a multiple of the period, RE up to the end of a window of this size that starts at one."""

    size: int
    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.size <= 0 or self.period <= 0:
            raise QueryError(
                f"quantize needs a size and a period > 0, not {self.size} and {self.period}", hint="for example quantize(10, 5)"
            )

    def describe(self) -> str:
        return f"size {self.size}, period {self.period}" + (f", offset {self.offset}" if self.offset else "")

    @property
    def filter_below(self) -> FilterBelow | None:
        return "the same rows"


@dataclass(frozen=True, slots=True)
class Chop(LifetimeChange):
    """Each row in pieces, cut at the starts of the cells of a grid; a cell's pieces come with it, as windows do."""

    opens_cells = True

    cells: Hopping

    def describe(self) -> str:
        return f"at {self.cells.describe()}"

    @property
    def keeps(self) -> Keeps:
        """Rows whose later pieces are still to come."""
        return Keeps.ROWS

    @property
    def one_at_a_time(self) -> bool:
        return self.input.one_at_a_time

    def open_rows(self, inputs: Sequence[Open | None]) -> Open | None:
        return None
