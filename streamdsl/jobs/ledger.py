"""The ledger of the files that a stream has processed, which are identified by content and path, however the path is spelled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePath
from typing import Final

from streamdsl.engine.state.whole_files import write_new, write_whole
from streamdsl.errors import CheckpointError, InputError
from streamdsl.jobs.input_files import InputFile
from streamdsl.temporal.json_text import loads

_GARBLED: Final = "restore the checkpoint as a whole, or begin a new one, and a new output"


@dataclass(slots=True, eq=False)
class LedgerEntry:
    """The record of a file that was processed, or refused for a `reason`; it is stored at `at`.

    `names` are its paths in the input folder, `path` its canonical path, `seal` the file system's metadata, which is equal while
    the file is unchanged. Earlier versions stored only `source` and `path`. The names of the fields are part of the format.
    """

    at: Path
    source: str
    path: str
    names: Sequence[str] = ()
    digest: str = ""
    size: int = -1
    modified: int = 0
    seal: str = ""
    reason: str = ""

    @classmethod
    def of(cls, file: InputFile, at: Path, reason: str = "") -> LedgerEntry:
        """Return the record of a file."""
        size, modified = file.stat.st_size, file.stat.st_mtime_ns
        return cls(at, file.source, file.addresses[0], file.names, file.digest, size, modified, file.seal, reason)

    @classmethod
    def read(cls, at: Path) -> LedgerEntry:
        """Return a stored record. Raises `CheckpointError` if it cannot be read."""
        try:
            return cls(at, **loads(at.read_bytes()))
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{at} is no record of a processed file: {error}", hint=_GARBLED) from None

    def data(self) -> bytes:
        """Return the record as JSON."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self) if each.name != "at"}).encode()

    def has_content_of(self, file: InputFile) -> bool:
        """Say whether a file has the recorded content; a file with an equal seal is not read."""
        if self.size < 0:
            return self.path in file.addresses
        return self.size == file.stat.st_size and (self.seal == file.seal != "" or self.digest == file.digest)

    def may_be(self, file: InputFile) -> bool:
        """Say whether a file may be the recorded one: it is the same file, or none is at the recorded path any more."""
        try:
            return os.path.samefile(self.path, file.path)
        except OSError:
            return True

    def was_renamed_to(self, file: InputFile) -> bool:
        """Say whether a file is the recorded one under another name: a link, or renamed, which keeps the modification time."""
        linked_or_gone = self.source == file.source and self.has_content_of(file) and self.may_be(file)
        return linked_or_gone and (self.modified == file.stat.st_mtime_ns or os.path.exists(self.path))

    def update(self, file: InputFile) -> None:
        """Store the file's current names, path and seal, so that it is recognized without being read again."""
        names = list(dict.fromkeys((*self.names, *file.names)))
        path = self.path if self.path in file.addresses else file.addresses[0]
        now = (names, path, file.stat.st_mtime_ns, file.seal or self.seal)
        if now != (list(self.names), self.path, self.modified, self.seal):
            self.names, self.path, self.modified, self.seal = now
            write_whole(self.at, self.data())


class Ledger:
    """The files that a stream has processed, one per micro-batch, and those that it has refused; each is a small JSON file.

    A file counts as processed if its content, and its path in the input folder or its canonical path, are those of a record; so
    do renamed files and links, wherever the input folder is mounted. Two files with equal content are two, and so is a renamed
    file with another modification time, which cannot be told from a new one.
    """

    def __init__(self, folder: Path) -> None:
        self._files, self._refused = folder / "files", folder / "refused"
        for each in (self._files, self._refused):
            each.mkdir(parents=True, exist_ok=True)
        self.taken = _entries(self._files)
        self.refused = _entries(self._refused)

    def __len__(self) -> int:
        return len(self.taken)

    def take(self, batch: int, file: InputFile) -> None:
        """Record a micro-batch's file. Raises `CheckpointError` if another process has recorded this micro-batch."""
        entry = LedgerEntry.of(file, self._files / str(batch))
        try:
            write_new(entry.at, entry.data())
        except FileExistsError:
            raise CheckpointError(
                f"micro-batch {batch} was begun by another process", hint="let one process at a time use a checkpoint"
            ) from None
        self.taken.append(entry)

    def undo_take(self) -> None:
        """Remove the record of the last micro-batch."""
        self.taken.pop().at.unlink()

    def refuse(self, file: InputFile, reason: str) -> None:
        """Record that a file is refused, and why."""
        entry = LedgerEntry.of(file, self._refused / str(len(self.refused)), reason)
        write_whole(entry.at, entry.data())
        self.refused.append(entry)

    def unprocessed(self, files: Sequence[InputFile]) -> list[InputFile]:
        """Return the files without a record. Raises `InputError` for a file that changed after it was processed."""
        self._upgrade(files)
        named: dict[tuple[str, str], list[LedgerEntry]] = {}
        for entry in (*self.taken, *self.refused):
            for name in {*entry.names, entry.path}:
                named.setdefault((entry.source, name), []).append(entry)
        there: set[LedgerEntry] = set()
        left = []
        for file in files:
            found = [each for name in (*file.names, *file.addresses) for each in named.get((file.source, name), ())]
            same = {entry for entry in found if entry.has_content_of(file)}
            if not same:
                _check_unchanged(file, found)
                left.append(file)
            for entry in same - there:
                entry.update(file)
            there |= same
        return list(_not_renamed(left, [entry for entry in (*self.taken, *self.refused) if entry not in there]))

    def _upgrade(self, files: Sequence[InputFile]) -> None:
        """Complete records of an earlier version. Raises `CheckpointError` where a record is ambiguous."""
        for batch, entry in enumerate(self.taken):
            if entry.digest:
                continue
            address = str(Path(entry.path).resolve())
            own = [file for file in files if file.source == entry.source]
            found = next((file for file in own if address in file.addresses), None)
            if found is None:
                _check_absent(entry, own)
                entry.path, entry.digest = address, "unknown"
            else:
                self.taken[batch] = entry = LedgerEntry.of(found, entry.at)
            write_whole(entry.at, entry.data())


def _not_renamed(files: Sequence[InputFile], gone: Sequence[LedgerEntry]) -> Iterator[InputFile]:
    """Yield the files that are not renamed files of records whose path is gone; each record matches at most one file."""
    sizes: dict[int, list[LedgerEntry]] = {}
    for entry in gone:
        sizes.setdefault(entry.size, []).append(entry)
    for file in files:
        alike = sizes.get(file.stat.st_size, [])
        moved = next((entry for entry in alike if entry.was_renamed_to(file)), None)
        if moved is None:
            yield file
        else:
            moved.update(file)
            alike.remove(moved)


def _check_unchanged(file: InputFile, found: Sequence[LedgerEntry]) -> None:
    if any(not entry.reason and entry.may_be(file) for entry in found):
        raise InputError(
            f"the file {file.path} has changed since it was taken",
            hint="put back what it held, or remove it, and put what is new into a file of another name",
        )


def _check_absent(entry: LedgerEntry, files: Sequence[InputFile]) -> None:
    """Raise `CheckpointError` if a file may be one that an earlier version recorded under a path that is gone."""
    parts = PurePath(entry.path).parts
    for file in files:
        if any(parts[-len(PurePath(name).parts) :] == PurePath(name).parts for name in file.names):
            raise CheckpointError(
                f"the checkpoint is of an earlier version, which took {entry.path}: whether that is {file.path} cannot be told",
                hint="run it once where it ran, with the input spelled as it was; from then on any spelling will do",
            )


def _entries(folder: Path) -> list[LedgerEntry]:
    """Return the records of a folder in order of number. Raises `CheckpointError` if one is missing or unreadable."""
    numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    for number, expected in zip(numbers, range(len(numbers)), strict=True):
        if number != expected:
            raise CheckpointError(f"{folder / str(expected)} is missing, a record of a processed file", hint=_GARBLED)
    return [LedgerEntry.read(folder / str(number)) for number in numbers]
