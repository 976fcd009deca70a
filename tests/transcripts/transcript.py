"""Transcripts: sessions written down as data. `>` begins a line of input (`t>`: for source t); what follows is its output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamdsl.temporal import Event
from streamdsl.testing import events
from tests.operators import entries

_INPUT = re.compile(r"(\w*)>\s*(.*)")
_HEAD = ("title", "query", "emit", "in", "out")


@dataclass
class Step:
    """One push (or the close, if `source` is "close") and the output that it causes."""

    source: str
    pushed: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)


@dataclass
class Transcript:
    """A query over sources, the pushes that it is given, and what comes out of it."""

    head: dict[str, str]
    steps: list[Step]

    def events(self, side: str, lines: list[str]) -> list[Event[Any]]:
        tuples = (lambda **values: tuple(values.values())) if self.head[side].startswith("_0") else None
        return events("\n".join([f"kind id le re re_new {self.head[side]}", *lines]), tuples)


def load(path: Path) -> Transcript:
    return read(path.name, path.read_text())


def read(name: str, text: str) -> Transcript:
    head, *blocks = text.strip().split("\n\n")
    settings = {"emit": "speculative"} | dict(re.split(r":\s*", line, maxsplit=1) for line in head.splitlines())
    if unknown := sorted(settings.keys() ^ set(_HEAD)):
        raise ValueError(f"{name}: the head holds {', '.join(_HEAD)}; look at {', '.join(unknown)}")
    return Transcript(settings, [_step(name, block.splitlines()) for block in blocks])


def _step(name: str, lines: list[str]) -> Step:
    inputs = [match for line in lines if (match := _INPUT.fullmatch(line))]
    out = [line for line in lines if not _INPUT.fullmatch(line)]
    if not inputs or lines[: len(inputs)] != [match.group(0) for match in inputs] or len({m.group(1) for m in inputs}) > 1:
        raise ValueError(f"{name}: a step is input for one source, then output, not {lines}")
    return Step(inputs[0].group(1) or "s", [match.group(2) for match in inputs], out)


def texts() -> dict[str, str]:
    """Return the text of every transcript by its name: those of files here, and those in the entries of operators."""
    files = {path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.txt"))}
    return files | {name: text for entry in entries().values() for name, text in entry.transcripts.items()}


def transcripts() -> dict[str, Transcript]:
    """Return every transcript by its name."""
    return {name: read(name, text) for name, text in texts().items()}
