"""The status line of a job: the metrics of each micro-batch in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

from streamdsl.temporal import MIN_TIME, Unit, format_time


class StatusLine:
    """Shows the metrics of micro-batches, in a terminal on one line that is overwritten."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr

    def __call__(self, figures: Mapping[str, Any]) -> None:
        """Show the metrics of a micro-batch."""
        over = self._out.isatty()
        self._out.write(f"\r\033[K{format_metrics(figures)}" if over else f"{format_metrics(figures)}\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """Show a text on lines of its own."""
        self._out.write(f"\r\033[K{text}\n" if self._out.isatty() else f"{text}\n")

    def end(self) -> None:
        """End the last line."""
        if self._out.isatty():
            self._out.write("\n")


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
        parts.append(f"state {_format_bytes(figures['state_bytes'])}")
    return f"micro-batch {figures['batch']}: {', '.join(parts)}, {figures['seconds']:.2f} s"


def _format_cti(cti: int | None, unit: Unit | None) -> str:
    return "-" if cti is None or cti == MIN_TIME else format_time(cti, unit)


def _format_bytes(n: int) -> str:
    """Return a number of bytes with a unit.

    >>> _format_bytes(999), _format_bytes(1_500_000)
    ('999 B', '1.5 MB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"
