"""How values are written that hold others, and have no identity: as columns of what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final

from streamdsl.engine.state.buffers import checked
from streamdsl.engine.state.plain_values import READERS, Form, Read, Write
from streamdsl.errors import CheckpointError
from streamdsl.temporal.payload import Record, records

if TYPE_CHECKING:
    from streamdsl.engine.state.reader import Reader
    from streamdsl.engine.state.writer import Writer


def _write_tuple(values: Sequence[tuple[Any, ...]], writer: Writer) -> Form:
    return writer.split(list(map(len, values)), values, lambda size, part: ["tuple", _write_alike(size, part, writer)])


def _write_alike(size: int, values: Sequence[tuple[Any, ...]], writer: Writer) -> list[Form]:
    return [writer.column(column) for column in zip(*values, strict=True)] if size else []


def _read_tuple(reader: Reader, size: int, columns: list[Form]) -> list[tuple[Any, ...]]:
    return list(zip(*(reader.column(each, size) for each in columns), strict=True)) if columns else [()] * size


def write_named(values: Sequence[Any], writer: Writer) -> Form:
    """Write named tuples of one class."""
    cls = type(values[0])
    return ["named", writer.classes.name(cls), cls._fields, _write_alike(len(cls._fields), values, writer)]


def _read_named(reader: Reader, size: int, name: str, fields: list[str], columns: list[Form]) -> list[Any]:
    cls = reader.classes.found(name)
    if not issubclass(cls, tuple) or not getattr(cls, "_fields", None) == tuple(fields) or len(fields) != len(columns):
        raise CheckpointError(f"{name} no longer has the fields {', '.join(map(str, fields))}")
    return list(map(tuple.__new__, repeat(cls), _read_tuple(reader, size, columns)))


def _write_record(values: Sequence[Record], writer: Writer) -> Form:
    names = [tuple(value.__items__) for value in values]
    return writer.split(names, values, lambda fields, part: _write_records(fields, part, writer))


def _write_records(fields: tuple[str, ...], values: Sequence[Record], writer: Writer) -> Form:
    columns = zip(*(value.__items__.values() for value in values), strict=True) if fields else ()
    return ["record", fields, [writer.column(column) for column in columns]]


def _read_record(reader: Reader, size: int, fields: list[str], columns: list[Form]) -> list[Record]:
    if not len(set(checked(fields, str))) == len(fields) == len(columns):
        raise CheckpointError("it has a record whose fields are not those of its columns")
    return records(fields, [reader.column(each, size) for each in columns]) if fields else [Record() for _ in range(size)]


def in_order(items: Iterable[Any]) -> Iterable[Any]:
    """Return the items of a set in an order of theirs where they have one: equal sets should be written alike."""
    try:
        return sorted(items)
    except TypeError:
        return items


def _write_frozenset(values: Sequence[frozenset[Any]], writer: Writer) -> Form:
    before = writer.n_references
    content = [writer.out.numbers(list(map(len, values))), writer.column(list(chain.from_iterable(map(in_order, values))))]
    if writer.n_references > before:
        # Its items are looked up by their hashes as soon as it is made, when objects are not whole yet.
        raise CheckpointError(
            "it holds a frozenset of objects", hint="frozensets of plain values, of tuples and of records are saved"
        )
    return ["frozenset", *content]


def _read_frozenset(reader: Reader, size: int, sizes: Form, found: Form) -> list[frozenset[Any]]:
    before = reader.n_references
    parts = list(map(frozenset, reader.parts(found, lengths := reader.arrays.sizes(sizes, size))))
    if reader.n_references > before or list(map(len, parts)) != lengths:
        raise CheckpointError("it holds a frozenset of objects, or of equal items")
    return parts


def _read_mixed(reader: Reader, size: int, places: Form, parts: list[Form]) -> list[Any]:
    at = reader.arrays.numbers(places, size, below=len(parts)).tolist()
    columns = [iter(reader.part(part, at.count(place))) for place, part in enumerate(parts)]
    return [next(columns[place]) for place in at]


def _read_outside(reader: Reader, size: int, names: list[Any]) -> list[Any]:
    return list(map(reader.outside.find, names))


def _read_ref(reader: Reader, size: int, key: str, numbers: Form) -> list[Any]:
    reader.n_references += 1
    objects = reader.objects[key]
    return list(map(objects.__getitem__, reader.arrays.numbers(numbers, size, below=len(objects)).tolist()))


def _read_refs(reader: Reader, size: int, key: str, first: int) -> list[Any]:
    reader.n_references += 1
    if type(first) is not int or first < 0:
        raise CheckpointError(f"it refers to an object {first!r:.80}")
    return reader.objects[key][first : first + size]


COMPOSITES: Final[dict[type, Write]] = {tuple: _write_tuple, Record: _write_record, frozenset: _write_frozenset}
"""The types of values that hold others."""

COLUMNS: Final[dict[str, Read]] = {
    **READERS,
    "tuple": _read_tuple,
    "named": _read_named,
    "record": _read_record,
    "frozenset": _read_frozenset,
    "mixed": _read_mixed,
    "outside": _read_outside,
    "ref": _read_ref,
    "refs": _read_refs,
}
"""How each form of a column is read."""
