"""The k largest rows of a window, with ties, as a choice among equal rows would depend on the order of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.temporal.payload import is_nan
from streamdsl.udm.bases import UDO


class TopK(UDO[tuple[Any, Any], Any]):
    """From pairs `(value, row)` the rows with the k largest values, and ties of the last; with `rank`, pairs `(rank, row)`.

    A rank is 1 + the number of rows with larger values. NaN is the largest value; rows with the value None are excluded.

    >>> list(TopK(2, rank=True).compute_result([(5, "a"), (60, "b"), (9, "c"), (9, "d")]))
    [(1, 'b'), (2, 'c'), (2, 'd')]
    """

    def __init__(self, k: int, rank: bool = False) -> None:
        if not isinstance(k, int) or k < 1:
            raise QueryError(f"top_k takes at least one row, not {k!r}", hint="for example top_k(3, by=lambda e: e.fare)")
        self.k = k
        self.rank = rank

    @property
    def label(self) -> str:
        return f"top_{self.k}"

    def compute_result(self, payloads: Sequence[tuple[Any, Any]]) -> Iterator[Any]:
        """Yield the rows in descending order of their values."""
        rows = [row for row in payloads if row[0] is not None]
        places = [value for value, _ in rows]
        if any(map(is_nan, places)):
            places = [(is_nan(value), 0 if is_nan(value) else value) for value in places]
        order = sorted(range(len(rows)), key=places.__getitem__, reverse=True)
        rank, before = 0, None
        for position, at in enumerate(order):
            if not position or places[at] != before:
                rank = position + 1
            if rank > self.k:
                return
            before, row = places[at], rows[at][1]
            yield (rank, row) if self.rank else row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopK) and (self.k, self.rank) == (other.k, other.rank)

    def __hash__(self) -> int:
        return hash((self.k, self.rank))
