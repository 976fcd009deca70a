"""Comparing CHTs as multisets of rows, with a tolerance for floats."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from streamdsl.temporal import CHT, CHTRow, fields_of, format_time, payload_key

Rows: TypeAlias = CHT[Any] | Iterable[tuple[int, int, Any]]

_SHOWN = 20


def assert_cht_equal(a: Rows, b: Rows, rel: float = 1e-9, abs: float = 1e-12) -> None:
    """Raise `AssertionError` unless two CHTs hold the same rows; ids and order do not count, floats may differ by a tolerance.

    Either side may be a `CHT` or `(le, re, payload)` tuples. The error lists the rows that only one side has.

    >>> assert_cht_equal(CHT.from_rows([(0, 10, {"mean": 0.1 + 0.2})]), [(0, 10, {"mean": 0.3})])
    >>> assert_cht_equal([(0, 10, "x"), (0, 10, "x")], [(0, 10, "x"), (0, 12, "x")])
    Traceback (most recent call last):
        ...
    AssertionError: the CHTs differ
      only in the first (1 of 2 rows):
        [0, 10) 'x'
      only in the second (1 of 2 rows):
        [0, 12) 'x'
    """
    first, second = _cht(a), _cht(b)
    left, right = _without_common(first.rows, second.rows)
    left, right = _without_close(left, right, rel, abs)
    if left or right:
        sides = (_listing("first", left, first), _listing("second", right, second))
        raise AssertionError("\n".join(["the CHTs differ", *(line for side in sides for line in side)]))


def same_rows(
    a: Iterable[tuple[int, int, Any]], b: Iterable[tuple[int, int, Any]], rel: float = 1e-9, abs: float = 1e-12
) -> bool:
    """Say whether two sets of rows are the same bag but for small differences of floats.

    >>> same_rows([(0, 10, 0.1 + 0.2), (0, 5, "x")], [(0, 5, "x"), (0, 10, 0.3)])
    True
    """
    try:
        assert_cht_equal(a, b, rel, abs)
    except AssertionError:
        return False
    return True


def close(a: Any, b: Any, rel: float = 1e-9, abs: float = 1e-12) -> bool:
    """Say whether two payloads are equal but for small differences of floats; NaN equals NaN.

    >>> close({"n": 1, "mean": 0.30000000000000004}, {"n": 1, "mean": 0.3}), close((1, "a"), (2, "a"))
    (True, False)
    """
    if isinstance(a, float) or isinstance(b, float):
        return _close_numbers(a, b, rel, abs)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(close(a[name], b[name], rel, abs) for name in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return isinstance(a, tuple) == isinstance(b, tuple) and _close_items(a, b, rel, abs)
    if type(a) is type(b) and len(fields_of(a)) > 1:
        return _close_items([item for _, item in fields_of(a)], [item for _, item in fields_of(b)], rel, abs)
    return payload_key(a) == payload_key(b)


def _close_numbers(a: Any, b: Any, rel: float, abs: float) -> bool:
    if not all(isinstance(value, (int, float)) for value in (a, b)):
        return payload_key(a) == payload_key(b)
    return math.isclose(a, b, rel_tol=rel, abs_tol=abs) or (a != a and b != b)


def _close_items(a: Sequence[Any], b: Sequence[Any], rel: float, abs: float) -> bool:
    return len(a) == len(b) and all(close(x, y, rel, abs) for x, y in zip(a, b, strict=True))


def _cht(rows: Rows) -> CHT[Any]:
    return rows if isinstance(rows, CHT) else CHT.from_rows(rows)


def _without_common(a: list[CHTRow[Any]], b: list[CHTRow[Any]]) -> tuple[list[CHTRow[Any]], list[CHTRow[Any]]]:
    keys = [[(row.le, row.re, payload_key(row.payload)) for row in rows] for rows in (a, b)]
    common = Counter(keys[0]) & Counter(keys[1])
    return _drop(a, keys[0], common.copy()), _drop(b, keys[1], common)


def _drop(rows: list[CHTRow[Any]], keys: list[Any], common: Counter[Any]) -> list[CHTRow[Any]]:
    left = []
    for row, key in zip(rows, keys, strict=True):
        if common[key]:
            common[key] -= 1
        else:
            left.append(row)
    return left


def _without_close(
    a: list[CHTRow[Any]], b: list[CHTRow[Any]], rel: float, abs: float
) -> tuple[list[CHTRow[Any]], list[CHTRow[Any]]]:
    by_life: dict[tuple[int, int], tuple[list[CHTRow[Any]], list[CHTRow[Any]]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((a, b)):
        for row in rows:
            by_life[row.le, row.re][side].append(row)
    left, right = [], []
    for ours, theirs in by_life.values():
        rest = _unmatched(ours, theirs, rel, abs)
        left += rest[0]
        right += rest[1]
    return left, right


def _unmatched(a: list[CHTRow[Any]], b: list[CHTRow[Any]], rel: float, abs: float) -> tuple[list[CHTRow[Any]], list[CHTRow[Any]]]:
    """Return what a largest matching of close rows leaves over; rows in payload order mostly match one to one."""
    if len(a) == len(b) and all(close(x.payload, y.payload, rel, abs) for x, y in zip(a, b, strict=True)):
        return [], []
    partner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j, row in enumerate(b):
            if j in tried or not close(a[i].payload, row.payload, rel, abs):
                continue
            tried.add(j)
            if j not in partner or place(partner[j], tried):
                partner[j] = i
                return True
        return False

    alone = [row for i, row in enumerate(a) if not place(i, set())]
    return alone, [row for j, row in enumerate(b) if j not in partner]


def _listing(name: str, rows: list[CHTRow[Any]], cht: CHT[Any]) -> list[str]:
    if not rows:
        return []
    lines = [f"    [{format_time(r.le, cht.unit)}, {format_time(r.re, cht.unit)}) {r.payload!r}" for r in rows[:_SHOWN]]
    more = [f"    ... {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
    return [f"  only in the {name} ({len(rows)} of {len(cht)} rows):", *lines, *more]
