"""Records that cannot be taken: which of a batch it is that is refused, and the dead letters that are kept of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from streamdsl.connect.protocols import BadRecord
from streamdsl.errors import CheckpointError, FieldNotFound, QueryError, SessionError, SinkError, StreamDslError, UserCodeError
from streamdsl.redaction import without_secrets

LETTERS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "id")),
        *((name, pa.int64()) for name in ("le", "re", "re_new")),
        *((name, pa.string()) for name in ("source", "place", "record", "reason")),
    ]
)
"""The columns of dead letters, as physical events: point events at their numbers."""


def is_of_record(error: StreamDslError) -> bool:
    """Say whether an error may be that of a single record, and not of the query or the job."""
    if isinstance(error, (CheckpointError, SessionError, SinkError, UserCodeError)):
        return False
    return not isinstance(error, QueryError) or isinstance(error, FieldNotFound)


def halves(data: Any) -> tuple[Any, Any]:
    """Return the first and the second half of a list or of a frame."""
    middle = len(data) // 2
    if isinstance(data, list):
        return data[:middle], data[middle:]
    if hasattr(data, "iloc"):
        return data.iloc[:middle], data.iloc[middle:]
    return data.slice(0, middle), data.slice(middle)


def record_of(data: Any) -> Any:
    """Return the single record of a list or of a frame."""
    if isinstance(data, list):
        return data[0]
    if hasattr(data, "iloc"):
        return data.to_dict("records")[0]
    return (data.to_dicts() if hasattr(data, "to_dicts") else data.to_pylist())[0]


def letter_table(letters: Sequence[tuple[str, BadRecord]], first: int) -> Any:
    """Return bad records of sources, numbered from `first`, as a table of physical events."""
    rows = [
        {
            "kind": "insert",
            "id": f"letter {number}",
            "le": number,
            "re": number + 1,
            "re_new": None,
            "source": source,
            "place": without_secrets(bad.where),
            "record": text_of(bad.record),
            "reason": without_secrets(bad.reason),
        }
        for number, (source, bad) in enumerate(letters, first)
    ]
    return pa.Table.from_pylist(rows, LETTERS)


def text_of(record: Any) -> str:
    """Return a record as text.

    >>> text_of(b"caf\\xe9"), text_of({"le": 3})
    ('caf\\\\xe9', '{"le": 3}')
    """
    if isinstance(record, bytes):
        return record.decode(errors="backslashreplace")
    if isinstance(record, str):
        return record.encode(errors="backslashreplace").decode()
    try:
        return json.dumps(record, ensure_ascii=True)
    except (TypeError, ValueError):
        return repr(record)
