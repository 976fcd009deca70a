"""Bare payloads for type checkers: in a lambda the payload `5` is 5. `e.value`, as it was written before, is deprecated."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol

from typing_extensions import TypeVar, deprecated

S_co = TypeVar("S_co", covariant=True)
MYPY: Final = False
"""True for mypy alone."""

S = TypeVar(
    "S",
    bound=complex | str | bytes | date | timedelta | Decimal | Fraction | list[Any] | set[Any] | frozenset[Any] | None,
)
"""A payload without fields of its own. Bounded, so that a dataclass with a field `value` is not taken for one."""


class Scalar(Protocol[S_co]):
    """What a lambda over bare payloads could be given before."""

    @property
    @deprecated("a bare payload is itself: write e")
    def value(self) -> S_co:
        """The payload."""

    if not MYPY:
        # Other type checkers take a stream of Any for one of scalars, and then look into the lambda: there any field may be.
        def __getattr__(self, name: str) -> Any:
            """Return any field."""
