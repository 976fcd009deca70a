"""What runs, watched: the figures of sessions and jobs, and where they are shown (docs/live.md)."""

from streamdsl.monitoring.endpoint import Endpoint
from streamdsl.monitoring.live import Live, live
from streamdsl.monitoring.status import JobStatus, OperatorStatus, OutputStatus, SourceStatus, Status

__all__ = ["Endpoint", "JobStatus", "Live", "OperatorStatus", "OutputStatus", "SourceStatus", "Status", "live"]
