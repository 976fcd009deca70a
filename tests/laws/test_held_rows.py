"""Rows that wait in columns leave as they do where they wait one by one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from streamdsl.engine.batch import Batch, Changes
from streamdsl.engine.egress import FinalEgress
from streamdsl.engine.ids import VersionedIds
from streamdsl.engine.step_output import StepOutput
from streamdsl.temporal import INFINITY, Event, Insert
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

ONE_BY_ONE = 10**9


class Rows:
    """Rows that come, change, and go as long as they are not final."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._live: dict[int, tuple[int, int, int]] = {}
        self._ids = 0

    def changes(self, cti: int, most: int) -> Batch:
        """Return changes, of rows that begin at the CTI or later, or end there or later."""
        rng, changes = self._rng, Changes()
        for id, (le, re, payload) in list(self._live.items()):
            if re >= cti and rng.random() < 0.2:
                end = rng.randint(max(le, cti), cti + 30)
                changes.add(id, le, re, end, payload)
                self._live[id] = le, end, payload
                if end == le:
                    del self._live[id]
        for _ in range(rng.randint(0, most)):
            le, payload = cti + rng.randint(0, 10), rng.randint(0, 2)
            end = INFINITY if rng.random() < 0.1 else le + rng.randint(1, 40)
            self._live[self._ids] = le, end, payload
            changes.add(self._ids, le, le, end, payload)
            self._ids += 1
        found = changes.batch(keyed=False)
        if not len(found):
            return found
        ids = np.array(found.ids.tolist(), dtype=np.int64)
        return found.with_ids(ids if rng.random() < 0.5 else VersionedIds(ids, 0 * ids))


def shown(sent: StepOutput) -> tuple[list[Any], int | None]:
    return [(type(each), each.le, each.re, each.payload) for each in rows_of(sent)], sent.cti


def rows_of(sent: StepOutput) -> list[Insert[Any]]:
    events: list[Event[Any]] = sent.events()
    return [event for event in events if isinstance(event, Insert)]


@examples(150)
@given(SEEDS)
def test_rows_in_columns_leave_as_rows_that_wait_one_by_one(seed: int) -> None:
    rng = Random(seed)
    rows, few, rare = Rows(rng), rng.choice([1, 3, 6, 32]), rng.choice([0, 1, 16])
    columns, heap, cti = FinalEgress(), FinalEgress(), 0
    for step in range(25):
        changes = rows.changes(cti, rng.choice([0, 2, 60]))
        cti = INFINITY if step == 24 else cti + rng.choice([0, 0, 1, 9])
        final = cti if cti == INFINITY else cti - 1
        with patch("streamdsl.engine.egress.FEW", few), patch("streamdsl.engine.held_rows._RARE", rare):
            mine = columns.send(changes, cti, final)
        with patch("streamdsl.engine.egress.FEW", ONE_BY_ONE):
            theirs = heap.send(changes, cti, final)
        assert shown(mine) == shown(theirs)
        assert {event.id for event in rows_of(mine)} == {event.id for event in rows_of(theirs)}
        assert (columns.n_held, sorted(columns.held_ends())) == (heap.n_held, sorted(heap.held_ends()))
    assert not columns.n_held
