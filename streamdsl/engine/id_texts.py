"""Ids as texts, for frames that hold no Python objects: equal ids have equal texts, and no others do."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import Ids, PairIds, VersionedIds
from streamdsl.engine.keys import KeyTable
from streamdsl.expr.table import Column

_NAME: Final = re.compile(r"[^\W\d][\w.:/ -]*")
_WORDS: Final = frozenset({"None", "True", "False", "nan", "inf", "Ellipsis"})


def id_text(id: Hashable) -> str:
    """Return an id as text: names as they are, other values as Python writes them.

    >>> id_text("a"), id_text(5), id_text("5"), id_text(("w", 5))
    ('a', '5', "'5'", "('w', 5)")
    """
    return id if isinstance(id, str) and _NAME.fullmatch(id) and id not in _WORDS else repr(id)


def id_texts(ids: Ids) -> Any:
    """Return ids as an Arrow array of texts.

    >>> id_texts(VersionedIds(np.array([7, 8]), np.array([0, 1]))).to_pylist()
    ['7', 'RowVersion(id=8, version=1)']
    """
    import pyarrow as pa

    written = _written(ids) if not isinstance(ids, np.ndarray) or ids.dtype.kind == "i" else None
    return pa.array(map(id_text, ids.tolist()), pa.string()) if written is None else written


def _written(ids: Ids) -> Any | None:
    """Return the `repr`s of ids that are made of columns of integers; None of others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(ids, np.ndarray):
        return pa.array(ids).cast(pa.string()) if ids.dtype.kind == "i" else None
    if isinstance(ids, VersionedIds):
        row, versions = _written(ids.columns[0]), ids.columns[1]
        if row is None or not versions.any():
            return row
        returned = _joined(["RowVersion(id=", row, ", version=", _written(versions), ")"])
        return pc.if_else(pa.array(versions > 0), returned, row)
    if isinstance(ids, PairIds):
        return _tuple([_written(column) for column in ids.columns])
    return _window(ids) if type(ids) is WindowIds else None


def _window(ids: WindowIds) -> Any | None:
    starts, *leaves = ids.columns
    path = [] if ids.keys is None else [_path(ids.keys, leaves)]
    return _tuple([repr(ids.label), *path, _written(starts), "0"])


def _path(keys: KeyTable, leaves: Sequence[Column]) -> Any | None:
    """Return what `keys.spell` gives, as text."""
    mine = len(keys.exprs)
    parts = [_written(column) for column in leaves[len(leaves) - mine :]]
    own = parts[0] if keys.schema is None else _tuple(parts)
    return own if keys.around is None else _tuple([_path(keys.around, leaves[:-mine]), own])


def _tuple(parts: Sequence[Any]) -> Any | None:
    if any(part is None for part in parts):
        return None
    spread = [each for part in parts for each in (part, ", ")][:-1]
    return _joined(["(", *spread, ",)" if len(parts) == 1 else ")"])


def _joined(parts: Sequence[Any]) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")
