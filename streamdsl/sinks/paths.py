"""Paths and URIs of the local file system."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from streamdsl.errors import QueryError

_FILE: Final = re.compile(r"^file:(//[^/]*)?")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_local(path: str) -> bool:
    """Say whether a path, or a URI, is one of the file system.

    >>> is_local("/data/out"), is_local("s3://data/out")
    (True, False)
    """
    return path.startswith("file:") or not _SCHEME.match(path)


def uri_of(path: Path) -> str:
    """Return a path as a URI, so that Spark does not resolve it against its default file system.

    >>> uri_of(Path("/data/out"))
    'file:///data/out'
    """
    return f"file://{path.absolute()}"


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return a path of the file system, which may be given as a URI with the scheme `file`; raises `QueryError` for others.

    >>> local_path("file:///data/out").as_posix()
    '/data/out'
    """
    text = _FILE.sub("", os.fspath(path))
    if not is_local(text):
        raise QueryError(
            f"{text!r} is on no file system of this machine", hint="give a path that driver and workers share, such as a mount"
        )
    return Path(text)
