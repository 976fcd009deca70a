"""Calendar: one row per group, from its first LE until the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sortedcontainers import SortedDict

from streamdsl.engine.batch import Batch, Changes
from streamdsl.engine.frontiers import Frontier
from streamdsl.engine.operator import Operator
from streamdsl.plan.node import Calendar


class CalendarOperator(Operator):
    """By group the LEs that may still be retracted, with the number of rows at each, and the one that has been emitted."""

    kind = "calendar"

    def __init__(self, label: str, node: Calendar) -> None:
        super().__init__(label)
        self.node = node
        self.starts: dict[int | None, Any] = {}
        self.out: dict[int | None, int] = {}
        self.begun: set[int | None] = set()
        if node.start is not None:
            self.starts[None] = SortedDict({node.start: 1})

    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        (batch,) = batches
        if self.node.start is None:
            touched = self._count(batch)
        else:
            touched = set(self.starts) - set(self.out)
        changes = Changes()
        for group in touched:
            self._redo(group, changes)
        return changes.batch(self.is_grouped)

    def _count(self, batch: Batch) -> set[int | None]:
        """Count the changed rows, and return the groups whose first LE may have changed."""
        touched = set()
        columns = (batch.group_keys(), batch.le.tolist(), batch.re_old.tolist(), batch.re_new.tolist())
        for group, le, re_old, re_new in zip(*columns, strict=True):
            step = (re_new > le) - (re_old > le)
            if not step or group in self.begun:
                continue
            starts = self.starts.setdefault(group, SortedDict())
            starts[le] = starts.get(le, 0) + step
            if starts[le] <= 0:
                del starts[le]
            touched.add(group)
        return touched

    def _redo(self, group: int | None, changes: Changes) -> None:
        """Append the change of a group's row. One with another LE is another row."""
        end, starts = self.node.end, self.starts[group]
        now = next((le for le in starts if le < end), None)
        was = self.out.pop(group, None)
        if now is not None:
            self.out[group] = now
        elif not starts:
            del self.starts[group]
        if was == now:
            return
        if was is not None:
            changes.add((self.label, self.path(group), was), was, end, was, None, group)
        if now is not None:
            changes.add((self.label, self.path(group), now), now, now, end, None, group)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """No change moves the end of a row that begins before it."""
        return self.cti

    def forget(self, cti: int) -> None:
        """Drop the LEs of groups whose first row is final, and groups whose calendar has ended."""
        for group in [group for group, starts in self.starts.items() if starts.peekitem(0)[0] < cti]:
            del self.starts[group]
            self.begun.add(group)
        if self.node.end < cti:
            self.begun.clear()
            self.out.clear()

    def held_groups(self) -> Iterable[int | None]:
        return {*self.starts, *self.out, *self.begun}

    def state(self) -> dict[str, int]:
        n = sum(map(len, self.starts.values()))
        return {"windows": 0, "events": n}
