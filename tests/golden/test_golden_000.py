"""The golden cases of paper 000: each names its source in the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import streamdsl as sd
from streamdsl import secret

Case: TypeAlias = dict[str, Any]
PROFILES: Final = {each.name: each for each in (secret.STREAM, secret.CORAL8, secret.STREAMBASE, secret.ORACLE_CEP)}
AGGREGATES: Final[Mapping[Any, Any]] = {"avg": sd.avg(lambda e: e), "sum": sd.sum(lambda e: e), None: None}


def load() -> list[Any]:
    cases = json.loads((Path(__file__).parent / "secret.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", load())
def test_golden(case: Case) -> None:
    assert OPS[case["op"]](case) == case["expected"]


def trace(case: Case) -> secret.Trace:
    p = case["params"]
    fn = AGGREGATES[p.get("fn")]
    return secret.simulate(PROFILES[p["profile"]], p["size"], p["slide"], case["input"]["stream"], fn)


def t0(case: Case) -> int:
    p = case["params"]
    return PROFILES[p["profile"]].start(p["first"], p["size"], p["slide"])


def ticks(case: Case) -> Any:
    found = secret.ticks(case["input"]["stream"], case["params"]["t0"], secret.Tick(case["params"]["tick"]))
    return [list(each) for each in found]


def scope(case: Case) -> Any:
    p = case["params"]
    found = [secret.scope(t, p["t0"], p["size"], p["slide"]) for t in case["input"]["times"]]
    return [None if each is None else list(each) for each in found]


OPS: Mapping[str, Callable[[Case], Any]] = {
    "aggregate": lambda case: trace(case).outputs,
    "simulate": lambda case: [list(each) for each in trace(case).reports],
    "t0": t0,
    "ticks": ticks,
    "scope": scope,
}
