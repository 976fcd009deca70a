"""Sources of JSON lines and of CSV: files, finished or growing, and the standard input."""

from __future__ import annotations

import csv
import os
import re
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import IO, TYPE_CHECKING, Any, Final

from streamdsl.connect.line_reader import AT_ONCE, LineReader, items_of_lines
from streamdsl.connect.made_source import MadeSource, lifetimes
from streamdsl.connect.protocols import END, Batch, End, OpenSource, Position, Source
from streamdsl.connect.readable_files import plain_path
from streamdsl.errors import InputError
from streamdsl.redaction import without_secrets
from streamdsl.temporal.json_text import loads

if TYPE_CHECKING:
    from streamdsl.io.csv_files import Kind

_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)")
_INTEGERS: Final = re.compile(r"([+-]?\d+\n)+")
_FLOATS: Final = re.compile(r"([+-]?(\d+\.\d*([eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+([eE][+-]?\d+)?)\n)+")
_NOT_TEXT: Final = re.compile(rf"(?m)^({_NUMBER.pattern})?$(?=\n)")
"""Lines that are all integers, or all floats that look like none; and one that is a number, or empty."""


def jsonl_file(
    path: str | os.PathLike[str],
    *,
    start: str | None = None,
    end: str | None = None,
    follow: bool = False,
    decode: Callable[[str], Any] | None = None,
    at_once: int = AT_ONCE,
    storage_options: Mapping[str, Any] | None = None,
) -> Source:
    """Return a source of a file of JSON lines: objects with `le`, `re` for a lifetime, and the payload's fields.

    LE and RE are in the fields `start` and `end`; where neither is named, in those that the query's source names, by default `le`
    and, if it is there, `re`. Without an RE rows are point events.

    A file that ends in `.gz` or `.zst` is compressed, and finished. It is a path, or an address that fsspec opens with
    `storage_options`, such as `s3://bucket/trips.jsonl` with s3fs.

    Objects with `kind`, `id` and `re_new` too are physical events, CTIs among them. `decode` makes something else of a line: an
    event, a row `(le, re, payload)`, a dict, or None to pass it over. With `follow` the file grows, and may be still to come;
    else its end is the end of the source. The position is where the next line begins. A line that fails is a `BadRecord`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamdsl.connect import jsonl_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.jsonl")
    ...     _ = path.write_text('{"le": 3, "fare": 7}\\n{"le": 14, "fare": 9}\\n')
    ...     jsonl_file(path).open(None).poll(0).data
    [{'le': 3, 'fare': 7}, {'le': 14, 'fare': 9}]
    """

    name, decoded = plain_path(path), decode or json_object
    return MadeSource(
        f"jsonl_file({without_secrets(name)!r})",
        lambda position: LineReader(name, position, decoded, follow, at_once, options=storage_options),
        lifetimes(start, end),
    )


def csv_file(
    path: str | os.PathLike[str],
    *,
    payload: type | None = None,
    start: str | None = None,
    end: str | None = None,
    follow: bool = False,
    at_once: int = AT_ONCE,
    storage_options: Mapping[str, Any] | None = None,
) -> Source:
    """Return a source of a CSV file with a header, whose columns are those that `jsonl_file` has as keys.

    A field has the type that the class `payload` declares; without it each is what it looks like: an integer, a float, a text,
    and an empty one None. `start`, `end`, addresses, `follow`, the position and what fails are as for `jsonl_file`; a record may
    go over several lines.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamdsl.connect import csv_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "trips.csv")
    ...     _ = path.write_text('le,fare,zone\\n3,7.5,A\\n14,,B\\n')
    ...     csv_file(path).open(None).poll(0).data
    [{'le': 3, 'fare': 7.5, 'zone': 'A'}, {'le': 14, 'fare': None, 'zone': 'B'}]
    """

    from streamdsl.io.csv_files import declared_kinds

    name, kinds = plain_path(path), declared_kinds(payload)
    return MadeSource(
        f"csv_file({without_secrets(name)!r})",
        lambda position: _CsvReader(name, position, kinds, follow, at_once, storage_options),
        lifetimes(start, end),
    )


class _CsvReader(LineReader):
    """The first record names the columns; the position keeps them."""

    def __init__(
        self,
        path: str,
        position: Position,
        kinds: Mapping[str, Kind],
        follow: bool,
        at_once: int,
        options: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(path, position, self._row, follow, at_once, quotes=True, options=options)
        from streamdsl.io.csv_files import parsed

        self._names: list[str] | None = position["names"] if position else None
        self._kinds, self._parsed = kinds, parsed

    @property
    def position(self) -> Position:
        return {"offset": self._offset, "line": self._line, "names": self._names}

    def _decoded(self, records: list[bytes]) -> list[Any] | None:
        """Return rows that were read by columns, without the header, None where a record is not as the others are."""
        try:
            text = b"".join(records).decode("utf-8-sig" if self._names is None else "utf-8")
            rows = list(csv.reader(StringIO(text, newline=""), strict=True))
            if len(rows) != len(records) or len(set(map(len, rows))) != 1:
                return None
            names = self._names or rows.pop(0)
            if not rows or len(rows[0]) != len(names) or len(names) == 1:  # a blank one may be a value of one column
                return None
            values = [self._values(name, texts) for name, texts in zip(names, zip(*rows, strict=True), strict=True)]
        except Exception:  # which record it is, is found where each is read alone
            return None
        self._names = names
        return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]

    def _values(self, name: str, texts: Sequence[str]) -> Sequence[Any]:
        joined = "\n".join(texts) + "\n"
        if name not in self._kinds and joined.count("\n") == len(texts):
            if _INTEGERS.fullmatch(joined):
                return list(map(int, texts))
            if _FLOATS.fullmatch(joined):
                return list(map(float, texts))
            if not _NOT_TEXT.search(joined):
                return texts
        return [self._value(name, text) for text in texts]

    def _row(self, text: str) -> dict[str, Any] | None:
        fields = next(csv.reader([text], strict=True))
        if self._names is None:
            self._names = fields
            return None
        if len(fields) != len(self._names):
            raise ValueError(f"it has {len(fields)} fields, and there are {len(self._names)} columns")
        return {name: self._value(name, field) for name, field in zip(self._names, fields, strict=True)}

    def _value(self, name: str, text: str) -> Any:
        if text == "":
            return None
        if (kind := self._kinds.get(name)) is not None:
            return self._parsed(text, kind, "it", name)
        return int(text) if _INTEGER.fullmatch(text) else float(text) if _NUMBER.fullmatch(text) else text


def stdin_jsonl(
    stream: IO[bytes] | None = None,
    *,
    start: str | None = None,
    end: str | None = None,
    decode: Callable[[str], Any] | None = None,
) -> Source:
    """Return a source of the JSON lines of the standard input, or of another open stream of bytes, as of `jsonl_file`.

    What has been read is gone, so a restart goes on with what comes then: lines since the last micro-batch of a job that was
    killed are lost, of one that was stopped none. The position is the number of lines.
    """

    return MadeSource(
        "stdin_jsonl()",
        lambda position: _StreamReader(sys.stdin.buffer if stream is None else stream, position or 0, decode or json_object),
        lifetimes(start, end),
    )


class _StreamReader(OpenSource):
    """Reads what is there, without waiting for more than the timeout."""

    def __init__(self, stream: IO[bytes], lines: int, decode: Callable[[str], Any]) -> None:
        self._number, self._lines, self._decode = stream.fileno(), lines, decode
        self._rest = b""
        self._is_at_end = False

    def poll(self, timeout: float) -> Batch | End | None:
        if self._is_at_end:
            return END
        if not select.select([self._number], [], [], timeout)[0]:
            return None
        read = os.read(self._number, 1 << 16)
        self._is_at_end = not read
        *lines, self._rest = (self._rest + read).split(b"\n")
        if self._is_at_end and self._rest:
            lines.append(self._rest)
        return self._batch(lines) if lines else END if self._is_at_end else None

    def _batch(self, lines: list[bytes]) -> Batch:
        items, bad, places = items_of_lines(enumerate(lines, self._lines + 1), self._decode, "the input")
        self._lines += len(lines)
        return Batch(items, self._lines, bad, places)


def json_object(text: str) -> dict[str, Any]:
    """Return the object of a JSON text. Raises `InputError` for anything else."""
    found = loads(text)
    if not isinstance(found, dict):
        raise InputError("it is no JSON object")
    return found
