"""The reference as an engine: sources by name, their policies, and the bound of a run."""

from __future__ import annotations

from typing import Any

import pytest

from streamdsl.denote import history, run_reference, sources
from streamdsl.errors import CtiViolation, QueryError, SchemaError
from streamdsl.expr.nodes import Whole
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Bound
from streamdsl.plan.node import Group, GroupApply, Source, Union, shift
from streamdsl.temporal import CHT, Cti, Event, Insert, Progress, Record, Retract, Unit
from tests.unit.denote.reading import LEFT, of


def bound(*events: Any, unit: Unit | None = "tick") -> Bound:
    return Bound(unit, None, lambda: iter([list(events)]))


def test_sources_are_found_by_name_also_inside_groups() -> None:
    body = Union((Group(None, None), Source("rates")))
    plan = shift(GroupApply(LEFT, of(lambda e: e.k), body, Whole()), 3)
    assert list(sources(plan)) == ["left", "rates"]


def test_a_run_folds_its_inputs_and_denotes_the_plan() -> None:
    plan = Union((shift(LEFT, 10), Source("right")))
    inputs = {"left": bound(Insert("a", 1, 9, "x"), Retract("a", 1, 9, 5)), "right": bound(Insert("a", 2, 3, "y"), Cti(50))}
    result = run_reference(plan, inputs)
    assert result.cht() == CHT.from_rows([(2, 3, "y"), (11, 15, "x")])
    assert result.cht().unit == "tick"


def test_a_source_without_input_is_named() -> None:
    with pytest.raises(QueryError, match="'left' is bound to nothing; bound are: right"):
        run_reference(LEFT, {"right": bound()})


def test_a_run_may_be_bounded_without_losing_input() -> None:
    assert run_reference(LEFT, {"left": bound(Insert("a", 90, 95, "x"))}, until=10).cht() == CHT.from_rows([(90, 95, "x")])


def test_policies_of_the_source_are_obeyed() -> None:
    late = bound(Insert("a", 9, 12, "x"), Insert("b", 3, 5, "y"), Insert("c", 8, 20, "z"))
    with pytest.raises(CtiViolation, match="event 'b' at source 'left'"):
        run_reference(Source("left", progress=Progress.ordered()), {"left": late})
    dropped = run_reference(Source("left", progress=Progress.ordered(), on_violation="drop"), {"left": late})
    assert dropped.cht() == CHT.from_rows([(9, 12, "x")])
    adjusted = run_reference(Source("left", progress=Progress.ordered(), on_violation="adjust"), {"left": late})
    assert adjusted.cht() == CHT.from_rows([(9, 12, "x"), (9, 20, "z")])


def test_progress_is_in_the_unit_of_the_input() -> None:
    slack = Source("left", progress=Progress.slack("2s"), on_violation="drop")
    late = bound(Insert("a", 9000, 9001, "x"), Insert("b", 7000, 7001, "y"), Insert("c", 6999, 7000, "z"), unit="ms")
    assert [row.payload for row in run_reference(slack, {"left": late}).cht()] == ["y", "x"]


def test_payloads_have_the_fields_of_the_first() -> None:
    first = Insert("a", 1, 2, {"k": "a", "v": 1})
    rows = history(LEFT, [first, Insert("b", 3, 4, {"v": 2, "k": "b"})]).rows
    assert [list(row.payload) for row in rows] == [["k", "v"], ["k", "v"]]
    assert all(type(row.payload) is Record for row in rows)
    with pytest.raises(SchemaError, match="k, v"):
        history(LEFT, [first, Insert("b", 3, 4, {"v": 2})])
    with pytest.raises(SchemaError, match="k, v"):
        history(LEFT, [first, Insert("b", 3, 4, {"k": "b", "v": 2, "w": 3})])


def test_payloads_have_the_fields_that_were_declared() -> None:
    declared = Source("left", Schema.record(["k"]))
    with pytest.raises(SchemaError):
        history(declared, [Insert("a", 1, 2, {"v": 1})])


def test_an_id_may_come_again_once_progress_has_passed_it() -> None:
    again: list[Event[Any]] = [
        Insert("a", 1, 2, "x"),
        Insert("b", 50, 51, "y"),
        Insert("a", 60, 61, "z"),
        Retract("a", 60, 61, 70),
    ]
    found = history(Source("left", progress=Progress.ordered()), again)
    assert found == CHT.from_rows([(1, 2, "x"), (50, 51, "y"), (60, 70, "z")])
