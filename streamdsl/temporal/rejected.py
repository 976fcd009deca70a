"""Late events: counts by source and reason, and a sample of the newest ones."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, overload

from streamdsl.temporal.completion import Completed
from streamdsl.temporal.events import Insert, Retract, dated, unit_of
from streamdsl.temporal.time import Unit, time_repr

SAMPLE_SIZE: Final = 10_000
"""The size of the sample of the newest late events; all are counted."""

TOO_LATE: Final = "dropped: it changes a time before the CTI"
TOO_FAR: Final = "quarantined: it starts further ahead of the events before it than max_jump"
WAS_DROPPED: Final = "dropped: an event that it corrects was dropped"
LE_MOVED: Final = "adjusted: its LE became the CTI"
RE_MOVED: Final = "adjusted: its RE_new became the CTI"


class CtiOrigin(NamedTuple):
    """Where a CTI came from: the source, what made it there, and by which push into that source, counted from 1.

    >>> print(CtiOrigin("trips", "Progress.slack(5)", 3))
    Progress.slack(5) of 'trips', push 3
    """

    source: str | None
    made_by: str
    push: int

    def __str__(self) -> str:
        return f"{self.made_by} of {self.source!r}, push {self.push}"


class Rejected(NamedTuple):
    """An event that a source dropped or adjusted, with the CTI that it broke, and where that came from.

    Two are equal wherever their CTIs came from: the same CTI may come by a policy or by a `Cti`, and by any push.
    """

    event: Insert[Any] | Retract
    cti: int
    reason: str
    origin: CtiOrigin | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rejected) and self[:3] == other[:3]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:3])

    def __repr__(self) -> str:
        cti = time_repr(self.cti, unit_of(self.event))
        return f"Rejected(event={self.event!r}, cti={cti}, reason={self.reason!r}, origin={self.origin})"


class Rejections(Completed, Sequence[Rejected]):
    """Late events that sources have dropped or adjusted: `len` is their number, the items are the newest 10,000.

    `counts` has the exact numbers by source and reason, including events that are not kept.

    >>> late = Rejections()
    >>> late.add("trips", [Rejected(Insert("a", 1, 5, "x"), 7, "dropped")], {"dropped": 12_000})
    >>> len(late), [each.event.id for each in late], late.counts
    (12000, ['a'], {('trips', 'dropped'): 12000})
    """

    _internal = frozenset({"add", "anew", "clear", "copy", "dated", "extend", "keep_all"})

    def __init__(self, kept: int | None = SAMPLE_SIZE) -> None:
        self._counts: Counter[tuple[str | None, str]] = Counter()
        self._newest: deque[Rejected] = deque(maxlen=kept)

    @property
    def counts(self) -> Mapping[tuple[str | None, str], int]:
        """The number of rejected events, by source and reason."""
        return dict(self._counts)

    @property
    def kept(self) -> int | None:
        """The maximal number of events that are kept, None: all."""
        return self._newest.maxlen

    def add(self, source: str | None, newest: Iterable[Rejected], counts: Mapping[str, int]) -> None:
        """Count events of a source by reason, and add the newest of them to the sample."""
        self._newest.extend(newest)
        for reason, number in counts.items():
            self._counts[source, reason] += number

    def extend(self, other: Rejections) -> None:
        """Add the counts and the sample of other rejections."""
        self._counts.update(other._counts)
        self._newest.extend(other._newest)

    def dated(self, unit: Unit | None) -> Rejections:
        """Return the same rejections, which print their times as dates if that is what the unit makes of them."""
        dated([each.event for each in self._newest], unit)
        return self

    def keep_all(self) -> None:
        """Keep every event from now on, not only a sample; the caller has to fetch them."""
        self._newest = deque(self._newest)

    def anew(self) -> Rejections:
        """Return empty rejections with the same sample size."""
        return Rejections(self._newest.maxlen)

    def clear(self) -> None:
        """Remove all events and counts."""
        self._counts.clear()
        self._newest.clear()

    def copy(self) -> Rejections:
        """Return an independent copy."""
        same = self.anew()
        same.extend(self)
        return same

    def __len__(self) -> int:
        return self._counts.total()

    def __iter__(self) -> Iterator[Rejected]:
        return iter(self._newest)

    @overload
    def __getitem__(self, place: int) -> Rejected: ...
    @overload
    def __getitem__(self, place: slice) -> list[Rejected]: ...
    def __getitem__(self, place: int | slice) -> Rejected | list[Rejected]:
        return list(self._newest)[place] if isinstance(place, slice) else self._newest[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rejections):
            return self._counts == other._counts and self._newest == other._newest
        return len(self) == len(other) and list(self) == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self._newest))


def all_rejected(parts: Iterable[Rejections]) -> Rejections:
    """Return the rejections of several sources together, source by source."""
    parts = list(parts)
    found = Rejections(None if any(part.kept is None for part in parts) else SAMPLE_SIZE)
    for part in parts:
        found.extend(part)
    return found
