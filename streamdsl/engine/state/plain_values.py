"""How plain values are written, each type in a form of its own, and read again.

A form says nothing of how many values there are: whoever reads a column knows that, and is given so many, or an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from streamdsl.engine.state.buffers import checked, plain_dtype
from streamdsl.errors import CheckpointError, QueryError
from streamdsl.plan.json.constants import CONSTANTS

if TYPE_CHECKING:
    from streamdsl.engine.state.reader import Reader
    from streamdsl.engine.state.writer import Writer

Form: TypeAlias = list[Any]
Write: TypeAlias = Callable[[Sequence[Any], Any], list[Any]]
Read: TypeAlias = Callable[..., Sequence[Any]]
_FEW: Final = 16
_CONSTANTS: Final = {kind: name for name, (kind, _, _) in CONSTANTS.items() if kind not in (bytes, Fraction)}


def _write_none(values: Sequence[Any], writer: Writer) -> Form:
    return ["none"]


def _read_none(reader: Reader, size: int) -> list[None]:
    return [None] * size


def _write_bool(values: Sequence[bool], writer: Writer) -> Form:
    return ["bool", writer.out.numbers(values)]


def _read_bool(reader: Reader, size: int, found: Form) -> list[bool]:
    return list(map(bool, reader.arrays.numbers(found, size, below=2).tolist()))


def _write_int(values: Sequence[int], writer: Writer) -> Form:
    if len(values) < _FEW and -(2**63) <= min(values) <= max(values) < 2**63:
        return ["int", list(values)]
    try:
        return ["int", writer.out.numbers(np.fromiter(values, dtype=np.int64, count=len(values)))]
    except OverflowError:
        return ["big", list(map(hex, values))]


def _read_int(reader: Reader, size: int, found: Form) -> list[Any]:
    return list(reader.arrays.numbers(found, size).tolist())


def _read_big(reader: Reader, size: int, found: list[str]) -> list[int]:
    return [int(text, 16) for text in checked(found, str)]


def _write_float(values: Sequence[float], writer: Writer) -> Form:
    if len(values) < _FEW:
        return ["few floats", list(values)]
    return ["float", writer.out.put(np.fromiter(values, dtype=np.float64, count=len(values)))]


def _read_few_floats(reader: Reader, size: int, found: list[float]) -> list[float]:
    return checked(found, float)


def _read_float(reader: Reader, size: int, found: Form) -> list[Any]:
    array = reader.arrays.get(found)
    if array.dtype != np.float64:
        raise CheckpointError(f"it has {array.dtype} where floats must be")
    return list(array.tolist())


def _write_str(values: Sequence[str], writer: Writer) -> Form:
    distinct = dict.fromkeys(values)
    if 2 * len(distinct) > len(values):
        return ["str", list(values)]
    words = {word: place for place, word in enumerate(distinct)}
    return ["words", list(words), writer.out.numbers(list(map(words.__getitem__, values)))]


def _read_str(reader: Reader, size: int, found: list[str]) -> list[str]:
    return checked(found, str)


def _read_words(reader: Reader, size: int, words: list[str], places: Form) -> list[str]:
    words = checked(words, str)
    return list(map(words.__getitem__, reader.arrays.numbers(places, size, below=len(words)).tolist()))


def _write_bytes(values: Sequence[bytes], writer: Writer) -> Form:
    return ["bytes", writer.out.numbers(list(map(len, values))), writer.out.put_parts(values)]


def _read_bytes(reader: Reader, size: int, sizes: Form, place: Form) -> list[bytes]:
    data = reader.arrays.get_bytes(place)
    ends = np.cumsum([0, *reader.arrays.numbers(sizes, size, below=len(data) + 1).tolist()]).tolist()
    if ends[-1] != len(data):
        raise CheckpointError(f"it has {len(data)} bytes where {ends[-1]} must be")
    return [data[start:end] for start, end in itertools.pairwise(ends)]


_PARTS: Final[dict[type, tuple[tuple[str, ...], type]]] = {
    complex: (("real", "imag"), float),
    range: (("start", "stop", "step"), int),
    Fraction: (("numerator", "denominator"), int),
}
"""The types of values that are made of others: of which attributes, and of which type these are."""


def _write_parts(values: Sequence[Any], writer: Writer) -> Form:
    cls = type(values[0])
    return [cls.__name__.lower(), *(writer.column([getattr(value, name) for value in values]) for name in _PARTS[cls][0])]


def _read_parts(cls: type, reader: Reader, size: int, *columns: Form) -> list[Any]:
    names, kind = _PARTS[cls]
    parts = [checked(reader.column(each, size), kind) for each in columns]
    return [cls(*each) for each in zip(*parts, strict=True)] if len(parts) == len(names) else []


def _write_constant(values: Sequence[Any], writer: Writer) -> Form:
    name = _CONSTANTS[type(values[0])]
    try:
        return ["constant", name, list(map(CONSTANTS[name][1], values))]
    except QueryError as error:
        raise CheckpointError(f"it holds {values[0]!r:.80}: {error}") from None


def _read_constant(reader: Reader, size: int, name: str, found: list[Any]) -> list[Any]:
    kind, _, read = CONSTANTS[name]
    if kind not in _CONSTANTS:
        raise CheckpointError(f"it has constants of {name}")
    return checked(list(map(read, found)), kind)


def write_enum(values: Sequence[Enum], writer: Writer) -> Form:
    """Write members of an enumeration, by name."""
    return ["enum", writer.classes.name(type(values[0])), [value.name for value in values]]


def _read_enum(reader: Reader, size: int, name: str, found: list[str]) -> list[Any]:
    cls = reader.classes.found(name)
    if not issubclass(cls, Enum) or not cls.__members__.keys() >= set(checked(found, str)):
        raise CheckpointError(f"{name} no longer has the values {', '.join(dict.fromkeys(map(str, found)))}")
    return [cls.__members__[each] for each in found]


def write_class(values: Sequence[type], writer: Writer) -> Form:
    """Write classes, by name."""
    return ["class", list(map(writer.classes.name, values))]


def _read_class(reader: Reader, size: int, found: list[str]) -> list[type]:
    return list(map(reader.classes.found, checked(found, str)))


def write_scalar(values: Sequence[np.generic], writer: Writer) -> Form:
    """Write scalars of numpy."""
    return writer.split(
        [value.dtype for value in values], values, lambda kind, part: ["scalar", writer.out.put(np.array(part, kind))]
    )


def _read_scalar(reader: Reader, size: int, found: Form) -> list[np.generic]:
    return list(reader.arrays.get(found))


def write_dtype(values: Sequence[np.dtype[Any]], writer: Writer) -> Form:
    """Write types of numpy."""
    return ["dtype", [value.str for value in values]]


def _read_dtype(reader: Reader, size: int, found: list[str]) -> list[np.dtype[Any]]:
    return [np.dtype(object) if name == "|O" else plain_dtype(name) for name in checked(found, str)]


WRITERS: Final[dict[type, Write]] = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: _write_bytes,
    **dict.fromkeys(_PARTS, _write_parts),
    **dict.fromkeys(_CONSTANTS, _write_constant),
}
"""The types of plain values."""

READERS: Final[dict[str, Read]] = {
    "none": _read_none,
    "bool": _read_bool,
    "int": _read_int,
    "big": _read_big,
    "few floats": _read_few_floats,
    "float": _read_float,
    "str": _read_str,
    "words": _read_words,
    "bytes": _read_bytes,
    **{cls.__name__.lower(): partial(_read_parts, cls) for cls in _PARTS},
    "constant": _read_constant,
    "enum": _read_enum,
    "class": _read_class,
    "scalar": _read_scalar,
    "dtype": _read_dtype,
}
"""How each form of a column of plain values is read: so many values, of a type that the form says."""
