"""Random examples of laws, and their shrinking: members of a window, rows in order, or a physical stream."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from streamdsl.temporal import CHRONON, CHT, INFINITY, CHTRow, Cti, Event, Lifetime, problems
from streamdsl.testing.live_window import compute_rows, deep_copy, member, row_order
from streamdsl.testing.random_orders import arrival_order
from streamdsl.testing.random_payloads import simpler_payloads
from streamdsl.testing.subject import Subject
from streamdsl.windows import Clip, Output

_SIZES: Final = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8)
_LONG_SIZES: Final = (12, 20, 8, 40, 120, 16, 70, 250)
_STREAM_SIZES: Final = (1, 2, 3, 4, 5, 6, 7, 8)
FIXED_KINDS: Final = ("tumbling", "hopping")
"""Windows whose periods no event can change."""
KINDS: Final = (*FIXED_KINDS, "snapshot", "count")


@dataclass(frozen=True)
class RowsExample:
    """Rows, and the seed of a law's random choices."""

    rows: tuple[CHTRow[Any], ...]
    seed: int
    made_up: bool
    """Whether payloads are made up, so that simpler ones may be made up too."""

    def __len__(self) -> int:
        return len(self.rows)

    def simpler(self, row: CHTRow[Any]) -> Iterator[CHTRow[Any]]:
        """Yield a row with simpler payloads."""
        for payload in simpler_payloads(row.payload) if self.made_up else ():
            yield row._replace(payload=payload)


@dataclass(frozen=True)
class WindowExample(RowsExample):
    """The members of one window."""

    window: Lifetime
    clip: Clip

    def smaller(self, least: int) -> Iterator[WindowExample]:
        """Yield examples with less members, but at least `least`, with simpler lifetimes and payloads, without clipping."""
        for rows in _fewer(self.rows, least):
            yield replace(self, rows=rows)
        for i, row in enumerate(self.rows):
            others = [row._replace(le=life.le, re=life.re) for life in _simpler(row, self.window)]
            for other in [*others, *self.simpler(row)]:
                yield replace(self, rows=(*self.rows[:i], other, *self.rows[i + 1 :]))
        if self.clip is not Clip.NONE:
            yield replace(self, clip=Clip.NONE)


def _fewer(rows: tuple[CHTRow[Any], ...], least: int) -> Iterator[tuple[CHTRow[Any], ...]]:
    """Yield rows without one half of them, then without a quarter, down to one row."""
    size = len(rows) // 2 or 1
    while size:
        if len(rows) - size >= least:
            yield from (rows[:i] + rows[i + size :] for i in range(0, len(rows), size))
        size //= 2


def _simpler(row: CHTRow[Any], window: Lifetime) -> list[Lifetime]:
    """Return lifetimes that are easier to read: the window's, then one inside the window, then one that ends."""
    simple = [window, Lifetime(window.le, min(window.le + CHRONON, window.re)), Lifetime(row.le, window.re)]
    ranks = [_rank(life, window) for life in simple]
    own_rank = _rank(Lifetime(row.le, row.re), window)
    return [life for life, rank in zip(simple, ranks, strict=True) if rank < own_rank and life.overlaps(window)]


def _rank(life: Lifetime, window: Lifetime) -> int:
    if life == window:
        return 0
    if window.le <= life.le and life.re <= window.re:
        return 1 if life.le == window.le else 2
    return 3 if life.re <= window.re else 4


def window_examples(subject: Subject, rng: Random, n: int, least: int) -> Iterator[WindowExample]:
    """Yield `n` examples with at least `least` members; none if the caller has given fewer events."""
    members = _given_members(subject)
    if subject.given and len(members) < least:
        return
    for i in range(n):
        size = max(least, _SIZES[i % len(_SIZES)])
        rows = rng.sample(members, min(size, len(members))) if members else _made_up(subject, rng, size, i % 2 == 1)
        yield _window_example(subject, rng, rows)


def long_examples(subject: Subject, rng: Random, n: int, least: int) -> Iterator[WindowExample]:
    """Yield `n` examples with many members; given events come several times."""
    members = _given_members(subject)
    for i in range(n):
        size = _LONG_SIZES[i % len(_LONG_SIZES)]
        rows = rng.choices(members, k=size) if members else _made_up(subject, rng, size, i % 2 == 0)
        yield _window_example(subject, rng, rows)


def _given_members(subject: Subject) -> list[CHTRow[Any]]:
    return [row for row in subject.given if Lifetime(row.le, row.re).overlaps(subject.window)]


def _window_example(subject: Subject, rng: Random, rows: Sequence[CHTRow[Any]]) -> WindowExample:
    clip, seed = rng.choice(subject.clips), rng.randrange(2**32)
    return WindowExample(tuple(rows), seed, not subject.given, subject.window, clip)


def _made_up(subject: Subject, rng: Random, size: int, wide: bool) -> list[CHTRow[Any]]:
    """Return members with generated payloads; of all magnitudes if `wide`, and if the module has results for them."""
    period = subject.window
    lives = [_member_life(period, rng) for _ in range(size)]
    if wide and subject.takes_wide:
        rows = [CHTRow(*life, subject.draw_payload(rng, wide=True)) for life in lives]
        if all(_answered(subject, part) for part in [rows, *([row] for row in rows)]):
            return rows
    return [CHTRow(*life, subject.draw_payload(rng)) for life in lives]


def _answered(subject: Subject, rows: Sequence[CHTRow[Any]]) -> bool:
    """Say whether a module has an answer for members: its payloads need not be of any magnitude."""
    members = [member(row._replace(payload=deep_copy(row.payload))) for row in rows]
    try:
        compute_rows(subject.fresh(), members, subject.window, subject.strictest_clip, Output.ALIGN)
    except Exception:  # whatever a module raises
        return False
    return True


def _member_life(window: Lifetime, rng: Random) -> Lifetime:
    """Return a lifetime that overlaps the window: inside it, across an end of it, or without end."""
    le = rng.choice([window.le - 3, window.le, *(rng.randrange(window.le, window.re) for _ in range(4))])
    inside = [rng.randint(max(le, window.le) + 1, window.re) for _ in range(5)]
    return Lifetime(le, rng.choice([*inside, window.re, window.re + 4, INFINITY]))


@dataclass(frozen=True)
class OrderedExample(RowsExample):
    """Rows in the order in which a stream operator sees them."""

    def smaller(self, least: int) -> Iterator[OrderedExample]:
        """Yield examples with one row less, but at least `least`, one after the other from 0 on, or with simpler payloads."""
        for i in range(len(self.rows) if len(self.rows) > least else 0):
            yield replace(self, rows=self.rows[:i] + self.rows[i + 1 :])
        in_a_row = tuple(row._replace(le=i, re=i + 1) for i, row in enumerate(self.rows))
        if in_a_row != self.rows:
            yield replace(self, rows=in_a_row)
        for i, row in enumerate(self.rows):
            for other in self.simpler(row):
                yield replace(self, rows=tuple(sorted((*self.rows[:i], other, *self.rows[i + 1 :]), key=row_order)))


def rows_examples(subject: Subject, rng: Random, n: int, least: int) -> Iterator[OrderedExample]:
    """Yield `n` examples with at least `least` rows, often of one instant; none if the caller has given fewer events."""
    if subject.given and len(subject.given) < least:
        return
    for i in range(n):
        size = max(least, _SIZES[i % len(_SIZES)])
        if subject.given:
            rows = rng.sample(subject.given, min(size, len(subject.given)))
        else:
            starts = [rng.randint(-3, size) for _ in range(size)]
            rows = [CHTRow(le, le + rng.choice([1, 1, 5]), subject.draw_payload(rng)) for le in starts]
        yield OrderedExample(tuple(sorted(rows, key=row_order)), rng.randrange(2**32), not subject.given)


@dataclass(frozen=True)
class StreamExample:
    """A physical stream, the kind of windows over it, and the seed of a law's random choices."""

    events: tuple[Event[Any], ...]
    kind: str
    clip: Clip
    seed: int

    def __len__(self) -> int:
        return len(self.events)

    def smaller(self, least: int) -> Iterator[StreamExample]:
        """Yield legal streams with at least `least` physical events: without one event's whole story, without one of them."""
        if len(self.events) <= least:
            return
        for id in {event.id: None for event in self.events if not isinstance(event, Cti)}:
            yield replace(self, events=tuple(e for e in self.events if isinstance(e, Cti) or e.id != id))
        for i in range(len(self.events)):
            rest = [*self.events[:i], *self.events[i + 1 :]]
            if not problems(rest) and all(row.re != INFINITY for row in CHT.from_events(rest)):
                yield replace(self, events=tuple(rest))


def stream_examples(subject: Subject, rng: Random, n: int, least: int) -> Iterator[StreamExample]:
    """Yield `n` streams in random orders of arrival, over each kind of window in turn."""
    kinds = itertools.cycle(FIXED_KINDS if subject.output is Output.TIME_BOUND else KINDS)
    for size in itertools.islice(itertools.cycle(_STREAM_SIZES), n):
        if subject.given:
            rows = [_ended(row, subject) for row in rng.sample(subject.given, min(size, len(subject.given)))]
        else:
            rows = [CHTRow(*_life(subject.window, rng), subject.draw_payload(rng)) for _ in range(size)]
        stream = arrival_order(CHT.from_rows(rows), rng)
        yield StreamExample(tuple(stream), next(kinds), rng.choice(subject.clips), rng.randrange(2**32))


def _life(window: Lifetime, rng: Random) -> Lifetime:
    """Return a lifetime near the window, that ends."""
    size = window.re - window.le
    le = rng.randint(window.le - size // 2, window.re + size)
    return Lifetime(le, le + rng.choice([1, 1, 2, 3, 5, size, 2 * size]))


def _ended(row: CHTRow[Any], subject: Subject) -> CHTRow[Any]:
    """Return a row with an end, for windows that one without end would fill for ever."""
    return row if row.re != INFINITY else row._replace(re=max(row.le + 1, subject.window.re + 1))
