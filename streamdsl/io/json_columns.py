"""Rows of an Arrow table as texts of JSON, made column by column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring, encode_basestring_ascii
from math import isfinite
from typing import Any, Final

import pyarrow as pa

_WORDS: Final = {None: "null", True: "true", False: "false"}
_NUMBERS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_PLAIN: Final = (
    *(pa.types.is_timestamp, pa.types.is_date, pa.types.is_time, pa.types.is_duration),
    *(pa.types.is_decimal, pa.types.is_binary, pa.types.is_large_binary),
)
"""The types whose values JSON has no form for."""


def json_rows(table: Any, plain: Callable[[Any], str] = str) -> list[str]:
    """Return each row as the text of an object, as `json.dumps` writes it with `default=plain`, and no letter escaped.

    >>> json_rows(pa.table({"le": [3, None], "zone": ["é", 'a "b"']}))
    ['{"le": 3, "zone": "é"}', '{"le": null, "zone": "a \\\\"b\\\\""}']
    """
    names = (encode_basestring(name).replace("%", "%%") for name in table.column_names)
    template = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
    if not table.num_columns:
        return [template] * table.num_rows
    return list(map(template.__mod__, zip(*(json_values(column, plain) for column in table.columns), strict=True)))


def json_values(column: Any, plain: Callable[[Any], str] = str, *, is_ascii: bool = False) -> list[str]:
    """Return the values of a column as texts of JSON; with `is_ascii` other letters are escaped.

    >>> json_values(pa.chunked_array([[1.0, None, float("nan")]])), json_values(pa.chunked_array([["é"]]), is_ascii=True)
    (['1.0', 'null', 'NaN'], ['"\\\\u00e9"'])
    """
    return list(_texts(column.type, column.to_pylist(), plain, encode_basestring_ascii if is_ascii else encode_basestring))


def _texts(kind: Any, values: list[Any], plain: Callable[[Any], str], quoted: Callable[[str], str]) -> Iterable[str]:
    if pa.types.is_null(kind) or pa.types.is_boolean(kind):
        return map(_WORDS.__getitem__, values)
    if pa.types.is_integer(kind):
        return ["null" if value is None else int.__repr__(value) for value in values]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ["null" if value is None else quoted(value) for value in values]
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        return ["null" if value is None else repr(value) if isfinite(value) else _NUMBERS[repr(value)] for value in values]
    if any(test(kind) for test in _PLAIN):
        return ["null" if value is None else quoted(plain(value)) for value in values]
    return map(json.JSONEncoder(default=plain, ensure_ascii=quoted is encode_basestring_ascii).encode, values)
