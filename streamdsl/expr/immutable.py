"""The types whose values may stand in an expression as constants."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Final

IMMUTABLE: Final = frozenset(
    {int, float, bool, str, bytes, type(None), datetime, date, time, timedelta, timezone, Decimal, Fraction}
)
"""The types whose values may stand in an expression; subclasses are others, with operators of their own."""


def is_constant(value: object) -> bool:
    """Say whether a value is immutable through and through, of exactly a known type."""
    return all(map(is_constant, value)) if type(value) is tuple else type(value) in IMMUTABLE
