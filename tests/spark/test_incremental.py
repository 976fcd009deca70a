"""Incremental modules on Spark: every base and kind of window; states of partitions that are merged."""

from __future__ import annotations

import importlib.util
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import streamdsl as sd
from streamdsl.denote import denote, sources
from streamdsl.errors import UnboundedOutputError
from streamdsl.spark.column_types import INT, STR
from streamdsl.spark.lower import lower, lowering
from streamdsl.spark.partial_stage import MergeStage, PartialStage
from streamdsl.spark.row_stage import BatchReader, PayloadColumn
from streamdsl.spark.shipping import load_values
from streamdsl.spark.source_frames import collect_flow, source_of_rows
from streamdsl.testing import assert_cht_equal
from streamdsl.udm.bases import Agg
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.windows import Hopping
from tests.laws.incremental import Bag, IncrementalValues
from tests.laws.incremental import Merged as MergedValues
from tests.spark.helpers import check, explained, history, stream
from udm_examples.distinct_sketch import DistinctSketch
from udm_examples.quantile import SlidingQuantile
from udm_examples.quantile_sketch import LogQuantile

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


class Merged(MergedValues):
    empty_result: Any = ()


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


class Total(sd.IncrementalUDA[int, list[int], int]):
    """A state that is changed in place."""

    empty_result: Any = 0

    def create_state(self) -> list[int]:
        return [0]

    def add_event_to_state(self, state: list[int], payload: int) -> list[int]:
        state[0] += payload
        return state

    def merge_states(self, a: list[int], b: list[int]) -> list[int]:
        a[0] += b[0]
        return a

    def compute_result(self, state: list[int]) -> int:
        return state[0]


class Norm(Total):
    vectorized: ClassVar[bool] = True

    def add_events_to_state(self, state: list[int], payloads: Any) -> list[int]:
        return [state[0] + int((payloads * payloads).sum())]


class Lossy(Total):
    """Its merging loses the second state, which is wrong wherever states are merged."""

    def merge_states(self, a: list[int], b: list[int]) -> list[int]:
        return a


class InOrder(Merged):
    order_insensitive: ClassVar[bool] = False


class Timed(Tails):
    def merge_states(self, a: Bag, b: Bag) -> Bag:
        return a + b


class Locked(Total):
    """A state that cannot be pickled."""

    def create_state(self) -> Any:
        return [0, threading.Lock()]


Windowed = Callable[..., Any]
Query = Callable[[sd.Stream[Any]], sd.Stream[Any]]

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
    "uda": lambda w: w.aggregate(IncrementalValues, lambda e: e.v),
    "uda beside one that is not": lambda w: w.aggregate(x=Merged().of(lambda e: e.v), y=sd.uda(len).of(lambda e: e.f)),
    "time-sensitive uda": lambda w: w.aggregate(Tails, lambda e: e.v),
    "udo": lambda w: w.apply(Odd, lambda e: e.v),
    "time-sensitive udo": lambda w: w.apply(Copies, lambda e: e.v),
}


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("base", BASES)
def test_every_base_and_kind_of_window(base: str, windows: str) -> None:
    """Every other one is in groups, so that each base and each kind is alone and in groups."""
    policies = POLICIES.get(base, {})
    alternate = ([*BASES].index(base) + [*WINDOWS].index(windows)) % 2
    query = BASES[base](WINDOWS[windows](stream() if alternate else stream().group_by("m"), **policies))
    assert any("Python (Arrow)" in said for said in explained(query).values())
    check(query, {"s": history(1, 16)}, until=28, native=False)


def test_classes_of_functions_travel() -> None:
    class Local(Merged):
        def compute_result(self, state: Bag) -> tuple[int, ...]:
            return (len(state),)

    check(stream().hopping_window(7, 3).aggregate(Local, lambda e: e.v), {"s": history(3, 12)}, until=30)


# Partial states of partitions, merged.

PARTIAL: dict[str, Query] = {
    "tumbling": lambda s: s.tumbling_window(6).aggregate(Merged, lambda e: e.v),
    "hopping": lambda s: s.hopping_window(7, 2, 1).aggregate(Merged, lambda e: e.v),
    "with gaps": lambda s: s.hopping_window(2, 5, -1).aggregate(Merged, lambda e: e.k),
    "two at once": lambda s: s.tumbling_window(5).aggregate(x=Merged().of(lambda e: e.k), y=Total().of(lambda e: e.v)),
    "of some rows": lambda s: s.tumbling_window(3).aggregate(
        x=Agg(Merged(), lambda e: e.m + 1, lambda e: sd.not_(sd.is_none(e.m))), y=Agg(Total(), lambda e: e.v, lambda e: e.v > 2)
    ),
    "of no rows": lambda s: s.tumbling_window(5).aggregate(Agg(Merged(), lambda e: e.v, lambda e: e.v > 99)),
    "vectorized": lambda s: s.hopping_window(8, 4).aggregate(Norm, lambda e: e.v),
    "point at end": lambda s: s.tumbling_window(6, output=sd.Output.POINT_AT_END).aggregate(Total, lambda e: e.v),
    "projected in Python": lambda s: s.tumbling_window(6).aggregate(Total, lambda e: e.v).select(lambda e: f"{e}"),
    "by key": lambda s: s.group_by("k").hopping_window(6, 3).aggregate(Merged, lambda e: e.v),
    "by a key with nulls": lambda s: s.group_by("m").tumbling_window(4).aggregate(x=Merged().of(lambda e: e.v)),
    "by a key of floats": lambda s: s.group_by("f").tumbling_window(6).aggregate(Total, lambda e: e.v),
    "by several keys": lambda s: s.group_by(["k", "m"]).tumbling_window(6).aggregate(Total, lambda e: e.v),
    "in a group": lambda s: s.group_by("k").apply(
        lambda g: g.group_by("m").apply(lambda h: h.tumbling_window(6).aggregate(Total, lambda e: e.v))
    ),
    "after windows": lambda s: s.snapshot_window().aggregate(n=sd.count()).tumbling_window(6).aggregate(Merged, lambda e: e.n),
}


def found_on(query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]], until: int | None = None) -> sd.CHT[Any]:
    """Return the answer from inputs in five partitions each, computed from partial states."""
    flows = {
        name: source_of_rows(SparkSession.active(), node, inputs[name]).then(lambda df: df.repartition(5))
        for name, node in sources(query.plan()).items()
    }
    low = lowering(query.plan(), flows, until)
    flow = lower(low)
    assert "partials" in {note.how for note in low.notes.values()} or not any(map(len, inputs.values()))
    return collect_flow(flow)


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_states_are_merged(name: str) -> None:
    query = PARTIAL[name](stream())
    assert any("partial states, merged" in said for said in explained(query).values())
    check_partial(query, history(11, 40, unending=False), None)


@pytest.mark.parametrize("name", ["hopping", "with gaps", "of some rows", "by key", "in a group"])
def test_partial_states_are_of_windows_that_end_by_until(name: str) -> None:
    check_partial(PARTIAL[name](stream()), history(12, 30), 25)


@pytest.mark.parametrize("name", ["hopping", "by key"])
def test_one_row_and_none(name: str) -> None:
    check_partial(PARTIAL[name](stream()), history(13, 1), 4)
    check_partial(PARTIAL[name](stream()), sd.CHT.from_rows([]), None)


def check_partial(query: sd.Stream[Any], rows: sd.CHT[Any], until: int | None) -> None:
    expected = denote(query.plan(), {"s": rows}, sd.INFINITY if until is None else until)
    assert_cht_equal(found_on(query, {"s": rows}, until), expected)


def test_answers_come_from_merged_states() -> None:
    rows = sd.CHT.from_rows([(t, t + 1, {"v": 1}) for t in range(50)])
    sums = [
        sum(row.payload for row in found_on(stream().tumbling_window(50).aggregate(module, lambda e: e.v), {"s": rows}))
        for module in (Total, Lossy)
    ]
    assert sums[0] == 50
    assert sums[1] < 50, "a module that loses what it merges keeps the rows of one partition of five"


def test_partial_states_whatever_the_session_is_set_to(spark: SparkSession) -> None:
    query = stream().group_by("k").hopping_window(6, 3).aggregate(x=Merged().of(lambda e: e.k), y=Total().of(lambda e: e.v))
    inputs = {"s": history(17, 20, unending=False)}
    names = {"spark.sql.execution.arrow.useLargeVarTypes": "true", "spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        assert_cht_equal(found_on(query, inputs), denote(query.plan(), inputs))
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def test_partial_states_meet_under_equal_keys() -> None:
    keys = (0.0, -0.0, float("nan"), -float("nan"), float("inf"))
    rows = [(0, 5, {"f": keys[i % 5], "v": i}) for i in range(40)]
    inputs = {"s": sd.CHT.from_rows(rows)}
    query = stream().group_by("f").tumbling_window(5).aggregate(Merged, lambda e: e.v)
    found = found_on(query, inputs)
    assert len(found) == 3
    assert_cht_equal(found, denote(query.plan(), inputs))


def states_of(module: Any, rows: Sequence[tuple[int, str, Any]], limit: int) -> list[Any]:
    """Return the batches of states of a partition with rows (window, key, value), which come a hundred at a time."""
    reader = BatchReader((PayloadColumn("p", STR if isinstance(rows[0][2], str) else INT, None),))
    stage = PartialStage("label", Hopping(8, 8), (BoundAgg(module),), reader, ("k0",), limit)
    batches = []
    for first in range(0, len(rows), 100):
        w, key, value = zip(*rows[first : first + 100], strict=True)
        times = {"le": [8 * k for k in w], "re": [8 * k + 1 for k in w]}
        batches.append(pa.RecordBatch.from_pydict({**times, "p": value, "k0": key, "lo": w, "hi": w}))
    return list(stage.run(batches))


def merged_states(module: Any, parts: Sequence[Any], key: str) -> dict[int, Any]:
    """Return the results of a key's windows by their LEs."""
    merge = MergeStage("label", Hopping(8, 8), (module,), ("k0",))
    table = pa.Table.from_batches(parts)
    found = merge.run(table.filter(pc.equal(table.column("k0"), key)))
    return dict(zip(found.column("le").to_pylist(), load_values(found.column("a0").to_pylist()), strict=True))


def test_states_of_many_keys_are_sent_once() -> None:
    """So it is with more keys than rows of a batch, and rows in order of time."""
    rows = [(w, f"k{i}", i) for w in range(2) for _ in range(2) for i in range(6_000)]
    whole, divided = states_of(Total(), rows, 64 * 2**20), states_of(Total(), rows, 2**20)
    assert [part.num_rows for part in whole] == [12_000]
    assert sum(part.num_rows for part in divided) > 12_000
    assert max(part.num_rows for part in divided) < 2**20 // 512
    for parts in (whole, divided):
        for i in (0, 7, 5_999):
            assert merged_states(Total(), parts, f"k{i}") == {0: 2 * i, 8: 2 * i}


def test_states_are_bounded_by_their_size() -> None:
    rows = [(0, f"k{i}", f"{i:03}" * 700) for i in range(1_000)]
    parts = states_of(Merged(), rows, 2**20)
    sizes = [sum(map(len, part.column("held").to_pylist())) for part in parts]
    assert len(parts) > 3
    assert max(sizes) < 2**20
    grown = states_of(Merged(), [(0, "k", f"{i}" * 100) for i in range(20_000)], 2**20)
    assert len(grown) > 2, "one state that grows is sent too"
    assert sum(map(len, merged_states(Merged(), grown, "k").values())) == 20_000


def test_windows_that_rows_still_come_for_stay() -> None:
    rows = [row for i in range(9_000) for row in ((0, "hot", 1), (1 + i, f"k{i}", 1))]
    parts = states_of(Total(), rows, 2**20)
    assert len(parts) > 4
    assert [part.column("k0").to_pylist().count("hot") for part in parts] == [0] * (len(parts) - 1) + [1]
    assert merged_states(Total(), parts, "hot") == {0: 9_000}


def test_states_of_the_examples_travel() -> None:
    query = stream().group_by("k").hopping_window(9, 4)
    modules: dict[str, Agg[Any, Any]] = {"x": SlidingQuantile(0.5).of(lambda e: e.v), "y": LogQuantile(0.9).of(lambda e: e.v)}
    if importlib.util.find_spec("datasketches"):
        modules["z"] = DistinctSketch().of(lambda e: e.f)
    made = query.aggregate(**modules)
    inputs = {"s": history(18, 40, unending=False)}
    assert_cht_equal(found_on(made, inputs), denote(made.plan(), inputs))


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            lambda s: s.tumbling_window(5).aggregate(IncrementalValues, lambda e: e.v),
            "IncrementalValues does not define merge_states",
        ),
        (lambda s: s.tumbling_window(5).aggregate(InOrder, lambda e: e.v), "InOrder needs its members in order"),
        (lambda s: s.tumbling_window(5).aggregate(Timed, lambda e: e.v), "Timed is time-sensitive"),
        (lambda s: s.tumbling_window(5).aggregate(x=Total().of(lambda e: e.v), n=sd.count()), "count keeps no state"),
        (lambda s: s.snapshot_window().aggregate(Total, lambda e: e.v), "the rows of a window of snapshot"),
    ],
)
def test_explain_says_why_states_are_not_merged(query: Query, why: str) -> None:
    said = " ".join(explained(query(stream())).values())
    assert f"no partial states, as {why}" in said
    assert "merged" not in said
    check(query(stream()), {"s": history(15, unending=False)}, native=False)


def test_errors_of_states_name_the_place() -> None:
    def run(module: Any, argument: Callable[[Any], Any]) -> None:
        found_on(stream().tumbling_window(5).aggregate(module, argument), {"s": history(16, 10, unending=False)})

    for module, argument, error in (
        (Total, lambda e: e.k, "UserCodeError: TypeError in user code"),
        (Total, lambda e: 1 // (e.v - e.v), "UserCodeError: ZeroDivisionError"),
        (Locked, lambda e: e.v, "UnsupportedOnSpark: a state of Locked cannot be sent"),
    ):
        with pytest.raises(Exception, match=error):
            run(module, argument)
    endless = {"s": [sd.Insert(0, 1, sd.INFINITY, {"v": 1})]}
    with pytest.raises(UnboundedOutputError, match="until"):
        stream().tumbling_window(5).aggregate(Total, lambda e: e.v).run(endless, engine="spark")
