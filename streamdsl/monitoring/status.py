"""The status of a session or a job: its figures at a moment, as plain data that JSON holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, Self, TypeAlias

from streamdsl.temporal.time import INFINITY, MIN_TIME, PER_SECOND, Unit, format_time, is_calendar

State: TypeAlias = Literal["open", "closed", "failed"]
_NAMES: Final = {MIN_TIME: None, INFINITY: "inf"}
"""Times that JSON does not write as numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """A source: what it has sent since the query was opened, and how far it has come.

    `retractions_in` are among `events_in`; `late` events were dropped or adjusted; `furthest` is the largest LE or CTI.
    """

    name: str
    events_in: int = 0
    retractions_in: int = 0
    late: int = 0
    cti: int = MIN_TIME
    furthest: int = MIN_TIME
    partition_ctis: Mapping[str, int] = field(default_factory=dict)
    """The CTI of each partition, where the source has partitions."""
    partition_lags: Mapping[str, int] = field(default_factory=dict)
    """The records of each partition that are there and have not been read, as far as the source knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStatus:
    """The output by one way to emit: what has left, `retractions_out` among it, and the rows that are held back."""

    emit: str
    events_out: int = 0
    retractions_out: int = 0
    held: int = 0
    cti: int = MIN_TIME
    newest: Sequence[str] = ()
    """The newest rows that have left, as text, where the session is looked at live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStatus:
    """An operator, by its label in `explain()`: open windows, events held, and bytes in memory if they were asked for."""

    name: str
    windows: int = 0
    events: int = 0
    state_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """What a job has done since its process began, and how long it takes; `positions` are as the sources count them."""

    micro_batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bad_records: int = 0
    uptime: float = 0.0
    batch_seconds: Mapping[str, float] = field(default_factory=dict)
    """Percentiles of the seconds that a micro-batch takes: `p50`, `p95`, `p99`."""
    checkpoint_seconds: float | None = None
    checkpoint_bytes: int | None = None
    positions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The figures of a session at a moment, made by `session.status()`; of a job too, where `job` is not None.

    The session's own way to emit is the first of `outputs`, its subscriptions follow.

    >>> trips = SourceStatus(name="trips", events_in=7, cti=30, furthest=33)
    >>> status = Status(time=1_790_000_000.0, sources=(trips,), outputs=(OutputStatus(emit="final", events_out=2, cti=20),))
    >>> print(status)
    trips 7 in, CTI 30; output 2 out, CTI 20
    >>> status.lag(trips), status.lag(status.outputs[0])
    (3, 13)
    >>> Status.from_json(status.to_json()) == status
    True
    """

    time: float
    """The clock of the machine when the figures were taken, in seconds since 1970."""
    unit: Unit | None = None
    state: State = "open"
    sources: Sequence[SourceStatus] = ()
    outputs: Sequence[OutputStatus] = ()
    operators: Sequence[OperatorStatus] = ()
    late: Sequence[str] = ()
    """A few of the newest late events, as text."""
    job: JobStatus | None = None

    def __str__(self) -> str:
        sources = [f"{each.name} {each.events_in:,} in, CTI {self.time_text(each.cti)}" for each in self.sources]
        outputs = [f"{name} {each.events_out:,} out, CTI {self.time_text(each.cti)}" for name, each in self.named_outputs()]
        return "; ".join([*sources, *outputs])

    def named_outputs(self) -> list[tuple[str, OutputStatus]]:
        """Return the outputs with the names that they are shown by: `output`, and how each is emitted where there are several."""
        many = len(self.outputs) > 1
        return [(f"output, {each.emit}" if many else "output", each) for each in self.outputs]

    @property
    def furthest(self) -> int:
        """The largest finite time that a source or an output has come to, MIN_TIME if none has had one."""
        times = [time for each in self.sources for time in (each.cti, each.furthest)] + [each.cti for each in self.outputs]
        return max((time for time in times if time != INFINITY), default=MIN_TIME)

    def lag(self, each: SourceStatus | OutputStatus) -> int | None:
        """Return how many ticks a CTI is behind the furthest time; None before the first CTI."""
        return None if each.cti == MIN_TIME else max(0, self.furthest - each.cti)

    def lag_seconds(self, each: SourceStatus | OutputStatus) -> float | None:
        """Return the lag in seconds of the calendar; None where times are plain ticks too."""
        lag = self.lag(each)
        return None if lag is None or not is_calendar(self.unit) else lag / PER_SECOND[self.unit or "us"]

    def lag_text(self, each: SourceStatus | OutputStatus) -> str:
        """Return the lag as text, "" if there is none."""
        lag = self.lag(each)
        return long(lag, self.unit) if lag else ""

    def time_text(self, time: int) -> str:
        """Return a time as text: a date, or ticks."""
        return "none yet" if time == MIN_TIME else format_time(time, self.unit)

    @property
    def state_bytes(self) -> int | None:
        """The bytes of all operators, None unless they were asked for."""
        sizes = [each.state_bytes for each in self.operators if each.state_bytes is not None]
        return sum(sizes) if sizes else None

    def to_json(self) -> dict[str, Any]:
        """Return the figures as what JSON holds; a CTI that has not come is null, INFINITY is "inf"."""
        found = asdict(self)
        for each in (*found["sources"], *found["outputs"]):
            for name in {"cti", "furthest"} & each.keys():
                each[name] = _NAMES.get(each[name], each[name])
        for each in found["sources"]:
            each["partition_ctis"] = {name: _NAMES.get(time, time) for name, time in each["partition_ctis"].items()}
        return {**found, **{name: list(found[name]) for name in ("sources", "outputs", "operators", "late")}}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Return the status that `to_json` has written; names that this version does not know are passed over."""
        parts: dict[str, Any] = {
            "sources": tuple(_made(SourceStatus, each) for each in given["sources"]),
            "outputs": tuple(_made(OutputStatus, each) for each in given["outputs"]),
            "operators": tuple(_made(OperatorStatus, each) for each in given.get("operators", ())),
            "late": tuple(given.get("late", ())),
            "job": _made(JobStatus, given["job"]) if given.get("job") else None,
        }
        return cls(time=given["time"], unit=given.get("unit"), state=given.get("state", "open"), **parts)


def long(ticks: int, unit: Unit | None) -> str:
    """Return a duration as text: in the units of a clock, or in ticks.

    >>> long(90_061, "s"), long(1_500, "ms"), long(90, None)
    ('1d 1h 1m 1s', '1.5s', '90')
    """
    if not is_calendar(unit):
        return f"{ticks}"
    seconds, part = divmod(ticks, PER_SECOND[unit or "us"])
    found = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        count, seconds = divmod(seconds, size)
        found += [f"{count}{name}"] if count else []
    rest = f"{seconds + part / PER_SECOND[unit or 'us']:.9f}".rstrip("0").rstrip(".")
    return " ".join([*found, *([f"{rest}s"] if rest != "0" or not found else [])])


def _made(cls: Any, given: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(cls)}
    found = {name: value for name, value in given.items() if name in known}
    for name in {"cti", "furthest"} & found.keys():
        found[name] = _time(found[name])
    if "newest" in found:
        found["newest"] = tuple(found["newest"])
    if "partition_ctis" in found:
        found["partition_ctis"] = {name: _time(time) for name, time in found["partition_ctis"].items()}
    return cls(**found)


def _time(given: int | str | None) -> int:
    return MIN_TIME if given is None else INFINITY if given == "inf" else int(given)
