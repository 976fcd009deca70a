"""File locks between processes: the operating system releases a lock when its holder ends, also if it is killed."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final
from weakref import WeakSet

from streamdsl.errors import StreamDslError

_BYTE: Final = 1 << 20
"""The byte that is locked on Windows: after the content, as a locked byte cannot be read by others."""
_PAUSE: Final = 0.02
"""Seconds between two attempts to take a lock that is held."""
SHORT: Final = 2.0
"""Seconds to wait for a lock that is held for one micro-batch, so that a reader does not make a writer fail."""
_held: WeakSet[Lock] = WeakSet()


class Lock:
    """An exclusive lock on the file `path`, held until `release`, the end of a `with`, or the end of the process.

    Raises `error`, whose message names `what` the lock guards, if another holder, in this process or another one, still has it
    after `patience` seconds. The file, which names its last holder, remains when the lock is released: removing it could remove
    a lock that another process is just taking. A forked process does not inherit the lock.

    >>> import tempfile
    >>> from streamdsl.errors import CheckpointError
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Lock(f"{folder.name}/lock", "the checkpoint state", CheckpointError) as lock:
    ...     Lock(f"{folder.name}/lock", "the checkpoint state", CheckpointError)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    streamdsl.errors.CheckpointError: the checkpoint state is in use by process ... on ...
    Hint: wait until that process has ended, or stop it
    """

    def __init__(self, path: str | os.PathLike[str], what: str, error: type[StreamDslError], patience: float = 0) -> None:
        self.path = Path(path)
        self._until = time.monotonic() + patience
        self._what = what
        self._error = error
        self._number = self._taken()
        _held.add(self)
        try:
            self.path.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        except BaseException:
            self.release()  # now, not when the exception is garbage collected
            raise

    def check(self) -> None:
        """Raise if the lock file has been removed or replaced: another process may then hold a lock of its own."""
        if not self._is_there(self._number):
            raise self._error(
                f"{self._what} was removed or replaced while this process used it",
                hint="another process may have changed it: begin anew, or restore all of it",
            )

    def release(self) -> None:
        """Release the lock; idempotent."""
        if self._number >= 0:
            os.close(self._number)
        self._number = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self.release()

    def _taken(self) -> int:
        """Open and lock the file, and return its descriptor; tries again if the file was removed meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            number = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._lock(number)
            except BaseException:
                os.close(number)
                raise
            if self._is_there(number):
                return number
            os.close(number)

    def _lock(self, number: int) -> None:
        try:
            while not _is_locked(number):
                if time.monotonic() >= self._until:
                    raise BlockingIOError
                time.sleep(_PAUSE)
        except BlockingIOError:
            raise self._error(
                f"{self._what} is in use by {self._holder()}", hint="wait until that process has ended, or stop it"
            ) from None
        except OSError as error:
            raise self._error(
                f"{self._what} cannot be locked against other processes: {error.strerror}",
                hint=f"put {self.path.parent} on a file system with locks",
            ) from error

    def _holder(self) -> str:
        """Return the holder's name; waits for a holder that has just taken the lock to write it."""
        until = time.monotonic() + SHORT
        while not (name := self.path.read_text(errors="replace")) and time.monotonic() < until:
            time.sleep(_PAUSE)
        return name or "another process"

    def _is_there(self, number: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(number), self.path.stat())
        return False


def _is_locked(number: int) -> bool:
    """Try to lock an open file, and say whether that succeeded; raises `OSError` if the file system has no locks."""
    try:
        _lock_file(number)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_file(number: int) -> None:
    """Lock an open file without waiting, or raise `OSError`; closing the file, or the end of the process, unlocks it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(number, _BYTE, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """Close the inherited lock files in a forked process, which would keep the locks beyond their holder's life."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
