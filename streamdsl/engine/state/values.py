"""How plain values are written, each type in a form of its own, and read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from streamdsl.errors import CheckpointError, QueryError
from streamdsl.plan.json.constants import CONSTANTS

if TYPE_CHECKING:
    from streamdsl.engine.state.reader import Reader
    from streamdsl.engine.state.writer import Writer

Form: TypeAlias = list[Any]
Write: TypeAlias = Callable[[Sequence[Any], Any], list[Any]]
Read: TypeAlias = Callable[..., Iterable[Any]]
_FEW: Final = 16
_CONSTANTS: Final = {kind: name for name, (kind, _, _) in CONSTANTS.items() if kind is not bytes}


def _write_none(values: Sequence[Any], writer: Writer) -> Form:
    return ["none", len(values)]


def _read_none(reader: Reader, size: int) -> Iterable[None]:
    return repeat(None, size)


def _write_bool(values: Sequence[bool], writer: Writer) -> Form:
    return ["bool", writer.out.numbers(values)]


def _read_bool(reader: Reader, found: Form) -> list[bool]:
    return list(map(bool, reader.arrays.numbers(found).tolist()))


def _write_int(values: Sequence[int], writer: Writer) -> Form:
    try:
        return ["int", writer.out.numbers(np.fromiter(values, dtype=np.int64, count=len(values)))]
    except OverflowError:
        return ["big", list(map(hex, values))]


def _read_int(reader: Reader, found: Form) -> list[Any]:
    return list(reader.arrays.numbers(found).tolist())


def _read_big(reader: Reader, found: list[str]) -> list[int]:
    return [int(text, 16) for text in found]


def _write_float(values: Sequence[float], writer: Writer) -> Form:
    if len(values) < _FEW:
        return ["few floats", list(values)]
    return ["float", writer.out.put(np.fromiter(values, dtype=np.float64, count=len(values)))]


def _read_float(reader: Reader, found: Form) -> list[Any]:
    return list(reader.arrays.get(found).tolist())


def _write_str(values: Sequence[str], writer: Writer) -> Form:
    words = {word: place for place, word in enumerate(dict.fromkeys(values))}
    if 2 * len(words) > len(values):
        return ["str", list(values)]
    return ["words", list(words), writer.out.numbers(list(map(words.__getitem__, values)))]


def _as_it_is(reader: Reader, found: list[Any]) -> list[Any]:
    return found


def _read_words(reader: Reader, words: list[str], places: Form) -> list[str]:
    return list(map(words.__getitem__, reader.arrays.numbers(places).tolist()))


def _write_bytes(values: Sequence[bytes], writer: Writer) -> Form:
    return ["bytes", writer.out.numbers(list(map(len, values))), writer.out.put_parts(values)]


def _read_bytes(reader: Reader, sizes: Form, place: Form) -> Iterator[bytes]:
    data, start = reader.arrays.get_bytes(place), 0
    for size in reader.arrays.numbers(sizes).tolist():
        yield data[start : start + size]
        start += size


def _write_complex(values: Sequence[complex], writer: Writer) -> Form:
    return ["complex", writer.column([part for value in values for part in (value.real, value.imag)])]


def _read_complex(reader: Reader, found: Form) -> Iterator[complex]:
    parts = reader.column(found)
    return map(complex, parts, parts)


def _write_range(values: Sequence[range], writer: Writer) -> Form:
    return ["range", [writer.column([getattr(value, name) for value in values]) for name in ("start", "stop", "step")]]


def _read_range(reader: Reader, columns: list[Form]) -> Iterable[range]:
    return map(range, *map(reader.column, columns))


def _write_constant(values: Sequence[Any], writer: Writer) -> Form:
    name = _CONSTANTS[type(values[0])]
    try:
        return ["constant", name, list(map(CONSTANTS[name][1], values))]
    except QueryError as error:
        raise CheckpointError(f"it holds {values[0]!r}: {error}") from None


def _read_constant(reader: Reader, name: str, found: list[Any]) -> Iterable[Any]:
    return map(CONSTANTS[name][2], found)


def write_enum(values: Sequence[Enum], writer: Writer) -> Form:
    """Write members of an enumeration, by name."""
    return ["enum", writer.classes.name(type(values[0])), [value.name for value in values]]


def _read_enum(reader: Reader, name: str, found: list[str]) -> list[Any]:
    cls = reader.classes.found(name)
    if not issubclass(cls, Enum) or not cls.__members__.keys() >= set(found):
        raise CheckpointError(f"{name} no longer has the values {', '.join(dict.fromkeys(found))}")
    return [cls.__members__[each] for each in found]


def write_class(values: Sequence[type], writer: Writer) -> Form:
    """Write classes, by name."""
    return ["class", list(map(writer.classes.name, values))]


def _read_class(reader: Reader, found: list[str]) -> Iterable[type]:
    return map(reader.classes.found, found)


def write_scalar(values: Sequence[np.generic], writer: Writer) -> Form:
    """Write scalars of numpy."""
    return writer.split(
        [value.dtype for value in values], values, lambda kind, part: ["scalar", writer.out.put(np.array(part, kind))]
    )


def _read_scalar(reader: Reader, found: Form) -> list[np.generic]:
    return list(reader.arrays.get(found))


def write_dtype(values: Sequence[np.dtype[Any]], writer: Writer) -> Form:
    """Write types of numpy."""
    return ["dtype", [value.str for value in values]]


def _read_dtype(reader: Reader, found: list[str]) -> Iterable[np.dtype[Any]]:
    return map(np.dtype, found)


WRITERS: Final[dict[type, Write]] = {
    type(None): _write_none,
    bool: _write_bool,
    int: _write_int,
    float: _write_float,
    str: _write_str,
    bytes: _write_bytes,
    complex: _write_complex,
    range: _write_range,
    **dict.fromkeys(_CONSTANTS, _write_constant),
}
"""The types of plain values."""

READERS: Final[dict[str, Read]] = {
    "none": _read_none,
    "bool": _read_bool,
    "int": _read_int,
    "big": _read_big,
    "few floats": _as_it_is,
    "float": _read_float,
    "str": _as_it_is,
    "words": _read_words,
    "bytes": _read_bytes,
    "complex": _read_complex,
    "range": _read_range,
    "constant": _read_constant,
    "enum": _read_enum,
    "class": _read_class,
    "scalar": _read_scalar,
    "dtype": _read_dtype,
}
"""How each form of a column of plain values is read."""
