"""Paper 002 as it is written, state by state: what `streamdsl.cql` is compared with.

A group is a mapping of names to tuples `(payload, (t, i))`. A relation is a function from an instant to its rows; a row is a
lineage and a value, and a lineage is what the row was made of, so that it is the same row as long as that is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

Batch: TypeAlias = tuple[int, int]
Tuples: TypeAlias = Sequence[tuple[Any, Batch]]
Row: TypeAlias = tuple[Hashable, Any]
State: TypeAlias = list[Row]
Relation: TypeAlias = Callable[[Batch], State]


def instants(streams: Sequence[Tuples], span: tuple[int, int]) -> list[Batch]:
    """Every batch, and (t, 1) of every timestamp that has none."""
    batches = {at for tuples in streams for _, at in tuples}
    empty = {(t, 1) for t in range(span[0], span[1] + 1)} - {(t, 1) for t, _ in batches}
    return sorted(batches | empty)


def window_rows(tuples: Tuples, numbers: Sequence[int]) -> State:
    return [((n,), {"value": tuples[n][0], "t": tuples[n][1][0]}) for n in numbers]


def rows(tuples: Tuples, n: int | None) -> Relation:
    """4.5.1: the n tuples with the largest batches <= (t, i), of simultaneous ones the last as given."""
    return lambda at: window_rows(tuples, _seen(tuples, at)[-n if n else 0 :])


def keep(tuples: Tuples, n: int) -> Relation:
    return lambda at: rows(tuples, n)(at) if len(_seen(tuples, at)) >= n else []


def partitioned(tuples: Tuples, n: int, key: Callable[[Any], Hashable]) -> Relation:
    """4.5.3: the union of `rows n` of each key's tuples."""

    def state(at: Batch) -> State:
        seen = _seen(tuples, at)
        parts = [[m for m in seen if key(tuples[m][0]) == k] for k in {key(tuples[m][0]) for m in seen}]
        return window_rows(tuples, [m for part in parts for m in part[-n:]])

    return state


def within(tuples: Tuples, d: int | None, clock: str = "group") -> Relation:
    """4.5.2, corrected: t' > t - d, and t' = t for d = 0; `clock="stream"`: t is that of the stream's own last tuple."""

    def state(at: Batch) -> State:
        seen = _seen(tuples, at)
        t = at[0] if clock == "group" or not seen else tuples[seen[-1]][1][0]
        return window_rows(tuples, [n for n in seen if d is None or tuples[n][1][0] > t - d or tuples[n][1][0] == t])

    return state


def slid(relation: Relation, forming: Sequence[Batch]) -> Relation:
    """4.5.4: between states a slide keeps its last one."""

    def state(at: Batch) -> State:
        formed = [each for each in forming if each <= at]
        return relation(formed[-1]) if formed else []

    return state


def row_slide(tuples: Tuples, m: int) -> list[Batch]:
    """The batches at which m tuples came since the last such batch."""
    found: list[Batch] = []
    since = 0
    for at in sorted({at for _, at in tuples}):
        since += sum(batch == at for _, batch in tuples)
        if since >= m:
            found.append(at)
            since = 0
    return found


def range_slide(all_instants: Sequence[Batch], m: int) -> list[Batch]:
    return [at for at in all_instants if at[0] % m == 0]


def select(relation: Relation, f: Callable[[Any], Any]) -> Relation:
    return lambda at: [(lineage, f(value)) for lineage, value in relation(at)]


def where(relation: Relation, p: Callable[[Any], bool]) -> Relation:
    return lambda at: [row for row in relation(at) if p(row[1])]


def join(left: Relation, right: Relation, p: Callable[[Any, Any], bool], f: Callable[[Any, Any], Any]) -> Relation:
    return lambda at: [((a, b), f(x, y)) for a, x in left(at) for b, y in right(at) if p(x, y)]


def union(one: Relation, other: Relation) -> Relation:
    """The rows of both, each with where it is from in its lineage."""

    def state(at: Batch) -> State:
        return [((n, lineage), value) for n, relation in enumerate((one, other)) for lineage, value in relation(at)]

    return state


def aggregate(relation: Relation, f: Callable[[list[Any]], Any]) -> Relation:
    """One row, made of all rows; none of an empty relation."""

    def state(at: Batch) -> State:
        found = relation(at)
        return [(frozenset(lineage for lineage, _ in found), f([value for _, value in found]))] if found else []

    return state


def group_by(relation: Relation, key: Callable[[Any], Hashable], f: Callable[[Hashable, list[Any]], Any]) -> Relation:
    def state(at: Batch) -> State:
        found = relation(at)
        keys = sorted({key(value) for _, value in found}, key=repr)
        parts = [(k, [(lineage, value) for lineage, value in found if key(value) == k]) for k in keys]
        return [((k, frozenset(lineage for lineage, _ in part)), f(k, [value for _, value in part])) for k, part in parts]

    return state


def values(state: State) -> list[Any]:
    return [value for _, value in state]


def difference(new: State, old: State, semantics: str) -> list[Any]:
    """4.3.2: what is in one state and not in the other; by lineage, or by value and then each once."""
    if semantics == "delta":
        return [value for lineage, value in new if lineage not in [other for other, _ in old]]
    found: list[Any] = []
    for value in values(new):
        if value not in values(old) and value not in found:
            found.append(value)
    return found


def istream(relation: Relation, at: Sequence[Batch], semantics: str) -> list[tuple[Batch, Any]]:
    states: list[State] = [[], *map(relation, at)]
    return [(b, v) for b, old, new in zip(at, states, states[1:], strict=False) for v in difference(new, old, semantics)]


def dstream(relation: Relation, at: Sequence[Batch], semantics: str) -> list[tuple[Batch, Any]]:
    states: list[State] = [[], *map(relation, at)]
    return [(b, v) for b, old, new in zip(at, states, states[1:], strict=False) for v in difference(old, new, semantics)]


def rstream(relation: Relation, at: Sequence[Batch]) -> list[tuple[Batch, Any]]:
    return [(b, value) for b in at for value in values(relation(b))]


def output_every(relation: Relation, batches: Sequence[Batch], p: int) -> list[tuple[Batch, Any]]:
    """CCL: when a batch enters a later period, the rows as of the batch before it."""
    crossings = [old for old, new in pairwise(batches) if new[0] // p > old[0] // p]
    return [(at, value) for at in crossings for value in values(relation(at))]


def spread(
    streams: Mapping[str, Tuples], names: Sequence[str], rank: Callable[[Any, int], Any], whole: bool
) -> dict[str, list[tuple[Any, Batch]]]:
    """5.1: the batches of a timestamp are the classes of (old batch, attributes), or with ALL of the attributes, in order."""

    def place(payload: Any, at: Batch) -> tuple[Any, ...]:
        return (rank(payload, at[0]),) if whole else (at[1], rank(payload, at[0]))

    named = [(payload, at) for name in names for payload, at in streams[name]]
    classes = {t: sorted({place(p, at) for p, at in named if at[0] == t}) for t in {at[0] for _, at in named}}
    return {
        name: sorted(((p, (at[0], 1 + classes[at[0]].index(place(p, at)))) for p, at in streams[name]), key=lambda each: each[1])
        for name in names
    }


def _seen(tuples: Tuples, at: Batch) -> list[int]:
    """The positions of the tuples with batch <= (t, i), in order."""
    return [n for n, (_, batch) in enumerate(tuples) if batch <= at]
