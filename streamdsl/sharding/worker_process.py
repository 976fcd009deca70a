"""The process of a worker: it runs its shards for a session in another process, and ends when that does."""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import cloudpickle

from streamdsl.sharding.sent_columns import alone
from streamdsl.sharding.shard_session import ShardHost
from streamdsl.sharding.shared_ring import SharedRing
from streamdsl.sharding.worker_pipe import Ending

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""What may be sent to all processes of a job at once is for the session's process, which ends its workers."""
_WAITING: Final = 8
"""More messages than so many do not wait here: the pipe is then full, and who writes waits."""


def main(rings: Sequence[int] = ()) -> None:
    """Answer messages until the other side is gone; `rings` are the files of shared memory, in and out, if there are any."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    source, sink = _own_pipes()
    if rings:
        source.ring, sink.ring = map(SharedRing, rings)
    waiting: queue.Queue[list[Any]] = queue.Queue(_WAITING)
    threading.Thread(target=_read, args=(source, waiting), daemon=True).start()
    worker = ShardWorker(sink)
    while True:
        answer = worker.answer(source.parsed(waiting.get()))
        try:
            sink.write(answer)
        except OSError:  # who asked is gone
            os._exit(0)


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold back, where the system can, what is not for workers: in this thread, and in a process that it starts meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _own_pipes() -> tuple[Ending, Ending]:
    """Take the pipes from standard input and output: what users print goes to standard error, and nothing can be read."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return Ending(open(source, "rb")), Ending(open(sink, "wb"))  # as long as the process


def _read(source: Ending, waiting: queue.Queue[list[Any]]) -> None:
    try:
        while True:
            waiting.put(source.raw())
    except (EOFError, OSError):  # the session's process is gone, whatever runs here
        os._exit(0)


class ShardWorker:
    """The shards of one session after another."""

    def __init__(self, sink: Ending) -> None:
        self._sink = sink
        self._host: ShardHost | None = None

    def answer(self, message: tuple[str, tuple[Any, ...]]) -> tuple[str, Any]:
        """Do what a message asks, and return the answer, or the error that it has raised."""
        what, given = message
        try:
            return "done", self._ask(what, given)
        except BaseException as error:
            return "failed", carried(error)

    def _ask(self, what: str, given: tuple[Any, ...]) -> Any:
        if what == "open":
            self._host = ShardHost(*given)
            self._sink.label = self._host.label
            return None
        if what == "close" or self._host is None:
            self._host = self._sink.label = None
            return None
        if what == "step":
            sent = self._host.step(*given)
            return {shard: each._replace(batch=alone(each.batch)) for shard, each in sent.items()}
        return getattr(self._host, what)(*given)


def carried(error: BaseException) -> Callable[[], BaseException]:
    """Return what makes an error again in another process, with its cause, and where it was raised as a note."""
    where = "".join(traceback.format_exception(error)).rstrip()
    held = {name: value for name, value in vars(error).items() if _travels(value)}
    cause = None if error.__cause__ is None else carried(error.__cause__)
    return CarriedError(type(error), tuple(error.args), held, cause, where)


class CarriedError:
    """An error on its way: its class may be made of other arguments than those it holds."""

    def __init__(
        self,
        kind: type[BaseException],
        args: tuple[Any, ...],
        held: Mapping[str, Any],
        cause: Callable[[], BaseException] | None,
        where: str,
    ) -> None:
        self.kind = kind if _travels(kind) else RuntimeError
        self.args = args if _travels(args) else (repr(args),)
        self.held = held
        self.cause = cause
        self.where = where

    def __call__(self) -> BaseException:
        made = self.kind.__new__(self.kind, *self.args)
        made.args = self.args
        vars(made).update(self.held)
        made.__cause__ = None if self.cause is None else self.cause()
        return made


def _travels(value: Any) -> bool:
    try:
        cloudpickle.dump(value, io.BytesIO())
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main()
