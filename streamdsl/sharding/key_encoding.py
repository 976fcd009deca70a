"""An injective encoding of Python keys as texts: rows go to shards by it, and Spark groups by keys that Python computes."""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

from streamdsl.errors import SchemaError


def encode_key(key: Hashable) -> str:
    """Return a text that equal keys (of `payload_key`) share, and no others.

    >>> encode_key(1) == encode_key(1.0) == encode_key(True), encode_key("1") == encode_key(1)
    (True, False)
    """
    if key is None:
        return "-"
    if isinstance(key, str):
        return f"s{len(key)}:{key}"
    if isinstance(key, (int, float, Decimal, Fraction)):
        return _number(key)
    if isinstance(key, tuple):
        return f"({','.join(map(encode_key, key))})"
    if isinstance(key, frozenset):
        return f"{{{','.join(sorted(map(encode_key, key)))}}}"
    return _other(key)


def _number(key: int | float | Decimal | Fraction) -> str:
    if not isinstance(key, int) and not math.isfinite(key):
        return f"n{float(key)}"
    exact = Fraction(key)
    return f"n{exact.numerator}/{exact.denominator}"


def _other(key: Hashable) -> str:
    if isinstance(key, type):
        return f"c{key.__module__}.{key.__qualname__}"
    if isinstance(key, datetime):
        return f"t{(key.astimezone(UTC) if key.tzinfo else key).isoformat()}"
    if isinstance(key, (date, time)):
        return f"{type(key).__name__}{key.isoformat()}"
    if isinstance(key, (bytes, timedelta)):
        return f"{type(key).__name__}{key!r}"
    if isinstance(key, enum.Enum):
        return f"e{_other(type(key))}.{key.name}"
    raise SchemaError(
        f"{key!r} of type {type(key).__name__} cannot be a key by which rows go to shards, or that Python computes on Spark",
        hint="use a number, text, date, enum, or a record or tuple of them",
    )
