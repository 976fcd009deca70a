"""Scalar payloads for type checkers: a lambda sees the payload `5` as a row whose field `value` is 5."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol

from typing_extensions import TypeVar

S_co = TypeVar("S_co", covariant=True)
MYPY: Final = False
"""True for mypy alone."""

S = TypeVar(
    "S",
    bound=complex | str | bytes | date | timedelta | Decimal | Fraction | list[Any] | set[Any] | frozenset[Any] | None,
)
"""A payload without fields of its own. Bounded, so that a dataclass with a field `value` is not taken for one."""


class Scalar(Protocol[S_co]):
    """What a lambda gets for a scalar payload."""

    @property
    def value(self) -> S_co:
        """The payload."""

    if not MYPY:
        # Other type checkers take a stream of Any for one of scalars, and then look into the lambda: there any field may be.
        def __getattr__(self, name: str) -> Any:
            """Return any field."""
