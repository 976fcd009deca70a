"""CSV with a header; only an empty field is None."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from streamdsl.io.columns import Columns
from streamdsl.io.files import Files, Format, SparkFormat
from streamdsl.result import Result

if TYPE_CHECKING:
    from streamdsl.io.csv_files import Kind


@dataclass(frozen=True, slots=True)
class CsvFiles(Files):
    """CSV files.

    A column has the kind that the payload type declares, else the narrowest one that holds all fields of all files, however they
    are split: bool, int, float or text.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    declared: Mapping[str, Kind] = field(init=False)

    in_columns: ClassVar[bool] = True
    apart: ClassVar[bool] = False

    def __post_init__(self) -> None:
        from streamdsl.io.csv_files import declared_kinds

        object.__setattr__(self, "declared", declared_kinds(self.payload))

    def read(self, path: str, needed: Sequence[str] | None, rows: int) -> Iterator[Columns]:
        """Yield the file's rows; columns of no known kind as pandas infers them."""
        from streamdsl.io.csv_files import csv_columns

        return csv_columns(path, self.kinds, needed, rows)

    def pieces(self, needed: Sequence[str]) -> Iterator[tuple[Columns, str, int]]:
        """Yield pieces whose columns have the kinds that all files together tell."""
        from streamdsl.io.csv_files import kinds_of

        return Files.pieces(replace(self, kinds=kinds_of(self.paths, self.declared, needed)), needed)


def _write(result: Result[Any], path: Path) -> None:
    result.to_pandas().to_csv(path, index=False)


FORMAT: Final = Format(
    "csv",
    "CSV",
    (".csv",),
    CsvFiles,
    _write,
    SparkFormat("csv", {"header": "true", "inferSchema": "true"}, {"header": "true"}),
)
