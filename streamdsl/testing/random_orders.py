"""Random physical streams of a given CHT: every way that the same history may arrive (semantics, section 1)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Event, Insert, Retract, sync_time

Change: TypeAlias = Insert[Any] | Retract

_REACH = 6
"""How far beyond the history's own times a wrong end may lie."""


def arrival_orders(cht: CHT[Any] | Iterable[tuple[int, int, Any]], n: int, seed: int = 0) -> list[list[Event[Any]]]:
    """Return `n` random physical streams that mean this CHT; the same seed gives the same streams.

    Ends are corrected by chains of retractions, shortened and lengthened, some from INFINITY; spurious events come and are fully
    retracted; events are out of order, and CTIs stand wherever they are legal, often on the boundary; ids that a CTI has let go
    are used again. The last CTI is finite.

    >>> cht = CHT.from_rows([(1, 5, "P1"), (4, 9, "P2")])
    >>> all(CHT.from_events(stream) == cht for stream in arrival_orders(cht, 20))
    True
    """
    rng = Random(seed)
    return [arrival_order(cht, rng) for _ in range(n)]


def arrival_order(cht: CHT[Any] | Iterable[tuple[int, int, Any]], rng: Random, ctis: bool = True) -> list[Event[Any]]:
    """Return one random physical stream that means this CHT.

    >>> arrival_order([(1, 5, "x")], Random(1), ctis=False)[0].payload
    'x'
    """
    rows = (cht if isinstance(cht, CHT) else CHT.from_rows(cht)).rows
    times = _times(rows)
    chains = [_chain(f"e{i}", le, re, payload, times, rng) for i, (le, re, payload) in enumerate(rows)]
    spurious = rng.choice([0, 0, 1, 2, 3]) if rows else 0
    chains += [_spurious(f"x{i}", rng.choice(rows).payload, times, rng) for i in range(spurious)]
    changes = _interleave(chains, rng)
    return _with_ids_again(_with_ctis(changes, times, rng)) if ctis else list(changes)


def _times(rows: Sequence[tuple[int, int, Any]]) -> list[int]:
    """Return the finite endpoints and some times near them, in order: where boundary cases happen."""
    known = {time for le, re, _ in rows for time in (le, re) if time != INFINITY}
    low, high = min(known, default=0), max(known, default=0)
    near = {time + 1 for time in known} | {min(high + _REACH, INFINITY - 1), max(low - _REACH, MIN_TIME)}
    return sorted((known | near) - {INFINITY})


def _chain(id: str, le: int, re: int, payload: Any, times: Sequence[int], rng: Random) -> list[Change]:
    """Return an insertion and the corrections that bring its RE to `re`, in order."""
    wrong = rng.choice([0, 0, 1, 1, 2, 3])
    later = [*(time for time in times if time > le), INFINITY]
    ends = [*(rng.choice(later) for _ in range(wrong)), re]
    first: Change = Insert(id, le, ends[0], payload)
    return [first, *(Retract(id, le, old, new, payload) for old, new in itertools.pairwise(ends))]


def _spurious(id: str, payload: Any, times: Sequence[int], rng: Random) -> list[Change]:
    le = rng.choice(times)
    return _chain(id, le, le, payload, times, rng)


def _interleave(chains: Sequence[Sequence[Change]], rng: Random) -> list[Change]:
    """Return all changes, each chain in its order, nearly in order of sync time or far from it."""
    disorder = rng.choice([0, 0, 3, 8, 60])
    turns = list(range(len(chains)))
    if disorder:
        rng.shuffle(turns)
    keyed: list[tuple[int, int, int, Change]] = []
    for turn, chain in zip(turns, chains, strict=True):
        due = MIN_TIME
        for step, change in enumerate(chain):
            due = max(due, min(sync_time(change), INFINITY - disorder) + rng.randint(0, disorder))
            keyed.append((due, turn, step, change))
    return [change for *_, change in sorted(keyed, key=lambda item: item[:3])]


def _with_ctis(changes: Sequence[Change], times: Sequence[int], rng: Random) -> list[Event[Any]]:
    """Return the changes with CTIs between them, none beyond the least sync time still to come."""
    bounds = list(itertools.accumulate(map(sync_time, reversed(changes)), min, initial=INFINITY))[::-1]
    often = rng.choice([0.0, 0.2, 0.5, 0.9])
    stream: list[Event[Any]] = []
    for position, bound in enumerate(bounds):
        if rng.random() < often:
            stream.append(Cti(_cti(bound, times, rng)))
        stream += changes[position : position + 1]
    return stream


def _cti(bound: int, times: Sequence[int], rng: Random) -> int:
    allowed = [time for time in times if time <= bound]
    if bound != INFINITY and (not allowed or rng.random() < 0.5):
        return bound
    return rng.choice(allowed) if allowed else 0


def _with_ids_again(stream: Sequence[Event[Any]]) -> list[Event[Any]]:
    """Return a stream in which some new events have the ids of events that a CTI has passed."""
    rng = Random(sum(event.le for event in stream if isinstance(event, Insert)))
    often = rng.choice([0.0, 0.5, 1.0])
    names: dict[Hashable, Hashable] = {}
    last_times: dict[Hashable, int] = {}
    cti, found = MIN_TIME, list[Event[Any]]()
    for event in stream:
        if isinstance(event, Cti):
            cti = max(cti, event.time)
            found.append(event)
            continue
        if isinstance(event, Insert):
            free = [name for name, time in last_times.items() if time < cti]
            names[event.id] = rng.choice(free) if free and rng.random() < often else event.id
        name, end = names[event.id], event.re if isinstance(event, Insert) else event.re_new
        last_times[name] = max(end, event.le)
        found.append(replace(event, id=name))
    return found
