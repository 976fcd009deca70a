"""Partial aggregation in Spark's Python workers: each partition keeps an accumulator per window; a shuffle merges these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.expr.evaluate import evaluate, truth
from streamdsl.expr.nodes import Expr
from streamdsl.plan.node import WindowAggregate
from streamdsl.spark.codec import encode
from streamdsl.spark.column_types import PickledType
from streamdsl.spark.group_stage import single_chunk, to_large_types
from streamdsl.spark.row_stage import BatchReader, run_on_batch
from streamdsl.spark.shipping import dump_values, load_values
from streamdsl.temporal import Lifetime
from streamdsl.temporal.payload import payload_key
from streamdsl.udm import incremental
from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.incremental import Held
from streamdsl.udm.invoke import EXCLUDED, MemberRow, guarded
from streamdsl.windows import Clip, Hopping

WindowKey = tuple[tuple[Any, ...], int]
"""The group keys as `payload_key`, and the number of the window."""

_LIMIT: Final = 64 * 2**20
"""The most bytes of states that a task keeps at once."""
_ENTRY: Final = 512
"""The bytes that a state takes besides those of its pickled form, for its key and its place."""
_SAMPLE: Final = 16
"""The most states that are pickled to measure all."""
_ROWS: Final = 4096
"""States are measured again after so many rows at the earliest: they may grow though there are no more of them."""
_WINDOWS_PER_MERGE: Final = 64
"""The number of adjacent windows of a group that one call merges."""


def why_not_partial(node: WindowAggregate) -> str | None:
    """Return the reason why a node's windows cannot be computed from partial states, or None if they can.

    >>> from streamdsl.expr.nodes import Whole
    >>> from streamdsl.plan.node import Source
    >>> from streamdsl.udm.builtin import Count
    >>> from streamdsl.windows import Output
    >>> windows = Hopping(10, 10)
    >>> why_not_partial(WindowAggregate(Source("s"), windows, Clip.NONE, Output.ALIGN, (BoundAgg(Count()),), Whole()))
    'count keeps no state'
    """
    if not isinstance(node.windows, Hopping):
        return f"the rows of a window of {node.windows.describe()} are not known row by row"
    return next((why for agg in node.aggregates if (why := _why_module(agg.function))), None)


def _why_module(module: AnyUDA[Any, Any]) -> str | None:
    if not module.incremental:
        return f"{module.label} keeps no state"
    if module.time_sensitive:
        return f"{module.label} is time-sensitive"
    if not module.order_insensitive:
        return f"{module.label} needs its members in order"
    return None if module.mergeable else f"{module.label} does not define merge_states"


@dataclass(frozen=True, slots=True)
class PartialStage:
    """The map side: the rows of a partition are added to a state per group, window and aggregate.

    A row is in the windows `lo` to `hi`. States are sent at the end of the partition. When they take more than `limit` bytes, the
    half is sent that has been idle for longest; so a window may have several states of a partition, though seldom one that rows
    still come for.
    """

    operator: str
    windows: Hopping
    aggregates: tuple[BoundAgg, ...]
    reader: BatchReader
    keys: tuple[str, ...]
    limit: int = _LIMIT

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the states of a partition's rows, as batches."""
        held = _StateBuffer(self.keys, self.aggregates, self.limit)
        for batch in batches:
            keys = [batch.column(name).to_pylist() for name in self.keys]
            held.types = [batch.schema.field(name).type for name in self.keys]
            members = self._members(batch)
            for (group, lo, hi), rows in _rows_by_windows(keys, batch).items():
                key, mine = tuple(column[rows[0]] for column in keys), [members[row] for row in rows]
                for w in range(lo, hi + 1):
                    _, states = held.states.pop((group, w), (key, None))
                    held.states[group, w] = (key, self._added(states, mine, self.windows.window(w)))
                    if held.is_full(len(mine)):
                        yield held.flush(-(-len(held.states) // 2))
        if held.states:
            yield held.flush(len(held.states))

    def _members(self, batch: Any) -> list[MemberRow]:
        columns = [self._arguments(agg, batch) for agg in self.aggregates]
        times = (batch.column(name).to_pylist() for name in ("le", "re"))
        return list(map(MemberRow, *times, repeat(None), zip(*columns, strict=True)))

    def _arguments(self, agg: BoundAgg, batch: Any) -> list[Any]:
        """Return the argument of each row, EXCLUDED where the aggregate's `where` is false."""
        column: list[Any] = [EXCLUDED] * batch.num_rows
        rows = self._chosen(agg.where, batch)
        mine = batch.take(pa.array(rows, pa.int64()))
        compute = partial(evaluate, agg.given, self.reader.inputs(mine))
        for row, value in zip(rows, run_on_batch(self.operator, self.reader, mine, compute).tolist(), strict=True):
            column[row] = value
        return column

    def _chosen(self, where: Expr | None, batch: Any) -> list[int]:
        if where is None:
            return list(range(batch.num_rows))
        inputs = self.reader.inputs(batch)
        held = run_on_batch(self.operator, self.reader, batch, lambda: truth(where, inputs))
        return np.flatnonzero(held).tolist()

    def _added(self, states: Sequence[Held] | None, members: Sequence[MemberRow], window: Lifetime) -> list[Held]:
        """Return the states of a window after adding members; `states` is None for a new window."""

        def compute() -> list[Held]:
            modules = [agg.function for agg in self.aggregates]
            known = states or [incremental.create(module) for module in modules]
            return [
                incremental.add(module, i, held, members, window, Clip.NONE)
                for i, (module, held) in enumerate(zip(modules, known, strict=True))
            ]

        return guarded(self.operator, window, compute)


def _rows_by_windows(keys: Sequence[list[Any]], batch: Any) -> Mapping[tuple[tuple[Any, ...], int, int], list[int]]:
    """Return the rows of a batch by group and range of windows."""
    groups: Iterable[tuple[Any, ...]] = zip(*(map(payload_key, column) for column in keys), strict=True) if keys else repeat(())
    found: dict[tuple[tuple[Any, ...], int, int], list[int]] = {}
    lo, hi = (batch.column(name).to_pylist() for name in ("lo", "hi"))
    for row, place in enumerate(zip(groups, lo, hi, strict=False)):
        found.setdefault(place, []).append(row)
    return found


@dataclass(slots=True)
class _StateBuffer:
    """The states of a task by window, the idlest first, with the keys of their groups and the Arrow types of these."""

    names: tuple[str, ...]
    aggregates: Sequence[BoundAgg]
    limit: int
    types: list[Any] = field(default_factory=list)
    states: dict[WindowKey, tuple[tuple[Any, ...], list[Held]]] = field(default_factory=dict)
    _due: int = 1
    """The number of states with which they are measured again."""
    _rows_left: int = _ROWS
    """The number of rows after which they are measured in any case."""

    def is_full(self, n_rows: int) -> bool:
        """Say after rows of a window whether the states take more than `limit` bytes, as a sample of them tells now and then."""
        self._rows_left -= n_rows
        n = len(self.states)
        if n < self._due and self._rows_left > 0:
            return False
        sample = [states for _, states in islice(self.states.values(), 0, None, -(-n // _SAMPLE))]
        size = sum(len(blob or b"") for blob in self._dumped(sample))
        room = self.limit // (size // len(sample) + _ENTRY) - n
        self._due = n + min(room, n)
        self._rows_left = max(_ROWS, size // _ENTRY)
        return room <= 0

    def flush(self, n: int) -> Any:
        """Return the `n` states that have been idle for longest as a batch, and drop them."""
        idle = list(islice(self.states.items(), n))
        columns = [pa.array([key[i] for _, (key, _) in idle], kind) for i, kind in enumerate(self.types)]
        numbers = [w for (_, w), _ in idle]
        columns += [pa.array(numbers, pa.int64()), pa.array([w // _WINDOWS_PER_MERGE for w in numbers], pa.int64())]
        columns.append(pa.array(self._dumped([states for _, (_, states) in idle]), pa.binary()))
        for place, _ in idle:
            del self.states[place]
        return pa.RecordBatch.from_arrays(columns, [*self.names, "w", "j", "held"])

    def _dumped(self, held: Sequence[Sequence[Held]]) -> list[bytes | None]:
        try:
            return dump_values([tuple(map(tuple, states)) for states in held])
        except Exception as error:
            names = ", ".join(sorted({agg.function.label for agg in self.aggregates}))
            raise UnsupportedOnSpark(
                f"a state of {names} cannot be sent between Spark's workers: {type(error).__name__}: {error}",
                hint="make states of what can be pickled, or set mergeable = False on the class",
            ) from error


@dataclass(frozen=True, slots=True)
class MergeStage:
    """The reduce side: the states of each window from all partitions are merged, and the aggregates are computed."""

    operator: str
    windows: Hopping
    functions: tuple[AnyUDA[Any, Any], ...]
    keys: tuple[str, ...]

    def run(self, table: Any) -> Any:
        """Return a row per window of a group, with a column per aggregate."""
        merged: dict[int, list[Held]] = {}
        numbers, blobs = single_chunk(table, "w").to_pylist(), single_chunk(table, "held").to_pylist()
        for w, blob in zip(numbers, blobs, strict=True):
            states = [Held(*held) for held in load_values([blob])[0]]
            merged[w] = self._merged(merged[w], states, self.windows.window(w)) if w in merged else states
        periods = list(map(self.windows.window, merged))
        results = list(map(self._results, merged.values(), periods))
        columns: dict[str, Any] = {
            "le": pa.array([period.le for period in periods], pa.int64()),
            "re": pa.array([period.re for period in periods], pa.int64()),
        }
        for i in range(len(self.functions)):
            columns[f"a{i}"] = encode([values[i] for values in results], PickledType())
        for key in self.keys:
            columns[key] = single_chunk(table, key).take(pa.array([0] * len(periods), pa.int64()))
        made = pa.table(columns)
        return to_large_types(made) if pa.types.is_large_binary(table.schema.field("held").type) else made

    def _merged(self, states: Sequence[Held], others: Sequence[Held], window: Lifetime) -> list[Held]:
        return guarded(self.operator, window, lambda: list(map(incremental.merge, self.functions, states, others)))

    def _results(self, states: Sequence[Held], window: Lifetime) -> list[Any]:
        compute = partial(incremental.value, window=window)
        return guarded(self.operator, window, lambda: list(map(compute, self.functions, states)))
