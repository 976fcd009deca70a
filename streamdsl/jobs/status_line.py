"""The status line of a job: the metrics of each micro-batch in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamdsl.monitoring.panel import size_text
from streamdsl.monitoring.terminal_line import TerminalLine
from streamdsl.temporal import MIN_TIME, Unit, format_time


class StatusLine(TerminalLine):
    """Shows the metrics of micro-batches, in a terminal on one line that is overwritten."""

    def __call__(self, figures: Mapping[str, Any]) -> None:
        """Show the metrics of a micro-batch."""
        self.show(format_metrics(figures))


def format_metrics(figures: Mapping[str, Any]) -> str:
    """Return the metrics of a micro-batch as text, its CTI as a date if there is a `unit` of dates.

    >>> format_metrics({"batch": 3, "rows_in": 1200, "rows_out": 7, "cti": 40, "state_bytes": 123456, "seconds": 0.25})
    'micro-batch 3: 1,200 rows in, 7 out, CTI 40, state 123 kB, 0.25 s'
    >>> dated = {"cti": 1_772_323_200_000, "unit": "ms", "state_bytes": None, "seconds": 0.25}
    >>> format_metrics({"batch": 3, "rows_in": 1200, "rows_out": 7, **dated})
    'micro-batch 3: 1,200 rows in, 7 out, CTI 2026-03-01T00:00:00Z, 0.25 s'
    """
    parts = [
        f"{figures['rows_in']:,} rows in",
        f"{figures['rows_out']:,} out",
        f"CTI {_format_cti(figures['cti'], figures.get('unit'))}",
    ]
    if figures.get("rows_rejected"):
        parts.append(f"{figures['rows_rejected']:,} REJECTED")
    if figures["state_bytes"] is not None:
        parts.append(f"state {size_text(figures['state_bytes'])}")
    return f"micro-batch {figures['batch']}: {', '.join(parts)}, {figures['seconds']:.2f} s"


def _format_cti(cti: int | None, unit: Unit | None) -> str:
    return "-" if cti is None or cti == MIN_TIME else format_time(cti, unit)
