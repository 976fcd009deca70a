"""The minimal change between two states of a table: what an operator sends when its result has changed (semantics, section 2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import zip_longest
from typing import Any, NamedTuple

from streamdsl.temporal.payload import payload_key, payload_order


class Change(NamedTuple):
    """One physical change of a row: `re_old == le` says that the row is new, `re_new == le` that it is gone."""

    le: int
    re_old: int
    re_new: int
    payload: Any

    @property
    def sync(self) -> int:
        """The earliest time that the change touches: LE of a new row, else the smaller RE."""
        return min(self.re_old, self.re_new)


class _Ends:
    """The REs of the old and the new rows with one LE and payload."""

    __slots__ = ("new", "old", "payload")

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        self.old: list[int] = []
        self.new: list[int] = []


def minimal_change(old: Iterable[tuple[int, int, Any]], new: Iterable[tuple[int, int, Any]]) -> list[Change]:
    """Return the changes that turn the rows `old` into the rows `new`; rows are `(le, re, payload)`.

    Empty lifetimes do not count. Rows are paired by (LE, payload) in order of RE: a pair with different REs is one change of RE,
    an unpaired old row a full retraction, an unpaired new row an insertion. Retractions come before insertions, each in order of
    (LE, RE, payload).

    >>> minimal_change([(0, 9, "n=1")], [(0, 5, "n=1"), (5, 8, "n=2")])
    [Change(le=0, re_old=9, re_new=5, payload='n=1'), Change(le=5, re_old=5, re_new=8, payload='n=2')]
    """
    groups: dict[tuple[int, Hashable], _Ends] = {}
    for le, re, payload in old:
        if le < re:
            _ends(groups, le, payload).old.append(re)
    for le, re, payload in new:
        if le < re:
            _ends(groups, le, payload).new.append(re)
    changes = [change for (le, _), ends in groups.items() if ends.old != ends.new for change in _pair(le, ends)]
    return sorted(changes, key=_order) if len(changes) > 1 else changes


def _ends(groups: dict[tuple[int, Hashable], _Ends], le: int, payload: Any) -> _Ends:
    key = (le, payload_key(payload))
    found = groups.get(key)
    if found is None:
        found = groups[key] = _Ends(payload)
    return found


def _pair(le: int, ends: _Ends) -> list[Change]:
    pairs = zip_longest(sorted(ends.old), sorted(ends.new), fillvalue=le)
    return [Change(le, re_old, re_new, ends.payload) for re_old, re_new in pairs if re_old != re_new]


def _order(change: Change) -> tuple[Any, ...]:
    is_new = change.re_old == change.le
    return (is_new, change.le, change.re_new if is_new else change.re_old, payload_order(change.payload))
