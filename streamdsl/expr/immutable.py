"""The immutable types, whose values may be constants of an expression."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Final

IMMUTABLE: Final = frozenset(
    {int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, timezone, Decimal, Fraction}
)
"""The types of constants. Their subclasses are not among them, as they may have operators of their own."""


def is_constant(value: object) -> bool:
    """Say whether a value is of exactly one of these types, or a tuple of such values."""
    return all(map(is_constant, value)) if type(value) is tuple else type(value) in IMMUTABLE
