"""How many random examples a law is tried on: by default the first half of a fixed set, which is the same each time, so that all
tests run often; `LAW_EXAMPLES=50000` as many new ones of each, and fewer than 100 so many of the fixed ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

MANY = int(os.environ.get("LAW_EXAMPLES") or 0)


def load_profile() -> None:
    """Make the fixed set the default: no clock, no database and no chance decide what is tried."""
    settings.register_profile(
        "laws",
        max_examples=30,
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
    return settings(max_examples=-(-MANY // parts) if MANY else (n + 1) // 2)
