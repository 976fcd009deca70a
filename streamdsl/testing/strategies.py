"""Hypothesis strategies for lifetimes, payloads, CHTs, physical streams and the events of modules (extra `testing`)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamdsl.temporal import CHT, INFINITY, Event, Lifetime, Record
from streamdsl.testing.payload_types import payload_type
from streamdsl.testing.random_orders import arrival_order
from streamdsl.testing.random_payloads import draw_payload
from streamdsl.udm.bases import AnyUDA, AnyUDO, IntervalEvent

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


def payloads(of: Any) -> SearchStrategy[Any]:
    """Return payloads of a type (a simple one, a dataclass, a `NamedTuple`, ...), or of those that a module takes.

    Values are few and simple, as `check_udm` makes them up. Raises `QueryError` for a type of which nothing is known.

    >>> from hypothesis import find
    >>> from typing import NamedTuple
    >>> class Trip(NamedTuple):
    ...     zone: str
    ...     fare: float | None
    >>> find(payloads(Trip), lambda trip: trip.fare is not None).fare
    1.0
    """
    kind = payload_type(of) if isinstance(of, (AnyUDA, AnyUDO)) else of
    draw_payload(kind, Random(0))  # refuses what cannot be made up
    return st.composite(lambda draw: draw_payload(kind, _Drawn(draw)))()


class _Drawn:
    """Chance, as hypothesis draws it: it then knows how to make an example simpler."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def choice(self, values: Sequence[T], /) -> T:
        return self._draw(st.sampled_from(values))

    def randint(self, low: int, high: int, /) -> int:
        return self._draw(st.integers(low, high))


def udm_events(
    of: Any, window: tuple[int, int] = (0, 10), min_size: int = 1, max_size: int = 8
) -> SearchStrategy[list[IntervalEvent[Any]]]:
    """Return the members of a window, as modules see them unclipped: events that overlap it, with payloads of a type or a module.

    >>> from hypothesis import find
    >>> find(udm_events(int), lambda events: len(events) == 2)[0].end_time > 0
    True
    """
    le, re = window
    spans = lifetimes(le - 3, re + 4).filter(lambda life: life.overlaps(Lifetime(le, re)))
    found = st.builds(lambda life, payload: IntervalEvent(life.le, life.re, payload), spans, payloads(of))
    return st.lists(found, min_size=min_size, max_size=max_size)


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
