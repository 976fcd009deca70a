"""What `dir` lists, and so what shells and notebooks complete: what users type."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import streamdsl as sd

S: sd.Stream[Any] = sd.source("s")
SESSION = S.tumbling_window(10).aggregate(n=sd.count()).open(engine_options={"attach": "on"})
OBJECTS: dict[str, object] = {
    "stream": S,
    "group": S.group_by("k"),
    "window": S.tumbling_window(10),
    "window of a group": S.group_by("k").tumbling_window(10),
    "session": SESSION,
    "attached query": SESSION.attach(S),
    "result": sd.from_rows([(1, 2, "a")]).run(),
    "history": sd.from_rows([(1, 2, "a")]).run().cht(),
    "output of a push": SESSION.feed([sd.point("a", 3, 7)]),
    "trace": SESSION.trace(),
    "rejections": SESSION.rejected(),
}


@pytest.mark.parametrize("found", OBJECTS.values(), ids=list(OBJECTS))
def test_what_is_listed_is_public_there_and_has_a_docstring(found: object) -> None:
    assert dir(found) == sorted({name for name in dir(found) if not name.startswith("_")})
    methods = [name for name in dir(found) if callable(getattr(found, name))]
    assert methods
    assert [name for name in methods if not inspect.getdoc(getattr(type(found), name))] == []


def test_a_stream_lists_all_its_methods() -> None:
    written = {name for name, method in inspect.getmembers(sd.Stream, inspect.isfunction) if not name.startswith("_")}
    assert set(dir(S)) == written


SESSION_NAMES = (
    "attach checkpoint close ctis detach emit end feed live on_late output plan published push rejected snapshot stats status "
    "stream subscribe subscriptions timeline trace unit why_no_output"
)


def test_a_session_lists_what_is_done_with_one() -> None:
    assert dir(SESSION) == sorted(SESSION_NAMES.split())


def test_a_result_lists_its_forms() -> None:
    assert dir(OBJECTS["result"]) == sorted(
        [
            "chart",
            "cht",
            "events",
            "from_cht",
            "from_events",
            "head",
            "rejected",
            "timeline",
            "to_arrow",
            "to_pandas",
            "to_polars",
            "unit",
        ]
    )


def test_the_door_lists_no_private_name_and_no_model_of_the_engine() -> None:
    assert [name for name in dir(sd) if name.startswith("_")] == []
    assert (
        set(dir(sd)) & {"engine", "io", "plan", "expr", "denote", "rewrite", "building", "running", "stream", "result"} == set()
    )
