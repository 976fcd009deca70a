"""What a status says at a glance: a headline and tables of text, which a notebook, a terminal and a line show alike."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from streamdsl.monitoring.status import JobStatus, OutputStatus, SourceStatus, Status
from streamdsl.temporal.html import columns, escape
from streamdsl.temporal.time import MIN_TIME, is_calendar

_SPAN: Final = 10.0
"""The seconds that rates are over."""
_MOST: Final = 8
"""The operators that are shown."""
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_STYLE: Final = (
    ".sd-live{font:13px/1.45 system-ui,sans-serif;color:inherit;font-variant-numeric:tabular-nums;max-width:1200px}"
    ".sd-live .head{font-weight:600;margin:2px 0 8px}"
    ".sd-live .scroll{overflow-x:auto;margin:0 0 10px}"
    ".sd-live table{border-collapse:collapse;margin:0;font-size:inherit;background:none}"
    ".sd-live th,.sd-live td{padding:2px 12px 2px 0;text-align:right;white-space:nowrap;background:none;color:inherit;border:0}"
    ".sd-live th{font-weight:500;opacity:.65;border-bottom:1px solid rgba(128,128,128,.45)}"
    ".sd-live th:first-child,.sd-live td:first-child,.sd-live .words td,.sd-live .words th{text-align:left}"
    ".sd-live th{min-width:6em}.sd-live th:first-child{min-width:11em}"
    ".sd-live .words{table-layout:fixed;width:100%;min-width:40em}"
    ".sd-live .words div{font:12px/1.45 ui-monospace,monospace;overflow:hidden;text-overflow:ellipsis}"
    ".sd-live .tall div{height:2.9em;white-space:normal;overflow-wrap:anywhere;display:-webkit-box;"
    "-webkit-box-orient:vertical;-webkit-line-clamp:2}"
    ".sd-live .behind{display:inline-block;height:8px;border-radius:2px;background:#d9822b;margin-left:8px}"
    ".sd-live .room{display:inline-block;width:68px;text-align:left}"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """A table: titles, and rows of text; `words` are to the left, in one line or, if they are long, always in two.

    `shares` is how long the bar of each row is, of the longest.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False
    are_long: bool = False
    shares: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """A status as it is shown."""

    headline: str
    tables: Sequence[Figures]

    def __str__(self) -> str:
        shown = [self.headline]
        for each in self.tables:
            right = () if each.words else range(1, len(each.titles))
            shown.append(columns([each.titles, *each.rows], right))
        return "\n\n".join(shown)

    def line(self) -> str:
        """Return it as one line: the headline, and how far behind each source and output is."""
        behind = [f"{row[0]} {row[1]} behind" for each in self.tables if each.shares for row in each.rows if row[1]]
        return " · ".join([self.headline, *behind])

    def html(self) -> str:
        """Return it as HTML, in the colours of the page that it is on."""
        tables = "".join(map(_table, self.tables))
        return f'<div class="sd-live"><style>{_STYLE}</style><div class="head">{escape(self.headline)}</div>{tables}</div>'


class Panels:
    """Makes panels of the statuses of one session or job, one after the other: rates are over the last ten seconds.

    >>> panels = Panels()
    >>> trips = SourceStatus(name="trips", events_in=7, cti=30, furthest=33)
    >>> print(panels.panel(Status(time=0.0, sources=(trips,))))
    open · 0/s in · 0/s out
    <BLANKLINE>
    source  behind  per s  in  retractions  late  CTI
    trips        3      0   7            0     0   30
    >>> from dataclasses import replace
    >>> panels.panel(Status(time=2.0, sources=(replace(trips, events_in=1_007),))).headline
    'open · 500/s in · 0/s out'
    """

    def __init__(self) -> None:
        self._before: deque[Status] = deque()
        self._held: set[str] = set()

    def panel(self, status: Status) -> Panel:
        """Return the panel of the next status."""
        while len(self._before) > 1 and self._before[1].time <= status.time - _SPAN:
            self._before.popleft()
        self._before.append(status)
        first = self._before[0]
        rates = _Rates(first, status)
        tables = [_sources(status, rates), _outputs(status, rates), _answers(status), self._operators(status), _positions(status)]
        late = Figures(["late, newest first"], [[each] for each in reversed(status.late)], True, True)
        return Panel(_headline(status, rates), [each for each in [*tables, late] if each.rows])

    def _operators(self, status: Status) -> Figures:
        """Return what the operators hold, in their order; one that has held something stays, so that no row comes and goes."""
        self._held |= {each.name for each in status.operators if each.windows or each.events or each.state_bytes}
        held = [each for each in status.operators if each.name in self._held]
        most = sorted(held, key=lambda each: each.state_bytes or 0, reverse=True)[:_MOST]
        rows = [
            [each.name, f"{each.windows:,}", f"{each.events:,}", "" if each.state_bytes is None else size_text(each.state_bytes)]
            for each in held
            if each in most
        ]
        return Figures(["state of", "windows", "events", "bytes"], rows)


class _Rates:
    """How much came by second between two statuses."""

    def __init__(self, before: Status, now: Status) -> None:
        self._seconds = now.time - before.time
        self._in = {each.name: each.events_in for each in before.sources}
        self._out = {each.emit: each.events_out for each in before.outputs}

    def into(self, sources: Iterable[SourceStatus]) -> float:
        return self._of(sum(each.events_in - self._in.get(each.name, 0) for each in sources))

    def out(self, outputs: Iterable[OutputStatus]) -> float:
        return self._of(sum(each.events_out - self._out.get(each.emit, 0) for each in outputs))

    def _of(self, count: int) -> float:
        return max(0.0, count / self._seconds) if self._seconds > 0 else 0.0


def _headline(status: Status, rates: _Rates) -> str:
    parts = [status.state, f"{_rate(rates.into(status.sources))}/s in", f"{_rate(rates.out(status.outputs))}/s out"]
    if (windows := sum(each.windows for each in status.operators)) > 0:
        parts.append(f"{_counted(windows, 'window')} open")
    if status.state_bytes is not None:
        parts.append(f"state {size_text(status.state_bytes)}")
    return " · ".join([*parts, *(_job(status.job) if status.job else [])])


def _job(job: JobStatus) -> list[str]:
    parts = [_counted(job.micro_batches, "micro-batch", "es")]
    if job.bad_records:
        parts.append(_counted(job.bad_records, "bad record"))
    if job.batch_seconds:
        parts.append(", ".join(f"{name} {seconds_text(each)}" for name, each in job.batch_seconds.items()))
    if job.checkpoint_bytes is not None:
        took = "" if job.checkpoint_seconds is None else f" in {seconds_text(job.checkpoint_seconds)}"
        parts.append(f"checkpoint {size_text(job.checkpoint_bytes)}{took}")
    return [*parts, f"up {_uptime(job.uptime)}"] if job.uptime else parts


def _sources(status: Status, rates: _Rates) -> Figures:
    rows, lags = [], []
    for each in status.sources:
        counts = [_rate(rates.into([each])), f"{each.events_in:,}", f"{each.retractions_in:,}", f"{each.late:,}"]
        rows.append([each.name, status.lag_text(each), *counts, status.time_text(each.cti)])
        lags.append(status.lag(each) or 0)
        for part in dict.fromkeys([*each.partition_ctis, *each.partition_lags]):
            alone = SourceStatus(name=part, cti=each.partition_ctis.get(part, MIN_TIME))
            unread = f", {each.partition_lags[part]:,} unread" if part in each.partition_lags else ""
            rows.append([f"  {part}{unread}", status.lag_text(alone), "", "", "", "", status.time_text(alone.cti)])
            lags.append(status.lag(alone) or 0)
    titles = ["source", "behind", "per s", "in", "retractions", "late", "CTI"]
    return Figures(titles, rows, shares=_shares(lags))


def _outputs(status: Status, rates: _Rates) -> Figures:
    rows = []
    for each in status.outputs:
        counts = [_rate(rates.out([each])), f"{each.events_out:,}", f"{each.retractions_out:,}", f"{each.held:,}"]
        rows.append([each.emit, status.lag_text(each), *counts, status.time_text(each.cti)])
    titles = ["output", "behind", "per s", "out", "retractions", "held", "CTI"]
    return Figures(titles, rows, shares=_shares([status.lag(each) or 0 for each in status.outputs]))


def _answers(status: Status) -> Figures:
    """Return the newest answers, those of one way to emit beside those of the next."""
    emits = [each for each in status.outputs if each.newest]
    most = max((len(each.newest) for each in emits), default=0)
    answers = [list(reversed(each.newest)) + [""] * (most - len(each.newest)) for each in emits]
    return Figures(
        [f"newest {each.emit} answers" for each in emits], list(zip(*answers, strict=True)), True, is_calendar(status.unit)
    )


def _positions(status: Status) -> Figures:
    positions = {} if status.job is None else status.job.positions
    rows = []
    for name, position in positions.items():
        parts = position.items() if isinstance(position, dict) else [("", position)]
        rows += [[name, str(part), f"{at}"[:80]] for part, at in parts]
    return Figures(["read of", "partition", "position"], rows)


def _shares(lags: Sequence[int]) -> list[float]:
    most = max(lags, default=0)
    return [lag / most if most else 0.0 for lag in lags]


def _table(figures: Figures) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in figures.titles)
    rows = []
    for place, row in enumerate(figures.rows):
        cells = [f"<td>{escape(cell)}</td>" for cell in row]
        if figures.words:
            cells = [f'<td title="{escape(cell)}"><div>{escape(cell)}</div></td>' for cell in row]
        if figures.shares:
            bar = f'<span class="room"><span class="behind" style="width:{60 * figures.shares[place]:.0f}px"></span></span>'
            cells[1] = f"<td>{escape(row[1])}{bar}</td>"
        rows.append(f"<tr>{''.join(cells)}</tr>")
    kind = ' class="words tall"' if figures.are_long else ' class="words"' if figures.words else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _counted(count: int, what: str, plural: str = "s") -> str:
    return f"{count:,} {what}{'' if count == 1 else plural}"


def _rate(each: float) -> str:
    return f"{each:,.0f}" if each >= 10 or each == 0 else f"{each:.1f}"


def size_text(n: int) -> str:
    """Return a number of bytes with a unit.

    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    return next((f"{n / size:.3g} {unit}" for unit, size in _UNITS if n >= size), f"{n} B")


def seconds_text(seconds: float) -> str:
    """Return a short duration as text.

    >>> seconds_text(0.0123), seconds_text(2.5)
    ('12 ms', '2.5 s')
    """
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _uptime(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    return (f"{days}d " if days else "") + time.strftime("%H:%M:%S", time.gmtime(rest))
