"""Every peer that needs no environment of its own answers every workload as plain Python does, on a few hundred events."""

import gc

import numpy as np
import pytest

from benchmarks.answer import difference
from benchmarks.environments import OWN
from benchmarks.measure import measure
from benchmarks.workload import Workload, peer_of
from benchmarks.workloads import WORKLOADS

EVENTS = 200
TRIED = [workload for name, workload in WORKLOADS.items() if name not in ("packets65k", "packets520k")]
"""Those that differ in more than a number."""
WAYS = [(workload.name, way) for workload in TRIED for way in workload.ways if peer_of(way) not in OWN]


@pytest.mark.parametrize(("name", "way"), WAYS, ids=lambda part: part.replace(" ", "-"))
def test_a_way_gives_the_answer_of_the_reference(name: str, way: str) -> None:
    workload = WORKLOADS[name]
    expected = workload.reference(workload.data(EVENTS))
    gc.freeze()  # so that a measurement does not look through all that peers have imported
    measured = measure(workload, workload.ways[way], EVENTS, 1, expected)
    assert measured["wrong"] is None
    assert measured["median"] >= 0
    assert measured["peak_mb"] > 0
    assert (measured["state_bytes"] is None) == (workload.ways[way].state is None)


@pytest.mark.parametrize("workload", TRIED, ids=lambda workload: workload.name)
def test_data_are_the_same_every_time(workload: Workload) -> None:
    first, second = workload.data(EVENTS), workload.data(EVENTS)
    assert first.keys() == second.keys()
    for stream in first:
        assert difference(first[stream], second[stream]) is None
    assert len(next(iter(workload.reference(first).values()))) > 0


@pytest.mark.parametrize("workload", TRIED, ids=lambda workload: workload.name)
def test_every_way_is_compared_with_one_of_ours(workload: Workload) -> None:
    assert all(way.against in workload.ways for name, way in workload.ways.items() if peer_of(name) != "streamdsl")


ANSWER = {"k": np.array([1, 2, 3]), "v": np.array([0.1, 0.2, 0.3])}


def test_answers_are_the_same_in_any_order_and_up_to_the_last_digit() -> None:
    assert difference({"k": np.array([3, 1, 2]), "v": np.array([0.1 + 0.2, 0.1, 0.2])}, ANSWER) is None


def test_a_wrong_value_is_found_and_named() -> None:
    wrong = difference({"k": np.array([1, 2, 3]), "v": np.array([0.1, 0.2, 0.4])}, ANSWER)
    assert wrong == "v is 0.4 instead of 0.3 in row 2, and wrong in 1 rows"


def test_a_missing_row_is_found() -> None:
    assert difference({"k": np.array([1, 2]), "v": np.array([0.1, 0.2])}, ANSWER) == "2 rows instead of 3"
