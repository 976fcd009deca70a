"""What the session's process and a worker send each other: a pickle, and after it the columns as they lie in memory."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from types import CodeType
from typing import Any, BinaryIO, Final, TypeAlias

import cloudpickle
import numpy as np

from streamdsl.engine.batch import JoinedBatches, PointBatch
from streamdsl.engine.keys import KeyTable
from streamdsl.expr.deferred import DeferredColumn
from streamdsl.expr.table import Column
from streamdsl.sharding.sent_columns import encoded_objects
from streamdsl.sharding.shared_ring import SharedRing

_SIZE: Final = np.dtype("<u8")
_LARGE: Final = 2**14
"""The bytes from which a column goes through the ring."""
_NO_FILE: Final = "<dynamic-code>"
"""What cloudpickle has for the file of code."""

Label: TypeAlias = Callable[[KeyTable], str | None]
Named: TypeAlias = Callable[[str], KeyTable]


@dataclass(slots=True)
class Ending:
    """The end of a pipe: what is read from one, or written to one."""

    pipe: BinaryIO
    label: Label | None = None
    """The labels of key tables: ids of results refer to tables, and are sent with the labels."""
    table: Named | None = None
    """The key tables that labels stand for in what is read."""

    ring: SharedRing | None = None
    """Where large columns go; without it all go through the pipe."""
    wait: Callable[[], object] = bool
    """What is called while the ring is full; it raises where the other side is gone."""

    def write(self, message: Any) -> None:
        """Write a message; raises `OSError` where nobody reads."""
        buffers: list[Any] = []
        head = _pickled(message, self.label, buffers.append)
        parts = [head, *(buffer.raw() for buffer in buffers)]
        self.pipe.write(np.array([len(parts), *(len(part) for part in parts)], dtype=_SIZE).tobytes())
        for part in parts:
            if (ring := self._ring_for(len(part))) is not None:
                self.pipe.write(ring.put(part, self._wait).to_bytes(_SIZE.itemsize, "little"))
            else:
                self.pipe.write(part)
        self.pipe.flush()

    def _ring_for(self, size: int) -> SharedRing | None:
        return self.ring if self.ring is not None and _LARGE <= size <= self.ring.largest else None

    def _wait(self) -> None:
        self.pipe.flush()
        self.wait()

    def read(self) -> Any:
        """Return the next message; raises `EOFError` where the other side is gone."""
        return self.parsed(self.raw())

    def raw(self) -> list[Any]:
        """Return the next message as it came."""
        (count,) = _filled(self.pipe, 1 * _SIZE.itemsize).view(_SIZE).tolist()
        sizes = _filled(self.pipe, count * _SIZE.itemsize).view(_SIZE).tolist()
        return [self._part(size) for size in sizes]

    def _part(self, size: int) -> Any:
        if (ring := self._ring_for(size)) is None:
            return _filled(self.pipe, size)
        (place,) = _filled(self.pipe, _SIZE.itemsize).view(_SIZE).tolist()
        return ring.take(place, size)

    def parsed(self, raw: list[Any]) -> Any:
        """Return a message that `raw` has read."""
        return _Unpickler(BytesIO(raw[0]), self.table, raw[1:]).load()


def _filled(pipe: BinaryIO, size: int) -> Any:
    """Return so many bytes of a pipe, as an array that owns them."""
    found = np.empty(size, dtype=np.uint8)
    view, at = found.data, 0
    while at < size:
        if not (came := pipe.readinto(view[at:])):  # type: ignore[attr-defined]
            raise EOFError
        at += came
    return found


def _pickled(message: Any, label: Label | None, take: Callable[[Any], object]) -> bytes:
    out = BytesIO()
    _Pickler(out, label, take).dump(message)
    return out.getvalue()


def _reduced_code(code: CodeType) -> Any:
    """Return what cloudpickle makes of code, with its file: errors name the user's line."""
    make, parts, *rest = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return make, tuple(code.co_filename if part == _NO_FILE else part for part in parts), *rest


def _reduced_points(points: PointBatch) -> Any:
    """Return what makes points again: their ids and REs need not be sent."""
    return PointBatch, (points.first, points.le, points.table, points.keys, points.rows)


def _reduced_joined(joined: JoinedBatches) -> Any:
    """Return what makes joined batches again, which are not concatenated for that."""
    return JoinedBatches, (joined.parts,)


def _reduced_array(array: Column) -> Any:
    """Return what makes an array again: objects go as `encoded_objects` has them."""
    found = encoded_objects(array) if array.ndim == 1 else None
    return array.__reduce_ex__(pickle.HIGHEST_PROTOCOL) if found is None else (_values_of, (found,))


def _values_of(column: DeferredColumn) -> Column:
    return column.column


def _labelled(label: str) -> KeyTable:
    """Stand for a key table in a pickle; who reads one has the table for the label."""
    raise LookupError(label)


_REDUCED: Final = {
    **cloudpickle.Pickler.dispatch_table.maps[0],
    CodeType: _reduced_code,
    PointBatch: _reduced_points,
    JoinedBatches: _reduced_joined,
    np.ndarray: _reduced_array,
}


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles functions and classes of the user by value where they cannot be imported, and key tables by their labels."""

    def __init__(self, out: BinaryIO, label: Label | None, take: Callable[[Any], object]) -> None:
        def reduced_keys(table: KeyTable) -> Any:
            name = None if label is None else label(table)
            return table.__reduce_ex__(pickle.HIGHEST_PROTOCOL) if name is None else (_labelled, (name,))

        # `persistent_id` would be asked of each value, and a `ChainMap` is asked in Python.
        self.dispatch_table = {**copyreg.dispatch_table, **_REDUCED, KeyTable: reduced_keys}
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=take)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: BinaryIO, table: Named | None, buffers: list[Any]) -> None:
        super().__init__(data, buffers=buffers)
        self._table = table

    def find_class(self, module: str, name: str) -> Any:
        return self._table if name == _labelled.__name__ and module == __name__ else super().find_class(module, name)
