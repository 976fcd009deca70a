"""Consolidation: the rows that a sequence of changes leaves, computed in columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import id_codes
from streamdsl.engine.sorting import sorted_integers
from streamdsl.expr.table import flatnonzero


def consolidated(changes: Batch) -> Batch:
    """Return the rows that exist after these changes, as insertions; they may start with changes of earlier rows.

    An id that is inserted again is another row: the previous one can no longer change. O(n log n) for n changes.
    """
    changes = changes.changed()
    is_insertion = changes.re_old == changes.le
    if is_insertion.all():
        return changes
    ends = _last_ends(changes, is_insertion)
    rows = flatnonzero(ends > changes.le)
    found = changes.only(rows)
    return found.with_lifetimes(found.le, found.le, ends[rows])


def _last_ends(changes: Batch, is_insertion: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the last RE of each row, at the index of its first change, and LE at the indices of the others."""
    codes = id_codes(changes.ids)
    order, ordered = sorted_integers(codes)
    starts = flatnonzero(is_insertion[order] | np.append(True, ordered[1:] != ordered[:-1]))
    lasts = np.append(starts[1:], len(order)) - 1
    ends = changes.le.copy()
    ends[order[starts]] = changes.re_new[order[lasts]]
    return ends
