"""Coalescing of row batches: neighbours are merged into columns."""

from __future__ import annotations

from collections.abc import Iterable

from streamdsl.engine.batch import Batch
from streamdsl.engine.row_batch import RowBatch, in_columns


def coalesced(batches: Iterable[Batch]) -> list[Batch]:
    """Return the batches, with neighbouring row batches of one kind merged into one in columns; empty ones are left out.

    >>> from streamdsl.expr.schema import Schema
    >>> batch = RowBatch([("a", 0, 3, 3, 4)], [(7,)], Schema.scalar())
    >>> [len(batch) for batch in coalesced([batch, batch])]
    [2]
    """
    found: list[Batch] = []
    run: list[RowBatch] = []
    for batch in batches:
        if type(batch) is RowBatch and (not run or _are_alike(run[0], batch)):
            run.append(batch)
            continue
        if run:
            found.append(in_columns(run))
        run = [batch] if type(batch) is RowBatch else []
        if type(batch) is not RowBatch:
            found.append(batch)
    if run:
        found.append(in_columns(run))
    return [batch for batch in found if len(batch)]


def _are_alike(one: RowBatch, other: RowBatch) -> bool:
    if one.origin is not other.origin and (one.origin is None or not one.origin.is_like(other.origin)):
        return False
    is_one_schema = one.schema is other.schema or one.schema == other.schema
    return is_one_schema and (one.groups is None) is (other.groups is None)
