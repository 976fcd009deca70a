"""A recording: the physical events of a run in order of arrival, push by push, and what each push gave; bounded if so asked."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

from streamdsl.emit import Emit, EmitMode
from streamdsl.errors import QueryError
from streamdsl.expr.schema import as_payload
from streamdsl.plan.node import Node
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Rejected, Unit, payload_key

_PARTS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Push:
    """One push: the events of each source, the output that they caused, and how far the sources had come after it.

    `rejected` are the events that were dropped or adjusted, by source, in order; `end` is the time at which the push ended the
    session, None if it did not. `steps` are the numbers of output events of its pieces, which its CTIs cut.
    """

    batches: tuple[tuple[str, tuple[Event[Any], ...]], ...]
    output: tuple[Event[Any], ...]
    ctis: Mapping[str, int]
    rejected: tuple[tuple[str, Rejected], ...] = ()
    end: int | None = None
    steps: tuple[int, ...] = ()

    def __len__(self) -> int:
        return max(1, self.n_in + len(self.output))

    @property
    def n_in(self) -> int:
        """The number of events that came in."""
        return sum(len(events) for _, events in self.batches)

    def until(self, place: int) -> tuple[Push, Push]:
        """Return the push up to the CTI before, and after, the step of its output that has an event; the CTI after it included.

        Without a step that a CTI ends both are as if nothing had come, and the whole.
        """
        events = self.batches[0][1] if len(self.batches) == 1 else ()
        cuts = [n for n, event in enumerate(events, 1) if isinstance(event, Cti)]
        step = next((n for n, last in enumerate(accumulate(self.steps)) if place < last), 0)
        before = self._first(cuts[step - 1] if 0 < step <= len(cuts) else 0)
        return before, self._first(cuts[step]) if step < len(cuts) and cuts[step] < len(events) else self

    def _first(self, n: int) -> Push:
        """Return the push with the first n of its events only."""
        batches = tuple((source, events[:n]) for source, events in self.batches)
        return replace(self, batches=batches, ctis={}, end=None)

    def newest(self, n: int) -> Push:
        """Return the push with its newest n events of each side at most."""
        left, batches = n, []
        for source, events in reversed(self.batches):
            batches.append((source, events[max(0, len(events) - left) :]))
            left -= len(batches[-1][1])
        return replace(self, batches=tuple(reversed(batches)), steps=(), output=self.output[max(0, len(self.output) - n) :])


@dataclass(slots=True)
class Sample:
    """A choice of events by a key: all events of a key are recorded, or none. Which keys are, is the same in every run.

    Rows without the key, such as those of another source, are recorded.
    """

    share: float
    by: Callable[[Any], Any] | str
    most: int | None
    _kept: dict[Hashable, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise QueryError(f"a sample is a share of the keys, 0 < share <= 1, not {self.share!r}", hint='sample=(0.1, "zone")')

    def takes(self, source: str, event: Event[Any]) -> bool:
        """Say whether an event is recorded; a retraction is if its insertion was."""
        if isinstance(event, Cti):
            return True
        if not isinstance(event, Insert):
            return (source, event.id) in self._kept
        payload = as_payload(event.payload)
        try:
            key = getattr(payload, self.by) if isinstance(self.by, str) else self.by(payload)
        except Exception:  # a source whose rows have no such key; the session must not fail for its recorder
            key = None
        taken = key is None or zlib.crc32(repr(payload_key(key)).encode()) % _PARTS < self.share * _PARTS
        if taken:
            self._kept[source, event.id] = None
            if self.most is not None and len(self._kept) > self.most:
                del self._kept[next(iter(self._kept))]
        return taken


@dataclass(slots=True)
class Recording:
    """The pushes of a run with its settings. With `last` it is a ring of about so many events, input and output together.

    `left_out` is the number of events that the ring has let go, `before` of those that came before the recording began.
    """

    plan: Node
    emit: EmitMode | Emit = "speculative"
    options: Mapping[str, Any] = field(default_factory=dict)
    until: int = INFINITY
    unit: Unit | None = None
    last: int | None = None
    sample: Sample | None = None
    before: int = 0
    left_out: int = 0
    pushes: deque[Push] = field(default_factory=deque)
    _size: int = 0

    def __post_init__(self) -> None:
        if self.last is not None and (type(self.last) is not int or self.last < 1):
            raise QueryError(f"a ring holds the last n events, n >= 1, not {self.last!r}", hint="trace(last=10_000)")

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out: then it can be replayed to the same output."""
        return not (self.before or self.left_out or self.sample)

    @property
    def end(self) -> int | None:
        """The time at which the run was ended, None if it goes on."""
        return self.pushes[-1].end if self.pushes else None

    def add(self, push: Push) -> None:
        """Append a push, and let the oldest go if there are too many events."""
        if self.sample is not None:
            chosen = tuple((source, tuple(e for e in batch if self.sample.takes(source, e))) for source, batch in push.batches)
            push = replace(push, batches=chosen)
        if self.last is not None and len(push) > self.last:
            n_before, push = len(push), push.newest(self.last // 2 or 1)
            self.left_out += n_before - len(push)
        self.pushes.append(push)
        self._size += len(push)
        while self.last is not None and self._size > self.last and len(self.pushes) > 1:
            oldest = self.pushes.popleft()
            self._size -= len(oldest)
            self.left_out += len(oldest)

    def limits(self) -> Iterator[str]:
        """Yield what the recording leaves out, as sentences."""
        if self.before:
            yield f"{self.before} input events came before the recording began"
        if self.left_out:
            yield f"{self.left_out} older events are left out: the recording is a ring of the last {self.last}"
        if self.sample is not None:
            yield f"it has the input of {self.sample.share:.3%} of the keys"
