"""The denotation of pattern matching (semantics, operators): the run from each instant, then the selection of matches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from streamdsl.denote.environment import Environment, UserCode, holds, key_of
from streamdsl.expr.row_evaluator import holds_row
from streamdsl.plan.node import Match
from streamdsl.plan.pattern_steps import PatternStep
from streamdsl.temporal import CHT, CHTRow, Record, add_time, payload_order


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A complete run: the LEs of its first and last event, and its payload."""

    first: int
    last: int
    payload: Record


def match(node: Match, scope: Environment, rows: CHT[Any]) -> CHT[Any]:
    """The matches of each key, each with a lifetime from its last LE until `within` after its first."""
    tracks: dict[Hashable, list[CHTRow[Any]]] = {}
    for row in rows:
        tracks.setdefault(key_of(node, scope, node.key, row), []).append(row)
    found = (match for track in tracks.values() for match in _reported(node, scope, track))
    return CHT((CHTRow(match.last, add_time(match.first, node.within), match.payload) for match in found), rows.unit)


def _reported(node: Match, scope: Environment, track: list[CHTRow[Any]]) -> Iterator[PatternMatch]:
    """Yield the reported runs: all, or of overlapping ones the one that is complete first, and of these the one begun first."""
    fitting = {
        step.name: [row for row in track if all(holds(node, scope, test, row) for test in step.tests)]
        for step in (*node.steps, *node.unless)
    }
    runs = (_run(node, scope, fitting, start) for start in {row.le for row in track})
    end: int | None = None
    for run in sorted((run for run in runs if run is not None), key=lambda run: (run.last, run.first)):
        if node.overlapping or end is None or run.first > end:
            end = run.last
            yield run


def _run(node: Match, scope: Environment, fitting: dict[str, list[CHTRow[Any]]], start: int) -> PatternMatch | None:
    """Return the complete run that begins at an instant, None if there is none."""
    taken: list[tuple[int, CHTRow[Any]]] = []
    position = -1
    for time in sorted({start} | {row.le for rows in fitting.values() for row in rows if start < row.le < start + node.within}):
        so_far = _record(node, taken)
        reachable = [n for n in range(len(node.steps)) if _may_follow(node, position, n)]
        moves = {n: _satisfying(node, scope, node.steps[n], fitting, time, so_far) for n in reachable}
        furthest = max((n for n in reachable if moves[n]), default=None)
        if furthest is not None:
            position = furthest
            taken += [(position, row) for row in (moves[position] if node.steps[position].many else moves[position][:1])]
        if position == len(node.steps) - 1:
            return PatternMatch(start, time, _record(node, taken))
        if not taken or (time > start and any(_satisfying(node, scope, x, fitting, time, so_far) for x in node.unless)):
            return None
    return None


def _may_follow(node: Match, position: int, n: int) -> bool:
    """Say whether a run may take step n next: the same step if it is many, a later one if only optional steps are skipped."""
    return node.steps[n].many if n == position else n > position and all(s.optional for s in node.steps[position + 1 : n])


def _satisfying(
    node: Match, scope: Environment, step: PatternStep, fitting: dict[str, list[CHTRow[Any]]], time: int, so_far: Record
) -> list[CHTRow[Any]]:
    """Return the rows of an instant that a step can take, given the run so far, in payload order."""
    here = sorted((row for row in fitting[step.name] if row.le == time), key=lambda row: payload_order(row.payload))
    return [row for row in here if all(_holds_over(node, scope, test, row, so_far) for test in step.over)]


def _holds_over(node: Match, scope: Environment, test: Any, row: CHTRow[Any], so_far: Record) -> bool:
    with UserCode(node, scope, row):
        return holds_row(test, (row.payload, so_far))


def _record(node: Match, taken: list[tuple[int, CHTRow[Any]]]) -> Record:
    """Return a record of the payloads taken by each step: one payload or None, or for a many step a tuple."""
    payloads = {step.name: tuple(row.payload for at, row in taken if at == n) for n, step in enumerate(node.steps)}
    return Record({s.name: payloads[s.name] if s.many else next(iter(payloads[s.name]), None) for s in node.steps})
