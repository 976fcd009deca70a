"""Incremental modules on Spark: every base and kind of window; states of partitions that are merged."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from tests.spark.helpers import check, explained, history, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

Bag = Counter[Any]


class Values(sd.IncrementalUDA[int, Bag, tuple[int, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        state[payload] += 1
        return state

    def remove_event_from_state(self, state: Bag, payload: int) -> Bag:
        state[payload] -= 1
        return state

    def compute_result(self, state: Bag) -> tuple[int, ...]:
        return tuple(sorted(state.elements()))


class Merged(Values):
    empty_result: Any = ()

    def merge_states(self, a: Bag, b: Bag) -> Bag:
        a.update(b)
        return a


class Tails(sd.TimeSensitiveIncrementalUDA[int, Bag, tuple[Any, ...]]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: sd.IntervalEvent[int], window: sd.WindowDescriptor) -> Bag:
        state[event.start_time - window.start_time, event.end_time, event.payload] += 1
        return state

    def compute_result(self, state: Bag, window: sd.WindowDescriptor) -> tuple[Any, ...]:
        return tuple(sorted(state.elements()))


class Odd(sd.IncrementalUDO[int, Bag, int]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, payload: int) -> Bag:
        state[payload] += 1
        return state

    def merge_states(self, a: Bag, b: Bag) -> Bag:
        a.update(b)
        return a

    def compute_result(self, state: Bag) -> Iterable[int]:
        return [value for value in state.elements() if value % 2]


class Copies(sd.TimeSensitiveIncrementalUDO[int, Bag, int]):
    def create_state(self) -> Bag:
        return Counter()

    def add_event_to_state(self, state: Bag, event: sd.IntervalEvent[int], window: sd.WindowDescriptor) -> Bag:
        state[event] += 1
        return state

    def compute_result(self, state: Bag, window: sd.WindowDescriptor) -> Iterable[sd.IntervalEvent[int]]:
        starts = ((max(event.start_time, window.start_time), event) for event in state.elements())
        return [sd.IntervalEvent(start, event.end_time, event.payload) for start, event in starts]


Windowed = Callable[..., Any]

WINDOWS: dict[str, Windowed] = {
    "tumbling": lambda s, **policies: s.tumbling_window(6, **policies),
    "hopping": lambda s, **policies: s.hopping_window(7, 3, 1, **policies),
    "snapshot": lambda s, **policies: s.snapshot_window(**policies),
    "count": lambda s, **policies: s.count_window(2, **policies),
    "session": lambda s, **policies: s.session_window(2, **policies),
}
POLICIES: dict[str, dict[str, Any]] = {
    "time-sensitive uda": {"clip": sd.Clip.FULL},
    "time-sensitive udo": {"clip": sd.Clip.LEFT, "output": sd.Output.CLIP},
}
BASES: dict[str, Windowed] = {
    "uda": lambda w: w.aggregate(Values, lambda e: e.v),
    "uda beside one that is not": lambda w: w.aggregate(x=Merged().of(lambda e: e.v), y=sd.uda(len).of(lambda e: e.f)),
    "time-sensitive uda": lambda w: w.aggregate(Tails, lambda e: e.v),
    "udo": lambda w: w.apply(Odd, lambda e: e.v),
    "time-sensitive udo": lambda w: w.apply(Copies, lambda e: e.v),
}


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("base", BASES)
def test_every_base_and_kind_of_window(base: str, windows: str) -> None:
    policies = POLICIES.get(base, {})
    alone = BASES[base](WINDOWS[windows](stream(), **policies))
    grouped = BASES[base](WINDOWS[windows](stream().group_by("m"), **policies))
    assert any("Python (Arrow)" in said for said in explained(alone).values())
    check(alone, {"s": history(1, 16)}, until=28, native=False)
    check(grouped, {"s": history(2, 16)}, until=28, native=False)


SCRIPT = """
import streamdsl as sd


class Mean(sd.IncrementalUDA):
    def create_state(self):
        return State()

    def add_event_to_state(self, state, payload):
        state.total, state.n = state.total + payload, state.n + 1
        return state

    def merge_states(self, a, b):
        a.total, a.n = a.total + b.total, a.n + b.n
        return a

    def compute_result(self, state):
        return state.total / state.n


class State:
    def __init__(self):
        self.total, self.n = 0, 0


if __name__ == "__main__":
    rows = sd.from_rows([(t, t + 5, {"k": "ab"[t % 2], "v": t}) for t in range(60)])
    for made in (rows, rows.group_by("k")):
        for windowed in (made.tumbling_window(7), made.hopping_window(9, 4), made.snapshot_window()):
            query = windowed.aggregate(Mean, lambda e: e.v)
            assert query.run(engine="spark").cht() == query.run(engine="reference").cht()
    print("the same")
"""


def test_classes_of_main_and_of_functions_travel(tmp_path: Path) -> None:
    class Local(Merged):
        def compute_result(self, state: Bag) -> tuple[int, ...]:
            return (len(state),)

    check(stream().hopping_window(7, 3).aggregate(Local, lambda e: e.v), {"s": history(3, 12)}, until=30)
    (tmp_path / "script.py").write_text(SCRIPT)
    root = str(Path(sd.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": root},
    )
    assert done.stdout == "the same\n", done.stderr[-3000:]
