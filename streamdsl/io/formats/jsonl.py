"""JSON lines: an object in each line, all with the same keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamdsl.errors import SchemaError
from streamdsl.io.columns import Columns, RowColumns
from streamdsl.io.files import Files, Format, SparkFormat
from streamdsl.io.layout import as_schema
from streamdsl.io.times import Place, no_start
from streamdsl.result import Result
from streamdsl.temporal.json_text import loads

_OBJECTS: Final = 'each line is an object in UTF-8, such as {"le": 1, "v": 7}'


@dataclass(frozen=True, slots=True)
class JsonLines(Files):
    """Files of JSON lines; keys that are not needed are allowed if there is a payload type.

    A line without the field `start` is refused as an event with a null LE.
    """

    def look(self, path: str) -> Columns | None:
        """Return the first row."""
        return next((RowColumns(list(row), [row]) for _, row in _json_rows(path)), None)

    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield the lines that are not blank."""
        assert needed is not None
        check = self._check(needed)
        held: list[dict[str, Any]] = []
        first = 0
        for line, row in _json_rows(path):
            if self.start in needed and self.start not in row:
                raise no_start(Place(self.start, path, first), len(held))
            check(row, path, line)
            held.append(row)
            if len(held) == rows:
                yield RowColumns(needed, held)
                first, held = first + rows, []
        if held:
            yield RowColumns(needed, held)

    def _check(self, needed: Sequence[str]) -> Callable[[dict[str, Any], str, int], None]:
        wanted = frozenset(needed)
        extras = as_schema(self.payload) is not None

        def check(row: dict[str, Any], path: str, line: int) -> None:
            keys = row.keys()
            if keys == wanted or (extras and keys >= wanted):
                return
            wrong = ", ".join(sorted(map(repr, wanted - keys or keys - wanted)))
            word = "lacks" if wanted - keys else "has also"
            raise SchemaError(
                f"{path}, line {line} {word} {wrong}; the fields are: {', '.join(needed)}",
                hint="every payload of a stream has the same fields; null is a value, and payload= picks fields",
            )

        return check


def _json_rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                row = loads(text)
            except ValueError as error:
                raise SchemaError(f"{path}, line {number} is no JSON: {error}", hint=_OBJECTS) from None
            if not isinstance(row, dict):
                raise SchemaError(f"{path}, line {number} holds no JSON object: {text.strip()[:80]}", hint=_OBJECTS)
            yield number, row


def _write(result: Result[Any], path: Path) -> None:
    from streamdsl.io.json_columns import json_rows

    with path.open("w", encoding="utf-8") as file:
        for batch in result.to_arrow().to_batches(1 << 16):
            file.writelines(f"{row}\n" for row in json_rows(batch))


FORMAT: Final = Format(
    "jsonl", "JSON lines", (".jsonl", ".ndjson", ".json"), JsonLines, _write, SparkFormat("json", {"inferTimestamp": "true"})
)
