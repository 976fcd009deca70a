"""Hypothesis strategies for lifetimes, CHTs and physical streams (extra `testing`)."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamdsl.temporal import CHT, INFINITY, Event, Lifetime, Record
from streamdsl.testing.orders import arrival_order

T = TypeVar("T")


def lifetimes(min_time: int = -12, max_time: int = 25, unending: bool = True) -> SearchStrategy[Lifetime]:
    """Return non-empty lifetimes between two times, some of them without end if `unending`.

    >>> from hypothesis import find
    >>> find(lifetimes(), lambda life: life.le >= 3).is_empty
    False
    """
    starts = st.integers(min_time, max_time - 1)
    bounded = st.tuples(starts, st.integers(1, max_time - min_time)).map(lambda x: Lifetime(x[0], min(x[0] + x[1], max_time)))
    if not unending:
        return bounded
    return st.integers(0, 5).flatmap(lambda i: bounded if i < 5 else starts.map(lambda le: Lifetime(le, INFINITY)))


def records() -> SearchStrategy[Record]:
    """Return records of a key `k` and a small number `v`, so that equal payloads are frequent.

    >>> from hypothesis import find
    >>> sorted(find(records(), lambda record: record.v > 1))
    ['k', 'v']
    """
    return st.builds(lambda k, v: Record(k=k, v=v), st.sampled_from("abc"), st.integers(-3, 3))


def chts(
    payloads: SearchStrategy[T], max_size: int = 8, min_time: int = -12, max_time: int = 25, unending: bool = True
) -> SearchStrategy[CHT[T]]:
    """Return CHTs with at most `max_size` rows of these payloads.

    >>> from hypothesis import find
    >>> find(chts(st.just("x")), lambda cht: len(cht) == 1).rows[0].payload
    'x'
    """
    rows = st.tuples(lifetimes(min_time, max_time, unending), payloads).map(lambda x: (*x[0], x[1]))
    return st.lists(rows, max_size=max_size).map(lambda found: CHT.from_rows(found))


@st.composite
def physical_streams(draw: st.DrawFn, histories: SearchStrategy[CHT[Any]], ctis: bool = True) -> list[Event[Any]]:
    """Return random physical streams of CHTs that `histories` gives: chains of corrections, spurious events, disorder, CTIs.

    >>> from hypothesis import find
    >>> len(find(physical_streams(chts(st.just("x"))), lambda stream: len(stream) > 3)) > 3
    True
    """
    return arrival_order(draw(histories), draw(st.randoms(use_true_random=False)), ctis)
