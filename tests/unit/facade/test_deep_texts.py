"""Texts of queries and plans that are nested deeply or are very long are read, or refused by an error of ours."""

from __future__ import annotations

import json

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, SqlError, StreamDslError
from streamdsl.expr.recursion import ensure_recursion_limit
from streamdsl.plan.base import Node
from streamdsl.plan.json import FORMAT, VERSION
from streamdsl.plan.node import Source, shift
from tests.fresh_process import in_fresh_process

SELECT = "SELECT v FROM trips WHERE "
HEAD = f'{{"format": "{FORMAT}", "version": {VERSION}, "parts": '


def read(kind: str, text: str, is_deep: bool) -> tuple[str, int, bool]:
    """Return what comes of reading a text: how many rows, or how long the error is and whether it has a hint."""
    if is_deep:
        ensure_recursion_limit(2_000, "a query")
    try:
        if kind == "json":
            return "read", len(sd.composing.plan_from_json(text).to_json()), False
        trips = sd.from_rows([(1, 2, {"v": 1}), (3, 4, {"v": 5})])
        return "rows", len(sd.sql(text, trips=trips).run().cht()), False
    except StreamDslError as error:
        return "refused", len(str(error)), "Hint:" in str(error)


def read_afresh(kind: str, text: str, is_deep: bool = False) -> tuple[str, int, bool]:
    """Return what a new process says that reads a text: none ends by a traceback or a signal."""
    answer: tuple[str, int, bool] = in_fresh_process(read, kind, text, is_deep)
    return answer


@pytest.mark.parametrize(
    "text",
    [
        SELECT + " AND ".join(["v > 1"] * 3_000),
        SELECT + " OR ".join(["v > 1"] * 3_000),
        SELECT + "(" * 5_000 + "v > 1" + ")" * 5_000,
        "SELECT v FROM trips WHERE v + " + "+".join(["0"] * 1_900) + " > 1",
    ],
    ids=["and", "or", "parentheses", "sum"],
)
def test_long_chains_in_sql_run(text: str) -> None:
    assert read_afresh("sql", text) == ("rows", 1, False)


@pytest.mark.parametrize(
    "text",
    [
        SELECT + "NOT " * 6_000 + "v > 1",
        "SELECT " + "- " * 6_000 + "v AS v FROM trips",
        SELECT + "abs(" * 6_000 + "v" + ")" * 6_000 + " > 1",
        SELECT + "CASE WHEN v > 1 THEN " * 3_000 + "v" + " END" * 3_000 + " > 1",
        "SELECT v FROM (" * 3_000 + "SELECT v FROM trips" + ") AS t" * 3_000,
    ],
    ids=["not", "minus", "calls", "case", "queries"],
)
def test_sql_that_is_nested_without_end_is_refused(text: str) -> None:
    what, length, hinted = read_afresh("sql", text)
    assert (what, hinted) == ("refused", True)
    assert length < 2_000


@pytest.mark.parametrize("is_deep", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        HEAD
        + '[{"type": "Distinct", "input": '
        + '{"type": "Distinct", "input": ' * 100_000
        + "1"
        + "}" * 100_001
        + '], "output": 1}',
        HEAD + '[{"type": "Constant", "value": ' + "[" * 600 + "]" * 600 + '}], "output": {"$ref": 0}}',
    ],
    ids=["lists", "operators", "constant"],
)
def test_json_that_is_nested_without_end_is_refused_even_where_deep_queries_have_made_room(text: str, is_deep: bool) -> None:
    what, length, hinted = read_afresh("json", text, is_deep)
    assert (what, hinted) == ("refused", True)
    assert length < 2_000


def test_a_plan_of_a_thousand_operators_is_written_and_read() -> None:
    plan: Node = Source("trips")
    for _ in range(1_000):
        plan = shift(plan, 1)
    text = plan.to_json()
    assert json.loads(text)["version"] == VERSION
    assert sd.composing.plan_from_json(text).to_json() == text


@pytest.mark.parametrize("given", [None, 5, [], {}, object()])
def test_what_is_no_text_holds_no_plan(given: object) -> None:
    with pytest.raises(QueryError, match=r"(?s)holds no plan.*Hint:"):
        sd.composing.plan_from_json(given)  # type: ignore[arg-type]


def test_an_error_in_a_long_line_shows_what_is_around_it() -> None:
    text = SELECT + " AND ".join(["v > 1"] * 1_000) + " AND nope > 1 AND " + " AND ".join(["v > 1"] * 1_000)
    with pytest.raises(SqlError) as raised:
        sd.sql(text, trips=sd.from_rows([(1, 2, {"v": 1})]))
    shown, marks = str(raised.value).splitlines()[1:3]
    assert len(shown) < 300
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "nope"
