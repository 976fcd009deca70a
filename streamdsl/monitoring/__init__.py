"""What runs, watched: the figures of sessions and jobs, and where they are shown (docs/live.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdsl.monitoring.live import Live, live
from streamdsl.monitoring.status import JobStatus, OperatorStatus, OutputStatus, SourceStatus, Status

if TYPE_CHECKING:
    from streamdsl.monitoring.endpoint import Endpoint

__all__ = ["Endpoint", "JobStatus", "Live", "OperatorStatus", "OutputStatus", "SourceStatus", "Status", "live"]


def __getattr__(name: str) -> object:
    """Return `Endpoint`, whose server Python is slow to import."""
    if name != "Endpoint":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from streamdsl.monitoring.endpoint import Endpoint

    return Endpoint
