"""Running a profile over a list of tuples: what is reported, when, and why (paper 000, tables 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, Final

from streamdsl.papers.secret.profile import Profile
from streamdsl.papers.secret.report_values import evaluator
from streamdsl.papers.secret.simulation import By, Reported, Simulation, Step, fed
from streamdsl.papers.secret.tick import Ticker
from streamdsl.papers.secret.tuples import Given, Tuple, read
from streamdsl.temporal.display import Displayed, scrolled
from streamdsl.temporal.html import columns, table, text

MOST: Final = 1000
"""The most invoked Reports that are shown one by one."""
SHOWN: Final = 50
"""Reports that are displayed, or that Jupyter shows in a table."""


@dataclass(frozen=True, eq=False)
class Trace(Displayed):
    """What an engine does with an input: `reports`, and `outputs`, the aggregate of each (of none the values themselves).

    >>> from streamdsl.secret import STREAMBASE
    >>> trace = simulate(STREAMBASE, 5, 1, [(10, 30), (20, 31), (30, 33)], sum)
    >>> trace.outputs, trace.t0
    ([10, 30, 30], 24)
    >>> print(trace.table())
    arrival  t       report  scope     content  output
    1        24..29  no
    2        30      yes     (25, 30]  10       10
    3        31      yes     (26, 31]  10, 20   30
    3        32      yes     (27, 32]  10, 20   30
    """

    profile: Profile
    size: int
    slide: int
    t0: int | None
    tuples: list[Tuple]
    reports: list[Reported]
    outputs: list[Any]
    by: By = "time"

    def steps(self) -> list[Step]:
        """Return each Report that was invoked, in order, with what it saw.

        >>> from streamdsl.secret import CORAL8
        >>> [step.reported for step in simulate(CORAL8, 2, 1, [("a", 2), ("b", 3)]).steps()]
        [False, False, False, True]
        """
        running = Simulation(self.profile, self.size, self.slide, self.t0, self.by)
        return [step for each in self.tuples for step in running.steps(each)]

    def reported(self) -> list[Step]:
        """Return the steps that reported something.

        >>> from streamdsl.secret import CORAL8
        >>> [step.seen.interval for step in simulate(CORAL8, 2, 1, [("a", 2), ("b", 3)]).reported() if step.seen]
        [(0, 2)]
        """
        running = Simulation(self.profile, self.size, self.slide, self.t0, self.by)
        return [step for each in self.tuples for step in running.reported(each)]

    def table(self) -> str:
        """Return a table of the Reports, as the paper's tables 7 and 8; those in a row that saw nothing share a line.

        Where very many were invoked only those that reported something are in it.

        >>> from streamdsl.secret import CORAL8
        >>> print(simulate(CORAL8, 2, 1, [("a", 2), ("b", 3)]).table())
        arrival  t      report  scope   content  output
        1        -1..1  no
        2        2      yes     (0, 2]  'a'      ['a']
        """
        return columns([["arrival", "t", "report", "scope", "content", "output"], *self.rows()])

    def rows(self) -> list[list[str]]:
        """Return the cells of the table.

        >>> from streamdsl.secret import CORAL8
        >>> simulate(CORAL8, 2, 1, [("a", 2)]).rows()
        [['1', '-1..1', 'no', '', '', '']]
        """
        outputs = iter(self.outputs)
        if self._invoked() > MOST:
            return [_row(step, repr(next(outputs))) for step in self.reported()]
        found: list[list[str]] = []
        for (arrival, silent), steps in groupby(self.steps(), key=lambda step: (step.t_sys, _silent(step))):
            if silent:
                times = [step.t for step in steps]
                span = f"{times[0]}..{times[-1]}" if len(times) > 1 else str(times[0])
                found.append([str(arrival), span, "no", "", "", ""])
            else:
                found.extend(_row(step, repr(next(outputs)) if step.reported else "") for step in steps)
        return found

    def _invoked(self) -> int:
        ticker = Ticker(self.t0 or 0, self.profile.tick)
        return sum(len(ticker.arrive(each.t_app, each.bid)) for each in self.tuples)

    def __repr__(self) -> str:
        more = f", ... {len(self.outputs) - SHOWN} more" if len(self.outputs) > SHOWN else ""
        shown = ", ".join(map(repr, self.outputs[:SHOWN]))
        return f"{self.profile.name}, size {self.size}, slide {self.slide}: [{shown}{more}]"

    def _below(self) -> str:
        from streamdsl.papers.secret.trace_picture import draw

        more = text(f"... {len(self.reports) - SHOWN} reports more") if len(self.reports) > SHOWN else ""
        return text(str(self.profile)) + scrolled(draw([self])) + table(["t", "values", "output"], _cells(self)) + more


def simulate(
    profile: Profile,
    size: int,
    slide: int,
    tuples: Iterable[Given],
    aggregate: Any = None,
    t0: int | None = None,
    *,
    by: By = "time",
) -> Trace:
    """Run a profile over tuples and return its trace; nothing is flushed at the end of the input.

    Windows are of application time, or, `by="tuples"`, of numbered tuples. Without `t0` the profile's rule gives it.

    >>> from streamdsl.secret import CORAL8
    >>> simulate(CORAL8, 4, 1, [(10, 3, 1, 1), (20, 5, 2, 2), (30, 5, 3, 2), (40, 5, 4, 3)]).reports
    [Reported(t_sys=2, t=3, values=[10]), Reported(t_sys=4, t=5, values=[10, 20, 30])]
    """
    seen = fed(profile, read(tuples))
    running = Simulation(profile, size, slide, t0, by)
    reports = [report for each in seen for report in running.push(each)]
    evaluate = evaluator(aggregate)
    outputs = [evaluate(report.values) for report in reports]
    return Trace(profile, size, slide, running.t0, seen, reports, outputs, by)


def _silent(step: Step) -> bool:
    return not step.reported and (step.seen is None or not step.seen.content)


def _row(step: Step, output: str) -> list[str]:
    assert step.seen is not None
    low, high = step.seen.interval
    content = ", ".join(repr(each.value) for each in step.seen.content)
    return [str(step.t_sys), str(step.t), "yes" if step.reported else "no", f"({low}, {high}]", content, output]


def _cells(trace: Trace) -> list[list[str]]:
    shown = zip(trace.reports[:SHOWN], trace.outputs, strict=False)
    return [[str(each.t), escape(", ".join(map(repr, each.values))), escape(repr(out))] for each, out in shown]
