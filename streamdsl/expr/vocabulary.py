"""What may stand in an expression besides its operators: the methods of values, and the types of constants."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Final

_TEXT: Final = """
    upper lower title capitalize casefold swapcase strip lstrip rstrip removeprefix removesuffix replace zfill find
    startswith endswith isalpha isalnum isdigit isdecimal isnumeric isspace isupper islower istitle
"""
_TIME: Final = "weekday isoweekday date time timestamp isoformat toordinal total_seconds"
_TEXT_METHODS: Final = frozenset(_TEXT.split())
TESTS: Final = frozenset(name for name in _TEXT_METHODS if name.startswith("is") or name.endswith("swith")) | {"is_integer"}
"""The methods that give a bool."""
METHODS: Final = _TEXT_METHODS | frozenset(_TIME.split()) | {"is_integer", "bit_length"}
"""The methods that an expression may call; each gives a new value and changes nothing."""

IMMUTABLE: Final = frozenset(
    {int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, timezone, Decimal, Fraction}
)
"""The types whose values may stand in an expression; subclasses are others, with operators of their own."""


def is_constant(value: object) -> bool:
    """Say whether a value is immutable through and through, of exactly a known type."""
    return all(map(is_constant, value)) if type(value) is tuple else type(value) in IMMUTABLE
