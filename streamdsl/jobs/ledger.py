"""Which files a stream has taken: each is known by its content and its address, however the way to it is spelled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePath
from typing import Final

from streamdsl.engine.state.files import write_new, write_whole
from streamdsl.errors import CheckpointError, InputError
from streamdsl.jobs.inputs import File
from streamdsl.temporal.json_text import loads

_GARBLED: Final = "restore the checkpoint as a whole, or begin a new one, and a new output"


@dataclass(slots=True, eq=False)
class Entry:
    """A file as it was when it was taken, or refused for a `reason`; written down at `at`.

    `names` are its paths in the input folder, `path` its canonical address, `seal` what the file system says of it for as long as
    it does not change. The versions before wrote down no more than `source` and `path`.
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
    def of(cls, file: File, at: Path, reason: str = "") -> Entry:
        """Return what is to be written down of a file."""
        size, modified = file.stat.st_size, file.stat.st_mtime_ns
        return cls(at, file.source, file.addresses[0], file.names, file.digest, size, modified, file.seal, reason)

    @classmethod
    def read(cls, at: Path) -> Entry:
        """Return what was written down. Raises `CheckpointError` if that cannot be read."""
        try:
            return cls(at, **loads(at.read_bytes()))
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{at} does not say which file was taken: {error}", hint=_GARBLED) from None

    def data(self) -> bytes:
        """Return what is written."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self) if each.name != "at"}).encode()

    def holds(self, file: File) -> bool:
        """Say whether a file has the content that this one had; what has not changed is not read again."""
        if self.size < 0:
            return self.path in file.addresses
        return self.size == file.stat.st_size and (self.seal == file.seal != "" or self.digest == file.digest)

    def may_be(self, file: File) -> bool:
        """Say whether a file can be this one: it is, or this one is not at its address any more."""
        try:
            return os.path.samefile(self.path, file.path)
        except OSError:
            return True

    def became(self, file: File) -> bool:
        """Say whether a file of another name is this one: by a link, or renamed since, which leaves its time as it was."""
        linked_or_gone = self.source == file.source and self.holds(file) and self.may_be(file)
        return linked_or_gone and (self.modified == file.stat.st_mtime_ns or os.path.exists(self.path))

    def follow(self, file: File) -> None:
        """Write down where the file is now, so that it is known by all of its names, and need not be read again."""
        names = list(dict.fromkeys((*self.names, *file.names)))
        path = self.path if self.path in file.addresses else file.addresses[0]
        now = (names, path, file.stat.st_mtime_ns, file.seal or self.seal)
        if now != (list(self.names), self.path, self.modified, self.seal):
            self.names, self.path, self.modified, self.seal = now
            write_whole(self.at, self.data())


class Ledger:
    """The files that the micro-batches of a stream have taken, one each, and those that were refused, in two folders.

    Whatever the input folder is called, and on whatever machine it is, a file in it was taken if its path in there, or its
    address, and its content are those of one that was; so was one that was renamed, or is a link to one. Two files with the same
    content are two, and so is one that was renamed and whose time is another: nothing tells it from a new one.
    """

    def __init__(self, folder: Path) -> None:
        self._files, self._refused = folder / "files", folder / "refused"
        for each in (self._files, self._refused):
            each.mkdir(parents=True, exist_ok=True)
        self.taken = _entries(self._files)
        self.refused = _entries(self._refused)

    def take(self, batch: int, file: File) -> None:
        """Decide that a micro-batch takes a file. Raises `CheckpointError` if another process has decided before."""
        entry = Entry.of(file, self._files / str(batch))
        try:
            write_new(entry.at, entry.data())
        except FileExistsError:
            raise CheckpointError(
                f"micro-batch {batch} was begun by another process", hint="let one process at a time use a checkpoint"
            ) from None
        self.taken.append(entry)

    def give_back(self) -> None:
        """Undo that the last micro-batch has taken its file."""
        self.taken.pop().at.unlink()

    def refuse(self, file: File, reason: str) -> None:
        """Write down that a file is not taken, and why."""
        entry = Entry.of(file, self._refused / str(len(self.refused)), reason)
        write_whole(entry.at, entry.data())
        self.refused.append(entry)

    def new(self, files: Sequence[File]) -> list[File]:
        """Return the files that were not taken yet, nor refused. Raises `InputError` for one that changed after it was taken."""
        self._bring_up(files)
        named: dict[tuple[str, str], list[Entry]] = {}
        for entry in (*self.taken, *self.refused):
            for way in {*entry.names, entry.path}:
                named.setdefault((entry.source, way), []).append(entry)
        there: set[Entry] = set()
        left = []
        for file in files:
            found = [each for way in (*file.names, *file.addresses) for each in named.get((file.source, way), ())]
            same = {entry for entry in found if entry.holds(file)}
            if not same:
                _check_unchanged(file, found)
                left.append(file)
            for entry in same - there:
                entry.follow(file)
            there |= same
        return list(_unmoved(left, [entry for entry in (*self.taken, *self.refused) if entry not in there]))

    def _bring_up(self, files: Sequence[File]) -> None:
        """Add to what the version before wrote what it did not. Raises `CheckpointError` where that cannot be told."""
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
                self.taken[batch] = entry = Entry.of(found, entry.at)
            write_whole(entry.at, entry.data())


def _unmoved(files: Sequence[File], gone: Sequence[Entry]) -> Iterator[File]:
    """Yield the files that are none of those that are not at their places any more; each of these can be one file."""
    sizes: dict[int, list[Entry]] = {}
    for entry in gone:
        sizes.setdefault(entry.size, []).append(entry)
    for file in files:
        alike = sizes.get(file.stat.st_size, [])
        moved = next((entry for entry in alike if entry.became(file)), None)
        if moved is None:
            yield file
        else:
            moved.follow(file)
            alike.remove(moved)


def _check_unchanged(file: File, found: Sequence[Entry]) -> None:
    if any(not entry.reason and entry.may_be(file) for entry in found):
        raise InputError(
            f"the file {file.path} has changed since it was taken",
            hint="put back what it held, or remove it, and put what is new into a file of another name",
        )


def _check_absent(entry: Entry, files: Sequence[File]) -> None:
    """Raise if a file that was taken by the version before, and is not at its place, may be one that is somewhere else."""
    parts = PurePath(entry.path).parts
    for file in files:
        if any(parts[-len(PurePath(name).parts) :] == PurePath(name).parts for name in file.names):
            raise CheckpointError(
                f"the checkpoint is of an earlier version, which took {entry.path}: whether that is {file.path} cannot be told",
                hint="run it once where it ran, with the input spelled as it was; from then on any spelling will do",
            )


def _entries(folder: Path) -> list[Entry]:
    """Return what a folder has, in order of its numbers. Raises `CheckpointError` if something is missing, or garbled."""
    numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    for number, expected in zip(numbers, range(len(numbers)), strict=True):
        if number != expected:
            raise CheckpointError(f"{folder / str(expected)} is missing, which says which file was taken", hint=_GARBLED)
    return [Entry.read(folder / str(number)) for number in numbers]
