"""A lock that one process has at a time, for as long as it lives: the system frees it, also when the process is killed."""

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
"""Where Windows locks a byte: after all that is read, for it keeps others from reading what is locked."""
_PAUSE: Final = 0.02
"""Seconds between two looks at a lock that somebody holds."""
SHORT: Final = 2.0
"""Seconds of patience with a lock that is held for one micro-batch: who only looks must not make fail who writes."""
_held: WeakSet[Lock] = WeakSet()


class Lock:
    """The lock file at `path`, held until `release`, or the end of a `with`, or the end of the process.

    `what` is what it guards, for the message of the `error` that is raised where another process, or another user in this one,
    holds it, and still does after so many seconds of `patience`. The file stays when the lock is freed, with the last holder's
    name: whoever removed it could remove a lock that is just being taken. A process that is forked has no part in the lock.

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
            self.release()  # not when the exception is forgotten, which may be late
            raise

    def check(self) -> None:
        """Raise if the lock file was removed or replaced since: then others can have taken what it guards."""
        if not self._is_there(self._number):
            raise self._error(
                f"{self._what} was removed or replaced while this process used it",
                hint="what it guarded may be another's now: begin anew, or restore all of it",
            )

    def release(self) -> None:
        """Free the lock; again, it does nothing."""
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
        """Return the number of the lock file, opened and locked; one that is removed meanwhile does not count."""
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
        """Return the name of who holds the lock, who may have taken it just now and still be writing its name."""
        until = time.monotonic() + SHORT
        while not (name := self.path.read_text(errors="replace")) and time.monotonic() < until:
            time.sleep(_PAUSE)
        return name or "another process"

    def _is_there(self, number: int) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(number), self.path.stat())
        return False


def _is_locked(number: int) -> bool:
    """Lock an open file, and say whether that was possible, or raise `OSError`; it is freed when the file is closed."""
    try:
        _lock_file(number)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_file(number: int) -> None:
    """Lock an open file or raise `OSError`; it is freed when the file is closed, if only by the end of the process."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(number, _BYTE, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget() -> None:
    """Close what a forked process has inherited, or locks would outlive those who took them."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
