"""The files that a job's sources read."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from streamdsl.errors import NO_SOURCE, InputError, QueryError
from streamdsl.io.binding import Bound
from streamdsl.io.files import Format
from streamdsl.io.formats import BY_SUFFIX
from streamdsl.io.readers import bind, read_files
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.plan.node import Node, Source, sources
from streamdsl.plan.parameters import with_sources

_RECENT: Final = 2 * 10**9
"""Nanoseconds within which a file may change twice with equal time stamps."""


class InputFile:
    """A file of an input in its current state, with all its names and canonical paths.

    `seal` identifies the state by the file system's metadata; it is empty for a file that changed so recently that its times do
    not tell two states apart.
    """

    def __init__(self, source: str, path: Path, stat: os.stat_result) -> None:
        self.source, self.path, self.stat = source, path, stat
        self.names: list[str] = []
        self.addresses: list[str] = []
        soon = time.time_ns() - stat.st_ctime_ns < _RECENT
        self.seal = "" if soon else _seal(stat)

    @cached_property
    def digest(self) -> str:
        """A digest of the content."""
        try:
            return _digest(self.path)
        except PermissionError:
            return "unreadable"

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise `InputError` if the file changes while it is read: its writer is not done."""
        before = self.digest
        yield
        if not (self.seal and _seal(self.path.stat()) == self.seal) and _digest(self.path) != before:
            raise InputError(
                f"the file {self.path} was written to while it was read", hint="a file gets its name when it is there as a whole"
            )


def _seal(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class JobInput:
    """An input of a job: a file, or a folder of files of one format, which their suffix names."""

    source: Source
    path: Path

    @property
    def format(self) -> Format:
        """The format of all files. Raises `QueryError` for no files, or for several formats."""
        found = {each.name: each for file, _ in _readable_files(self.path) for each in [BY_SUFFIX[file.suffix]]}
        if len(found) != 1:
            several = f"holds files of several formats: {', '.join(sorted(found))}"
            what = several if found else "is not a file, or a folder of files, of a known format"
            hint = f"files end in {', '.join(BY_SUFFIX)}"
            raise QueryError(f"the input of {self.source.source!r} {what}: {self.path}", hint=hint)
        return next(iter(found.values()))

    def files(self) -> list[InputFile]:
        """Return the files in order of modification, as Spark does; a file with several names (hard links) is one."""
        found: dict[tuple[int, int], InputFile] = {}
        base = self.path.parent if self.path.is_file() else self.path
        for path, stat in sorted(_readable_files(self.path), key=lambda each: (each[1].st_mtime_ns, each[0].name)):
            file = found.setdefault((stat.st_dev, stat.st_ino), InputFile(self.source.source, path, stat))
            file.names.append(path.relative_to(base).as_posix())
            file.addresses.append(os.path.realpath(path))
        return list(found.values())

    def read(self, files: Sequence[InputFile]) -> Bound:
        """Return the rows of some of the files, with the lifetimes that the source names; or physical events."""
        paths, lives = [str(file.path) for file in files], self.source.lifetime_columns
        form = BY_SUFFIX[files[0].path.suffix].name
        read = read_files(paths, self.source.payload, lives.start, lives.end, self.source.time_unit, form, self.path)
        return bind(read, self.source)


def inputs_of(
    given: Sequence[str], sources: Mapping[str, Source], own: Sequence[str], mistakes: Mistakes, later: bool = False
) -> dict[str, JobInput]:
    """Return the inputs of the sources from `name=path` texts; sources in `own` are bound already, and files may come `later`.

    What is wrong with them is noted as mistakes.
    """
    pairs = [pair for text in given if (pair := mistakes.of(_pair, text)) is not None]
    names = [name for name, _ in pairs]
    mistakes.note(_misnamed(names, sources, own))
    right = [(name, path) for name, path in pairs if name in sources and names.count(name) == 1]
    found = {name: mistakes.of(_input, sources[name], Path(path), later) for name, path in right}
    return {name: each for name, each in found.items() if each is not None}


def _misnamed(names: Sequence[str], sources: Mapping[str, Source], own: Sequence[str]) -> Iterator[QueryError]:
    """Yield what is wrong with the names of sources: unknown, without an input, or with several."""
    listed = ", ".join(sources) or "(none)"
    for name in dict.fromkeys(names):
        if name not in sources:
            yield QueryError(f"there is no source {name!r}; the sources of this query are: {listed}", hint=NO_SOURCE)
        elif names.count(name) > 1:
            yield QueryError(f"the source {name!r} has several inputs", hint="put the files into one folder, by links if need be")
    for name in sources:
        if name not in names and name not in own:
            yield QueryError(f"the source {name!r} has no input; the sources are: {listed}", hint=f"--input {name}=path")


def with_lifetime_columns(plan: Node, starts: Sequence[str], ends: Sequence[str]) -> Node:
    """Return a plan whose sources name other columns of lifetimes, each of `column`, for all sources, or `source=column`.

    Raises `QueryError` for two columns of one source.

    >>> plan = with_lifetime_columns(Source("trips"), ["at"], ["trips=until"])
    >>> plan.lifetime_columns
    LifetimeColumns(start='at', end='until')
    """
    given = sources(plan)
    roles = {role: _columns(role, texts, given) for role, texts in (("start", starts), ("end", ends))}

    def renamed(node: Source) -> Source:
        named = {role: found[node.source] for role, found in roles.items() if node.source in found}
        return replace(node, lifetime_columns=replace(node.lifetime_columns, **named))

    return with_sources(plan, {name: renamed(node) for name, node in given.items()})


def _columns(role: str, texts: Sequence[str], named: Mapping[str, Source]) -> dict[str, str]:
    """Return the column of each source that has one; one of its own counts before one for all."""
    found: dict[str | None, str] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        key, value = (name, column) if equals and name in named else (None, text)
        if not value or key in found:
            raise QueryError(
                f"--{role} {text} names no column of {'the sources' if key is None else repr(key)}, or a second one",
                hint=f"--{role} COLUMN for all sources, or --{role} NAME=COLUMN once for each; they are: {', '.join(named)}",
            )
        found[key] = value
    return {name: found.get(name, found.get(None, "")) for name in named if name in found or None in found}


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise QueryError(f"{text!r} does not say which source reads what", hint="--input name=path")
    return name, path


def _input(source: Source, path: Path, later: bool) -> JobInput:
    if not path.exists():
        names = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
        there = [name for name in names if not name.startswith((".", "_"))]
        listed = f"; in {path.parent} there are: {', '.join(there)}" if there else ""
        raise QueryError(f"the input of {source.source!r} is not there: {path}{listed}", hint="give a file, or a folder of files")
    found = JobInput(source, path)
    if not (later and path.is_dir()):
        _ = found.format
    return found


def _readable_files(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files of a path; names of files or folders that begin with a dot or an underscore are ignored."""
    found: Iterable[Path] = [path] if path.is_file() else path.rglob("*")
    for file in found:
        inside = file.relative_to(path).parts or (file.name,)
        if file.suffix in BY_SUFFIX and not any(part[0] in "._" for part in inside) and file.is_file():
            with suppress(FileNotFoundError):  # removed meanwhile
                yield file, file.stat()
