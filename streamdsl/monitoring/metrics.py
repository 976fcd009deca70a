"""The metrics of a job: their names, what they mean, and how each is read from the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streamdsl.monitoring.job_figures import Histogram, JobFigures
from streamdsl.monitoring.status import OperatorStatus, OutputStatus, SourceStatus, Status
from streamdsl.temporal.time import INFINITY, MIN_TIME, PER_SECOND, Unit, is_calendar

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Sample: TypeAlias = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: `read` gives the values, each with those of the `labels`; a histogram is read as a whole."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    labels: tuple[str, ...]
    read: Callable[[JobFigures], Iterable[Sample]]
    histogram: Callable[[JobFigures], Histogram] | None = None

    @property
    def samples(self) -> tuple[str, ...]:
        """The names that Prometheus has, of which queries are made."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{end}" for end in ("bucket", "count", "sum"))
        return (f"{self.name}_total" if self.kind == "counter" else self.name,)


def _of_status(read: Callable[[Status], Iterable[Sample]]) -> Callable[[JobFigures], Iterable[Sample]]:
    return lambda figures: () if figures.status is None else read(figures.status)


def _of_sources(kind: Kind, name: str, meaning: str, read: Callable[[SourceStatus], float]) -> Metric:
    values = _of_status(lambda status: [((each.name,), read(each)) for each in status.sources])
    return Metric(f"streamdsl_{name}", kind, "", meaning, ("source",), values)


def _of_outputs(kind: Kind, name: str, meaning: str, read: Callable[[OutputStatus], float]) -> Metric:
    values = _of_status(lambda status: [((each.emit,), read(each)) for each in status.outputs])
    return Metric(f"streamdsl_{name}", kind, "", meaning, ("emit",), values)


def _of_operators(name: str, unit: str, meaning: str, read: Callable[[OperatorStatus], float | None]) -> Metric:
    def values(status: Status) -> Iterator[Sample]:
        for each in status.operators:
            if (value := read(each)) is not None:
                yield (each.name,), value

    return Metric(f"streamdsl_{name}", "gauge", unit, meaning, ("operator",), _of_status(values))


def _times(status: Status) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the CTIs that are dates or ticks, of sources and of outputs."""
    for what, all_ in (("source", status.sources), ("output", status.outputs)):
        for each in all_:
            if MIN_TIME < each.cti < INFINITY:
                yield (what, each.name if isinstance(each, SourceStatus) else each.emit), each.cti


def _seconds(ticks: int, unit: Unit | None) -> float:
    return ticks / PER_SECOND[unit or "us"]


def _cti_dates(status: Status) -> Iterator[Sample]:
    if is_calendar(status.unit):
        yield from ((labels, _seconds(cti, status.unit)) for labels, cti in _times(status))


def _cti_ticks(status: Status) -> Iterator[Sample]:
    if not is_calendar(status.unit):
        yield from _times(status)


def _behind(status: Status) -> Iterator[Sample]:
    for what, all_ in (("source", status.sources), ("output", status.outputs)):
        for each in all_:
            if (lag := status.lag(each)) is not None:
                name = each.name if isinstance(each, SourceStatus) else each.emit
                yield (what, name), _seconds(lag, status.unit) if is_calendar(status.unit) else lag


def _partition_dates(status: Status) -> Iterator[Sample]:
    for each in status.sources if is_calendar(status.unit) else ():
        for partition, cti in each.partition_ctis.items():
            if MIN_TIME < cti < INFINITY:
                yield (each.name, partition), _seconds(cti, status.unit)


def _partition_lags(status: Status) -> Iterator[Sample]:
    for each in status.sources:
        yield from (((each.name, partition), lag) for partition, lag in each.partition_lags.items())


def _total(name: str, meaning: str, unit: str, read: Callable[[JobFigures], float]) -> Metric:
    return Metric(f"streamdsl_{name}", "counter", unit, meaning, (), lambda figures: [((), read(figures))])


def _durations(name: str, meaning: str, read: Callable[[JobFigures], Histogram]) -> Metric:
    return Metric(f"streamdsl_{name}", "histogram", "s", meaning, (), lambda figures: (), read)


_OPEN: Final = ("kind", "name")
METRICS: Final = (
    _of_sources("counter", "events_in", "Insertions and retractions that came", lambda each: each.events_in),
    _of_sources("counter", "retractions_in", "Retractions that came", lambda each: each.retractions_in),
    _of_sources("counter", "late_events", "Events dropped or adjusted, as a CTI was past them", lambda each: each.late),
    Metric(
        "streamdsl_bad_records", "counter", "", "Records that were refused, which are dead letters", ("source",),
        lambda figures: [((source,), n) for source, n in figures.bad_records.items()],
    ),
    _of_outputs("counter", "events_out", "Insertions and retractions that left", lambda each: each.events_out),
    _of_outputs("counter", "retractions_out", "Retractions that left", lambda each: each.retractions_out),
    _of_outputs("gauge", "rows_held", "Rows that are held back until they are final", lambda each: each.held),
    Metric(
        "streamdsl_cti_timestamp_seconds", "gauge", "s", "The CTI, where times are dates, in seconds since 1970", _OPEN,
        _of_status(_cti_dates),
    ),
    Metric("streamdsl_cti_ticks", "gauge", "", "The CTI, where times are ticks", _OPEN, _of_status(_cti_ticks)),
    Metric(
        "streamdsl_cti_lag", "gauge", "",
        "How far the CTI is behind the largest time that has come: seconds of dates, else ticks", _OPEN,
        _of_status(_behind),
    ),
    Metric(
        "streamdsl_partition_cti_timestamp_seconds", "gauge", "s", "The CTI of a partition, where times are dates",
        ("source", "partition"), _of_status(_partition_dates),
    ),
    Metric(
        "streamdsl_partition_lag_records", "gauge", "", "Records of a partition that are there and have not been read",
        ("source", "partition"), _of_status(_partition_lags),
    ),
    _of_operators("windows_open", "", "Windows that can still change", lambda each: each.windows),
    _of_operators("rows_kept", "", "Rows that an operator keeps", lambda each: each.events),
    _of_operators("state_bytes", "By", "The bytes of the state in memory", lambda each: each.state_bytes),
    _total("micro_batches", "Micro-batches that the sinks have", "", lambda figures: figures.totals["micro_batches"]),
    _durations(
        "micro_batch_seconds", "From the first record of a micro-batch until the sinks have its output", lambda each: each.latency
    ),
    _durations("commit_seconds", "From the end of a micro-batch until the sinks have its output", lambda each: each.commits),
    _durations("checkpoint_seconds", "From the end of a micro-batch until it is durable", lambda each: each.checkpoints),
    Metric(
        "streamdsl_checkpoint_bytes", "gauge", "By", "The bytes of the state in the last checkpoint", (),
        lambda figures: [((), figures.checkpoint_bytes)],
    ),
    _total("engine_seconds", "Time that the engine has taken for input", "s", lambda figures: figures.engine_seconds),
    Metric(
        "streamdsl_sink_seconds", "counter", "s", "Time that a sink has taken", ("sink",),
        lambda figures: [((sink,), seconds) for sink, seconds in figures.sink_seconds.items()],
    ),
    Metric(
        "streamdsl_last_micro_batch_timestamp_seconds", "gauge", "s", "When the sinks had the last micro-batch, since 1970", (),
        lambda figures: [] if figures.last_batch is None else [((), figures.last_batch)],
    ),
)  # fmt: skip
"""All metrics, of which the endpoint, OpenTelemetry and docs/monitoring.md are made."""
