"""One module written four ways, and more: states kept change by change give what computing anew gives, after every push."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, note

import streamdsl as sd
from streamdsl.temporal import Cti, Event, Insert, Retract
from streamdsl.udm.bases import (
    UDA,
    UDO,
    IncrementalUDA,
    IncrementalUDO,
    IntervalEvent,
    TimeSensitiveIncrementalUDA,
    TimeSensitiveIncrementalUDO,
    TimeSensitiveUDA,
    TimeSensitiveUDO,
    WindowDescriptor,
)
from tests.laws.harness import EMITS, check_law
from tests.laws.operators import CLIPS, KINDS, UNENDING
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

Bag = Counter[Any]


def listed(bag: Bag) -> tuple[Any, ...]:
    return tuple(sorted(bag.elements()))


class Values(UDA[int, tuple[Any, ...]]):
    def compute_result(self, payloads: Sequence[int]) -> tuple[Any, ...]:
        return tuple(sorted(payloads))


class IncrementalValues(IncrementalUDA[int, Bag, tuple[Any, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        state[payload] += 1
        return state

    def remove_event_from_state(self, state: Bag, payload: int) -> Bag:
        assert state[payload] > 0, "what is removed was added"
        state[payload] -= 1
        return state

    def compute_result(self, state: Bag) -> tuple[Any, ...]:
        return listed(state)


class TimedValues(TimeSensitiveUDA[int, tuple[Any, ...]]):
    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> tuple[Any, ...]:
        return tuple(sorted(event.payload for event in events))


class TimedIncrementalValues(TimeSensitiveIncrementalUDA[int, Bag, tuple[Any, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        return state + Counter([event.payload])

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        return state - Counter([event.payload])

    def compute_result(self, state: Bag, window: WindowDescriptor) -> tuple[Any, ...]:
        return listed(state)


class OnlyAdds(IncrementalUDA[int, list[int], tuple[Any, ...]]):
    """A module that cannot remove: where something leaves, its windows are computed anew."""

    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        state.append(payload)
        return state

    def compute_result(self, state: list[int]) -> tuple[Any, ...]:
        return tuple(sorted(state))


class IncrementalEnds(TimeSensitiveIncrementalUDA[int, Bag, tuple[Any, ...]]):
    """All that a time-sensitive module can see; each event is added and removed with the window that it is in."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[(event.start_time, event.end_time, event.payload, *window)] += 1
        return state

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        seen = (event.start_time, event.end_time, event.payload, *window)
        assert state[seen] > 0, "what is removed was added"
        state[seen] -= 1
        return state

    def compute_result(self, state: Bag, window: WindowDescriptor) -> tuple[Any, ...]:
        assert all(seen[3:] == tuple(window) for seen in state.elements()), "events belong to the window as it is now"
        return (*window, *listed(state))


class Each(UDO[int, tuple[int, int]]):
    """Each value once, with its number."""

    def compute_result(self, payloads: Sequence[int]) -> Iterable[tuple[int, int]]:
        return list(Counter(payloads).items())


class IncrementalEach(IncrementalUDO[int, Bag, tuple[int, int]]):
    """The same; merged and copied by hand."""

    def create_state(self) -> Bag:
        return Counter()

    def copy_state(self, state: Bag) -> Bag:
        return Counter(state)

    def add_events_to_state(self, state: Bag, payloads: Sequence[int]) -> Bag:
        state.update(payloads)
        return state

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        raise AssertionError("sets of changes come as sets")

    def remove_events_from_state(self, state: Bag, payloads: Sequence[int]) -> Bag:
        state.subtract(payloads)
        return state

    def compute_result(self, state: Bag) -> Iterable[tuple[int, int]]:
        return [(value, n) for value, n in state.items() if n]


class Spans(TimeSensitiveUDO[int, int]):
    """The events as they are, from the start of the window on."""

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(max(e.start_time, window.start_time), e.end_time, e.payload) for e in events]


class IncrementalSpans(TimeSensitiveIncrementalUDO[int, list[IntervalEvent[int]], int]):
    """The same from a state."""

    time_bound: ClassVar[bool] = True

    def create_state(self) -> list[IntervalEvent[int]]:
        return []

    def add_event_to_state(
        self, state: list[IntervalEvent[int]], event: IntervalEvent[int], window: WindowDescriptor
    ) -> list[IntervalEvent[int]]:
        return [*state, event]

    def remove_event_from_state(
        self, state: list[IntervalEvent[int]], event: IntervalEvent[int], window: WindowDescriptor
    ) -> list[IntervalEvent[int]]:
        state.remove(event)
        return state

    def compute_result(self, state: list[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return [IntervalEvent(max(e.start_time, window.start_time), e.end_time, e.payload) for e in state]


class TimedEach(TimeSensitiveUDO[int, tuple[int, int]]):
    """The same of events; stamped as the window is."""

    def compute_result(
        self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor
    ) -> Iterable[IntervalEvent[tuple[int, int]]]:
        return [IntervalEvent(*window, item) for item in Counter(event.payload for event in events).items()]


class TimedIncrementalEach(TimeSensitiveIncrementalUDO[int, Bag, tuple[int, int]]):
    """The same of events, from a state."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[event.payload] += 1
        return state

    def remove_event_from_state(self, state: Bag, event: IntervalEvent[int], window: WindowDescriptor) -> Bag:
        state[event.payload] -= 1
        return state

    def compute_result(self, state: Bag, window: WindowDescriptor) -> Iterable[IntervalEvent[tuple[int, int]]]:
        return [IntervalEvent(*window, (value, n)) for value, n in state.items() if n]


def four_ways(windowed: Any) -> sd.Stream[Any]:
    """Return one record per window that holds the same value four times, and once more without removal."""
    found: sd.Stream[Any] = windowed.aggregate(
        plain=Values().of(lambda e: e.v),
        incremental=IncrementalValues().of(lambda e: e.v),
        timed=TimedValues().of(lambda e: e.v),
        both=TimedIncrementalValues().of(lambda e: e.v),
        adds=OnlyAdds().of(lambda e: e.v),
        some=sd.Agg(IncrementalValues(), lambda e: e.v, lambda e: e.v > 0),
    )
    return found


SHAPES = {(kind, i): make for kind, makes in KINDS.items() for i, make in enumerate(makes)}
ALIGNED = (sd.Output.ALIGN, sd.Output.POINT_AT_END)


@pytest.mark.parametrize("kind", KINDS)
@examples(200)
@given(SEEDS)
def test_four_ways_give_one_answer(kind: str, seed: int) -> None:
    rng = Random(seed)
    make, clip, output, emit = rng.choice(KINDS[kind]), rng.choice(CLIPS), rng.choice(ALIGNED), rng.choice(EMITS)
    note(f"{clip} {output} {emit}")
    query = four_ways(make(sd.source("s0"), clip=clip, output=output))
    chosen = scenario(rng, unending=kind in UNENDING)
    check_law(query, chosen, emit)
    rows = query.run({"s0": sd.from_events([event for _, events in chosen.pushes for event in events])}).cht()
    assert all(r.payload.plain == r.payload.incremental == r.payload.timed == r.payload.both == r.payload.adds for r in rows)


@pytest.mark.parametrize("kind", KINDS)
@examples(100)
@given(SEEDS)
def test_an_operator_written_four_ways_gives_one_answer(kind: str, seed: int) -> None:
    """Time-sensitive ones under every output policy that they may have: they stamp their results as the window is."""
    rng = Random(seed)
    make, clip = rng.choice(KINDS[kind]), rng.choice(CLIPS)
    stream = [event for _, events in scenario(rng, unending=kind in UNENDING).pushes for event in events]
    found: dict[bool, set[str]] = {}
    for module, output in [
        *itertools.product((Each(), IncrementalEach(), TimedEach(), TimedIncrementalEach()), ALIGNED),
        *itertools.product((TimedEach(), TimedIncrementalEach()), (sd.Output.UNCHANGED, sd.Output.CLIP)),
    ]:
        query = make(sd.source("s"), clip=clip, output=output).apply(module, lambda e: e.v)
        session, out = query.open(), []
        for event in stream:
            out += session.push([event])
        rows = sd.CHT.from_events([*out, *session.close()]).rows
        found.setdefault(output is sd.Output.POINT_AT_END, set()).add(str(rows))
    assert all(len(answers) == 1 for answers in found.values()), found


@pytest.mark.parametrize("kind", KINDS)
@examples(200)
@given(SEEDS)
def test_incremental_modules_mean_what_the_reference_says(kind: str, seed: int) -> None:
    rng = Random(seed)
    make, clip, emit, grouped = rng.choice(KINDS[kind]), rng.choice(CLIPS), rng.choice(EMITS), rng.random() < 0.3
    s = sd.source("s0").group_by("k") if grouped else sd.source("s0")
    choice = rng.choice(["ends", "each", "adds", "spans"])
    note(f"{choice} {clip} {emit} grouped={grouped}")
    if choice == "ends":
        query = make(s, clip=clip, output=rng.choice(ALIGNED)).aggregate(IncrementalEnds(), lambda e: e.v)
    elif choice == "each":
        query = make(s, clip=clip, output=rng.choice(ALIGNED)).apply(IncrementalEach(), lambda e: e.v)
    elif choice == "adds":
        query = make(s).aggregate(OnlyAdds(), lambda e: e.v)
    else:
        bound = () if "count" in kind else (sd.Output.TIME_BOUND,)
        outputs = (*ALIGNED, sd.Output.UNCHANGED, sd.Output.CLIP, *(bound if not clip.right else ()))
        query = make(s, clip=clip, output=rng.choice(outputs)).apply(IncrementalSpans(), lambda e: e.v)
    check_law(query, scenario(rng, unending=kind in UNENDING), emit)


class Counted:
    """Counts the calls that reach a module."""

    def __init__(self) -> None:
        self.added = self.removed = 0

    @property
    def calls(self) -> tuple[int, int]:
        """The numbers of additions and of removals since the last look."""
        seen = self.added, self.removed
        self.added = self.removed = 0
        return seen


class Calls(Counted, IncrementalUDA[int, Bag, int]):
    """Sees payloads."""

    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        self.added += 1
        return state + Counter([payload])

    def remove_event_from_state(self, state: Bag, payload: int) -> Bag:
        self.removed += 1
        return state - Counter([payload])

    def compute_result(self, state: Bag) -> int:
        return sum(state.elements())


class TimedCalls(Counted, TimeSensitiveIncrementalUDA[int, int, int]):
    """Sees lifetimes too."""

    def create_state(self) -> int:
        return 0

    def add_event_to_state(self, state: int, event: IntervalEvent[int], window: WindowDescriptor) -> int:
        self.added += 1
        return state + event.end_time - event.start_time

    def remove_event_from_state(self, state: int, event: IntervalEvent[int], window: WindowDescriptor) -> int:
        self.removed += 1
        return state - event.end_time + event.start_time

    def compute_result(self, state: int, window: WindowDescriptor) -> int:
        return state


ROW = {"v": 1}


def test_in_a_tumbling_window_each_event_costs_one_addition_and_a_retraction_one_removal() -> None:
    module = Calls()
    session = sd.source("s").tumbling_window(10).aggregate(module, lambda e: e.v).open()
    for n in range(5):
        session.push([Insert(n, n, n + 1, ROW)])
        assert module.calls == (1, 0)
    session.push([Retract(2, 2, 3, 2, ROW)])
    assert module.calls == (0, 1)
    session.push([Insert("x", 3, 8, ROW), Insert("y", 4, 5, ROW)])
    assert module.calls == (2, 0)
    session.push([Retract("x", 3, 8, 6, ROW)])
    assert module.calls == (0, 0), "where a member ends does not matter to a time-insensitive module"


@pytest.mark.parametrize(("clip", "calls"), [(sd.Clip.NONE, (1, 1)), (sd.Clip.RIGHT, (0, 0))])
def test_a_time_sensitive_module_sees_a_change_of_a_lifetime_as_a_removal_and_an_addition(
    clip: sd.Clip, calls: tuple[int, int]
) -> None:
    module = TimedCalls()
    session = sd.source("s").tumbling_window(10, clip=clip).aggregate(module, lambda e: e.v).open()
    session.push([Insert("a", 1, 15, ROW), Insert("b", 2, 3, ROW)])
    assert module.calls == (2, 0)
    session.push([Retract("a", 1, 15, 12, ROW)])
    assert module.calls == calls
    session.push([Retract("a", 1, 12, 7, ROW)])
    assert module.calls == (1, 1)


def test_states_of_snapshots_are_copied_when_a_snapshot_is_split() -> None:
    module = Calls()
    session = sd.source("s").snapshot_window().aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, 0, 100, ROW) for n in range(50)])
    assert module.calls == (50, 0)
    session.push([Insert("late", 40, 60, ROW)])
    assert module.calls == (1, 0), "one addition to the middle piece; the others are copies"
    session.push([Retract("late", 40, 60, 40, ROW)])
    assert module.calls[1] == 0, "the pieces are merged again; nothing is computed anew"


@pytest.mark.parametrize("by", ["start", "end"])
def test_count_windows_take_in_what_changes(by: Any) -> None:
    module = Calls()
    session = sd.source("s").count_window(50, by=by).aggregate(module, lambda e: e.v).open()
    session.push([Insert(n, 2 * n, 2 * n + 1, ROW) for n in range(60)])
    built = module.calls
    assert built == (11 * 50, 0)
    session.push([Insert("late", 61, 62, ROW)])
    assert module.calls == (61, 11), "11 windows gain one and lose one; one window is new"


def test_a_late_event_costs_the_same_however_many_members_a_window_has() -> None:
    costs = set()
    for size in (10, 1000):
        module = Calls()
        session = sd.source("s").hopping_window(10**6, 10**5).aggregate(module, lambda e: e.v).open()
        session.push([Insert(n, n, n + 1, ROW) for n in range(size)])
        session.push([Cti(size)])
        assert module.calls[0] >= size
        session.push([Insert("late", size, size + 1, ROW)])
        costs.add(module.calls)
    assert len(costs) == 1


def test_results_do_not_change_with_the_state_that_they_were_computed_from() -> None:
    class Kept(IncrementalUDA[int, list[int], list[int]]):
        def create_state(self) -> list[int]:
            return []

        def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
            state.append(payload)
            return state

        def compute_result(self, state: list[int]) -> list[int]:
            return state

    session = sd.source("s").tumbling_window(10).aggregate(Kept(), lambda e: e.v).open()
    (first,) = session.push([Insert("a", 0, 1, ROW)])
    session.push([Insert("b", 1, 2, ROW)])
    assert isinstance(first, Insert)
    assert first.payload == [1]


def test_a_module_that_needs_order_is_computed_anew_from_members_in_order() -> None:
    class Ordered(Calls):
        order_insensitive: ClassVar[bool] = False

    module = Ordered()
    session = sd.source("s").tumbling_window(10).aggregate(module, lambda e: e.v).open()
    session.push([Insert("a", 0, 1, ROW)])
    session.push([Insert("b", 1, 2, ROW)])
    assert module.calls == (3, 0)


def test_the_states_of_two_windows_share_nothing() -> None:
    module = IncrementalEnds()
    events = [Insert(n, *life, {"v": n, "k": "a"}) for n, life in enumerate(itertools.combinations(range(0, 30, 5), 2))]
    query = sd.source("s").snapshot_window().aggregate(module, lambda e: e.v)
    assert query.run({"s": sd.from_events(events)}).cht() == query.run({"s": sd.from_events(events)}, engine="reference").cht()


class Merged(IncrementalValues):
    """Mergeable, so that overlapping windows are put together from panes; `panes` counts the merges."""

    merges = 0

    def merge_states(self, a: Bag, b: Bag) -> Bag:
        Merged.merges += 1
        a.update(b)
        return a


class MergedOnlyAdds(OnlyAdds):
    """Mergeable without removal: where something leaves, only its pane is computed anew."""

    def merge_states(self, a: list[int], b: list[int]) -> list[int]:
        a.extend(b)
        return a


@pytest.mark.parametrize("module", [Merged(), MergedOnlyAdds()], ids=lambda module: type(module).__name__)
@examples(200)
@given(SEEDS)
def test_windows_merged_from_panes_mean_what_the_reference_says(module: Any, seed: int) -> None:
    rng = Random(seed)
    size, hop, offset = rng.choice([(10, 5, 0), (7, 3, -2), (12, 4, 1), (9, 2, 0)])
    query = sd.source("s0").hopping_window(size, hop, offset).aggregate(module, lambda e: e.v)
    check_law(query, scenario(rng, unending=False), rng.choice(EMITS))


def test_an_event_is_added_once_to_a_pane_and_not_once_to_each_window() -> None:
    class MergedCalls(Calls):
        def merge_states(self, a: Bag, b: Bag) -> Bag:
            return a + b

    module = MergedCalls()
    session = sd.source("s").hopping_window(100, 10).aggregate(module, lambda e: e.v).open(emit="watermark")
    session.push([*(Insert(n, n, n + 1, ROW) for n in range(200)), Cti(200)])
    assert module.calls == (200, 0)
    assert MergedCalls.mergeable
    assert not Calls.mergeable


def test_explain_says_what_becomes_of_states() -> None:
    class Ordered(Calls):
        order_insensitive: ClassVar[bool] = False

    windowed = sd.source("s").tumbling_window(5)
    shown = [
        windowed.aggregate(module, lambda e: e.v).explain() for module in (Values(), Merged(), Calls(), OnlyAdds(), Ordered())
    ]
    assert "incremental" not in shown[0]
    assert "[incremental]" in shown[1]
    assert "[incremental, states not merged]" in shown[2]
    assert "[incremental, computed anew on removal, states not merged]" in shown[3]
    assert "[incremental, but in order: computed anew]" in shown[4]


def test_a_state_that_has_waited_is_not_asked_to_remove_what_it_was_never_given() -> None:
    query = sd.source("s").snapshot_window().aggregate(IncrementalValues(), lambda e: e.v)
    events: list[Event[Any]] = [
        Insert("a", 20, 28, {"v": 1}),
        Insert("b", 10, 13, {"v": 2}),
        Retract("b", 10, 13, 22),
        Insert("c", 20, 39, {"v": 3}),
        Retract("c", 20, 39, 26),
    ]
    session = query.open()
    out = [event for one in events for event in session.push([one])]
    out += session.close()
    assert sd.CHT.from_events(out) == query.run({"s": sd.from_events(events)}, engine="reference").cht()
