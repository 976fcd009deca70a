"""The minimal change between two multisets of rows, which an operator emits when its result changes (semantics, section 2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from streamdsl.temporal.payload import payload_key, payload_order

A = TypeVar("A", bound="KeyedRow")
B = TypeVar("B", bound="KeyedRow")


class Change(NamedTuple):
    """A change of the RE of one row: an insertion if `re_old == le`, a full retraction if `re_new == le`."""

    le: int
    re_old: int
    re_new: int
    payload: Any

    @property
    def sync(self) -> int:
        """The sync time: LE of an insertion, else the smaller RE."""
        return min(self.re_old, self.re_new)


class KeyedRow(Protocol):
    """A row as `pair` reads it; `key` is equal for equal payloads (`payload_key`)."""

    @property
    def le(self) -> int: ...
    @property
    def re(self) -> int: ...
    @property
    def key(self) -> Hashable: ...


class _Row(NamedTuple):
    le: int
    re: int
    payload: Any
    key: Hashable


def pair(old: Iterable[A], new: Iterable[B]) -> list[tuple[A | None, B | None]]:
    """Pair old and new rows by (LE, payload), in order of RE; rows without a partner are paired with None. O(n log n).

    >>> pair([_Row(0, 9, "n=1", "n=1")], [_Row(0, 5, "n=1", "n=1")])
    [(_Row(le=0, re=9, payload='n=1', key='n=1'), _Row(le=0, re=5, payload='n=1', key='n=1'))]
    """
    waiting: dict[tuple[int, Hashable], list[A]] = {}
    last_first = [*old][::-1]
    for row in sorted(last_first, key=lambda row: -row.re):
        waiting.setdefault((row.le, row.key), []).append(row)
    met: list[tuple[A | None, B | None]] = []
    for after in sorted(new, key=lambda row: row.re):
        before = waiting.get((after.le, after.key))
        met.append((before.pop() if before else None, after))
    return [(row, None) for rows in waiting.values() for row in rows] + met


def minimal_change(old: Iterable[tuple[int, int, Any]], new: Iterable[tuple[int, int, Any]]) -> list[Change]:
    """Return the changes that turn the rows `old` into the rows `new`; rows are `(le, re, payload)`.

    Empty lifetimes are ignored. Rows are paired by (LE, payload) in order of RE: a pair with different REs is one change of RE,
    an unpaired old row a full retraction, an unpaired new row an insertion. Retractions come before insertions, each in order of
    (LE, RE, payload).

    >>> minimal_change([(0, 9, "n=1")], [(0, 5, "n=1"), (5, 8, "n=2")])
    [Change(le=0, re_old=9, re_new=5, payload='n=1'), Change(le=5, re_old=5, re_new=8, payload='n=2')]
    """
    changes = [_change(before, after) for before, after in pair(_rows(old), _rows(new))]
    return sorted((change for change in changes if change.re_old != change.re_new), key=_order)


def _rows(rows: Iterable[tuple[int, int, Any]]) -> list[_Row]:
    return [_Row(le, re, payload, payload_key(payload)) for le, re, payload in rows if le < re]


def _change(before: _Row | None, after: _Row | None) -> Change:
    row = before or after
    assert row is not None
    return Change(row.le, before.re if before else row.le, after.re if after else row.le, row.payload)


def _order(change: Change) -> tuple[Any, ...]:
    is_new = change.re_old == change.le
    return (is_new, change.le, change.re_new if is_new else change.re_old, payload_order(change.payload))
