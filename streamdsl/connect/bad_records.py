"""Records that cannot be taken: which of a batch it is that is refused."""

from __future__ import annotations

import json
from typing import Any

from streamdsl.errors import CheckpointError, FieldNotFound, QueryError, SessionError, SinkError, StreamDslError, UserCodeError


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
