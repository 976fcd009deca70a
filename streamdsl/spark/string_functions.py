"""Python's string methods and functions as SQL: by code point, with Python's definition of white space."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Final

from streamdsl.spark.column_types import BOOL, INT, STR
from streamdsl.spark.sql_text import NotNative, Sql, quote
from streamdsl.spark.task_errors import error_marker, not_none, python_error

_SIDES: Final = {".strip": "BOTH", ".lstrip": "LEADING", ".rstrip": "TRAILING"}
_INT32: Final = 2**31 - 1


@functools.cache
def _white_space() -> str:
    return quote("".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1)))))


def _test(name: str, text: Sql, part: Sql) -> Sql:
    return Sql(f"{name.removeprefix('.')}({text.text}, {part.text})", BOOL, text.raises or part.raises)


def _find(name: str, text: Sql, part: Sql) -> Sql:
    return Sql(f"(cast(locate({part.text}, {text.text}) as bigint) - 1L)", INT, text.raises or part.raises)


def _length(name: str, text: Sql) -> Sql:
    return Sql(f"cast(char_length({text.text}) as bigint)", INT, text.raises)


def _strip(name: str, text: Sql, characters: Sql | None = None) -> Sql:
    text = not_none(text, python_error(name, ("str",), {0: None}))
    if characters is None or characters.kind == "none":
        return Sql(f"trim({_SIDES[name]} {_white_space()} FROM {text.text})", STR, text.raises)
    given = f"coalesce({characters.text}, {_white_space()})" if characters.type.nullable else characters.text
    return Sql(f"trim({_SIDES[name]} {given} FROM {text.text})", STR, text.raises or characters.raises)


def _is_space(name: str, text: Sql) -> Sql:
    return Sql(f"({text.text} <> '' AND trim(BOTH {_white_space()} FROM {text.text}) = '')", BOOL, text.raises)


def _without_end(name: str, text: Sql, part: Sql) -> Sql:
    raises, rest = text.raises or part.raises, f"char_length({text.text}) - char_length({part.text})"
    if name == ".removeprefix":
        return Sql(f"if(startswith({text.text}, {part.text}), right({text.text}, {rest}), {text.text})", STR, raises)
    return Sql(f"if(endswith({text.text}, {part.text}), left({text.text}, {rest}), {text.text})", STR, raises)


def _replace(name: str, text: Sql, old: Sql, new: Sql) -> Sql:
    if not old.literal or old.text == "''":
        raise NotNative("Spark replaces an empty text by nothing")
    return Sql(f"replace({text.text}, {old.text}, {new.text})", STR, text.raises or new.raises)


def _item(name: str, text: Sql, index: Sql) -> Sql:
    size = f"char_length({text.text})"
    place = f"if({index.text} < 0L, {index.text} + {size}, {index.text})"
    outside = error_marker(python_error(name, ("str", "int"), {1: _INT32}))
    found = f"substring({text.text}, cast({place} + 1L as int), 1)"
    return Sql(f"CASE WHEN {place} >= 0L AND {place} < {size} THEN {found} ELSE {outside} END", STR, True)


def _slice(name: str, text: Sql, start: Sql, stop: Sql, step: Sql) -> Sql:
    text = not_none(text, python_error(name, ("str", "none", "none", "none"), {0: None}))
    raises = text.raises or start.raises or stop.raises
    lo, hi = _literal(start, "0"), _literal(stop, str(_INT32))
    if lo is not None and hi is not None:
        return Sql(f"substring({text.text}, {lo + 1}, {max(hi - lo, 0)})", STR, raises)
    size = f"char_length({text.text})"
    first, last = _bound(start, size, "0L"), _bound(stop, size, size)
    return Sql(f"substring({text.text}, cast({first} + 1L as int), cast(greatest({last} - {first}, 0L) as int))", STR, raises)


def _literal(bound: Sql, otherwise: str) -> int | None:
    """Return the value of a bound that is a non-negative constant, else None."""
    digits = otherwise if bound.kind == "none" else bound.text.removesuffix("L")
    return min(int(digits), _INT32 - 1) if digits.isdigit() else None


def _bound(bound: Sql, size: str, otherwise: str) -> str:
    """Return the SQL of a slice bound as an index, by Python's rules: negative bounds count from the end, and all are clamped."""
    if bound.kind == "none":
        return otherwise
    place = f"if({bound.text} < 0L, greatest({bound.text} + {size}, 0L), least({bound.text}, {size}))"
    return f"if({bound.text} IS NULL, {otherwise}, {place})" if bound.type.nullable else place


SQL: Final[Mapping[str, Callable[..., Sql]]] = {
    **dict.fromkeys((".startswith", ".endswith", "contains"), _test),
    **dict.fromkeys(_SIDES, _strip),
    ".find": _find,
    ".replace": _replace,
    ".isspace": _is_space,
    **dict.fromkeys((".removeprefix", ".removesuffix"), _without_end),
    "length": _length,
    "[]": _item,
    "[:]": _slice,
}
