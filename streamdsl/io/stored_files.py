"""Files by address: on this machine, and wherever fsspec reads and writes, such as in an object store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.extras import need
from streamdsl.redaction import without_secrets


def is_stored(path: str | os.PathLike[str]) -> bool:
    """Say whether a path is an address that is read through fsspec; `file://` is this machine.

    >>> is_stored("s3://bucket/trips.jsonl"), is_stored("file:///data/trips.jsonl"), is_stored("data/trips.jsonl")
    (True, False, False)
    """
    text = os.fspath(path)
    return "://" in text and not text.startswith("file://")


def is_storage(address: str) -> bool:
    """Say whether an address is of a kind that fsspec knows, if it is installed.

    >>> is_storage("s3://bucket/trips"), is_storage("mongo://server/trips")
    (True, False)
    """
    if find_spec("fsspec") is None:
        return False
    from fsspec import available_protocols

    return address.partition("://")[0] in available_protocols()


def file_system(address: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """Return the file system of fsspec for an address, and the path in it. Raises `QueryError` for one that it does not know.

    >>> file_system("memory://bucket/trips.jsonl")[1]
    '/bucket/trips.jsonl'
    """
    need("fsspec", f"files at {without_secrets(address)}", "fsspec")
    from fsspec.core import url_to_fs

    try:
        found, path = url_to_fs(address, **(options or {}))
    except (ImportError, ValueError) as error:
        raise QueryError(f"fsspec opens no {without_secrets(address)}: {error}", hint="s3:// needs s3fs, gs:// gcsfs") from None
    return found, str(path)


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise whatever a store's own library raises as an `OSError`, as those of files are."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
