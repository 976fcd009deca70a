"""What a session keeps of its events for its timeline: the newest ones of each source, and of the output."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdsl.engine.ingress import Ingress
from streamdsl.engine.lower import Options
from streamdsl.engine.step_output import StepOutput, output_events
from streamdsl.errors import QueryError
from streamdsl.io.binding import Inserts
from streamdsl.temporal import MIN_TIME, Cti, Event, EventReader, Unit

if TYPE_CHECKING:
    from streamdsl.pictures.lanes import Lane


class SeenEvents:
    """The newest events that a session has taken and sent, at most `most` of each source and of the output."""

    def __init__(self, sources: Iterable[str], most: int) -> None:
        self.most = most
        self._inputs: dict[str, deque[Event[Any]]] = {name: deque(maxlen=most) for name in sources}
        self._output: deque[Event[Any]] = deque(maxlen=most)
        self._counts: Counter[str | None] = Counter()
        self._ctis = dict.fromkeys(self._inputs, MIN_TIME)

    @classmethod
    def wanted(cls, sources: Iterable[str], options: Options) -> SeenEvents | None:
        """Return what keeps the events of a session, None if its options do not ask for that."""
        most: object = options.get("record", 0)
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise QueryError(
                f'engine_options["record"] is how many events are kept for session.timeline(), not {most!r}',
                hint='for example engine_options={"record": 1_000}; without it none are kept',
            )
        return cls(sources, most) if most else None

    def take(self, ingress: Ingress, pushed: Sequence[Event[Any]] | Inserts) -> None:
        """Keep a batch of a source, and the CTI that its progress policy gives after it."""
        held = self._inputs[ingress.name]
        held.extend(_newest(pushed, self.most))
        self._counts[ingress.name] += len(pushed)
        if ingress.cti > self._ctis[ingress.name]:
            self._ctis[ingress.name] = ingress.cti
            if not held or held[-1] != Cti(ingress.cti):
                held.append(Cti(ingress.cti))
                self._counts[ingress.name] += 1

    def send(self, sent: Sequence[StepOutput]) -> None:
        """Keep what goes out."""
        self._counts[None] += sum(map(len, sent))
        self._output.extend(output_events(sent)[-self.most :])

    def lanes(self, sources: Mapping[str, Ingress], unit: Unit | None) -> list[Lane]:
        """Return the lanes of a timeline: each source above the output. Events that a source has dropped are left out."""
        lanes = [self._lane(name, events, unit, sources[name]) for name, events in self._inputs.items()]
        return [*lanes, self._lane(None, self._output, unit)]

    def _lane(self, name: str | None, held: Sequence[Event[Any]], unit: Unit | None, ingress: Ingress | None = None) -> Lane:
        from streamdsl.pictures.lanes import events_lane

        late = () if ingress is None else ingress.rejected
        lane = events_lane(name or "output", map(EventReader(unit).event, held), "input" if name else "output", late)
        if self._counts[name] == len(held):
            return lane
        return lane.noted("; ".join(filter(None, [f"the newest {len(held):,} of {self._counts[name]:,} events", lane.note])))


def _newest(pushed: Sequence[Event[Any]] | Inserts, most: int) -> Iterable[Event[Any]]:
    """Return the last events of a batch; of columns only these become events."""
    first = max(len(pushed) - most, 0)
    if not isinstance(pushed, Inserts):
        return islice(pushed, first, None)
    rows = np.arange(first, len(pushed))
    ids = None if pushed.ids is None else pushed.ids[first:]
    return Inserts(ids, pushed.le[first:], pushed.re[first:], pushed.table.take(rows)).events(first)
