"""Reading of files of records in lines, from a position on, finished ones and ones that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, chain, islice
from typing import IO, Any, Final

from streamdsl.connect.looking import look_for
from streamdsl.connect.protocols import BadRecord, Batch, End, OpenSource, Position
from streamdsl.connect.readable_files import PACKED, file_errors, readable_files, unpacked
from streamdsl.errors import InputError, QueryError
from streamdsl.io.stored_files import is_stored
from streamdsl.redaction import without_secrets

AT_ONCE: Final = 10_000
_SKIP: Final = 1 << 20
_LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at a file that grows."""
Decode = Callable[[str], Any]


class LineReader(OpenSource):
    """Reads a file by records, each of which `decode` makes an item of, or None to pass it over.

    A record is a line; where `quotes` are read, it goes on to the line in which the last one is closed. The position has the
    offset in bytes and the number of lines before it. With `follow` a last record without an end waits for it, and the file may
    be one that is still to come; else the end of the file is the end. Files in an object store do not grow.
    """

    def __init__(
        self,
        path: str,
        position: Position,
        decode: Decode,
        follow: bool = False,
        at_once: int = AT_ONCE,
        quotes: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if follow and is_stored(path):
            raise QueryError(
                f"the file {without_secrets(path)} cannot be followed: what is in a store does not grow",
                hint="file_folder(..., follow=True) waits for new files",
            )
        self._path, self._decode, self._follow, self._at_once, self._quotes = path, decode, follow, at_once, quotes
        self._offset: int = position["offset"] if position else 0
        self._line: int = position["line"] if position else 0
        self._files, self._shown = readable_files(path, options), without_secrets(path)
        self._is_packed = path.endswith(PACKED)
        self._file: IO[bytes] | None = None

    @property
    def position(self) -> Position:
        """Where it goes on."""
        return {"offset": self._offset, "line": self._line}

    def poll(self, timeout: float) -> Batch | End | None:
        return look_for(self._batch, timeout, _LOOK_AGAIN, self._follow)

    def _batch(self) -> Batch | None:
        """Return what is there, None if nothing is."""
        found = self._records()
        if not found:
            return None
        if (decoded := self._decoded([record for _, record in found])) is not None:
            places = [f"line {place} of {self._shown}" for place, _ in found[len(found) - len(decoded) :]]
            return Batch(decoded, self.position, places=places)
        items, bad, places = items_of_lines(found, self._decode, self._shown)
        return Batch(items, self.position, bad, places)

    def _decoded(self, records: list[bytes]) -> list[Any] | None:
        """Return the items of records, or of all but the first ones; None where they are to be decoded one by one."""
        return None

    def _records(self) -> list[tuple[int, bytes]]:
        """Return the next records, each with the number of its first line, and step over them.

        The last one of a file that is followed is left where it is not there as a whole yet.
        """
        file = self._opened()
        if file is None:
            return []
        with file_errors(self._path):
            records = list(islice(file, self._at_once))
            has_quotes = self._quotes and b'"' in b"".join(records)
            if has_quotes:
                records = list(islice(_closed(chain(records, file)), self._at_once))
            is_cut = bool(records) and self._follow and not (records[-1].endswith(b"\n") and _is_closed(records[-1], has_quotes))
            whole = records[:-1] if is_cut else records
            self._offset += sum(map(len, whole))
            if is_cut:
                file.seek(self._offset)
        lines = [record.count(b"\n") + (not record.endswith(b"\n")) for record in whole] if has_quotes else [1] * len(whole)
        firsts = list(accumulate(lines, initial=self._line + 1))
        self._line = firsts.pop() - 1
        return list(zip(firsts, whole, strict=True))

    def _opened(self) -> IO[bytes] | None:
        """Return the file at the position, None if it is still to come. Raises `InputError` for one that is shorter."""
        if self._file is None:
            if self._follow and self._files.size(self._path) is None:
                return None
            with file_errors(self._path):
                self._file = unpacked(self._files.open(self._path), self._path)
                self._check_size(self._skipped(self._file) if self._is_packed else self._file.seek(self._offset))
        if self._follow and not self._is_packed:
            self._check_size(self._offset)
        return self._file

    def _skipped(self, file: IO[bytes]) -> int:
        """Go to the position in a compressed file, which can only be read on; return where that is."""
        left = self._offset
        while left and (skipped := file.read(min(left, _SKIP))):
            left -= len(skipped)
        return self._offset - left

    def _check_size(self, reached: int) -> None:
        """Raise `InputError` for a file that is shorter than what had been read of it."""
        size = reached if self._is_packed else self._files.size(self._path) or 0
        if size < self._offset:
            raise InputError(
                f"the file {self._shown} ends at byte {size}, and had been read up to {self._offset}",
                hint="it was cut or replaced: give a new file a new name, or begin a new checkpoint",
            )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _closed(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield records, each of the lines in which its quotes are closed; the last one may not be."""
    open_lines, is_open = list[bytes](), False
    for line in lines:
        open_lines.append(line)
        is_open ^= not _is_closed(line)
        if not is_open:
            yield b"".join(open_lines)
            open_lines.clear()
    if open_lines:
        yield b"".join(open_lines)


def _is_closed(record: bytes, has_quotes: bool = True) -> bool:
    return not has_quotes or record.count(b'"') % 2 == 0


def items_of_lines(lines: Iterable[tuple[int, bytes]], decode: Decode, file: str) -> tuple[list[Any], list[BadRecord], list[str]]:
    """Return the items of numbered lines, what fails, and the place of each item; a line that `decode` passes over has none."""
    items, bad, places = list[Any](), list[BadRecord](), list[str]()
    for number, line in lines:
        place = f"line {number} of {file}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            item = decode(text) if text.strip() else None
        except Exception as error:  # of the user's function, or of the text
            record = line.decode(errors="backslashreplace").rstrip("\r\n")
            bad.append(BadRecord(record, f"{type(error).__name__}: {error}", place))
            continue
        if item is not None:
            items.append(item)
            places.append(place)
    return items, bad, places
