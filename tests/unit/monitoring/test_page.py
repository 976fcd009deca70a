"""docs/monitoring.md lists the metrics that there are, and what records say."""

from __future__ import annotations

import re
from pathlib import Path

from streamdsl.monitoring.metrics import METRICS

PAGE = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text()


def test_the_page_has_each_metric() -> None:
    found = re.findall(r"^\| `(streamdsl_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE)
    assert found == [
        (
            f"{metric.name}_total" if metric.kind == "counter" else metric.name,
            metric.kind,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.meaning,
        )
        for metric in METRICS
    ]
