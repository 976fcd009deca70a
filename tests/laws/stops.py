"""Two sessions of one query, of which one is stopped and restored now and then: both must send the same events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import streamdsl as sd
from streamdsl.engine.query_session import Session
from streamdsl.engine.starting import restored
from streamdsl.temporal import Event
from tests.laws.harness import Emit, pushes_for
from tests.laws.scenarios import Scenario

HOLD = sd.emit.Emit(hold=6)


class Pair:
    """A session that is never stopped, and one that is; `trust` and `types` as in `restore`."""

    def __init__(
        self,
        query: sd.Stream[Any],
        emit: Emit,
        options: Mapping[str, str] | None,
        trust: bool = False,
        types: Sequence[type] = (),
    ) -> None:
        self.query = query
        self.trust = trust
        self.types = types
        self.whole = query.open(emit=emit, engine_options=options)
        self.stopped = query.open(emit=emit, engine_options=options)

    def stop(self) -> None:
        """Save one session and let a new one go on in its place."""
        saved = self.stopped.snapshot(self.types)
        self.stopped = restored(self.query.plan(), None, saved, self.trust, self.types)
        assert self.stopped.snapshot(self.types) == saved, "a restored session does not save what it was made of"
        assert figures(self.stopped) == figures(self.whole), "a restored session has other figures"
        assert repr(self.stopped.rejected()) == repr(self.whole.rejected()), "a restored session has other rejected events"

    def push(self, source: str, events: Sequence[Event[Any]]) -> None:
        assert_same(self.whole.push(list(events), source=source), self.stopped.push(list(events), source=source))

    def close(self) -> None:
        assert_same(self.whole.close(), self.stopped.close())


def figures(session: Session[Any]) -> dict[str, dict[str, int]]:
    """Return the figures of a session but its bytes: values that were one by chance are two when they have been restored."""
    return {name: {key: n for key, n in each.items() if key != "state_bytes"} for name, each in session.stats().items()}


def assert_same(expected: list[Event[Any]], actual: list[Event[Any]]) -> None:
    """Raise unless two outputs are the same, event by event: ids, order, and the types of payloads."""
    assert repr(actual) == repr(expected)


def check_stops(
    query: sd.Stream[Any],
    scenario: Scenario,
    emit: Emit,
    rng: Random,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    types: Sequence[type] = (),
) -> None:
    """Run a query through a scenario, stopped at one to three random places; raise unless it sends what it sends otherwise."""
    pair = Pair(query, emit, options, trust, types)
    pushes = pushes_for(query, scenario)
    stops = {rng.randint(0, len(pushes)) for _ in range(rng.randint(1, 3))}
    for place, (source, events) in enumerate(pushes):
        if place in stops:
            pair.stop()
        pair.push(source, events)
    if len(pushes) in stops:
        pair.stop()
    pair.close()
