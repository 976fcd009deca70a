"""Inputs that distinguish profiles: small streams with gaps, simultaneous tuples and batches, the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import product
from random import Random
from typing import Final

from streamdsl.errors import QueryError
from streamdsl.papers.secret.input_feeds import until
from streamdsl.papers.secret.tuples import Tuple

LONGEST: Final = 4
"""All streams up to this number of tuples are tried, and samples of longer ones."""
RANDOM: Final = 150


class Assumption(Enum):
    """A property of inputs: profiles that differ may still agree on all inputs that have it (paper 000, appendix C)."""

    NO_SIMULTANEOUS = "no simultaneous tuples"
    NO_GAPS = "no gaps"
    ONE_BATCH = "one batch per instant"
    OWN_BATCH = "one tuple per batch"


def assumed(given: str | Assumption | Iterable[str | Assumption]) -> frozenset[Assumption]:
    """Return assumptions, which may be given in words.

    >>> assumed("no gaps") == assumed(["NO_GAPS"]) == {Assumption.NO_GAPS}
    True
    """
    listed = [given] if isinstance(given, (str, Assumption)) or not isinstance(given, Iterable) else list(given)
    return frozenset(each if isinstance(each, Assumption) else _assumption(each) for each in listed)


def _assumption(word: object) -> Assumption:
    written = str(word).lower().replace("_", " ")
    for each in Assumption:
        if written in (each.value, each.name.lower().replace("_", " ")):
            return each
    raise QueryError(f"there is no assumption {word!r}; the assumptions are: {', '.join(each.value for each in Assumption)}")


def streams(size: int, slide: int, assumptions: frozenset[Assumption], period: int = 1) -> Iterator[list[Tuple]]:
    """Yield inputs that keep assumptions: all short ones with certain steps, then longer ones by chance, always the same.

    >>> from itertools import islice
    >>> [len(each) for each in islice(streams(3, 1, frozenset({Assumption.NO_SIMULTANEOUS})), 4)]
    [1, 1, 2, 2]
    """
    firsts = range(size, size + max(2, slide) * period)
    moves = _moves(size, slide, assumptions)
    for count in range(LONGEST):
        for first, steps in product(firsts, product(moves, repeat=count)):
            yield _stream(first, steps)
    rng = Random(0)
    for number in range(RANDOM):
        # Some begin so early that windows which start at a certain time have not all begun: else that is as good as a grid.
        some_firsts = range(size) if number % 3 == 0 else firsts
        yield _stream(rng.choice(some_firsts), rng.choices(moves, k=rng.randint(LONGEST, 9)))


def ended(tuples: list[Tuple], size: int, slide: int) -> list[Tuple]:
    """Return tuples, then a heartbeat when nothing of them is in scope any more.

    >>> [each.t_app for each in ended([Tuple("a", 5, 1, 1)], 1, 1)]
    [5, 9]
    """
    return until(tuples, (tuples[-1].t_app if tuples else 0) + size + 2 * slide + 1)


def _moves(size: int, slide: int, assumptions: frozenset[Assumption]) -> list[tuple[int, bool]]:
    """Return the steps from one tuple to the next: how much later it is, and whether it begins a batch."""
    gaps = [] if Assumption.NO_GAPS in assumptions else sorted({2, size, size + 1, size + slide + 1} - {1})
    moves = [(step, True) for step in [1, *gaps]]
    if Assumption.NO_SIMULTANEOUS not in assumptions:
        moves += [(0, False)] if Assumption.OWN_BATCH not in assumptions else []
        moves += [(0, True)] if Assumption.ONE_BATCH not in assumptions else []
    return moves


def _stream(first: int, steps: Iterable[tuple[int, bool]]) -> list[Tuple]:
    found = [Tuple(1, first, 1, 1)]
    for step, begins in steps:
        last = found[-1]
        found.append(Tuple(2 * last.value, last.t_app + step, last.t_sys + 1, last.bid + begins))
    return found


def some(size: int, slide: int, count: int) -> list[list[Tuple]]:
    """Return inputs without any assumption: the last of a long list, which have much in them; values rise in one half of them.

    >>> [[each.value for each in stream] for stream in some(3, 1, 2)]
    [[1, 2, 4, 8, 16, 32, 64, 128], [128, 64, 32, 16, 8, 4, 2, 1]]
    """
    everything = list(streams(size, slide, frozenset()))
    return [_falling(stream) if number % 2 else stream for number, stream in enumerate(everything[-count:])]


def _falling(stream: list[Tuple]) -> list[Tuple]:
    """Return tuples with their values in the other order: the largest one is then the first to leave."""
    return [each._replace(value=other.value) for each, other in zip(stream, stream[::-1], strict=True)]
