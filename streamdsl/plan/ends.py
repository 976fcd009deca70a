"""The new ends of an operator's rows, and what follows from them: its output CTI, its final frontier and its facts.

The rules are computed from the two expressions (`end_expressions.py`) by their bounds (`end_bounds.py`), so that a new operator
on lifetimes is two expressions and needs no rule of its own (docs/decisions/16-lifetimes-are-expressions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamdsl.expr.evaluate import Inputs, evaluate
from streamdsl.expr.nodes import Constant, Expr, Function, Life, rebuilt
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.plan import end_bounds as bounds
from streamdsl.plan.end_bounds import Endless
from streamdsl.plan.end_expressions import LE, NEW_LE, RE, computed, plus, text_of
from streamdsl.temporal import CHRONON, INFINITY, MIN_TIME, Lifetime
from streamdsl.temporal.time import Ticks


@dataclass(frozen=True)
class NewLifetime:
    """The new ends of an operator's rows; a row whose new lifetime is empty vanishes."""

    le: Expr
    re: Expr

    @cached_property
    def full_re(self) -> Expr:
        """The new RE over the old lifetime alone."""
        return rebuilt(self.re, lambda part: self.le if part == NEW_LE else None)

    def cti(self, cti: int) -> int:
        """Return the output CTI for an input CTI: the earliest time at which a later change of the input changes the output.

        >>> from streamdsl.plan.end_expressions import ceil, floor
        >>> [NewLifetime(*ends).cti(22) for ends in ((LE, plus(RE, -2)), (LE, plus(RE, 3)), (floor(LE, 5), ceil(RE, 5)))]
        [20, 22, 20]
        """
        if cti in (MIN_TIME, INFINITY):
            return cti
        changes = (bounds.change(self.le, cti, cti), bounds.change(self.full_re, cti, cti))
        return min([bounds.least(self.le, cti, cti + CHRONON), *(each.least for each in changes if each is not None)])

    def final(self, cti: int, final: int) -> int:
        """Return the final frontier: output rows with RE up to it are final (engine/frontiers.py has that of the input).

        A row that is not final has an old RE after the input's frontier. It may vanish if its LE is not before the CTI; otherwise
        only its RE moves. The earliest new RE of such rows bounds the frontier.

        >>> NewLifetime(plus(LE, 5), plus(RE, 5)).final(20, 30), NewLifetime(LE, plus(NEW_LE, 5)).final(20, 19)
        (35, 24)
        """
        if INFINITY in (cti, final):
            return INFINITY
        was, ends = final + CHRONON, max(cti, final) + CHRONON
        found: list[int] = []
        start = bounds.least(self.le, cti, ends)
        if bounds.most(self.full_re) > start:  # a row that starts at the CTI or later may vanish
            found.append(max(bounds.least(self.full_re, cti, ends), bounds.plus_bound(start, CHRONON)))
        moved = bounds.change(self.full_re, was, cti)
        if moved is not None:
            found.append(moved.before)
        if bounds.change(self.le, was, cti) is not None:
            found.append(bounds.least(self.full_re, MIN_TIME, was))
        if not found:
            return INFINITY
        return min(found) if MIN_TIME in found else min(found) - CHRONON

    @property
    def duration(self) -> int | None:
        """The one duration of all rows, None if they may differ."""
        match self.re:
            case Function("add_time" | "reach", (Life("le", 1), Constant(value))):
                return int(value)
        return CHRONON if self.le == RE and self.re == plus(RE, CHRONON) else None

    @property
    def keep_durations(self) -> bool:
        """Whether each row lives as long as before: both ends move by the same duration."""
        move = bounds.before(self.le, LE)
        return move is not None and (self.le, self.re) in ((LE, RE), (plus(LE, move), plus(RE, move)))

    @property
    def keep_all_rows(self) -> bool:
        """Whether it is certain that no row vanishes, or fails: LE stays or goes down to a grid, and the new RE is after it."""
        if bounds.before(self.le, LE) != 0:
            return False
        late = (bounds.after(self.re, NEW_LE), bounds.after(self.re, LE))
        return any(each is not None and each > 0 for each in late)

    @property
    def keep_rows_in_place(self) -> bool:
        """Whether no row that is there before and after a change of its RE is withdrawn in between, or starts elsewhere."""
        return RE not in self.le.walk() and (self.keep_all_rows or self.keep_durations or self.duration is not None)

    @property
    def keep_apart(self) -> bool:
        """Whether rows that do not overlap do not afterwards: the new RE moves by no more than the new LE does."""
        by, least_by = bounds.before(self.full_re, RE), bounds.after(self.le, LE)
        return by is not None and least_by is not None and by <= least_by

    @property
    def move_starts_as_ctis(self) -> bool:
        """Whether the CTI moves as each LE does."""
        move = bounds.before(self.le, LE)
        if move is None or self.le not in (LE, plus(LE, move)):
            return False
        delay = bounds.delay(self.full_re)
        return delay is not None and delay >= move

    @property
    def endless(self) -> Endless:
        """Which rows never end. Where LE is the old RE, or later, those without end vanish."""
        if bounds.endless(self.le) is not Endless.NONE and not computed(self.le):
            return Endless.NONE
        return bounds.endless(self.full_re)

    @cached_property
    def are_computed(self) -> bool:
        """Whether users compute some of them, so that the payload counts."""
        return bool(computed(self.le) or computed(self.re))

    def of(self, life: Lifetime, payload: Any = None) -> tuple[int, int]:
        """Return the new ends of one row.

        >>> from streamdsl.plan.end_expressions import floor
        >>> NewLifetime(floor(LE, 5), plus(NEW_LE, 5)).of(Lifetime(7, 8))
        (5, 10)
        """
        le = life.le if self.le == LE else evaluate_row(self.le, (payload,), life)
        return le, evaluate_row(self.re, (payload,), life, starts=(life.le, le))

    def over(self, inputs: Inputs) -> tuple[Ticks, Ticks]:
        """Return the new ends of rows; raises `RowError` for the first row for which there are none."""
        assert inputs.le is not None
        le = inputs.le if self.le == LE else evaluate(self.le, inputs)
        return le, evaluate(self.re, inputs._replace(starts=(inputs.le, le)))

    def describe(self) -> str:
        """Return the new lifetime as people write it.

        >>> from streamdsl.plan.end_expressions import earliest
        >>> print(NewLifetime(LE, earliest(RE, plus(LE, 5))).describe())
        [LE, min(RE, LE + 5))
        """
        return f"[{text_of(self.le)}, {text_of(self.full_re if self.le == LE else self.re)})"
