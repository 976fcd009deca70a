"""Worker processes: started once, used by one session after another, and gone with the process that has started them."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final, cast

from streamdsl.errors import UserCodeError, WorkerError
from streamdsl.sharding.shared_ring import SharedRing, ring_file
from streamdsl.sharding.worker_pipe import Ending, Named
from streamdsl.sharding.worker_process import ShardWorker, signals_held

_PROGRAM: Final = "import sys; sys.path[:] = {path!r}; from streamdsl.sharding.worker_process import main; main({rings!r})"
"""The main module of the session's process is not imported again, so it needs no guard, and may be a notebook."""
_SINGLE: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
"""A worker has a core: its libraries need no more threads."""


class Worker:
    """A process that runs shards. Questions are answered in order."""

    def __init__(self) -> None:
        rings = [file for file in (ring_file(), ring_file()) if file is not None]
        program = _PROGRAM.format(path=[each or os.getcwd() for each in sys.path], rings=rings)
        try:
            with signals_held():  # the process heeds none, from its first moment
                self._process = subprocess.Popen(
                    [sys.executable, "-c", program],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **_SINGLE},
                    pass_fds=rings,
                )
        except OSError as error:
            raise WorkerError(f"a worker process cannot be started: {error}", hint="ask for fewer workers") from error
        self._to, self._from = (Ending(cast(Any, pipe)) for pipe in (self._process.stdin, self._process.stdout))
        self._to.wait = self._check
        if rings:
            self._to.ring, self._from.ring = map(SharedRing, rings)
        for file in rings:
            os.close(file)
        self._answers: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        self._asked = 0
        self.failed = False
        threading.Thread(target=_read, args=(self._from, self._answers), daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """Whether the process is there, has answered all, and has not failed."""
        return not self._asked and not self.failed and self._process.poll() is None

    def know(self, table: Named | None) -> None:
        """Have the labels of key tables in answers stand for these."""
        self._from.table = table

    def ask(self, what: str, *given: Any) -> None:
        """Send a question, without waiting for the answer."""
        was, self.failed = self.failed, True  # until all is written
        try:
            self._to.write((what, given))
        except OSError as error:
            raise self._gone() from error
        self._asked, self.failed = self._asked + 1, was

    def answer(self) -> Any:
        """Return the next answer, or raise the error that the worker has raised; `WorkerError` if it is gone."""
        raw = self._raw()
        if raw is None:
            raise self._gone()
        self._asked -= 1
        how, what = self._from.parsed(raw)
        if how == "failed":
            error = what()
            self.failed = not isinstance(error, UserCodeError)  # after which others can use the process
            raise error
        return what

    def _raw(self) -> list[Any] | None:
        return self._answers.get()

    def settle(self) -> None:
        """Take all answers that are due, whatever they are."""
        while self._asked and not self.failed:
            with contextlib.suppress(Exception):
                self.answer()

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise BrokenPipeError

    def end(self) -> None:
        """End the process."""
        self.failed = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written yet cannot be
                    pipe.close()

    def _gone(self) -> WorkerError:
        self.failed = True
        status = self._process.wait()
        how = f"was ended by {_signal_name(-status)}" if status < 0 else f"has exited with status {status}"
        hint = "go on from the last checkpoint, with query.restore(path, workers=n), or the same serve(...)"
        if -status == signal.SIGKILL:
            hint = f"the system ends processes so when memory runs out: fewer workers need less; {hint}"
        return WorkerError(f"a worker (process {self.pid}) {how}", hint=hint)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(source: Ending, answers: queue.SimpleQueue[list[Any] | None]) -> None:
    try:
        while True:
            answers.put(source.raw())
    except (EOFError, OSError, ValueError):
        answers.put(None)


class WorkerHere(Worker):
    """The shards of a session without workers: they run in its own process, and what they send is what a worker would send."""

    def __init__(self) -> None:
        self._to, self._from = Ending(BytesIO()), Ending(BytesIO())
        self._shards, self._sent, self._asked = ShardWorker(self._to), deque[bytes](), 0
        self.failed = False

    @property
    def pid(self) -> int:
        """The number of this process."""
        return os.getpid()

    @property
    def is_idle(self) -> bool:
        """False: no other session uses it."""
        return False

    def ask(self, what: str, *given: Any) -> None:
        """Do what is asked, and keep the answer."""
        self._to.pipe = sent = BytesIO()
        self._to.write(self._shards.answer((what, given)))
        self._sent.append(sent.getvalue())
        self._asked += 1

    def _raw(self) -> list[Any]:
        self._from.pipe = BytesIO(self._sent.popleft())
        return self._from.raw()

    def end(self) -> None:
        """Let the shards go."""
        self._shards.answer(("close", ()))


class _Idle:
    """The workers of this process that no session uses: at most as many as one has had, so that the next like it starts none.

    What a child of a fork has inherited is not its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._most = max(2, os.cpu_count() or 1)
        self._owner = os.getpid()

    def take(self, n: int) -> list[Worker]:
        with self._lock:
            if self._owner != os.getpid():
                self._workers, self._owner = [], os.getpid()
            self._most = max(self._most, n)
            taken: list[Worker] = []
            while self._workers and len(taken) < n:
                worker = self._workers.pop()
                if worker.is_idle:
                    taken.append(worker)
                else:
                    worker.end()
        return taken + [Worker() for _ in range(n - len(taken))]

    def give_back(self, workers: list[Worker]) -> None:
        for worker in workers:
            with self._lock:
                keeps = worker.is_idle and len(self._workers) < self._most and self._owner == os.getpid()
                if keeps:
                    self._workers.append(worker)
            if not keeps:
                worker.end()

    def end(self) -> None:
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.end()


_idle: Final = _Idle()
atexit.register(_idle.end)


def idle_workers() -> list[Worker]:
    """Return the workers that wait for a session."""
    return list(_idle._workers)


class Crew:
    """The workers of one session; they are given back when it is closed, or no longer there. With 0 its own process answers."""

    def __init__(self, n: int) -> None:
        self.workers: list[Worker] = _idle.take(n) if n else [WorkerHere()]
        self.release = weakref.finalize(self, _release, self.workers, os.getpid())

    def know(self, table: Named) -> None:
        """Have the labels of key tables in answers stand for these."""
        for worker in self.workers:
            worker.know(table)

    def ask_all(self, what: str, *given: Any) -> list[Any]:
        """Ask every worker the same, and return the answers in their order."""
        try:
            for worker in self.workers:
                worker.ask(what, *given)
            return [worker.answer() for worker in self.workers]
        except Exception:
            self.settle()
            raise

    def settle(self) -> None:
        """Wait for all answers that are due, and forget them."""
        for worker in self.workers:
            worker.settle()

    def ask_each(self, what: str, given: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask some workers, by their places, and return the answers."""
        for place, each in given.items():
            self.workers[place].ask(what, *each)
        return {place: self.workers[place].answer() for place in given}


def _release(workers: list[Worker], owner: int) -> None:
    if owner != os.getpid():  # a child of a fork has inherited them
        return
    idle = []
    for worker in workers:
        try:
            if worker.is_idle:
                worker.ask("close")
                worker.answer()
                worker.know(None)
                idle.append(worker)
                continue
        except BaseException:
            pass
        worker.end()
    _idle.give_back(idle)
