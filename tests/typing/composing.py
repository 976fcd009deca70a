"""What type checkers infer for checks and compositions of queries, and what they refuse."""

from __future__ import annotations

from typing import Literal, assert_type

import streamdsl as sd
from streamdsl.engine.attached import Attached
from streamdsl.plan.node import Node
from streamdsl.result import Result
from tests.typing.payloads import Trip, trips


def checks() -> None:
    found = sd.checks.check(trips)
    assert_type(found, list[sd.checks.Finding])
    assert_type(found[0].level, Literal["warning", "note"])
    assert_type(found[0].line, int | None)
    sd.checks.check(trips.tumbling_window("1h"))  # type: ignore[arg-type]
    found[0].line = 5  # type: ignore[misc]


def parameters() -> None:
    limit = sd.functions.param("limit", float)
    assert_type(limit, float)
    assert_type(sd.functions.param("limit", int, default=3), int)
    assert_type(trips.where(lambda e: e.fare > limit), sd.Stream[Trip])
    assert_type(trips.select(lambda e: e.fare * limit), sd.Stream[float])
    assert_type(trips.bind(limit=3.5), sd.Stream[Trip])
    assert_type(trips.bind(trips=trips.shift("1h")).run(), Result[Trip])


def outputs() -> None:
    assert_type(sd.composing.run_all({"a": trips, "b": trips.shift("1h")}), dict[str, Result[Trip]])
    sd.composing.run_all([trips])  # type: ignore[arg-type]
    sd.composing.run_all({"a": trips}, engine="flink")  # type: ignore[arg-type]


def attaching() -> None:
    session = trips.open(engine_options={"attach": "on"})
    attached = session.attach(trips.select(lambda e: e.fare), emit="final")
    assert_type(attached, Attached[float])
    assert_type(attached.pull(), list[sd.Event[float]])
    assert_type(session.detach(attached), list[sd.Event[float]])
    session.attach(trips, emit="soon")  # type: ignore[arg-type]


def plans() -> None:
    text = trips.plan().to_json()
    assert_type(text, str)
    assert_type(sd.composing.plan_from_json(text, [Trip]), Node)
    sd.composing.plan_from_json(text, classes=["Trip"])  # type: ignore[list-item]
