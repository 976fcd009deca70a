"""What holds of every statistical module: a state is what its members make it, and a query gives what the reference gives."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.temporal import payload_key
from streamdsl.testing import assert_cht_equal, run_udm
from streamdsl.udm.bases import can_remove
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.unit.udm_examples.cases import CASES, WINDOWS, Case, Row, answers, reference
from udm_examples.median import Median, SlidingMedian
from udm_examples.time_weighted_average import IncrementalTimeWeightedAverage, TimeWeightedAverage
from udm_examples.top_k import SlidingTopK, TopK

WINDOW = sd.WindowDescriptor(0, 10)
INCREMENTAL = [case for case in CASES if case.module.incremental]
TWINS = [
    (Median(), SlidingMedian()),
    (TimeWeightedAverage(), IncrementalTimeWeightedAverage()),
    (TopK(3, by=float), SlidingTopK(3, by=float)),
]


def bag(result: Any, many: bool) -> Hashable:
    """Return a result so that equal results are equal, NaN and all; of an operator the bag of its rows."""
    return frozenset(Counter(map(payload_key, result)).items()) if many else payload_key(result)


class States:
    """The state of a window, and the members that it is of."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.when = (WINDOW,) if module.time_sensitive else ()

    def of(self, rows: Iterable[Row]) -> Any:
        return self.module.add_events_to_state(self.module.create_state(), self.members(rows), *self.when)

    def less(self, state: Any, rows: Iterable[Row]) -> Any:
        return self.module.remove_events_from_state(state, self.members(rows), *self.when)

    def members(self, rows: Iterable[Row]) -> Sequence[Any]:
        return [sd.IntervalEvent(*row) if self.module.time_sensitive else row[2] for row in rows]

    def result(self, state: Any) -> Hashable:
        return bag(self.module.compute_result(state, *self.when), self.module.returns_many)


@pytest.mark.parametrize("case", [case for case in INCREMENTAL if can_remove(case.module)], ids=str)
@examples(40)
@given(SEEDS)
def test_what_was_added_and_removed_leaves_no_trace(case: Case, seed: int) -> None:
    states, rows, gone = States(case.module), case.rows(seed), case.rows(seed + 1)
    mixed = [*rows, *gone]
    Random(seed).shuffle(mixed)
    assert states.result(states.less(states.of(mixed), gone)) == states.result(states.of(rows))


@pytest.mark.parametrize("case", INCREMENTAL, ids=str)
@examples(40)
@given(SEEDS)
def test_states_of_parts_make_the_state_of_the_whole(case: Case, seed: int) -> None:
    assert case.module.mergeable
    states, rows, more = States(case.module), case.rows(seed), case.rows(seed + 1)
    part, other = states.of(rows), states.of(more)
    before = states.result(other)
    merged = case.module.merge_states(part, other)
    assert states.result(merged) == states.result(states.of([*more, *rows]))
    case.module.add_events_to_state(merged, states.members(more), *states.when)
    assert states.result(other) == before, "the merged state keeps parts of the other one"


@pytest.mark.parametrize("case", INCREMENTAL, ids=str)
@examples(20)
@given(SEEDS)
def test_copies_are_states_of_their_own_and_travel(case: Case, seed: int) -> None:
    states, rows, more = States(case.module), case.rows(seed), case.rows(seed + 1)
    state = states.of(rows)
    before = states.result(state)
    copy, sent = case.module.copy_state(state), pickle.loads(pickle.dumps(state))
    for twin in (copy, sent):
        assert states.result(twin) == before
        case.module.add_events_to_state(twin, states.members(more), *states.when)
        assert states.result(state) == before


@pytest.mark.parametrize("case", CASES, ids=str)
@examples(40)
@given(SEEDS)
def test_the_order_of_members_does_not_show(case: Case, seed: int) -> None:
    rows = [(0, 1, case.payload(Random(seed))), *case.rows(seed)]
    results = [run_udm(case.module, rows, (0, 10), clip=sd.Clip.FULL, seed=order) for order in range(4)]
    assert len({bag(result, case.module.returns_many) for result in results}) == 1


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("case", CASES, ids=str)
@examples(8)
@given(SEEDS)
def test_every_arrival_order_ends_with_the_answer_of_the_reference(case: Case, windows: str, seed: int) -> None:
    rows = case.rows(seed)
    expected = reference(case.module, windows, rows)
    for cht in answers(case.module, windows, rows, 2, seed):
        assert_cht_equal(cht, expected, rel=0, abs=0)


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize(("whole", "incremental"), TWINS, ids=lambda module: type(module).__name__)
@examples(30)
@given(SEEDS)
def test_a_definition_and_its_incremental_form_are_one_query(whole: Any, incremental: Any, windows: str, seed: int) -> None:
    rows = CASES[0].rows(seed)
    assert_cht_equal(reference(whole, windows, rows), reference(incremental, windows, rows), rel=0, abs=0)
