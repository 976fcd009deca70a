"""Validation of integer arguments: sizes, counts, ticks."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from streamdsl.errors import QueryError


def whole_number(value: object, what: str, least: int | None = None) -> int:
    """Return a Python or numpy integer as an `int`; raises `QueryError` for other values, and below `least`.

    >>> whole_number(3, "a delay is", 1)
    3
    >>> whole_number(0, "a delay is", 1)
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: a delay is a whole number >= 1, not 0
    Hint: int(...) of it, if that is meant
    """
    number = value if type(value) is int else _index(value)
    if number is None or (least is not None and number < least):
        raise QueryError(
            f"{what} a whole number{'' if least is None else f' >= {least}'}, not {value!r}",
            hint="int(...) of it, if that is meant",
        )
    return number


def _index(value: object) -> int | None:
    return index(value) if isinstance(value, SupportsIndex) and not isinstance(value, (bool, type)) else None
