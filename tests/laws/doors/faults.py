"""What happens to a session and its sink: they are stopped, forged, interrupted, cut off."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import streamdsl

ROOT = str(Path(streamdsl.__file__).parent)
OF_TABLES = ("written twice", "cut off", "full disk")
FAULTS = (
    "none",
    "restart",
    "forged checkpoint",
    "interrupt",
    "refused",
    "null time",
    "no answer",
    *OF_TABLES,
)


class Interrupt(BaseException):
    """What Ctrl-C is, at any line."""


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file become longer than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Forgetful:
    """A predicate that keeps everything, or forgets to return."""

    forgets = False
    asked = 0

    def __call__(self, payload: Any) -> Any:
        self.asked += 1
        return None if self.forgets else True


def traced(call: Callable[[], Any], stop: int | None = None) -> int:
    """Call a function and return how many lines of the package it runs; before line `stop` it is interrupted."""
    lines = 0

    def step(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == stop:
                raise Interrupt
        return step

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        return step if frame.f_code.co_filename.startswith(ROOT) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
    return lines
