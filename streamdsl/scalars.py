"""Bare payloads for type checkers: in a lambda the payload `5` is 5."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from typing_extensions import TypeVar

S = TypeVar(
    "S",
    bound=complex | str | bytes | date | timedelta | Decimal | Fraction | list[Any] | set[Any] | frozenset[Any] | None,
)
"""A payload without fields of its own. Bounded, so that a dataclass with a field `value` is not taken for one."""

Scalar = Annotated[S, "bare"]
"""What a lambda gets for a bare payload: itself."""
