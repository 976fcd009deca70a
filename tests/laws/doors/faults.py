"""What happens to a session while it runs: it is stopped and restored, interrupted, sent what it must refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import streamdsl

ROOT = str(Path(streamdsl.__file__).parent)
FAULTS = ("none", "restart", "interrupt", "refused", "written twice", "cut off")


class Interrupt(BaseException):
    """What Ctrl-C is, at any line."""


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
