"""The golden cases of paper 002: each names its source in the paper."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import streamdsl as sd
from streamdsl import cql

Case: TypeAlias = dict[str, Any]
Query: TypeAlias = Callable[[cql.StreamGroup], Any]
INSTANTS: Final[Mapping[str, Any]] = {"triggers": "all", "batches": "batches"}
SEMANTICS: Final[Mapping[str, Any]] = {"DEL": "delta", "DIF": "difference"}
COMPARE: Final = {"lt": operator.lt, "ge": operator.ge}


def load() -> list[Any]:
    cases = json.loads((Path(__file__).parent / "spread.json").read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", load())
def test_golden(case: Case) -> None:
    answer, expected = OPS[case["op"]](case), case["expected"]
    if case.get("compare") != "one_of":
        assert answer(group(case)) == expected
    else:
        allowed = expected if "group" in case["input"] else [expected]
        found = cql.allowed(answer, group(case))
        assert answer(group(case)) == found[0]
        assert all(each in allowed for each in found)
        assert len(found) == len(allowed)


def group(case: Case) -> cql.StreamGroup:
    if "values" in case["input"]:
        return cql.stream_group(S=[((v,), t) for v, t in case["input"]["values"]], batching=cql.CCL)
    streams: dict[str, Any] = {
        name: [(tuple(payload), t, i) for payload, t, i in rows] for name, rows in case["input"]["group"].items()
    }
    return cql.stream_group(**streams)


def spread(g: cql.StreamGroup, p: Case) -> cql.StreamGroup:
    on = p["attr"] if p["attr"] is None else ["t" if place == -1 else f"_{place}" for place in p["attr"]]
    return cql.spread(g, p["names"], on=on, all=p["all"])


def spreading(case: Case) -> Query:
    def answer(g: cql.StreamGroup) -> Any:
        made = spread(g, case["params"])
        return {name: [[list(payload), t, i] for (t, i), payload in made[name].events()] for name in made}

    return answer


def relation(g: cql.StreamGroup, p: Case) -> cql.Relation:
    """The windows' join; a row is then the tuple of all their columns."""
    whole: Any = None
    for window in p["windows"]:
        made = columns(of_window(g[window["stream"]], window), len(g[window["stream"]].payloads[0]))
        whole = made if whole is None else whole.join(made, select=lambda one, other: {"c": one.c + other.c})
    for column, compare, bound in p.get("where", []):
        if compare == "eqcol":
            whole = whole.where(lambda e, a=column, b=bound: e.c[a] == e.c[b])
        else:
            whole = whole.where(lambda e, a=column, b=bound, holds=COMPARE[compare]: holds(e.c[a], b))
    if "agg" in p:
        column = p["agg"]["col"]
        fn: Any = {"avg": sd.avg, "count_distinct": sd.count_distinct}[p["agg"]["fn"]]
        return whole.aggregate(x=fn(lambda e: e.c[column])).select(lambda e: {"c": (e.x,)})  # type: ignore[no-any-return]
    if "select" in p:
        return whole.select(lambda e, places=tuple(p["select"]): {"c": tuple(e.c[n] for n in places)})  # type: ignore[no-any-return]
    return whole  # type: ignore[no-any-return]


def of_window(stream: cql.BatchStream, window: Case) -> cql.Relation:
    n = None if window["n"] == "inf" else window["n"]
    if window["kind"] == "rows":
        return stream.rows(n, slide=window.get("slide"))
    return stream.range(n, slide=window.get("slide"), clock=window.get("clock", "group"))


def columns(made: cql.Relation, width: int) -> cql.Relation:
    names = [*(f"_{n}" for n in range(width)), "t"]
    return made.select(lambda e: {"c": tuple(getattr(e, name) for name in names)})


def shown(made: cql.Relation, p: Case) -> Any:
    if p["show"] == "istream":
        batches: dict[Any, list[Any]] = {}
        for at, row in made.istream(SEMANTICS[p["sem"]]).events():
            batches.setdefault(at, []).append(list(row.c))
        return [[list(at), rows] for at, rows in batches.items()]
    states = made.states(at="slides" if p["show"] == "new_states" else INSTANTS[p["at"]])
    return [[list(at), [list(row.c) for row in rows]] for at, rows in states]


def query(case: Case) -> Query:
    return lambda g: shown(relation(g, case["params"]), case["params"])


def spread_query(case: Case) -> Query:
    return lambda g: shown(relation(spread(g, case["params"]), case["params"]), case["params"])


def sums(g: cql.StreamGroup, n: int) -> cql.Relation:
    return g["S"].keep(n).aggregate(sum=sd.sum(lambda e: e._0))


OPS: Mapping[str, Callable[[Case], Query]] = {
    "query": query,
    "spread_query": spread_query,
    "spread": spreading,
    "ccl_keep": lambda case: lambda g: [[row.sum, t] for (t, _), row in sums(g, case["params"]["n"]).istream().events()],
    "ccl_output_every": lambda case: (
        lambda g: [[row.sum, t] for (t, _), row in sums(g, case["params"]["n"]).output_every(case["params"]["every"]).events()]
    ),
}
