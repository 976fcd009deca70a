"""Figures and spans for OpenTelemetry, by its API alone: without an SDK in the process nothing happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import Any, Final

from streamdsl.extras import need
from streamdsl.monitoring.job_figures import JobFigures, MicroBatch
from streamdsl.monitoring.metrics import METRICS, Metric

_SCOPE: Final = "streamdsl"
_DURATIONS: Final = {
    "streamdsl_micro_batch_seconds": lambda batch: batch.seconds,
    "streamdsl_commit_seconds": lambda batch: batch.commit_seconds,
    "streamdsl_checkpoint_seconds": lambda batch: batch.checkpoint_seconds,
}
_told: Final[dict[Telemetry, tuple[str, JobFigures]]] = {}
"""The name and the figures of each job that runs in this process: instruments are made once, and read all of them."""


class Telemetry:
    """Tells OpenTelemetry of a job: the metrics of docs/monitoring.md, and a span `micro_batch` for each one's commit."""

    def __init__(self, job: str) -> None:
        need("opentelemetry", "metrics for OpenTelemetry", "otel")
        self._job = job

    def start(self, figures: JobFigures) -> None:
        """Have the figures read when they are asked for."""
        _instruments()
        _told[self] = self._job, figures

    def close(self) -> None:
        """Have them read no more."""
        _told.pop(self, None)

    def span(self, number: int) -> AbstractContextManager[Any]:
        """Return a span for the commit of a micro-batch; what libraries of sinks trace is inside of it."""
        from opentelemetry import trace

        attributes: dict[str, Any] = {"streamdsl.job": self._job, "streamdsl.micro_batch": number}
        return trace.get_tracer(_SCOPE).start_as_current_span("micro_batch", attributes=attributes)

    def add(self, batch: MicroBatch) -> None:
        """Record the durations of a micro-batch, and its rows as attributes of the span that is open."""
        from opentelemetry import trace

        for name, histogram in _instruments().items():
            histogram.record(_DURATIONS[name](batch), {"job": self._job})
        trace.get_current_span().set_attributes(
            {
                "streamdsl.rows_in": batch.rows_in,
                "streamdsl.rows_out": batch.rows_out,
                "streamdsl.bad_records": sum(batch.bad_records.values()),
                "streamdsl.checkpoint_bytes": batch.checkpoint_bytes,
            }
        )


@cache
def _instruments() -> dict[str, Any]:
    """Make the instruments, once in a process, and return the histograms."""
    from opentelemetry import metrics

    meter = metrics.get_meter(_SCOPE)
    histograms = dict[str, Any]()
    for metric in METRICS:
        told: dict[str, Any] = {"unit": metric.unit, "description": metric.meaning}
        if metric.kind == "histogram":
            histograms[metric.name] = meter.create_histogram(_name(metric), **told)
        else:
            make: Callable[..., Any] = (
                meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
            )
            make(_name(metric), callbacks=[partial(_observed, metric)], **told)
    return histograms


def _observed(metric: Metric, options: Any) -> Iterator[Any]:
    from opentelemetry.metrics import Observation

    for job, figures in list(_told.values()):
        with figures.lock:
            samples = list(metric.read(figures))
        for labels, value in samples:
            yield Observation(value, {"job": job, **dict(zip(metric.labels, labels, strict=True))})


def _name(metric: Metric) -> str:
    """Return the name as OpenTelemetry writes it: without the unit, which is told apart.

    >>> [_name(each) for each in METRICS[:1]]
    ['streamdsl.events_in']
    """
    return metric.name.replace("_", ".", 1).removesuffix("_seconds")
