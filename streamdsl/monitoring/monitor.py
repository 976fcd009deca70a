"""What watches a job: its figures, and those who are told of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.monitoring.endpoint import Endpoint
from streamdsl.monitoring.job_figures import JobFigures, MicroBatch, Phase
from streamdsl.monitoring.live import Live
from streamdsl.monitoring.logs import JobLog, log_of
from streamdsl.monitoring.status import SourceStatus, Status
from streamdsl.monitoring.telemetry import Telemetry
from streamdsl.redaction import hide_secrets

OTEL: Final = "otel"
_EACH: Final = 1.0
"""Seconds after which the sources are asked how far they lag, though nothing comes."""


class Monitor:
    """Watches a job from its begin until `close`, and shows it in a live view, if there is one.

    `metrics` is an address, an `Endpoint`, `"otel"`, or several of these.
    """

    def __init__(self, metrics: str | Endpoint | Sequence[str | Endpoint], job: str, view: Live | None = None) -> None:
        self.figures = JobFigures()
        self._view = view
        self._held = ExitStack()
        if view is not None:
            self._held.callback(view.stop)
        self._asked = time.monotonic()
        self.telemetry: Telemetry | None = None
        given: Sequence[Any] = metrics if isinstance(metrics, (list, tuple)) else [metrics]
        try:
            for each in given:
                self._add(each, job)
        except BaseException:
            self.close()
            raise

    def _add(self, each: Any, job: str) -> None:
        if each == OTEL:
            self.telemetry = Telemetry(job)
            self.telemetry.start(self.figures)
            self._held.callback(self.telemetry.close)
            return
        if not isinstance(each, (str, Endpoint)):
            raise QueryError(f"metrics are not told to {each!r}", hint='metrics="127.0.0.1:9464", or metrics="otel"')
        endpoint = Endpoint(each) if isinstance(each, str) else each
        endpoint.start(self.figures)
        self._held.callback(endpoint.close)
        log = JobLog(log_of("streamdsl.monitoring"), {"job": job})
        log.info("the job is watched at %s", endpoint.address, extra={"address": endpoint.address})

    def close(self) -> None:
        """Show that the job has ended, and tell nobody any more."""
        self.figures.turn("ended")
        if self._view is not None and (last := self.figures.status) is not None and last.state == "open":
            self._view.show(replace(last, state="closed"))
        self._held.close()

    def turn(self, phase: Phase, due: float | None, sources: Callable[[], Sequence[SourceStatus]]) -> None:
        """Learn that the job goes on; `sources` says how they stand, if that has not been asked for a while."""
        self.figures.turn(phase, due)
        if (now := time.monotonic()) - self._asked >= _EACH:
            self._asked = now
            if found := sources():
                self.figures.set_sources(found)
                self._show()

    @contextmanager
    def micro_batch(self, number: int) -> Iterator[None]:
        """Watch the commit of a micro-batch."""
        if self.telemetry is None:
            yield
            return
        with self.telemetry.span(number):
            try:
                yield
            except Exception as error:  # the span records it, with what it came of
                if (failed := hide_secrets(error)) is not error:
                    raise failed from None
                raise

    def add(self, batch: MicroBatch, take: Callable[[bool], Status]) -> None:
        """Add a micro-batch; `take` gives the status of the session after it, with the bytes of its state if asked for."""
        self.figures.add(batch, self.figures.measured(take))
        self._show()
        if self.telemetry is not None:
            self.telemetry.add(batch)

    def _show(self) -> None:
        if self._view is not None and self.figures.status is not None:
            self._view.show(self.figures.status)
