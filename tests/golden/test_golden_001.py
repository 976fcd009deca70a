"""The golden cases of paper 001: each names its source in the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from streamdsl import errors
from streamdsl.denote import denote
from streamdsl.denote.windowed import describe
from streamdsl.expr.nodes import Field
from streamdsl.plan.node import Source, WindowAggregate, WindowApply
from streamdsl.temporal import CHT, INFINITY, Cti, Event, EventTable, Insert, Lifetime, Retract, payload_key, problems, sync_time
from streamdsl.udm.bases import UDA, IntervalEvent, TimeSensitiveUDA, TimeSensitiveUDO, WindowDescriptor
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Count as CountRows
from streamdsl.udm.builtin import Sum
from streamdsl.windows import Clip, Count, Hopping, Output, Snapshot, Windows
from streamdsl.windows.liveliness import output_cti, unrestricted_cti

Case: TypeAlias = dict[str, Any]


class Average(UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return sum(payloads) / len(payloads)


class TimeWeightedAverage(TimeSensitiveUDA[float, float]):
    def compute_result(self, events: Sequence[IntervalEvent[float]], window: WindowDescriptor) -> float:
        return sum(e.payload * (e.end_time - e.start_time) for e in events) / window.duration


class Early(TimeSensitiveUDO[float, float]):
    """Says that something happened one tick before its window."""

    def compute_result(self, events: Sequence[IntervalEvent[float]], window: WindowDescriptor) -> Iterable[IntervalEvent[float]]:
        return [IntervalEvent(window.start_time - 1, window.end_time, e.payload) for e in events]


AGGREGATES: Final[Mapping[str, BoundAgg]] = {
    "count": BoundAgg(CountRows()),
    "sum": BoundAgg(Sum(), Field("v")),
    "avg": BoundAgg(Average(), Field("v")),
    "time_weighted_average": BoundAgg(TimeWeightedAverage(), Field("v")),
}
OPERATORS: Final = {"early": Early()}
OUTPUTS: Final = {"window_based": Output.ALIGN, "time_bound": Output.TIME_BOUND}


def load(name: str) -> list[Any]:
    cases = json.loads((Path(__file__).parent / name).read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", [*load("cht.json"), *load("algebra.json")])
def test_golden(case: Case) -> None:
    expected = case["expected"]
    if isinstance(expected, dict) and "error" in expected:
        with pytest.raises(getattr(errors, expected["error"])):
            OPS[case["op"]](case)
    else:
        assert close(OPS[case["op"]](case), expected)


def to_cht(case: Case) -> Any:
    """The CHT, with the id that each payload has."""
    events = stream(case)
    ids = {payload_key(event.payload): event.id for event in events if isinstance(event, Insert)}
    return [[ids[payload_key(row.payload)], row.le, row.re, row.payload] for row in CHT.from_events(events)]


def sync_times(case: Case) -> Any:
    return [sync_time(event) for event in stream(case)]


def found_problems(case: Case) -> Any:
    return [list(problem) for problem in problems(stream(case))]


def watermark(case: Case) -> Any:
    table = EventTable()
    for event in stream(case):
        if isinstance(event, Cti):
            table.advance(event.time)
        else:
            table.admit(event)
    return table.high_water


def window(case: Case) -> Any:
    params, source = case["params"], Source("a")
    clip, output = Clip(params.get("clip", "none")), Output(params.get("output", "align"))
    if params["kind"] == "udo_t":
        plan: Any = WindowApply(source, kind(case), clip, output, OPERATORS[params["udm"]], Field("v"))
    else:
        plan = WindowAggregate(source, kind(case), clip, output, (AGGREGATES[params["udm"]],), Field("a0"))
    return [list(row) for row in denote(plan, {"a": rows(case)}, params.get("upto", INFINITY))]


def windows(case: Case) -> Any:
    return [[*window, [[row.le, row.re, row.payload] for row in members]] for window, members in describe(kind(case), rows(case))]


def clip_input(case: Case) -> Any:
    params = case["params"]
    return [[*Clip(params["clip"]).apply(Lifetime(le, re), Lifetime(*params["window"])), p] for le, re, p in rows(case)]


def safe_output_cti(case: Case) -> Any:
    params, lives = case["params"], [Lifetime(row.le, row.re) for row in rows(case)]
    if params["policy"] == "unrestricted":
        found = unrestricted_cti(params["c"])
    else:
        found = output_cti(kind(case), Clip(params["clip"]), OUTPUTS[params["policy"]], params["sensitive"], lives, params["c"])
    return "-inf" if found is None else found


OPS: Final[Mapping[str, Callable[[Case], Any]]] = {
    "to_cht": to_cht,
    "sync_times": sync_times,
    "problems": found_problems,
    "watermark": watermark,
    "window": window,
    "windows": windows,
    "clip_input": clip_input,
    "safe_output_cti": safe_output_cti,
}


def stream(case: Case) -> list[Event[Any]]:
    return [event(*item) for item in case["input"]["stream"]]


def event(kind: str, *values: Any) -> Event[Any]:
    if kind == "cti":
        return Cti(time(values[0]))
    id, le, re, *re_new, payload = values
    if kind == "insert":
        return Insert(id, time(le), time(re), payload)
    return Retract(id, time(le), time(re), time(re_new[0]), payload)


def rows(case: Case) -> CHT[Any]:
    return CHT.from_rows((time(le), time(re), payload) for le, re, payload in case["input"]["a"])


def time(value: int | str) -> int:
    return INFINITY if value == "inf" else int(value)


def kind(case: Case) -> Windows:
    spec = case["params"]["spec"]
    if spec["kind"] == "tumbling":
        return Hopping(spec["size"], spec["size"], spec.get("offset", 0))
    if spec["kind"] == "snapshot":
        return Snapshot()
    return Count(spec["n"], "start" if spec["kind"] == "count_start" else "end")


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return bool(found == pytest.approx(expected, rel=1e-9))
    return bool(found == expected)
