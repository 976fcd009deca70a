"""One module written four ways, and more: states kept change by change give what computing anew gives, after every push."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.temporal import Event, Insert, Retract
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS, check_law
from tests.laws.incremental import (
    Each,
    IncrementalEach,
    IncrementalEnds,
    IncrementalSpans,
    IncrementalValues,
    Merged,
    MergedOnlyAdds,
    OnlyAdds,
    TimedEach,
    TimedIncrementalEach,
    TimedIncrementalValues,
    TimedValues,
    Values,
)
from tests.laws.operators import CLIPS, KINDS, UNENDING
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


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


ALIGNED = (sd.Output.ALIGN, sd.Output.POINT_AT_END)
TIMED = (TimedEach(), TimedIncrementalEach())
AS_WINDOW = (sd.Output.ALIGN, sd.Output.UNCHANGED, sd.Output.CLIP)
ALIKE: list[list[tuple[Any, sd.Output]]] = [
    [(module, sd.Output.POINT_AT_END) for module in (Each(), IncrementalEach(), *TIMED)],
    [(Each(), sd.Output.ALIGN), (IncrementalEach(), sd.Output.ALIGN), *itertools.product(TIMED, AS_WINDOW)],
]
"""Operators, and output policies, that give the same rows."""


@pytest.mark.parametrize("kind", KINDS)
@examples(20)
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
@examples(20)
@given(SEEDS)
def test_an_operator_written_four_ways_gives_one_answer(kind: str, seed: int) -> None:
    """The first of them beside two others at a time, time-sensitive ones under each output policy: they stamp as windows are."""
    rng = Random(seed)
    make, clip, alike = rng.choice(KINDS[kind]), rng.choice(CLIPS), rng.choice(ALIKE)
    stream = [event for _, events in scenario(rng, unending=kind in UNENDING).pushes for event in events]
    found = set()
    for module, output in [alike[0], *rng.sample(alike[1:], 2)]:
        query = make(sd.source("s"), clip=clip, output=output).apply(module, lambda e: e.v)
        session, out = query.open(), []
        for event in stream:
            out += session.push([event])
        found.add(str(sd.CHT.from_events([*out, *session.close()]).rows))
    assert len(found) == 1, found


@pytest.mark.parametrize("kind", KINDS)
@examples(40)
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


@pytest.mark.parametrize("module", [Merged(), MergedOnlyAdds()], ids=lambda module: type(module).__name__)
@examples(40)
@given(SEEDS)
def test_windows_merged_from_panes_mean_what_the_reference_says(module: Any, seed: int) -> None:
    rng = Random(seed)
    size, hop, offset = rng.choice([(10, 5, 0), (7, 3, -2), (12, 4, 1), (9, 2, 0)])
    query = sd.source("s0").hopping_window(size, hop, offset).aggregate(module, lambda e: e.v)
    check_law(query, scenario(rng, unending=False), rng.choice(EMITS))


def test_the_states_of_two_windows_share_nothing() -> None:
    module = IncrementalEnds()
    events = [Insert(n, *life, {"v": n, "k": "a"}) for n, life in enumerate(itertools.combinations(range(0, 30, 5), 2))]
    query = sd.source("s").snapshot_window().aggregate(module, lambda e: e.v)
    assert query.run({"s": sd.from_events(events)}).cht() == query.run({"s": sd.from_events(events)}, engine="reference").cht()


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
