"""The golden cases of paper 004: each names its source in the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import streamdsl as sd
from streamdsl.progress import (
    BandJoin,
    Joined,
    JointPunctuation,
    Operator,
    PairAggregate,
    PairResult,
    Punctuation,
    Tuple,
    Union,
    WindowAggregate,
    WindowResult,
    low_water_marks,
)

Case: TypeAlias = dict[str, Any]


def load() -> list[Any]:
    cases = json.loads((Path(__file__).parent / "oop.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", load())
def test_golden(case: Case) -> None:
    assert OPS[case["op"]](case) == case["expected"]


def arrivals(case: Case) -> Iterator[tuple[int, int, Tuple | Punctuation]]:
    for time, input, kind, value, payload in case["input"]["arrivals"]:
        yield time, input, Tuple(value, payload) if kind == "t" else Punctuation(value)


def join(case: Case) -> BandJoin:
    return BandJoin(before=case["params"]["r1"], after=case["params"]["r0"])


def pairs(case: Case) -> list[Any]:
    found = join(case).run((input, item) for _, input, item in arrivals(case))
    return sorted((_flat(pair) for pair in found if isinstance(pair, Joined)), key=str)


def _flat(item: Any) -> list[Any]:
    if isinstance(item, Joined):
        return [item.left.ts, item.left.payload, item.right.ts, item.right.payload]
    return [item.wid, item.key, item.value] if isinstance(item, WindowResult) else [item.ts, item.payload]


def log(case: Case, operator: Operator, names: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator sends and when, the most that it holds, and how late a result is after its last tuple."""
    lines: list[Any] = []
    peak = latency = 0
    seen: dict[Any, int] = {}
    for time, input, item in arrivals(case):
        for out in operator.push(item, input):
            if isinstance(out, Punctuation):
                lines.append(["p", time, names[out.on], out.value])
            elif isinstance(out, JointPunctuation):
                lines.append(["p", time, "joint", [out.left, out.right]])
            else:
                lines.append(["t", time, None, _flat(out)])
                latency = max(latency, time - seen.get(out.wid, time) if isinstance(out, WindowResult) else 0)
        if isinstance(item, Tuple) and isinstance(operator, WindowAggregate):
            seen[item.ts // case["params"]["slide"]] = time
        peak = max(peak, operator.buffered)
    return {"log": lines, "peak": peak, "max_latency": latency}


def close_times(case: Case) -> dict[str, Any]:
    """When each pair of timestamps is complete, by joint and by individual punctuation."""
    found: dict[str, list[list[Any]]] = {"individual": [], "joint": []}
    for name, closed in found.items():
        source, groups = join(case), PairAggregate(len, joint=name == "joint")
        for time, input, item in arrivals(case):
            results = groups.run((0, out) for out in source.push(item, input))
            closed += [[each.left, each.right, time] for each in results if isinstance(each, PairResult)]
    return found


def wid(case: Case) -> dict[str, Any]:
    p = case["params"]
    return log(case, WindowAggregate(p["range"], p["slide"], sd.count()), {"wid": "wid"})


OPS: Final[Mapping[str, Callable[[Case], Any]]] = {
    "pairs": pairs,
    "oop_join": lambda case: log(case, join(case), {"left": 0, "right": 1}),
    "oop_union": lambda case: log(case, Union(case["params"]["n"]), {"ts": 0}),
    "wid": wid,
    "close_times": close_times,
    "lwm": lambda case: ["inf" if each == sd.INFINITY else each for each in low_water_marks(case["input"]["ts"])],
}
