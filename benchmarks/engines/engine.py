"""An engine that is asked, run in isolation, with the sizes and slides that it has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from benchmarks.environments import ROOT, AbsentError, python_of

SLIDING: Final = ((5, 1), (5, 2), (3, 3))
HOPPING: Final = ((4, 2), (3, 3))
"""Of engines that take seconds for a run."""
Late: TypeAlias = Literal["refused", "as its profile", "beyond the model"]
"""What an engine does with tuples out of order; beyond the model it takes a batch as one change, whichever times are in it."""


@dataclass(frozen=True)
class Engine:
    """An engine: what runs it, a function of a module of this folder, under which interpreter, and what is asked of it."""

    name: str
    title: str
    run: Callable[[int, int, list[Any]], list[list[int]]]
    """From size, slide and tuples `(value, t_app, t_sys, bid)` to the outputs in order, each the values of a report."""
    windows: tuple[tuple[int, int], ...] = SLIDING
    profile: str | None = None
    """The name of its profile in `streamdsl.secret`, of which its witnesses are recorded; None: nothing fits it."""
    ended: bool = True
    """Whether it reports the rest when its input ends."""
    late: Late = "refused"
    gaps: bool = True
    """Whether it has windows with gaps between them."""
    is_slow: bool = False
    package: str | None = None
    """The package that it comes in, if it is not named as the module; "python" comes with Python."""
    requirement: str | None = None
    """What is installed for it into an environment of its own, such as `bytewax==0.21.1`, if it is at odds with ours."""

    @property
    def module(self) -> str:
        return self.run.__module__.rpartition(".")[2]

    @property
    def python(self) -> str:
        """Its interpreter; raises `AbsentError` where it is not there."""
        return python_of(self.module, self.requirement)

    @property
    def version(self) -> str:
        """The package with its version, as the interpreter of the engine has it."""
        package = self.package or self.module
        ask = f"from importlib.metadata import version; print(version({package!r}))"
        if package == "python":
            ask = "from platform import python_version; print(python_version())"
        found = subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True)
        return f"{package} {found.stdout.strip()}"

    def start(self) -> Running:
        """Start it in a process of its own; raises `AbsentError` where it is not there."""
        return Running(self)


class Running:
    """An engine that runs: call it with size, slide and tuples."""

    def __init__(self, engine: Engine) -> None:
        self._title = engine.title
        command = [engine.python, "-m", "benchmarks.engines.worker", f"{engine.module}:{engine.run.__name__}"]
        paths = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=paths, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([size, slide, tuples]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise AbsentError(f"{self._title} has ended with {self._process.wait()}")
        found: list[list[int]] = json.loads(line)
        return found

    def stop(self) -> None:
        """End its process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
