"""Snapshot windows in columns: the sorted index, numbers of places, what is kept, and what one push costs."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.engine.data_driven.packing import Packing
from streamdsl.engine.data_driven.sorted_index import SortedIndex
from streamdsl.engine.lower import lower
from streamdsl.engine.operators.snapshot_windows import SnapshotOperator
from streamdsl.errors import UserCodeError
from streamdsl.temporal import INFINITY, Cti, Insert, Retract
from tests.laws.harness import Law


def row(id: str, le: int, re: int, v: Any = 1, k: str = "x") -> Insert[Any]:
    return Insert(id, le, re, {"k": k, "v": v})


def summed(s: Any) -> Any:
    return s.snapshot_window().aggregate(n=sd.count(), total=sd.sum(lambda e: e.v))


def stats(session: Any) -> dict[str, int]:
    figures: dict[str, int] = session.stats()["window_aggregate_1"]
    return figures


def test_it_is_chosen_for_aggregates_that_can_be_taken_back() -> None:
    (operator,) = lower(summed(sd.source("s")).plan()).operators
    assert isinstance(operator, SnapshotOperator)
    query = sd.source("s").snapshot_window().aggregate(m=sd.median(lambda e: e.v))
    assert "<window (framed)>" in query.explain()


@pytest.mark.parametrize("size", [1, 3, 512])
def test_the_index_is_a_sorted_map_whatever_the_size_of_its_pieces(size: int) -> None:
    rng, known, index = Random(size), dict[int, int](), SortedIndex()
    with patch("streamdsl.engine.data_driven.sorted_index.PIECE", size):
        for turn in range(300):
            wanted = np.array(sorted(rng.sample(range(200), rng.randint(1, 5))))
            portion = index.portion(wanted, wanted)
            at = np.searchsorted(portion.numbers, wanted)
            found = np.isin(wanted, portion.numbers)
            assert found.tolist() == [number in known for number in wanted.tolist()]
            before = [max((k for k in known if k < number), default=None) for number in wanted.tolist()]
            assert [portion.numbers[a - 1] if a else None for a in at.tolist()] == before
            if turn % 3:
                fresh = wanted[~found]
                portion = portion.insert(at[~found], fresh, fresh + turn)
                known |= {number: number + turn for number in fresh.tolist()}
            else:
                portion = portion.without(at[found])
                known = {number: slot for number, slot in known.items() if number not in wanted}
            index.put(portion)
            entries = index.all()
            assert dict(zip(entries.numbers.tolist(), entries.slots.tolist(), strict=True)) == known
            assert (len(index), entries.numbers.tolist()) == (len(known), sorted(known))


@pytest.mark.parametrize(("low", "high"), [(5, 90), (-(2**62), 2**62), (-(2**63), 2**63 - 2)])
def test_numbers_sort_as_groups_and_times_do(low: int, high: int) -> None:
    packing = Packing()
    packing.fit(4, low, high)
    codes, times = np.array([0, 0, 0, 1, 3, 3]), np.array([low, high, INFINITY, low, high, INFINITY])
    numbers = packing.numbers(codes, times)
    assert (numbers[1:] > numbers[:-1]).all()
    assert [column.tolist() for column in packing.places(numbers)] == [codes.tolist(), times.tolist()]
    assert (packing.limits(codes, high) >= numbers).tolist() == [True, True, False, True, True, False]
    assert not (packing.limits(codes, low - 1 if low > -(2**63) else low) >= numbers)[1]


def test_groups_and_times_of_any_distance_go_together() -> None:
    query = summed(sd.source("s").group_by("k"))
    law = Law(query, "speculative")
    for events in ([row("a", -(2**63), 5)], [row("b", 2**62, INFINITY, 2**70, "y")], [row("c", 0, 2**62, 1.5, "z")]):
        law.push("s", events)
    law.close()


def test_state_is_bounded_by_ctis() -> None:
    session = summed(sd.source("s").group_by("k")).open()
    sizes = []
    for turn in range(60):
        rows = [row(f"{turn}.{k}", 5 * turn, 5 * turn + 7, 0.1, str(k + turn)) for k in range(50)]
        session.push([*rows, Cti(5 * turn)])
        sizes.append(stats(session)["state_bytes"])
    assert max(sizes[30:]) <= 2 * max(sizes[:30])
    session.push([Cti(1000)])
    assert stats(session)["windows"] == 0


def test_rows_that_come_and_go_in_the_future_leave_nothing() -> None:
    session = summed(sd.source("s")).open()
    session.push([row("now", 0, 1)])
    for turn in range(1500):
        re = 6000 + turn
        session.push([row(f"{turn}", 5000 + turn, re)])
        session.push([Retract(f"{turn}", 5000 + turn, re, 5000 + turn, {"k": "x", "v": 1})])
    figures = stats(session)
    assert figures["windows"] == 1
    assert figures["state_bytes"] < 300_000


def test_a_window_whose_rows_stay_keeps_its_result_when_it_gets_another_end() -> None:
    session = summed(sd.source("s")).open()
    session.push([row("a", 0, 9), row("b", 20, 21)])
    (changed,) = session.push([Retract("a", 0, 9, 12, {"k": "x", "v": 1})])
    assert (changed.le, changed.re, changed.re_new) == (0, 9, 12)


def test_an_error_names_the_window() -> None:
    query = sd.source("s").snapshot_window().aggregate(lambda w: 1 // w.sum(lambda e: e.v))
    with pytest.raises(UserCodeError, match=r"window \[3, 5\)"):
        query.open().push([row("a", 3, 5, 0)])


def test_a_window_without_aggregates_shows_its_key() -> None:
    query = sd.source("s").group_by("k").snapshot_window().aggregate(lambda w: w.key)
    assert [event.payload for event in query.open().push([row("a", 3, 4, k="x"), row("b", 3, 4, k="y")])] == ["x", "y"]  # type: ignore[union-attr]


def test_groups_of_integers_are_named_in_ids() -> None:
    session = summed(sd.source("s").group_by("v")).open()
    (insertion,) = session.push([row("a", 3, 4, v=7)])
    assert insertion.id == ("window_aggregate_1", 7, 3, 0)
