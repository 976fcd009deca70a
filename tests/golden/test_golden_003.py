"""The golden cases of paper 003: each names its source in the paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from streamdsl.astral import (
    View,
    five_uplet,
    for_loop,
    last_n_every,
    linear,
    range_slide,
    transposable,
)

Case: TypeAlias = dict[str, Any]
DOMAINS: Final = {"N": "position", "T": "time"}


def load() -> list[Any]:
    cases = json.loads((Path(__file__).parent / "astral.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", load())
def test_golden(case: Case) -> None:
    assert OPS[case["op"]](case) == case["expected"]


def view(case: Case, t0: Any = 0) -> View:
    """The stream, each tuple's payload its position, together with its fields."""
    return View([((n, fields), Fraction(t), i) for n, (t, i, fields) in enumerate(case["input"]["stream"])], t0)


def sequence(case: Case) -> Any:
    wsd = case["params"]["wsd"]
    if wsd["kind"] == "linear":
        return linear((wsd["a"], wsd["b"]), (wsd["c"], wsd["d"]), wsd["r"], DOMAINS[wsd["domain"]])  # type: ignore[arg-type]
    if wsd["kind"] == "five_uplet":
        return five_uplet(wsd["start"], wsd["end"], wsd["rate"], wsd["start_adv"], wsd["end_adv"], DOMAINS[wsd["domain"]])  # type: ignore[arg-type]
    if wsd["kind"] == "last_n_each":
        return last_n_every(wsd["n"], wsd["m"])
    return range_slide(wsd["x"], wsd["y"], partial=wsd["phase_in"])


def at(case: Case) -> list[tuple[Any, int]]:
    return [(t, i) for t, i in case["input"]["at"]]


def bounds(case: Case) -> Any:
    found = [view(case).bounds(sequence(case), moment) for moment in at(case)]
    return [None if pair is None else list(pair) for pair in found]


def gamma(case: Case) -> Any:
    """A number below 0 in the case means that there is no window yet."""
    found = [view(case).gamma(sequence(case), moment) for moment in at(case)]
    return [-1 if number is None else number for number in found]


def contents(case: Case, ws: Any) -> list[list[int]]:
    return [[n for n, _ in view(case).content(ws, moment)] for moment in at(case)]


def partitioned(case: Case) -> Any:
    rows = View([({"n": n, **fields}, t, i) for n, (t, i, fields) in enumerate(case["input"]["stream"])])
    ws = sequence(case).partitioned(case["params"]["attrs"])
    return [[row["n"] for row in rows.content(ws, moment)] for moment in at(case)]


def select_before_after(case: Case) -> Any:
    field, compare, bound = case["params"]["pred"]
    assert compare == "ge"

    def holds(payload: Any) -> bool:
        return bool(payload[1][field] >= bound)

    seen, ws = view(case), sequence(case)
    return [
        [[n for n, _ in seen.where(holds).content(ws, moment)], [p[0] for p in seen.content(ws, moment) if holds(p)]]
        for moment in at(case)
    ]


def transposing(case: Case) -> Any:
    """Whether property 4 says that the queries are equal, and from when on they are."""
    p, stream = case["params"], case["input"]["stream"]
    first = linear((p["a"], p["b"]), (p["c"], p["d"]), p["r"], DOMAINS[p["domain"]])  # type: ignore[arg-type]
    second = linear((p["a"], p["b2"]), (p["c"], p["d2"]), p["r"], DOMAINS[p["domain"]])  # type: ignore[arg-type]
    before, after = view(case, p["t0"]), view(case, p["t1"])
    times = {n: t for n, (t, _, _) in enumerate(stream)}
    moments = [t for t, _, _ in stream if t >= p["t1"]]
    agree = {
        t: [n for n, _ in before.content(first, t) if times[n] >= p["t1"]] == [n for n, _ in after.content(second, t)]
        for t in moments
    }
    tuples = [(n, t, i) for n, (t, i, _) in enumerate(stream)]
    return {
        "D": 0,
        "transposable": transposable(first, p["t0"], second, p["t1"], tuples),
        "equal_once_created": all(agree[t] for t in moments if after.gamma(second, t) is not None),
        "equal_from_t1": all(agree.values()),
    }


OPS: Mapping[str, Callable[[Case], Any]] = {
    "bounds": bounds,
    "gamma": gamma,
    "window": lambda case: contents(case, sequence(case)),
    "partitioned": partitioned,
    "select_before_after": select_before_after,
    "transposable": transposing,
    "for_loop": lambda case: contents(case, loop(case)),
    "tau_inv": lambda case: [view(case).tau_inv(moment) for moment in at(case)],
}


def loop(case: Case) -> Any:
    p = case["params"]
    return for_loop(
        p["init"], lambda u: u < p["until"], lambda u: u + p["step"], lambda u: (u + p["begin_add"], u + p["end_add"])
    )
