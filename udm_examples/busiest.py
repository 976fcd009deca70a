"""The k names that occur most often, as a user-defined operator: values in, several results out (paper 001, IV.A.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import streamdsl as sd
from udm_examples.settings import whole


@dataclass(frozen=True, slots=True)
class Busy:
    """A name, how often it occurs in its window, and its place there."""

    rank: int
    name: str
    count: int


class Busiest(sd.UDO[str, Busy]):
    """The k names that occur most often in a window; of names that occur equally often the first in the alphabet.

    A result that depends on the order of arrival would differ from run to run, so ties are broken by what the rows are.

    Raises `QueryError` if k is not positive.

    >>> list(Busiest(2).compute_result(["JFK-LAX", "EWR-ORD", "LGA-ATL", "JFK-LAX"]))
    [Busy(rank=1, name='JFK-LAX', count=2), Busy(rank=2, name='EWR-ORD', count=1)]

    In a query it is applied to an expression:

    >>> trips = sd.from_rows([(1, 2, "A"), (3, 4, "B"), (5, 6, "B"), (12, 13, "A")])
    >>> for le, re, busy in trips.tumbling_window(10).apply(Busiest(1), lambda e: e).run():
    ...     print(le, re, busy.name, busy.count)
    0 10 B 2
    10 20 A 1
    """

    def __init__(self, k: int) -> None:
        self.k = whole("k", k)

    def compute_result(self, payloads: Sequence[str]) -> Iterator[Busy]:
        """Yield the k most frequent names, the most frequent first."""
        ranked = sorted(Counter(payloads).items(), key=lambda item: (-item[1], item[0]))
        for rank, (name, count) in enumerate(ranked[: self.k], start=1):
            yield Busy(rank, name, count)
