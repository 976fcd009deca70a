"""Rows of choices in which each pair of choices of two dimensions that may go together is there: a covering array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import combinations
from random import Random
from typing import TypeAlias

Choice: TypeAlias = tuple[str, str]
"""A dimension and its value."""
Pair: TypeAlias = frozenset[Choice]
Row: TypeAlias = Mapping[str, str]
Legal: TypeAlias = Callable[[Choice, Choice], bool]


def legal_pairs(dimensions: Mapping[str, Sequence[str]], legal: Legal) -> set[Pair]:
    """Return each pair of choices of two dimensions that may go together."""
    return {
        frozenset([(a, x), (b, y)])
        for a, b in combinations(dimensions, 2)
        for x in dimensions[a]
        for y in dimensions[b]
        if legal((a, x), (b, y))
    }


def pairs_of(row: Row) -> set[Pair]:
    """Return the pairs that a row covers."""
    return {frozenset(pair) for pair in combinations(row.items(), 2)}


def part(rows: Sequence[Row], pairs: Set[Pair]) -> list[int]:
    """Return the numbers of rows that cover some pairs, greedily: of those that cover most of what is left, the first."""
    covers = [pairs_of(row) & pairs for row in rows]
    chosen, left = list[int](), set(pairs)
    while left:
        chosen.append(max(range(len(rows)), key=lambda number: len(covers[number] & left)))
        left -= covers[chosen[-1]]
    return sorted(chosen)


def covering(
    dimensions: Mapping[str, Sequence[str]], legal: Legal, seed: int = 0, begun: Sequence[Row] = ()
) -> list[dict[str, str]]:
    """Return rows that cover all legal pairs, each built around one that is not yet covered, greedily; the same every time.

    They begin with those that are given.
    """
    rng = Random(seed)
    rows = [dict(row) for row in begun]
    partners: dict[Choice, set[Choice]] = {}
    pairs = sorted(map(sorted, legal_pairs(dimensions, legal)))
    for one, other in pairs:
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    left = {choice: set(others) for choice, others in partners.items()}
    for row in rows:
        for choice in row.items():
            left[choice] -= row.items()
    rng.shuffle(pairs)
    for one, other in pairs:
        if other in left[one]:
            chosen = _row({one, other}, dimensions, partners, left, rng)
            rows.append({name: value for name in dimensions for at, value in chosen if at == name})
            for choice in chosen:
                left[choice] -= chosen
    return rows


def _row(
    chosen: set[Choice],
    dimensions: Mapping[str, Sequence[str]],
    partners: Mapping[Choice, set[Choice]],
    left: Mapping[Choice, set[Choice]],
    rng: Random,
) -> set[Choice]:
    """Fill a row: of the dimension with the least choices that go with the others, the one that covers most."""
    while len(chosen) < len(dimensions):
        free = {
            name: [(name, value) for value in values if chosen <= partners[name, value]]
            for name, values in dimensions.items()
            if all(name != at for at, _ in chosen)
        }
        name = min(free, key=lambda each: (len(free[each]), rng.random()))
        assert free[name], f"nothing of {name} goes with {chosen}"
        chosen = chosen | {max(free[name], key=lambda choice: (len(left[choice] & chosen), rng.random()))}
    return chosen
