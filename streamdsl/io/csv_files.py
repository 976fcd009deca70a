"""CSV files: inference of column kinds, and reading in pieces."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import pandas as pd

from streamdsl.errors import SchemaError
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.table import Column, column_of
from streamdsl.io.columns import check_names
from streamdsl.io.files import PIECE_ROWS
from streamdsl.io.layout import PayloadLike, as_schema
from streamdsl.io.pandas_columns import PandasColumns
from streamdsl.temporal import plain

Kind: TypeAlias = Literal[
    "empty", "bool", "int", "float", "any bool", "any int", "any float", "text", "datetime", "date", "decimal"
]
"""How the texts of a column are parsed: `int` by pandas, `any int` one by one in Python and beyond int64; likewise the others."""
_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
_WIDER: Final[Sequence[Kind]] = ("empty", "int", "any int", "float", "any float")
_DTYPES: Final[dict[Kind, str]] = {"bool": "boolean", "int": "Int64", "float": "Float64"}
_HINTS: Final[dict[Any, Kind]] = {
    bool: "any bool",
    int: "any int",
    float: "any float",
    str: "text",
    datetime: "datetime",
    date: "date",
    Decimal: "decimal",
}
_PARSES_EXACTLY: Final = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
"""Whether pandas parses a float to the nearest value; if not, Python parses floats."""


def _moment(text: str) -> Any:
    moment = datetime.fromisoformat(text)
    return plain(pd.Timestamp(text)) if re.search(r"\.\d{7}", text) else moment


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_CONVERTERS: Final[dict[Kind, Callable[[str], Any]]] = {
    "any bool": _truth,
    "any int": int,
    "any float": float,
    "datetime": _moment,
    "date": date.fromisoformat,
    "decimal": Decimal,
}


class CsvColumns:
    """The columns of a piece of a CSV file; a kind that pandas does not parse is converted on reading."""

    memo = None

    def __init__(self, frame: pd.DataFrame, kinds: Mapping[str, Kind], file: str, first_row: int) -> None:
        self._columns = PandasColumns(frame)
        self.names = self._columns.names
        self.size = self._columns.size
        self.times = self._columns.times
        self._kinds = kinds
        self._file = file
        self._first_row = first_row

    def values(self, name: str) -> Column:
        """Return a column as payload values."""
        column = self._columns.values(name)
        if self._kinds.get(name, "text") not in _CONVERTERS:
            return column
        kind, place = self._kinds[name], f"of {self._file}"
        texts = enumerate(column.tolist(), self._first_row)
        return column_of([parsed(text, kind, f"row {row} {place}", name) for row, text in texts])

    held = values


def parsed(text: Any, kind: Kind, place: str, name: str) -> Any:
    """Return what a text of a column of this kind says; a null stays None. Raises `SchemaError`, which names the place."""
    try:
        return _CONVERTERS.get(kind, str)(text) if isinstance(text, str) else text
    except (ValueError, ArithmeticError):
        raise SchemaError(f"{place}, column {name!r}: {text!r} is no {kind.split()[-1]}") from None


def kinds_of(paths: Sequence[str], declared: Mapping[str, Kind], needed: Sequence[str]) -> dict[str, Kind]:
    """Return the kinds of the needed columns: the declared one, else the narrowest that holds all fields of all files."""
    open_names = [name for name in needed if name not in declared]
    found: dict[str, Kind] = dict.fromkeys(open_names, "empty")
    for path in paths if open_names else []:
        for frame in _frames(path, {}, open_names, PIECE_ROWS):
            for name in frame.columns:
                found[name] = _wider(found[name], _kind_of(frame[name]))
    return {name: kind for name, kind in {**declared, **found}.items() if name in needed}


def csv_columns(path: str, kinds: Mapping[str, Kind], needed: Sequence[str] | None, rows: int) -> Iterator[CsvColumns]:
    """Yield a file in pieces of at most so many rows, with columns of these kinds; pandas infers the others."""
    dtypes = {name: _DTYPES.get(kind, "string") for name, kind in kinds.items()}
    row = 0
    for frame in _frames(path, dtypes, needed, rows):
        yield CsvColumns(frame, kinds, path, row)
        row += len(frame)


def _frames(path: str, dtypes: Mapping[str, str], needed: Sequence[str] | None, rows: int) -> Iterator[pd.DataFrame]:
    """Yield the needed columns of a file in pieces, at least one; values stay exact, and only an empty field is null."""
    try:
        check_names(_header(path), path)
        with pd.read_csv(
            path,
            dtype=dict(dtypes),
            usecols=None if needed is None else needed.__contains__,
            chunksize=rows,
            dtype_backend="numpy_nullable",
            keep_default_na=False,
            na_values=[""],
            low_memory=False,
        ) as frames:
            for frame in frames:
                if not isinstance(frame.index, pd.RangeIndex):
                    raise SchemaError(f"{path}: the rows have more fields than the header has names")
                yield frame
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise SchemaError(f"{path} is no CSV with a header: {error}") from None
    except ValueError as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(f"{path} cannot be read: {error}", hint="a CSV file is text in UTF-8, with a header") from None


def _header(path: str) -> list[str]:
    """Return the column names as the file has them: pandas itself would rename duplicates."""
    first: Any = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
    return list(first.iloc[0])


def _kind_of(column: pd.Series[Any]) -> Kind:
    """Return the narrowest kind that holds the texts of a column's piece."""
    known = column.dropna()
    if known.empty:
        return "empty"
    for kind, dtype in _DTYPES.items():
        if column.dtype == dtype:
            return "any float" if kind == "float" and not _PARSES_EXACTLY else kind
    texts = known.astype("string").tolist()
    if all(_INTEGER.fullmatch(text) for text in texts):
        return "any int"
    return "any float" if all(_NUMBER.fullmatch(text) for text in texts) else "text"


def _wider(a: Kind, b: Kind) -> Kind:
    """Return the narrowest kind that holds the texts of both kinds.

    >>> _wider("int", "float"), _wider("any int", "float"), _wider("int", "bool")
    ('float', 'any float', 'text')
    """
    if a == b or b == "empty":
        return a
    if a == "empty":
        return b
    if {a, b} == {"any int", "float"}:
        return "any float"
    return max(a, b, key=_WIDER.index) if a in _WIDER and b in _WIDER else "text"


def declared_kinds(payload: PayloadLike) -> dict[str, Kind]:
    """Return the kinds of the columns that a payload type annotates; `X | None` has the kind of `X`.

    >>> declared_kinds(str), declared_kinds(dict)
    ({'value': 'text'}, {})
    """
    schema = as_schema(payload)
    if schema is None:
        return {}
    cls: Any = (payload.cls or payload.kind) if isinstance(payload, Schema) else payload
    hints = {"value": cls} if schema.shape is Shape.SCALAR else _hints(cls)
    kinds = {name: _HINTS.get(_bare(hints.get(name))) for name in schema.names}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _hints(cls: Any) -> Mapping[str, Any]:
    if cls is None:
        return {}
    try:
        return typing.get_type_hints(typing.get_origin(cls) or cls)
    except Exception as error:
        raise SchemaError(
            f"the types of the fields of {cls.__name__} cannot be read: {error}",
            hint="a CSV file's columns are parsed by them, so the names in the annotations must exist at run time",
        ) from None


def _bare(hint: Any) -> Any:
    """Return the type behind a `NewType`, a `Literal` of one type, or a type that may also be None."""
    if isinstance(hint, typing.NewType):
        return _bare(hint.__supertype__)
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        rest = list({type(value) for value in typing.get_args(hint)} - {type(None)})
    elif origin in (typing.Union, types.UnionType):
        rest = [item for item in typing.get_args(hint) if item is not type(None)]
    else:
        return hint
    return _bare(rest[0]) if len(rest) == 1 else None
