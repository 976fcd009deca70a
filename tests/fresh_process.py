"""A call in a process that has run nothing before, but has imported streamdsl: it is forked from one that did no more."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

SECONDS = 120
"""A call that takes longer is ended, and fails."""


def in_fresh_process(function: Callable[..., Any], *args: object) -> Any:
    """Return what a call returns in a new process. One that raises, or ends the process in another way, fails."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "streamdsl"])
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(sending, function, *args))
    process.start()
    sending.close()
    if not receiving.poll(SECONDS):
        process.kill()
    try:
        returned, raised = receiving.recv()
    except EOFError:
        returned, raised = None, "it ended without a word"
    process.join()
    assert not raised, f"{raised} (exit code {process.exitcode})"
    assert process.exitcode == 0, f"exit code {process.exitcode}"
    return returned


def _call(sending: Connection, function: Callable[..., Any], *args: object) -> None:
    try:
        told = function(*args), ""
    except BaseException:
        told = None, traceback.format_exc()[-2000:]
    sending.send(told)
