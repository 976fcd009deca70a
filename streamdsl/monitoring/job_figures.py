"""The figures of a job: its thread adds to them once for each micro-batch, and others read them."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from streamdsl.monitoring.status import JobStatus, SourceStatus, Status

Phase: TypeAlias = Literal["opening", "running", "draining", "ended"]
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bounds of the histograms, in seconds."""
_NEWEST: Final = 1_000
_RARELY: Final = 20
"""The state is measured at most for one part in so many of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What is told of a micro-batch once its sinks have it.

    `seconds` are from its first record until then, of which `commit_seconds` are those from its end on, and of these
    `checkpoint_seconds` those until it is durable. `engine_seconds` is the time in the engine, before its end.
    """

    number: int
    rows_in: int = 0
    rows_out: int = 0
    bad_records: Mapping[str, int] = field(default_factory=dict)
    """The records that were refused, by source."""
    seconds: float = 0.0
    commit_seconds: float = 0.0
    checkpoint_seconds: float = 0.0
    checkpoint_bytes: int = 0
    engine_seconds: float = 0.0
    sink_seconds: Mapping[str, float] = field(default_factory=dict)
    positions: Mapping[str, Any] = field(default_factory=dict)


class Histogram:
    """How many durations were at most so many seconds long.

    >>> histogram = Histogram()
    >>> histogram.add(0.3)
    >>> histogram.total, histogram.up_to()[7:9], histogram.up_to()[-1]
    (0.3, [('0.25', 0), ('0.5', 1)], ('+Inf', 1))
    """

    def __init__(self) -> None:
        self.total = 0.0
        self._counts = [0] * (len(_BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.total += seconds
        self._counts[bisect_left(_BOUNDS, seconds)] += 1

    def up_to(self) -> list[tuple[str, int]]:
        """Return for each bound, and for +Inf, how many were at most that."""
        sums = [sum(self._counts[: n + 1]) for n in range(len(self._counts))]
        return list(zip([*map(str, _BOUNDS), "+Inf"], sums, strict=True))


class JobFigures:
    """What a job has done since its process began, and how it stands: `status` is that of its session, None before the first.

    >>> figures = JobFigures()
    >>> figures.add(MicroBatch(number=0, rows_in=7, seconds=0.3), Status(time=time.time()))
    >>> figures.totals["micro_batches"], figures.job.rows_in, figures.job.batch_seconds["p50"]
    (1, 7, 0.3)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.lock = threading.Lock()
        self.phase: Phase = "opening"
        self.status: Status | None = None
        self.totals = Counter[str]()
        self.engine_seconds = 0.0
        self.bad_records, self.sink_seconds = Counter[str](), dict[str, float]()
        self.latency, self.commits, self.checkpoints = Histogram(), Histogram(), Histogram()
        self.last_batch: float | None = None
        self._clock, self._began = clock, clock()
        self._turned, self._due = self._began, None
        self._newest = deque[float](maxlen=_NEWEST)
        self._last = MicroBatch(number=-1)
        self._sizes = dict[str, int]()
        self._measured_until = self._measuring = float("-inf")

    _due: float | None

    def turn(self, phase: Phase, due: float | None = None) -> None:
        """Learn that the job goes on, and when the micro-batch that is under way is to end."""
        self.phase, self._due, self._turned = phase, due, self._clock()

    def why_not_ready(self, patience: float) -> str | None:
        """Return why the job is not ready, None if it is: its sources are open, it goes on, no micro-batch is long overdue."""
        if self.phase != "running":
            return f"the job is {self.phase}"
        now, due = self._clock(), self._due
        if now - self._turned > patience:
            return f"the job has not asked its sources for {now - self._turned:.0f} seconds"
        if due is not None and now - due > patience:
            return f"a micro-batch has been due for {now - due:.0f} seconds"
        return None

    def measured(self, take: Callable[[bool], Status]) -> Status:
        """Return a status, with the bytes of the state if it is not long since that took some time."""
        begun = self._clock()
        is_due = begun >= self._measured_until
        status = take(is_due)
        if is_due:
            self._measured_until = self._clock() + (_RARELY - 1) * (self._clock() - begun)
            self._sizes = {each.name: each.state_bytes for each in status.operators if each.state_bytes is not None}
        operators = tuple(replace(each, state_bytes=self._sizes.get(each.name)) for each in status.operators)
        return replace(status, operators=operators)

    def add(self, batch: MicroBatch, status: Status) -> None:
        """Add a micro-batch, and how the session stands after it."""
        with self.lock:
            self._last, self.last_batch = batch, status.time
            self._newest.append(batch.seconds)
            bad = sum(batch.bad_records.values())
            self.totals.update(micro_batches=1, rows_in=batch.rows_in, rows_out=batch.rows_out, bad_records=bad)
            self.engine_seconds += batch.engine_seconds
            self.bad_records.update(batch.bad_records)
            for sink, seconds in batch.sink_seconds.items():
                self.sink_seconds[sink] = self.sink_seconds.get(sink, 0.0) + seconds
            self.latency.add(batch.seconds)
            self.commits.add(batch.commit_seconds)
            self.checkpoints.add(batch.checkpoint_seconds)
            self.status = replace(status, job=self.job)

    def set_sources(self, sources: Sequence[SourceStatus]) -> None:
        """Learn how the sources stand, though no micro-batch has come: their lag may grow."""
        with self.lock:
            if self.status is not None:
                self.status = replace(self.status, time=time.time(), sources=tuple(sources))

    @property
    def checkpoint_bytes(self) -> int:
        """The bytes of the last checkpoint."""
        return self._last.checkpoint_bytes

    @property
    def job(self) -> JobStatus:
        """The figures as those of a status."""
        return JobStatus(
            **{name: self.totals[name] for name in ("micro_batches", "rows_in", "rows_out", "bad_records")},
            uptime=self._clock() - self._began,
            batch_seconds=_percentiles(sorted(self._newest)),
            checkpoint_seconds=self._last.checkpoint_seconds,
            checkpoint_bytes=self._last.checkpoint_bytes,
            positions=self._last.positions,
        )


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return percentiles of durations in order.

    >>> _percentiles(range(1, 101))
    {'p50': 50, 'p95': 95, 'p99': 99}
    """
    return {f"p{part}": seconds[max(0, -(-part * len(seconds) // 100) - 1)] for part in (50, 95, 99) if seconds}
