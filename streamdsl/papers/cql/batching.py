"""Assignment of tuples to batches: by timestamp, by order of arrival, or by given numbers (paper 002, 4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Any, Final, NamedTuple

from streamdsl.errors import QueryError, shortened
from streamdsl.papers.cql.group_timeline import Batch
from streamdsl.temporal import Record
from streamdsl.temporal.payload import fields_of


@dataclass(frozen=True)
class Batching:
    """How tuples without batch numbers get them: all of a timestamp together, or each alone, in order of arrival."""

    name: str
    alone: bool

    def __repr__(self) -> str:
        return f"cql.{self.name}"


ORACLE: Final = Batching("ORACLE", alone=False)
STREAMBASE: Final = Batching("STREAMBASE", alone=True)
CCL: Final = Batching("CCL", alone=True)


class GivenTuple(NamedTuple):
    """A tuple of a stream as the user gives it; its batch is None if it has no number."""

    stream: str
    payload: Any
    t: int
    i: int | None


def read_named(tuples: Iterable[Any]) -> list[GivenTuple]:
    """Read `(stream, payload, t)` or `(stream, payload, t, batch)`.

    >>> read_named([("S", "a", 3)])
    [GivenTuple(stream='S', payload='a', t=3, i=None)]
    """
    hint = 'write [("S", payload, t), ...], or with the batch\'s number [("S", payload, t, batch), ...]'
    if not isinstance(tuples, Iterable) or isinstance(tuples, str):
        raise QueryError(f"{tuples!r} is no list of tuples", hint=hint)
    listed = list(tuples)
    for each in listed:
        if not isinstance(each, (tuple, list)) or len(each) not in (3, 4) or not isinstance(each[0], str):
            raise QueryError(f"{each!r} is no tuple of a stream that it names", hint=hint)
    return [read_tuple(name, rest) for name, *rest in listed]


def read_tuple(stream: str, given: Sequence[Any]) -> GivenTuple:
    """Read `(payload, t)` or `(payload, t, batch)`.

    >>> read_tuple("S", ("a", 3, 1))
    GivenTuple(stream='S', payload='a', t=3, i=1)
    """
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        raise QueryError(
            f"{given!r} is no tuple of stream {stream!r}",
            hint="write (payload, t), or (payload, t, batch) with the batch's number",
        )
    payload, *numbers = given
    try:
        t, *batch = map(index, numbers)
    except TypeError:
        raise QueryError(
            f"the tuple {given!r} of stream {stream!r} has a timestamp or a batch number that is no integer",
            hint="timestamps are whole numbers; a number of a batch counts from 1 at each timestamp",
        ) from None
    i = batch[0] if batch else None
    if i is not None and i < 1:
        raise QueryError(
            f"the tuple {given!r} of stream {stream!r} is in batch {i}", hint="batches count from 1 at each timestamp"
        )
    return GivenTuple(stream, payload, t, i)


def numbered(tuples: Iterable[GivenTuple], batching: Batching) -> list[tuple[GivenTuple, Batch]]:
    """Return the tuples with their batches, in order of batch.

    Raises `QueryError` for a stream whose tuples are not in the order of their batches: its group would be inconsistent (4.2).

    >>> [at for _, at in numbered([GivenTuple("S", "a", 1, None), GivenTuple("S", "b", 1, None)], STREAMBASE)]
    [(1, 1), (1, 2)]
    """
    if not isinstance(batching, Batching):
        raise QueryError(f"{batching!r} is no batching", hint="cql.ORACLE, cql.STREAMBASE, or cql.CCL")
    found = list(tuples)
    plain = [given for given in found if given.i is None]
    if not plain:
        placed = [(given, (given.t, given.i or 1)) for given in found]
    elif len(plain) < len(found):
        raise QueryError(
            f"the tuple {_show(plain[0])} has no batch number, and others of its group have",
            hint="give every tuple of a group its batch number, or none",
        )
    else:
        placed = _alone(found) if batching.alone else [(given, (given.t, 1)) for given in found]
    if not plain or batching.alone:
        _check(placed)
    return sorted(placed, key=lambda each: each[1])


def _alone(tuples: Sequence[GivenTuple]) -> list[tuple[GivenTuple, Batch]]:
    """Number the tuples of each timestamp in order of arrival."""
    seen: dict[int, int] = {}
    placed = []
    for given in tuples:
        seen[given.t] = seen.get(given.t, 0) + 1
        placed.append((given, (given.t, seen[given.t])))
    return placed


def _check(placed: Sequence[tuple[GivenTuple, Batch]]) -> None:
    of_stream: dict[str, list[tuple[GivenTuple, Batch]]] = {}
    for each in placed:
        of_stream.setdefault(each[0].stream, []).append(each)
    for tuples in of_stream.values():
        for (one, before), (other, after) in pairwise(tuples):
            if after < before:
                raise QueryError(
                    f"the group is inconsistent: in stream {one.stream!r}\n  {_show(one)} comes before {_show(other)}, "
                    f"but its batch {before} is after {after}",
                    hint="give each stream in order of its batches: by timestamp, then by number",
                )


def _show(given: GivenTuple) -> str:
    return f"({shortened(given.payload)}; {given.t})"


def check_span(span: tuple[int, int] | None, times: Sequence[int]) -> tuple[int, int] | None:
    """Return a span as two integers; raises `QueryError` where it is none, or does not hold all timestamps."""
    if span is None:
        return None
    try:
        first, last = map(index, span)
    except (TypeError, ValueError):
        raise QueryError(f"{span!r} is no span", hint="span=(first, last), two whole numbers") from None
    if first > last or any(not first <= t <= last for t in (min(times, default=first), max(times, default=last))):
        found = f"the timestamps go from {min(times)} to {max(times)}" if times else "there is no timestamp in it"
        raise QueryError(f"the span {span!r} does not fit: {found}", hint="span=(first, last) has every timestamp that exists")
    return first, last


def by_stream(placed: Iterable[tuple[GivenTuple, Batch]], names: Iterable[str]) -> Mapping[str, tuple[list[Any], list[Batch]]]:
    """Return payloads and batches of each stream."""
    found: dict[str, tuple[list[Any], list[Batch]]] = {name: ([], []) for name in names}
    for given, at in placed:
        payloads, batches = found[given.stream]
        payloads.append(given.payload)
        batches.append(at)
    return found


def window_row(payload: Any, t: int) -> Record:
    """Return the record of a payload's fields and its tuple's timestamp, which hides a field `t`.

    >>> window_row(7, 3)
    Record(value=7, t=3)
    """
    fields = dict(payload) if type(payload) is dict else dict(fields_of(payload))
    fields.pop("t", None)
    fields["t"] = t
    return Record(fields)
