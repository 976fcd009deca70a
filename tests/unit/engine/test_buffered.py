"""Composed windows on a grid: what modules are given, what is kept, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.engine.buffered.row_table import NewRows
from streamdsl.engine.frames.arrangement import Arrangement
from streamdsl.engine.frames.frame import Policy
from streamdsl.engine.frames.grid import GridFrame
from streamdsl.engine.operator import EmitPolicy
from streamdsl.engine.window_budget import WindowBudget
from streamdsl.errors import UserCodeError
from streamdsl.temporal import INFINITY, Cti, Event, Insert, Retract
from streamdsl.windows import Hopping
from tests.laws.modules import Ends, Through


class Spread(sd.UDA[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> int:
        return max(payloads) - min(payloads)


def row(id: str, le: int, re: int, v: Any = 1) -> Event[Any]:
    return Insert(id, le, re, {"v": v})


def stats(session: Any) -> dict[str, int]:
    return next(figures for label, figures in session.stats().items() if label.startswith("window"))


def test_explain_says_which_operator_runs() -> None:
    windowed = sd.source("s").hopping_window(10, 5)
    assert "<window (framed)>" in windowed.aggregate(Spread(), lambda e: e.v).explain()
    assert "<window (framed)>" in windowed.top_k(2, by="v").explain()
    assert "<window (framed)>" in windowed.aggregate(mean=sd.time_weighted_avg(lambda e: e.v)).explain()
    assert "<window (framed)>" in windowed.aggregate(Ends(), lambda e: e.v).explain()
    assert "<window (framed)>" in windowed.apply(Through(), lambda e: e.v).explain()
    time_bound = sd.source("s").hopping_window(10, 5, output=sd.Output.TIME_BOUND)
    assert "<window (framed)>" in time_bound.apply(Through(), lambda e: e.v).explain()


def test_a_module_may_not_change_the_array_that_it_is_given() -> None:
    class Sorting(sd.UDA[int, int]):
        vectorized = True

        def compute_result(self, payloads: Any) -> int:
            payloads.sort()
            return int(payloads[0])

    session = sd.source("s").tumbling_window(10).aggregate(Sorting(), lambda e: e.v).open()
    with pytest.raises(UserCodeError, match=r"(?s)ValueError.*read-only.*window_aggregate_1, window \[0, 10\)"):
        session.push([row("a", 1, 2)])


def test_a_module_is_called_once_for_each_window_that_a_push_changes() -> None:
    session = sd.source("s").hopping_window(10, 5).aggregate(Spread(), lambda e: e.v).open()
    session.push([row(f"e{n}", n, n + 1, n) for n in range(100)])
    assert stats(session)["udm_calls"] == 21
    session.push([row("late", 52, 53, 1000), Retract("e51", 51, 52, 51)])
    assert stats(session)["udm_calls"] == 23
    assert session.push([Retract("e50", 50, 51, 54)]) == []
    assert stats(session)["udm_calls"] == 23


def test_rows_are_kept_for_as_long_as_a_window_or_a_change_may_need_them() -> None:
    session = sd.source("s").tumbling_window(10).aggregate(Spread(), lambda e: e.v).open()
    session.push([*(row(f"e{n}", n, n + 1) for n in range(600)), row("long", 3, 700, 5)])
    assert stats(session)["events"] == 601
    session.push([Cti(590)])
    assert stats(session)["events"] == 12
    session.push([Retract("long", 3, 700, 595), Cti(600)])
    session.push([Cti(601)])
    assert (stats(session)["windows"], stats(session)["events"]) == (0, 0)


def test_an_error_names_its_window() -> None:
    session = sd.source("s").tumbling_window(10).aggregate(low=sd.min(lambda e: e.v)).open()
    with pytest.raises(UserCodeError, match=r"(?s)TypeError.*window_aggregate_1, window \[10, 20\)"):
        session.push([row("a", 3, 4), row("b", 12, 13), row("c", 14, 15, "text")])


def test_equal_results_of_an_operator_keep_their_ids() -> None:
    session = sd.source("s").tumbling_window(10).top_k(2, by=lambda e: e.v).open()
    first = session.push([row("a", 1, 2, 5), row("b", 1, 2, 7)])
    assert [event.id for event in first] == [("window_apply_1", 0, 1), ("window_apply_1", 0, 0)]  # type: ignore[union-attr]
    gone, come = session.push([row("c", 1, 2, 6)])
    assert isinstance(gone, Retract)
    assert isinstance(come, Insert)
    assert (gone.payload.v, come.payload.v) == (5, 6)


@pytest.mark.parametrize("few", [-(10**6), 10**6])
def test_members_are_the_rows_that_overlap_a_window(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdsl.engine.frames.arrangement._FEW", few)
    monkeypatch.setattr("streamdsl.engine.frames.arrangement._FOUND", 0)
    rng = np.random.default_rng(7)
    starts = rng.integers(-(10**6), 10**6, 200)
    lives = [(int(le), int(le) + int(2.0 ** rng.uniform(0, 20)) + 1) for le in starts]
    lives += [(5, INFINITY), (-(2**62), 2**62), (INFINITY - 3, INFINITY - 1)]
    policy = Policy(EmitPolicy(), WindowBudget("windows", "windows", 100), sd.Output.ALIGN, False, False)
    frame = GridFrame(policy, Hopping(100, 10))
    rows, ids = Arrangement(0, False), np.arange(len(lives))
    frame.table.codes.of(np.zeros(1, dtype=np.int64))
    le, re = (np.array(times) for times in zip(*lives, strict=True))
    rows._add(NewRows(ids, np.zeros(len(lives), dtype=np.int64), le, re, [], None))
    gone = set(range(0, 200, 7))
    rows.rows.remove(np.array(sorted(gone)), le[sorted(gone)])
    asked = [*range(-(10**6), 10**6, 77_770), 0, 2**61 // 10 * 10]
    slots = frame.table.find(np.zeros(len(asked), dtype=np.intp), np.array(asked) // 10)
    order = np.argsort(frame.table.le[slots])
    members = frame.members(slots[order], rows)
    at, lo, hi = members.ranges
    places = members.places[at]
    for start, first, last in zip(np.array(asked)[order].tolist(), lo.tolist(), hi.tolist(), strict=True):
        expected = [n for n, (le, re) in enumerate(lives) if n not in gone and le < start + 100 and re > start]
        assert sorted(places[first:last].tolist()) == expected
