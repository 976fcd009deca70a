"""What the tests of files share: a file with a text, and what is read of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from streamdsl.io.binding import Bound
from streamdsl.io.readers import read_files
from streamdsl.temporal import Insert

DAY = 1360281600 * 10**6

read_csv, read_jsonl, read_parquet, read_ipc = (partial(read_files, form=name) for name in ("csv", "jsonl", "parquet", "arrow"))


def payloads(bound: Bound) -> list[Any]:
    return [event.payload for event in bound.events() if isinstance(event, Insert)]


def lifetimes(bound: Bound) -> list[tuple[int, int]]:
    return [(event.le, event.re) for event in bound.events() if isinstance(event, Insert)]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
