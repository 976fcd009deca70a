"""Payloads as one short line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamdsl.temporal.payload import Record, fields_of, is_dataclass, is_namedtuple, show

_DIGITS: Final = 9
"""Floats that are longer than so many characters are told to six digits."""


def cut(payload: object, most: int = 28, brief: bool = True) -> str:
    """Return a payload as one line of at most `most` characters.

    Floats of many digits are told to six of them.

    >>> cut({"k": "a"}, 28), cut("rain", 28), cut(({"k": "a"}, 7), 28), cut("a" * 40, 8), cut({"mean": 2 / 3}, 28)
    ("k='a'", 'rain', "(k='a', 7)", 'aaaaaaa…', 'mean=0.666667')
    """
    text = " ".join((payload if isinstance(payload, str) and payload else _shown(payload, brief)).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shown(payload: object, brief: bool) -> str:
    """Return what `show` does, with the parts of a tuple, such as the rows of a join, shown likewise."""
    if isinstance(payload, tuple) and not hasattr(payload, "_fields"):
        return f"({', '.join(_shown(each, brief) for each in payload)})"
    return show(_brief(payload) if brief else payload)


class _BriefFloat(float):
    """A float that is shown to six digits."""

    def __repr__(self) -> str:
        return f"{float(self):.6g}"


def _brief(payload: Any) -> Any:
    """Return a payload with floats of many digits that are shown to six."""
    if isinstance(payload, float):
        return _BriefFloat(payload) if len(repr(payload)) > _DIGITS else payload
    if not (isinstance(payload, (Record, Mapping)) or is_dataclass(payload) or is_namedtuple(payload)):
        return payload
    fields = {name: _brief(value) for name, value in fields_of(payload)}
    return fields if any(isinstance(value, _BriefFloat) for value in fields.values()) else payload
