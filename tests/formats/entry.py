"""What an entry says of its format: how another library writes and reads such files, and what they do not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import streamdsl as sd


@dataclass(frozen=True)
class FileFormat:
    """A file format: an entry of `FILES` in a module of this package. Nothing in it uses streamdsl's own reader or writer."""

    name: str
    """As in `streamdsl.io.formats.FORMATS`."""
    write: Callable[[pa.Table, int], bytes]
    """The content of a file with these rows, in one of the styles that such files have; 0 is the usual one."""
    read: Callable[[Path], pa.Table]
    """The rows of a file."""
    source: Callable[..., sd.Stream[Any]] = sd.sources.from_files
    """The source that reads it."""
    door: str = ""
    """Its name in the door laws, if it is another."""
    lacks: tuple[str, ...] = ()
    """The payloads of the door laws that such files do not hold."""
    is_headed: bool = True
    """Whether a file without rows has names of columns."""
    broken: Mapping[bytes, str] = field(default_factory=dict)
    """Contents that are none of the format, each with what is said of it, after the path of the file."""
