"""A process that is cut off in the middle of its work: no call that would change a file gets through any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

CHANGES = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link"})
KILLED = 77
"""The status of a process that has ended itself at a change of a file."""
Change: TypeAlias = tuple[str, Path]
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class CutOff(BaseException):
    """Nothing more is done."""


class _Power:
    """How many changes of files are left, None: as many as there are."""

    left: int | None = None
    exits = False
    seen: list[Change] | None = None


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _Power.left is None or not (event in CHANGES or (event == "open" and arguments[2] & WRITES)):
        return
    if _Power.seen is not None:
        _Power.seen.append((event, Path(str(arguments[0])).parent))
    if _Power.left == 0:
        if _Power.exits:
            os._exit(KILLED)
        raise CutOff
    _Power.left -= 1


sys.addaudithook(_watch)


def exit_after(changes: int) -> None:
    """Let so many changes of files through, and then end this process, without any more of its code."""
    _Power.left, _Power.exits = changes, True


@contextmanager
def cut_off_after(changes: int) -> Iterator[list[bool]]:
    """Let so many changes of files through; the list that is given says afterwards whether there would have been more."""
    _Power.left, happened = changes, [False]
    try:
        yield happened
    except CutOff:
        happened[0] = True
    finally:
        _Power.left = None


@contextmanager
def changes_seen() -> Iterator[list[Change]]:
    """Give a list that has the changes of files afterwards: what was done, and in which folder."""
    _Power.left, _Power.seen = sys.maxsize, list[Change]()
    try:
        yield _Power.seen
    finally:
        _Power.left = _Power.seen = None
