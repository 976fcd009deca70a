"""The files that a job's sources read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamdsl.errors import QueryError
from streamdsl.io.binding import Bound
from streamdsl.io.sources import bind, read_csv, read_jsonl, read_parquet
from streamdsl.plan.node import Source

KINDS: Final = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


@dataclass(frozen=True, slots=True)
class Input:
    """A file, or a folder of files, of one kind: `parquet`, `csv` or `jsonl`."""

    source: Source
    path: Path
    kind: str

    def files(self) -> list[Path]:
        """Return the files in order of their times, as Spark takes them."""
        return sorted(_files(self.path), key=lambda path: (path.stat().st_mtime_ns, path.name))

    def read(self, files: Sequence[Path]) -> Bound:
        """Return what is in some of the files: `le`, and `re` if there is such a column; or physical events."""
        read = {"parquet": read_parquet, "csv": read_csv, "jsonl": read_jsonl}[self.kind]
        paths = [str(path) for path in files]
        return bind(read(paths, self.source.payload, unit=self.source.time_unit), self.source)


def inputs_of(given: Sequence[str], sources: Mapping[str, Source], own: Sequence[str]) -> dict[str, Input]:
    """Return the inputs that `name=path` texts give the sources; `own` bring their own rows. Raises `QueryError`."""
    paths = dict(map(_pair, given))
    listed = ", ".join(sources) or "(none)"
    for name in paths:
        if name not in sources:
            raise QueryError(f"there is no source {name!r}; the sources of this query are: {listed}")
    for name in sources:
        if name not in paths and name not in own:
            raise QueryError(f"the source {name!r} has no input; the sources are: {listed}", hint=f"--input {name}=path")
    return {name: _input(sources[name], Path(path)) for name, path in paths.items()}


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise QueryError(f"{text!r} does not say which source reads what", hint="--input name=path")
    return name, path


def _input(source: Source, path: Path) -> Input:
    if not path.exists():
        names = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
        there = [name for name in names if not name.startswith((".", "_"))]
        listed = f"; in {path.parent} there are: {', '.join(there)}" if there else ""
        raise QueryError(f"the input of {source.source!r} is not there: {path}{listed}", hint="give a file, or a folder of files")
    kinds = sorted({KINDS[file.suffix] for file in _files(path)})
    if len(kinds) != 1:
        what = (
            f"holds files of several kinds: {', '.join(kinds)}" if kinds else "is no file, or folder of files, that can be read"
        )
        raise QueryError(f"the input of {source.source!r} {what}: {path}", hint=f"files end in {', '.join(KINDS)}")
    return Input(source, path, kinds[0])


def _files(path: Path) -> list[Path]:
    """Return the files that are meant by a path; names that begin with a dot or a line are not."""
    found = [path] if path.is_file() else path.rglob("*")
    return [file for file in found if file.suffix in KINDS and file.is_file() and file.name[0] not in "._"]
