"""The rules of output CTIs against brute force: random rows, random legal changes after Cti(c), results computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import pytest

from streamdsl.expr.nodes import Field
from streamdsl.plan.node import Node, Source, WindowAggregate, WindowApply
from streamdsl.stream import Stream
from streamdsl.temporal import INFINITY, MIN_TIME, CHTRow, Cti, Event, Insert, Lifetime, Unit
from streamdsl.temporal.change import minimal_change
from streamdsl.udm.bases import UDO, AnyUDA, AnyUDO, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Collect
from streamdsl.udm.builtin import Count as CountRows
from streamdsl.udm.invoke import MemberRow, Stamped, aggregate, member_order, operate, stamp
from streamdsl.windows import Clip, Count, Hopping, Output, Sequenced, Session, Snapshot, Windows
from streamdsl.windows.liveliness import closed, output_cti, unrestricted_cti
from tests.laws.profiles import MANY
from tests.operators import kinds
from tests.operators.entry import fills_few

EXAMPLES = min(MANY or 20, 1000)
CHANGES = 10
HORIZON = 40
"""Windows that end later than any time in the examples are all alike: the brute force stops here."""

Row = CHTRow[str]


class Lives(TimeSensitiveUDA[str, Any]):
    """Everything that a time-sensitive module can see."""

    def compute_result(self, events: Sequence[IntervalEvent[str]], window: WindowDescriptor) -> Any:
        return tuple(sorted((e.start_time, e.end_time, e.payload) for e in events))


class LatestEnd(TimeSensitiveUDA[str, int]):
    """A result that often stays the same, so that rows are shortened, not replaced."""

    def compute_result(self, events: Sequence[IntervalEvent[str]], window: WindowDescriptor) -> int:
        return max(e.end_time for e in events)


class Distinct(UDO[str, str]):
    """A time-insensitive operator."""

    def compute_result(self, payloads: Sequence[str]) -> Iterable[str]:
        return sorted(set(payloads))


class Echo(TimeSensitiveUDO[str, Any]):
    """Each event with its end as a payload, from the window's start at the earliest, and the window itself."""

    def compute_result(self, events: Sequence[IntervalEvent[str]], window: WindowDescriptor) -> Iterable[IntervalEvent[Any]]:
        yield IntervalEvent(window.start_time, window.end_time, len(events))
        for e in events:
            start = max(e.start_time, window.start_time)
            yield IntervalEvent(start, max(start, e.end_time), (e.payload, e.end_time))


class Inside(TimeSensitiveUDO[str, str]):
    """Each event for the time that it lives inside the window: what happens at s changes nothing before s."""

    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[str]], window: WindowDescriptor) -> Iterable[IntervalEvent[str]]:
        for e in events:
            yield IntervalEvent(max(e.start_time, window.start_time), min(e.end_time, window.end_time), e.payload)


@dataclass(frozen=True)
class Operator:
    windows: Windows
    clip: Clip
    output: Output
    module: AnyUDA[Any, Any] | AnyUDO[Any, Any]

    def rows(self, rows: list[Row], begun_by: int) -> list[Stamped]:
        """The results of all windows with W.LE <= `begun_by`."""
        lives = [Lifetime(row.le, row.re) for row in rows]
        windows = [w for w in self.windows.over(lives, self.horizon) if w.le <= begun_by]
        return [result for window in windows for result in self.results(rows, window)]

    @property
    def horizon(self) -> int:
        """The end of the latest window that is looked at, for kinds of which an event that never ends makes infinitely many."""
        return INFINITY if fills_few(self.windows) else HORIZON

    def results(self, rows: list[Row], window: Lifetime) -> list[Stamped]:
        members = [MemberRow(*row, [row.payload]) for row in rows if self.windows.belongs(Lifetime(row.le, row.re), window)]
        members.sort(key=member_order)
        if isinstance(self.module, AnyUDA):
            return [Stamped(*stamp(window, self.output), aggregate(self.module, 0, members, window, self.clip))]
        return operate(self.module, members, window, self.clip, self.output)

    def plan(self) -> Node:
        if isinstance(self.module, AnyUDA):
            return WindowAggregate(Source("s"), self.windows, self.clip, self.output, (BoundAgg(self.module),), Field("a0"))
        return WindowApply(Source("s"), self.windows, self.clip, self.output, self.module)

    def cti(self, rows: list[Row], c: int) -> int:
        lives = [Lifetime(row.le, row.re) for row in rows]
        found = output_cti(self.windows, self.clip, self.output, self.module.time_sensitive, lives, c)
        assert found is not None
        return found


def random_rows(rng: Random) -> list[Row]:
    return [CHTRow(*random_life(rng, -6), rng.choice("ab")) for _ in range(rng.randint(0, 5))]


def random_life(rng: Random, earliest: int) -> Lifetime:
    le = rng.randint(earliest, max(earliest + 3, 14))
    return Lifetime(le, INFINITY if rng.random() < 0.15 else le + rng.randint(1, 8))


def change(rows: list[Row], c: int, rng: Random) -> list[Row]:
    """A random change that is legal after Cti(c): an insertion, a retraction, also one that lengthens."""
    open_rows = [i for i, row in enumerate(rows) if row.re >= c]
    if not open_rows or rng.random() < 0.4:
        return [*rows, CHTRow(*random_life(rng, c), rng.choice("ab"))]
    i = rng.choice(open_rows)
    earliest = max(c, rows[i].le)
    re_new = rng.choice(
        [earliest, earliest, earliest + rng.randint(0, 6), rows[i].re + 1 if rows[i].re < INFINITY else c + 20, INFINITY]
    )
    changed = rows[i]._replace(re=max(earliest, re_new))
    return [*rows[:i], *([changed] if changed.le < changed.re else []), *rows[i + 1 :]]


def check(operators: list[Operator], seed: int) -> None:
    """Check on random examples that no change touches a time before the output CTI, and that the CTI is not needlessly low."""
    below, reached, untouched = 0, 0, 0
    for example in range(EXAMPLES):
        rng = Random(f"{seed} {example}")
        operator = rng.choice(operators)
        rows, c = random_rows(rng), rng.randint(-4, 14)
        promised = operator.cti(rows, c)
        touched = {sync for _ in range(CHANGES) for sync in touched_by_change(operator, rows, c, rng)}
        assert all(sync >= promised for sync in touched), (operator, rows, c, promised, sorted(touched))
        assert promised <= c
        untouched += not touched
        below += promised < c
        reached += promised < c and promised in touched
    assert reached >= below * 0.3
    assert untouched <= EXAMPLES * 0.3, "most changes must change the output"


def touched_by_change(operator: Operator, rows: list[Row], c: int, rng: Random) -> set[int]:
    """The sync times of the output that one to three random changes cause, all windows shown or only those that have begun."""
    later = rows
    for _ in range(rng.randint(1, 3)):
        later = change(later, c, rng)
    speculative = rng.random() < 0.5
    before = max([c, *(row.le for row in rows)]) if speculative else INFINITY
    after = max([before, *(row.le for row in later)]) if speculative else INFINITY
    return {change.sync for change in minimal_change(operator.rows(rows, before), operator.rows(later, after))}


KINDS: list[Windows] = [
    Hopping(5, 5),
    Hopping(6, 2, 1),
    Hopping(2, 5, 3),
    Snapshot(),
    *(Count(n, "start") for n in (1, 2, 3)),
    *(Count(n, "end") for n in (1, 2, 3)),
    Session(1),
    Session(4),
    Session(1, 3),
    Session(3, 5),
    Session(7, 2),
]
KINDS += [
    windows
    for entry in kinds().values()
    for windows, _ in entry.instances.values()
    if entry.tick == 1 and not isinstance(windows, (Hopping, Snapshot, Count, Session, Sequenced))
]
"""Sequences take no time-sensitive modules; tests/laws/test_sequences.py has their rule."""


@pytest.mark.parametrize("output", [Output.ALIGN, Output.POINT_AT_END], ids=lambda output: output.value)
@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: windows.describe())
def test_time_insensitive(windows: Windows, output: Output) -> None:
    modules: list[Any] = [CountRows(), Collect(), Distinct()]
    check([Operator(windows, Clip.NONE, output, module) for module in modules], 1)


@pytest.mark.parametrize("output", [Output.ALIGN, Output.POINT_AT_END], ids=lambda output: output.value)
@pytest.mark.parametrize("clip", list(Clip), ids=lambda clip: clip.value)
@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: windows.describe())
def test_time_sensitive(windows: Windows, clip: Clip, output: Output) -> None:
    modules: list[Any] = [Lives(), LatestEnd(), Echo()]
    check([Operator(windows, clip, output, module) for module in modules], 2)


@pytest.mark.parametrize("output", [Output.UNCHANGED, Output.CLIP], ids=lambda output: output.value)
@pytest.mark.parametrize("windows", KINDS, ids=lambda windows: windows.describe())
def test_own_timestamps(windows: Windows, output: Output) -> None:
    check([Operator(windows, clip, output, Echo()) for clip in Clip], 3)


OVERLAPPED = [windows for windows in KINDS if type(windows).belongs is Windows.belongs]


@pytest.mark.parametrize("windows", OVERLAPPED, ids=lambda windows: windows.describe())
def test_time_bound(windows: Windows) -> None:
    check([Operator(windows, clip, Output.TIME_BOUND, Inside()) for clip in Clip], 4)


A, B = Lifetime(1, 8), Lifetime(4, INFINITY)
ALIGN, AT_END = Output.ALIGN, Output.POINT_AT_END
TUMBLING = Hopping(10, 10)


@pytest.mark.parametrize(
    ("windows", "clip", "output", "time_sensitive", "lives", "c", "expected"),
    [
        pytest.param(Hopping(10, 5), Clip.NONE, ALIGN, False, [], 15, 10, id="W.RE of the latest closed window is too far"),
        pytest.param(TUMBLING, Clip.NONE, ALIGN, False, [], 20, 20, id="a window that ends at c is closed"),
        pytest.param(TUMBLING, Clip.NONE, ALIGN, True, [A], 8, 0, id="a member that ends at c may still be lengthened"),
        pytest.param(TUMBLING, Clip.NONE, ALIGN, True, [Lifetime(1, 20)], 20, 0, id="so its windows stay open"),
        pytest.param(TUMBLING, Clip.RIGHT, ALIGN, True, [Lifetime(1, 20)], 20, 20, id="unless ends are clipped"),
        pytest.param(Hopping(2, 10), Clip.NONE, ALIGN, False, [], 15, 15, id="in a gap it is c"),
        pytest.param(TUMBLING, Clip.NONE, AT_END, False, [B], 15, 15, id="point at end"),
        pytest.param(TUMBLING, Clip.NONE, AT_END, True, [B], 15, 10, id="point at end, reading ends"),
        pytest.param(Snapshot(), Clip.NONE, ALIGN, False, [A, B], 6, 6, id="time-insensitive snapshots"),
        pytest.param(Snapshot(), Clip.FULL, ALIGN, True, [A, B], 6, 4, id="the last endpoint before c"),
        pytest.param(Snapshot(), Clip.NONE, ALIGN, True, [A, B], 6, 1, id="the first snapshot with an open end"),
        pytest.param(Snapshot(), Clip.FULL, ALIGN, True, [B], 4, 4, id="no endpoint before c"),
        pytest.param(Count(3), Clip.NONE, ALIGN, False, [A, B, Lifetime(5, 6)], 7, 4, id="two starts wait for a third"),
        pytest.param(Count(3), Clip.NONE, ALIGN, False, [A], 7, 1, id="too few starts hold it back for ever"),
        pytest.param(Count(3), Clip.NONE, ALIGN, False, [], 7, 7, id="no start, nothing to wait for"),
        pytest.param(Count(1), Clip.NONE, ALIGN, False, [A], 7, 7, id="one start waits for nothing"),
        pytest.param(Count(2, "end"), Clip.NONE, ALIGN, True, [A, B], 9, 8, id="ends, the unending one not counted"),
        pytest.param(Count(1), Clip.NONE, ALIGN, True, [A], 8, 1, id="count by start, reading ends"),
        pytest.param(Session(5), Clip.NONE, ALIGN, False, [A], 12, 1, id="a session that an event at c may join"),
        pytest.param(Session(5), Clip.NONE, ALIGN, False, [A], 13, 13, id="a session that ends at c"),
        pytest.param(Session(5), Clip.NONE, ALIGN, False, [Lifetime(14, 15)], 12, 12, id="a later session may begin at c"),
        pytest.param(Session(5), Clip.NONE, ALIGN, True, [A, B], 30, 1, id="a session that never ends"),
        pytest.param(Session(5, 4), Clip.NONE, ALIGN, False, [A], 12, 9, id="the cut around c, though it is empty"),
        pytest.param(Session(5, 4), Clip.NONE, ALIGN, True, [A], 8, 1, id="a member of an earlier cut that may still change"),
        pytest.param(Session(5, 4), Clip.RIGHT, ALIGN, True, [A], 8, 5, id="unless its end is clipped"),
        pytest.param(Session(5, 4), Clip.NONE, AT_END, False, [A], 12, 12, id="sessions, point at end"),
        pytest.param(Session(5, 4), Clip.NONE, AT_END, True, [A], 8, 5, id="sessions, point at end, reading ends"),
        pytest.param(TUMBLING, Clip.NONE, Output.TIME_BOUND, True, [B], 17, 17, id="time-bound"),
        pytest.param(TUMBLING, Clip.NONE, Output.UNCHANGED, True, [Lifetime(3, INFINITY)], 17, 0, id="own timestamps"),
        pytest.param(TUMBLING, Clip.NONE, ALIGN, True, [B], INFINITY, INFINITY, id="the end of the input ends the output"),
        pytest.param(TUMBLING, Clip.NONE, ALIGN, False, [], MIN_TIME + 3, None, id="never before the first time"),
    ],
)
def test_table(
    windows: Windows, clip: Clip, output: Output, time_sensitive: bool, lives: list[Lifetime], c: int, expected: int | None
) -> None:
    assert output_cti(windows, clip, output, time_sensitive, lives, c) == expected


def test_a_window_is_closed_when_nothing_can_change_its_result() -> None:
    window = Lifetime(0, 10)
    assert closed(TUMBLING, window, [Lifetime(3, 17)], reads_re=False, c=10)
    assert not closed(TUMBLING, window, [Lifetime(3, 17)], reads_re=False, c=9)
    assert not closed(TUMBLING, window, [Lifetime(3, 17)], reads_re=True, c=17)
    assert closed(TUMBLING, window, [Lifetime(3, 17), Lifetime(12, 40)], reads_re=True, c=18)


def test_a_module_with_unrestricted_timestamps_never_lets_a_cti_pass() -> None:
    assert unrestricted_cti(10**9) is None
    assert unrestricted_cti(INFINITY) == INFINITY


def test_a_kind_without_a_rule_cannot_be_used() -> None:
    class Others(Windows):
        def describe(self, unit: Unit | None = None) -> str:
            return "others"

    with pytest.raises(TypeError, match="settled"):
        Others()  # type: ignore[abstract]


def test_the_engine_sends_the_cti_of_the_table() -> None:
    modules: list[Any] = [CountRows(), Lives(), Echo()]
    for seed in range(300):
        rng = Random(seed)
        output = rng.choice([Output.ALIGN, Output.POINT_AT_END, Output.UNCHANGED, Output.CLIP])
        module = Echo() if output.keeps_stamps else rng.choice(modules)
        operator = Operator(rng.choice(KINDS), rng.choice(list(Clip)), output, module)
        rows, c = random_rows(rng), rng.randint(-4, 14)
        events: list[Event[str]] = [Insert(i, *row) for i, row in enumerate(rows)]
        stream: Stream[Any] = Stream(operator.plan())
        sent = stream.open().push([*events, Cti(c)], source="s")
        assert sent[-1] == Cti(operator.cti(rows, c)), (operator, rows, c)
