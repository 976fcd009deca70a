"""How much a law is tried on: by default the first fifth of a fixed set of random examples, and some of its cases.

They are the same each time, and few, so that all tests run often. `LAW_EXAMPLES=50000` tries all cases on as many new
examples, and fewer than 100 on so many of the fixed ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

T = TypeVar("T")
MANY = int(os.environ.get("LAW_EXAMPLES") or 0)


def load_profile() -> None:
    """Make the fixed set the default: no clock, no database and no chance decide what is tried."""
    settings.register_profile(
        "laws",
        max_examples=30 if MANY else 12,
        derandomize=MANY < 100,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.nested_given],
    )
    settings.load_profile("laws")


def examples(n: int, parts: int = 1) -> settings:
    """Return settings for a law with `n` examples in the fixed set; what `LAW_EXAMPLES` asks for is divided among its parts."""
    return settings(max_examples=-(-MANY // parts) if MANY else -(-n // 5))


def some(cases: Sequence[T], n: int) -> Sequence[T]:
    """Return `n` cases from among these, the first and others as far apart as there are, or with `LAW_EXAMPLES` all of them."""
    return cases if MANY or len(cases) <= n else [cases[number * len(cases) // n] for number in range(n)]
