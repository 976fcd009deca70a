"""to_edges: each row lives until the next strictly later LE of its key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedDict

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.operator import Operator
from streamdsl.engine.store import PayloadStore, SlotChange
from streamdsl.expr.table import flatnonzero
from streamdsl.plan.node import ToEdges
from streamdsl.temporal.time import INFINITY


@dataclass(slots=True)
class Sample:
    """The rows of one key that start at one LE: by id the slot of the payload, and the end that is out for all of them."""

    re: int
    rows: dict[Hashable, int] = field(default_factory=dict)


class ToEdgesOperator(Operator):
    """Per key the samples by LE; a sample that comes or goes changes the end of the one before it."""

    kind = "to_edges (indexed)"

    def __init__(self, label: str, node: ToEdges) -> None:
        super().__init__(label)
        self.key = node.key
        self.samples: dict[Any, Any] = {}
        self.store = PayloadStore()

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        came = (batch.re_old == batch.le) & (batch.re_new > batch.le)
        went = (batch.re_new == batch.le) & (batch.re_old > batch.le)
        batch = batch.take(flatnonzero(came | went))
        if not len(batch):
            return EMPTY
        changes: list[SlotChange] = []
        touched: dict[tuple[Any, int], None] = {}
        slots = iter(self.store.put(batch.table.take(flatnonzero(batch.re_old == batch.le))))
        freed, fresh = [], set()
        rows = zip(batch.ids.tolist(), batch.le.tolist(), batch.re_old.tolist(), self.keys(self.key, batch), strict=True)
        for id, le, re_old, key in rows:
            line = self.samples.setdefault(key, SortedDict())
            if re_old > le:
                sample = line[le]
                slot = sample.rows.pop(id)
                freed.append(slot)
                changes.append(SlotChange(id, le, sample.re, le, slot, key[0]))
                if not sample.rows:
                    del line[le]
            else:
                sample = line.setdefault(le, Sample(INFINITY))
                sample.rows[id] = next(slots)
                fresh.add((key, le, id))
            touched[key, le] = None
            touched.update({(key, earlier): None for earlier in _just_before(line, le)})
        for key, le in touched:
            changes += self._new_ends(key, le, fresh)
        out = self.store.batch(changes, self.is_grouped)
        self.store.free(freed)
        return out

    def _new_ends(self, key: Any, le: int, fresh: set[Any]) -> list[SlotChange]:
        line = self.samples[key]
        sample = line.get(le)
        if sample is None:
            return []
        later = line.bisect_right(le)
        re_old, sample.re = sample.re, (line.keys()[later] if later < len(line) else INFINITY)
        ends = {id: le if (key, le, id) in fresh else re_old for id in sample.rows}
        return [SlotChange(id, le, ends[id], sample.re, slot, key[0]) for id, slot in sample.rows.items()]

    def forget(self, cti: int) -> None:
        for key, line in list(self.samples.items()):
            while line and line.peekitem(0)[1].re < cti:
                _, sample = line.popitem(0)
                self.store.free(list(sample.rows.values()))
            if not line:
                del self.samples[key]

    def held_groups(self) -> Iterable[int | None]:
        return (group for group, _ in self.samples)

    def state(self) -> dict[str, int]:
        events = sum(len(sample.rows) for line in self.samples.values() for sample in line.values())
        return {"windows": 0, "events": events}


def _just_before(line: Any, le: int) -> list[int]:
    position = line.bisect_left(le)
    return [line.keys()[position - 1]] if position else []
