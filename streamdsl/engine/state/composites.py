"""How values are written that hold others, and have no identity: as columns of what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Final

from streamdsl.engine.state.values import READERS, Form, Read, Write
from streamdsl.errors import CheckpointError
from streamdsl.temporal.payload import Record, records

if TYPE_CHECKING:
    from streamdsl.engine.state.reader import Reader
    from streamdsl.engine.state.writer import Writer


def _write_tuple(values: Sequence[tuple[Any, ...]], writer: Writer) -> Form:
    return writer.split(list(map(len, values)), values, lambda size, part: _write_alike(size, part, writer))


def _write_alike(size: int, values: Sequence[tuple[Any, ...]], writer: Writer) -> Form:
    columns = list(zip(*values, strict=True)) if size else []
    return ["tuple", len(values), [writer.column(column) for column in columns]]


def _read_tuple(reader: Reader, size: int, columns: list[Form]) -> Iterable[tuple[Any, ...]]:
    return zip(*map(reader.column, columns), strict=True) if columns else repeat((), size)


def write_named(values: Sequence[Any], writer: Writer) -> Form:
    """Write named tuples of one class."""
    cls = type(values[0])
    content = _write_alike(len(cls._fields), values, writer)
    return ["named", writer.classes.name(cls), cls._fields, *content[1:]]


def _read_named(reader: Reader, name: str, fields: list[str], size: int, columns: list[Form]) -> Iterable[Any]:
    cls = reader.classes.found(name)
    if not issubclass(cls, tuple) or getattr(cls, "_fields", ()) != tuple(fields):
        raise CheckpointError(f"{name} no longer has the fields {', '.join(fields)}")
    return map(tuple.__new__, repeat(cls), _read_tuple(reader, size, columns))


def _write_record(values: Sequence[Record], writer: Writer) -> Form:
    names = [tuple(value.__items__) for value in values]
    return writer.split(names, values, lambda fields, part: _write_records(fields, part, writer))


def _write_records(fields: tuple[str, ...], values: Sequence[Record], writer: Writer) -> Form:
    columns = zip(*(value.__items__.values() for value in values), strict=True) if fields else ()
    return ["record", fields, len(values), [writer.column(column) for column in columns]]


def _read_record(reader: Reader, fields: list[str], size: int, columns: list[Form]) -> list[Record]:
    return records(fields, map(reader.column, columns)) if fields else [Record() for _ in range(size)]


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


def _read_frozenset(reader: Reader, sizes: Form, found: Form) -> Iterator[frozenset[Any]]:
    items = reader.column(found)
    return (frozenset(islice(items, size)) for size in reader.arrays.numbers(sizes).tolist())


def write_method(values: Sequence[Any], writer: Writer) -> Form:
    """Write methods of objects that are written too."""
    return ["method", writer.column([value.__self__ for value in values]), [value.__name__ for value in values]]


def _read_method(reader: Reader, owners: Form, names: list[str]) -> Iterator[Any]:
    for owner, name in zip(reader.column(owners), names, strict=True):
        if not type(owner).__module__.startswith("streamdsl."):
            raise CheckpointError(f"the checkpoint holds a method of a {type(owner).__name__}")
        yield getattr(owner, name)


def _read_mixed(reader: Reader, places: Form, parts: list[Form]) -> list[Any]:
    columns = list(map(reader.column, parts))
    return [next(columns[place]) for place in reader.arrays.numbers(places).tolist()]


def _read_outside(reader: Reader, names: list[Any]) -> Iterable[Any]:
    return map(reader.outside.find, names)


def _read_ref(reader: Reader, key: str, numbers: Form) -> Iterable[Any]:
    return map(reader.objects[key].__getitem__, reader.arrays.numbers(numbers).tolist())


def _read_refs(reader: Reader, key: str, run: list[int]) -> list[Any]:
    first, size = run
    return reader.objects[key][first : first + size]


COMPOSITES: Final[dict[type, Write]] = {tuple: _write_tuple, Record: _write_record, frozenset: _write_frozenset}
"""The types of values that hold others."""

COLUMNS: Final[dict[str, Read]] = {
    **READERS,
    "tuple": _read_tuple,
    "named": _read_named,
    "record": _read_record,
    "frozenset": _read_frozenset,
    "method": _read_method,
    "mixed": _read_mixed,
    "outside": _read_outside,
    "ref": _read_ref,
    "refs": _read_refs,
}
"""How each form of a column is read."""
