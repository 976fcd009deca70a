"""Ids as texts, for frames that hold no Python objects: equal ids have equal texts, and no others do."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Number, Rational
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np

from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import Ids, PairIds, VersionedIds
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.versions import RowVersion
from streamdsl.errors import SchemaError
from streamdsl.expr.arrow_buffers import as_arrow, as_numpy, surround, text_array
from streamdsl.expr.deferred import AnyColumn, DeferredColumn
from streamdsl.expr.table import Column, Rows, flatnonzero, largest, least
from streamdsl.temporal.payload import fields_of, is_dataclass, is_nan, payload_key, plain
from streamdsl.temporal.value_arrays import distinct

_NAME: Final = re.compile(r"[^\W\d][\w.:/ -]*")
_WORDS: Final = frozenset({"None", "True", "False", "nan", "inf", "Ellipsis"})

_AS_PYTHON: Final = frozenset({str, int, type(None), date, timedelta, bytes, UUID})
"""The types of values whose texts are their `repr`s."""
_FEW: Final = 16
"""So many rows for each run of equal numbers are worth writing these alone."""
_WORTH: Final = 4
"""So many texts for each row are copied sooner than the rows' own are taken out of them first."""
_KNOWN: Final = 2**14
"""The texts of numbers below are kept: most keys that are numbers are small."""


class Chosen(NamedTuple):
    """One of a few texts for each row."""

    texts: Sequence[str]
    places: Rows


class Known(NamedTuple):
    """Texts that are kept, between other texts: `surround` gives those of all numbers as an Arrow array."""

    numbers: Rows
    between: Callable[[str, str], Any]
    before: str = ""
    behind: str = ""


Parts: TypeAlias = list[Any]
"""What a column of texts is put together from: texts, a choice of them, those of small numbers, and Arrow arrays of texts."""


def id_text(id: Hashable) -> str:
    """Return an id as text: names as they are, rows that have come back with the number of the version, else as Python writes it.

    Equal ids have equal texts, and no others: `1`, `1.0` and `True` are `1`, and so is `Decimal(1)`; a fraction that no float is
    stands as `1/3`; tuples, sets and dataclasses hold the texts of what they hold; a time is in UTC if it has a zone. What is of
    a class of its own is `<module.Class ...>`. Raises `SchemaError` for an object that has no text but its place in memory.

    >>> id_text("a"), id_text(5), id_text("5"), id_text(("w", 5)), id_text(RowVersion("a", 1)), id_text((True, 1.0))
    ('a', '5', "'5'", "('w', 5)", 'a#1', '(1, 1)')
    """
    if isinstance(id, RowVersion):
        return f"{id_text(id.id)}#{id.version}"
    if isinstance(id, str) and _NAME.fullmatch(id) and id not in _WORDS:
        return str.__str__(id)
    return _text(id)


def _text(id: Any) -> str:
    """Return an id as text, in which names too stand in quotes."""
    kind = type(id)
    if kind is int or id is None:
        return str(id)
    if isinstance(id, str):
        return str.__repr__(id)
    if isinstance(id, RowVersion):
        return f"{_text(id.id)}#{id.version}"
    if isinstance(id, (Number, np.bool_)):
        return _number(id)
    if isinstance(id, tuple):
        return f"({', '.join(map(_text, id))}{',' if len(id) == 1 else ''})"
    if isinstance(id, frozenset):
        return f"frozenset({{{', '.join(sorted(map(_text, id)))}}})"
    if isinstance(id, datetime) and id.tzinfo is not None:
        return repr(plain(id).astimezone(UTC))
    if isinstance(id, (datetime, date, time, timedelta, bytes, UUID, np.generic)) or id is Ellipsis:
        return repr(plain(id))
    return f"<{kind.__module__}.{kind.__qualname__} {_of_its_own(id)}>"


def _of_its_own(id: Any) -> str:
    """Return what is said of an object of a class that is none of Python's own."""
    if isinstance(id, Enum):
        return str(id.name)
    if is_dataclass(id) and not isinstance(id, type):
        return ", ".join(f"{name}={_text(value)}" for name, value in fields_of(id))
    if getattr(type(id), "__repr__", None) == object.__repr__:
        raise SchemaError(
            f"the id {id!r} has no text that tells it from others",
            hint="take ids that are text, numbers, dates, or tuples of these; or write a __repr__ that says what __eq__ compares",
        )
    return repr(id)


def _number(id: Any) -> str:
    """Return a number as text: of all that are equal, whatever their types, the one that a whole number or a float has."""
    id = id.real if isinstance(id, (complex, np.complexfloating)) and not id.imag else plain(id)
    for simple in (int, float):
        with suppress(TypeError, ValueError, OverflowError):
            if (found := simple(id)) == id:
                return str(found)
    return str(Fraction(id)) if isinstance(id, (Decimal, Rational)) and not is_nan(id) else repr(id)


def id_texts(ids: Ids) -> Any:
    """Return ids as an Arrow array of texts.

    >>> id_texts(VersionedIds(np.array([7, 8]), np.array([0, 1]))).to_pylist()
    ['7', '8#1']
    """
    versions: Parts = []
    rows = ids
    if isinstance(ids, VersionedIds):
        rows, versions = ids.columns[0], [_version_texts(ids.columns[1])]
    parts = _written(rows)
    return text_array(list(map(id_text, ids.tolist()))) if parts is None else _joined([*parts, *versions], len(ids))


def _written(ids: Ids | AnyColumn) -> Parts | None:
    """Return the texts of ids that are made of columns of integers, and of held ones; None of others."""
    if isinstance(ids, np.ndarray):
        kind = ids.dtype.kind
        return [_integer_texts(ids)] if kind == "i" else [_float_texts(ids)] if kind == "f" else None
    if isinstance(ids, DeferredColumn):
        return [_held_texts(ids)]
    if isinstance(ids, PairIds):
        return _tuple([_written_inside(column) for column in ids.columns])
    if not isinstance(ids, WindowIds):
        return None
    starts, leaves, ordinals = ids.parts
    path = [] if ids.keys is None else [_path(ids.keys, leaves)]
    return _tuple([[repr(ids.label)], *path, _written(starts), ["0"] if ordinals is None else _written(ordinals)])


def _written_inside(column: Any) -> Parts | None:
    """Return the texts of a part of ids, which may be names, and None where there is no row."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        values = column.tolist()
        return [text_array(list(map(repr, values)))] if distinct(map(type, values)) <= {int, str, NoneType} else None
    return _written(column)


def _held_texts(column: DeferredColumn) -> Chosen | Known:
    if (dictionary := column.dictionary) is not None:
        return Known(column.codes, partial(dictionary.cached, _texts_of_all, join=_one_behind_the_other))
    codes, values = column.distinct()
    return (
        Known(codes, partial(_texts_of_all, values))
        if isinstance(values, DeferredColumn)
        else Chosen(_texts(values.tolist()), codes)
    )


def _texts_of_all(given: AnyColumn, before: str, behind: str) -> Any:
    import pyarrow as pa

    quoted = given.source.quoted(given.rows, before, behind) if isinstance(given, DeferredColumn) else None
    if quoted is not None:
        return quoted
    values = given.column if isinstance(given, DeferredColumn) else given
    texts = as_arrow(values).cast(pa.string()) if values.dtype.kind == "i" else text_array(_texts(values.tolist()))
    return surround(before, texts, behind)


def _one_behind_the_other(one: Any, other: Any) -> Any:
    import pyarrow as pa

    return pa.concat_arrays([one, other])


def _texts(values: list[Any]) -> list[str]:
    """Return the texts of the `payload_key`s of values."""
    return (
        list(map(repr, values)) if distinct(map(type, values)) <= _AS_PYTHON else [_text(payload_key(value)) for value in values]
    )


def _float_texts(floats: Column) -> Chosen:
    """Return floats as texts, of which equal ones are written once."""
    encoded = as_arrow(floats).dictionary_encode()
    return Chosen(_texts(encoded.dictionary.to_pylist()), as_numpy(encoded.indices))


def _path(keys: KeyTable, leaves: Sequence[AnyColumn]) -> Parts | None:
    """Return what `keys.spell` gives, as text."""
    mine = len(keys.exprs)
    parts = [_written(column) for column in leaves[len(leaves) - mine :]]
    own = parts[0] if keys.schema is None else _tuple(parts)
    return own if keys.around is None else _tuple([_path(keys.around, leaves[:-mine]), own])


def _tuple(parts: Sequence[Parts | None]) -> Parts | None:
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    between = [each for part in found for each in (", ", *part)][1:]
    return ["(", *between, ",)" if len(parts) == 1 else ")"]


def _integer_texts(integers: Column) -> Any:
    """Return numbers as texts: windows' starts come in runs, as rows are in order of LE; keys are small, or many."""
    import pyarrow as pa

    firsts = np.concatenate([[0], flatnonzero(integers[1:] != integers[:-1]) + 1])
    if len(firsts) * _FEW <= len(integers):
        places = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(integers)))
        return Chosen(list(map(str, integers[firsts].tolist())), places)
    if len(integers) and least(integers) >= 0 and (last := largest(integers)) < min(4 * len(integers), _KNOWN):
        return Known(integers, partial(_texts_until, last.bit_length()))
    return as_arrow(integers).cast(pa.string())


@lru_cache(maxsize=8)
def _texts_until(bits: int, before: str, behind: str) -> Any:
    """Return the texts of all numbers of so many bits, between other texts."""
    import pyarrow as pa

    return surround(before, as_arrow(np.arange(1 << bits)).cast(pa.string()), behind)


def _version_texts(versions: Column) -> Chosen:
    """Return what stands behind ids for their versions, most of which are small."""
    known, places = range(largest(versions) + 1), versions
    if len(known) * _FEW > len(versions):
        distinct, places = np.unique(versions, return_inverse=True)
        known = distinct.tolist()
    return Chosen([f"#{version}" if version else "" for version in known], places)


def _joined(parts: Parts, n_rows: int) -> Any:
    """Return the texts that parts make in each row; those that stand side by side are put together first where they are few."""
    merged: Parts = []
    for part in parts:
        together = _together(merged[-1], part) if merged else None
        merged[-1:] = [*merged[-1:], part] if together is None else [together]
    return _side_by_side([_choice(part, n_rows) for part in merged])


def _choice(part: Any, n_rows: int) -> tuple[Any, Rows]:
    """Return a part as an Arrow array of texts, and the place of each row's text in it."""
    if isinstance(part, str):
        return text_array([part]), np.zeros(n_rows, dtype=np.intp)
    if isinstance(part, Chosen):
        return text_array(part.texts), part.places
    texts, places = (part.between(part.before, part.behind), part.numbers) if isinstance(part, Known) else (part, None)
    if places is not None and len(texts) > _WORTH * n_rows:
        texts, places = texts.take(as_arrow(places)), None
    return texts, np.arange(n_rows) if places is None else places


def _side_by_side(columns: Sequence[tuple[Any, Rows]]) -> Any:
    """Return the texts of some columns in each row, one behind the other: taken in this order they already are one text."""
    import pyarrow as pa

    if len(columns) == 1:
        texts, places = columns[0]
        return texts.take(as_arrow(places))
    firsts = np.cumsum([0, *(len(texts) for texts, _ in columns)])
    places = np.stack([places + first for (_, places), first in zip(columns, firsts[:-1], strict=True)], axis=1)
    taken = pa.concat_arrays([texts for texts, _ in columns]).take(as_arrow(places.ravel()))
    _, offsets, content = taken.buffers()
    stops = np.frombuffer(offsets, dtype=np.int32)[: len(taken) + 1 : len(columns)]
    return pa.Array.from_buffers(pa.string(), len(places), [None, pa.py_buffer(stops.copy()), content])


def _together(one: Any, other: Any) -> str | Chosen | Known | None:
    """Return two parts as one; None if one of them is an array, or there are too many pairs of their texts."""
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, str) and isinstance(other, Known):
        return other._replace(before=one + other.before)
    if isinstance(one, Known) and isinstance(other, str):
        return one._replace(behind=one.behind + other)
    if isinstance(one, str) and isinstance(other, Chosen):
        return Chosen([one + text for text in other.texts], other.places)
    if isinstance(one, Chosen) and isinstance(other, str):
        return Chosen([text + other for text in one.texts], one.places)
    if isinstance(one, Chosen) and isinstance(other, Chosen) and len(one.texts) * len(other.texts) * _FEW <= len(one.places):
        return Chosen(
            [first + second for first in one.texts for second in other.texts], one.places * len(other.texts) + other.places
        )
    return None
