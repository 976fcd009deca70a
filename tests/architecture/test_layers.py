"""The architecture, read from the source: who may import whom, at its top and when a function is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import pytest

from tests.architecture import structure
from tests.architecture.structure import CORE, FACADE, FILES, LAYERS, PACKAGE, Import, imports, inside, room_of


def test_no_relative_imports() -> None:
    assert [path.name for path in FILES if re.search(r"^\s*from\s*\.", path.read_text(), re.MULTILINE)] == []


def test_every_room_is_placed_in_the_architecture() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert rooms - {"__init__"} | {"streamdsl"} == LAYERS.keys()


@pytest.mark.parametrize("room", LAYERS)
def test_room_imports_only_rooms_before_it(room: str) -> None:
    before = list(LAYERS)[: list(LAYERS).index(room)]
    assert LAYERS[room] <= set(before)
    eager = [found for found in inside() if room_of(found.module) == room and found.eager and not found.typing]
    assert [str(found) for found in eager if room_of(found.imported) not in LAYERS[room] | {room}] == []


LATE: Final = {
    ("streamdsl.engine.query_session", "debugger"),
    ("streamdsl.result", "io"),
    ("streamdsl.temporal.cht", "pictures"),
    ("streamdsl.testing.connector_checks", "connect"),
    ("streamdsl.testing.law_queries", "sources"),
    ("streamdsl.stream", "connect"),
    ("streamdsl.stream", "sql"),
}
"""Convenience methods that hand over to a later room when they are called; besides these only the facade does, to the core."""


def test_what_is_imported_late_from_later_rooms_is_listed() -> None:
    late = {
        (found.module, room_of(found.imported))
        for found in inside()
        if (room := room_of(found.module)) in CORE.keys() | FACADE.keys()
        and not found.eager
        and not found.typing
        and room_of(found.imported) not in LAYERS[room] | {room} | (CORE.keys() | FACADE.keys() if room in FACADE else set())
    }
    assert late == LATE


def test_reference_and_engine_know_nothing_of_each_other() -> None:
    between = [f for f in inside() if {room_of(f.module), room_of(f.imported)} == {"denote", "engine"}]
    assert [str(found) for found in between] == []


def test_pyspark_is_imported_under_spark_only() -> None:
    outside = [f for f in imports() if f.imported.split(".")[0] == "pyspark" and room_of(f.module) != "spark" and not f.typing]
    assert [str(found) for found in outside] == []


DOORS: Final = {
    "streamdsl.astral": "streamdsl.papers.astral",
    "streamdsl.cql": "streamdsl.papers.cql",
    "streamdsl.progress": "streamdsl.papers.out_of_order",
    "streamdsl.secret": "streamdsl.papers.secret",
}
"""The short name of each room of a paper."""


def users_of(room: str) -> set[str]:
    """Return the modules outside a room that import it when they run, be it late."""
    return {f.module for f in inside() if room_of(f.imported) == room and room_of(f.module) != room and not f.typing}


def test_only_short_names_and_one_module_of_sql_import_models_of_papers() -> None:
    assert users_of("papers") == DOORS.keys() | {"streamdsl.sql.batches"}
    assert set().union(*map(users_of, ("astral", "cql", "progress", "secret"))) == set()


@pytest.mark.parametrize(("door", "room"), DOORS.items())
def test_a_short_name_has_what_the_room_has(door: str, room: str) -> None:
    short, whole = import_module(door), import_module(room)
    assert short.__all__ == whole.__all__
    assert [name for name in whole.__all__ if getattr(short, name) is not getattr(whole, name)] == []


def test_models_of_papers_know_nothing_of_each_other() -> None:
    between = [f for f in of_papers("streamdsl.papers") if f.imported.split(".")[2] not in (f.module.split(".")[2], "common")]
    assert [str(found) for found in between] == []


def of_papers(imported: str) -> Iterator[Import]:
    """Yield what the models of papers import, of modules whose name begins so."""
    return (f for f in inside() if f.module.startswith("streamdsl.papers.") and f.imported.startswith(imported))


PUBLIC: Final = ("", ".errors", ".pictures", ".temporal", ".udm", ".windows", ".windows.sequences")
"""The packages of the core whose `__all__` is its public interface."""
NOT_PUBLIC: Final = frozenset(
    {
        "streamdsl.denote.denote",
        "streamdsl.errors.shortened",
        "streamdsl.expr.predicates.check_function",
        "streamdsl.expr.predicates.holds",
        "streamdsl.expr.user_calls.call_function",
        "streamdsl.expr.describe.describe",
        "streamdsl.expr.facade.E",
        "streamdsl.expr.row_evaluator.evaluate_row",
        "streamdsl.expr.row_evaluator.to_plain_value",
        "streamdsl.expr.schema.as_payload",
        "streamdsl.expr.schema.row_view",
        "streamdsl.expr.tracing.trace",
        "streamdsl.io.binding.Bound",
        "streamdsl.plan.node.Group",
        "streamdsl.plan.node.GroupApply",
        "streamdsl.plan.node.Node",
        "streamdsl.plan.node.Select",
        "streamdsl.plan.node.Source",
        "streamdsl.plan.node.Where",
        "streamdsl.plan.node.WindowAggregate",
        "streamdsl.running.Times",
        "streamdsl.running.under",
        "streamdsl.temporal.display.Displayed",
        "streamdsl.temporal.display.scrolled",
        "streamdsl.temporal.html.columns",
        "streamdsl.temporal.html.table",
        "streamdsl.temporal.html.text",
        "streamdsl.temporal.integers.whole_number",
        "streamdsl.udm.bases.AnyUDA",
        "streamdsl.udm.builtin.Avg",
        "streamdsl.udm.builtin.Count",
        "streamdsl.udm.builtin.Max",
        "streamdsl.udm.builtin.Min",
        "streamdsl.udm.builtin.Sum",
        "streamdsl.udm.builtin.exact_sum",
        "streamdsl.udm.incremental.add",
        "streamdsl.udm.incremental.create",
        "streamdsl.udm.incremental.keeps_state",
        "streamdsl.udm.incremental.value",
        "streamdsl.udm.invoke.MemberRow",
        "streamdsl.udm.invoke.aggregate",
        "streamdsl.udm.invoke.empty_result",
        "streamdsl.udm.invoke.guarded",
        "streamdsl.udm.invoke.member_order",
        "streamdsl.windows.sequences.numbers.Given",
        "streamdsl.windows.sequences.numbers.exact",
        "streamdsl.windows.sequences.transposing.synchronous",
        "streamdsl.windows.sequences.view.Tuple",
    }
)
"""What the models of papers use of the core that is no public name of it. The list may get shorter, and no longer."""


def test_models_of_papers_use_the_public_interface_of_the_core_and_what_is_listed() -> None:
    modules = [import_module(f"streamdsl{name}") for name in PUBLIC]
    public = {id(getattr(module, name)) for module in modules for name in module.__all__}
    used = {(f.imported, f.name) for f in of_papers("streamdsl.") if room_of(f.imported) != "papers"}
    assert {
        f"{module}.{name}" for module, name in used if id(getattr(import_module(module), name, None)) not in public
    } == NOT_PUBLIC


def test_nothing_imports_the_demo_and_the_command_line() -> None:
    assert (users_of("demo"), users_of("cli"), users_of("__main__")) == ({"streamdsl.cli"}, {"streamdsl.__main__"}, set())


CYCLES: Final = {
    frozenset(
        {
            "streamdsl.plan.base",
            "streamdsl.plan.drawing",
            "streamdsl.plan.explain",
            "streamdsl.plan.json",
            "streamdsl.plan.json.constants",
            "streamdsl.plan.json.plan_reader",
            "streamdsl.plan.json.text",
            "streamdsl.plan.json.named_types",
            "streamdsl.plan.json.plan_writer",
            "streamdsl.plan.labels",
            "streamdsl.plan.node",
            "streamdsl.plan.nodes.combining",
            "streamdsl.plan.nodes.grouping",
            "streamdsl.plan.nodes.keyed",
            "streamdsl.plan.nodes.lifetimes",
            "streamdsl.plan.nodes.rows",
            "streamdsl.plan.nodes.origins",
            "streamdsl.plan.nodes.windowed",
            "streamdsl.plan.outputs",
            "streamdsl.plan.properties",
        }
    ): "a node is asked for itself as JSON and as a picture, which know every node",
    frozenset(
        {
            "streamdsl.papers.cql.relation",
            "streamdsl.papers.cql.batch_stream",
        }
    ): "windows make relations of streams, and relations make streams",
    frozenset(
        {
            "streamdsl.debugger",
            "streamdsl.debugger.absence",
            "streamdsl.debugger.event_trace",
            "streamdsl.debugger.moment",
            "streamdsl.debugger.running_moment",
            "streamdsl.debugger.recorder",
            "streamdsl.debugger.replaying",
            "streamdsl.debugger.reruns",
            "streamdsl.debugger.trace_page",
            "streamdsl.engine.query_session",
        }
    ): "a session is asked for its trace, and a trace answers by running sessions again",
    frozenset({"streamdsl.engine.attached", "streamdsl.engine.running_query"}): "a running query is joined by others, which run",
    frozenset({"streamdsl.expr.nested", "streamdsl.expr.table"}): "a table has columns, and a column may hold the rows of one",
}
"""The cycles of modules that there are if imports inside functions count, each with its reason."""


def test_modules_go_in_circles_only_where_it_is_listed() -> None:
    assert set(structure.cycles(structure.graph())) == CYCLES.keys()


def test_cycles_are_found() -> None:
    edges = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e", "f"], "e": ["d"], "f": ["f", "g"]}
    assert structure.cycles(edges) == [frozenset("abc"), frozenset("de")]


def test_the_structure_can_be_printed() -> None:
    text = "\n".join(structure.printed())
    assert [room for room in LAYERS if f"\n  {room} " not in text] == []
