"""Safe decoding of JSON from outside."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_DEEPEST: Final = 500
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS: Final = re.compile(r"[\[\]{}]")


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text; raises `ValueError` for invalid JSON, and for nesting deeper than 500.

    The parser of the standard library recurses in C: if deep queries have raised Python's recursion limit, deeply nested text
    would overflow the machine's stack and crash the process.

    >>> loads('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> loads("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested more than 500 deep
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    if text.count("[") + text.count("{") > _DEEPEST:
        depth = 0
        for found in _BRACKETS.finditer(_TEXT.sub("", text)):
            depth += 1 if found[0] in "[{" else -1
            if depth > _DEEPEST:
                raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return json.loads(text)
