"""Every operator of the algebra has a meaning, a way to run, a place on Spark or a declared absence, and a transcript."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

import streamdsl as sd
from streamdsl.denote import DENOTATIONS
from streamdsl.engine.frames import frame_class
from streamdsl.engine.frames.frame import Frame
from streamdsl.engine.lower import OPERATORS, named_operator
from streamdsl.engine.operator import Operator
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Field
from streamdsl.plan import node as algebra
from streamdsl.plan.json.named_types import KINDS
from streamdsl.plan.node import Group, GroupApply, Node, Source, WindowAggregate, Windowed
from streamdsl.spark.execution_notes import explain_spark
from streamdsl.spark.lower import LOWERINGS, MODULES
from streamdsl.spark.windowed import WINDOW_AGGREGATIONS
from streamdsl.stream import GroupedStream, GroupedWindowedStream, Stream, WindowedStream
from streamdsl.udm import builtin
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.windows import Grid, Snapshot
from tests import spark_matrix
from tests.operator_pages import FOLDER, SEMANTICS, families, pages, semantics, windows
from tests.operators import kinds
from tests.transcripts.test_transcripts import query
from tests.transcripts.transcript import transcripts

FACADES = [Stream, WindowedStream, GroupedStream, GroupedWindowedStream]
LEAVES = {Source, Group}
NODES = sorted(algebra.NODES, key=lambda cls: cls.__name__)


def nodes_of(plan: Node) -> set[type[Node]]:
    found = {type(node) for node in plan.walk()}
    return found.union(*(nodes_of(node.body) for node in plan.walk() if isinstance(node, GroupApply)))


@pytest.mark.parametrize(
    ("table", "nodes"),
    [(DENOTATIONS, NODES), (OPERATORS, [node for node in NODES if node not in LEAVES])],
    ids=["denotations", "engine operators"],
)
def test_the_tables_have_every_node_and_no_other(table: Mapping[type[Node], object], nodes: list[type[Node]]) -> None:
    assert {node.__name__ for node in table} == {node.__name__ for node in nodes}


@pytest.mark.parametrize("node", [node for node in NODES if node not in LEAVES])
def test_every_node_runs_by_an_operator_that_is_found_by_its_name(node: type[Node]) -> None:
    assert issubclass(named_operator(node), Operator)


def test_spark_says_of_every_operator_in_the_transcripts_how_it_runs_or_why_not() -> None:
    for transcript in transcripts().values():
        plan = query(transcript).plan()
        notes = explain_spark(plan)
        assert len(notes) >= len(list(plan.walk()))
        assert all(note.split()[0].strip(":,") in ("native", "Python", "unsupported") for note in notes.values()), notes


@pytest.mark.parametrize("node", NODES)
def test_node_says_what_it_means(node: type[Node]) -> None:
    assert inspect.getdoc(node) not in (None, inspect.getdoc(Node))


def test_every_node_has_a_transcript() -> None:
    shown = set().union(*(nodes_of(query(transcript).plan()) for transcript in transcripts().values()))
    assert [cls.__name__ for cls in NODES if cls not in shown] == []


def doc_of(cls: type, name: str) -> str:
    return inspect.getdoc(inspect.getattr_static(cls, name)) or ""


def test_every_operator_is_on_a_page_and_the_pages_are_those_of_the_docstrings() -> None:
    shown = {name for methods in families().values() for _, name in methods}
    methods = {name for facade in FACADES for name, _ in inspect.getmembers(facade, inspect.isfunction) if name[0] != "_"}
    assert methods - shown == set(), "an operator has an entry in tests/operators"
    assert {path: path.read_text() for path in FOLDER.iterdir()} == pages(), "run `make docs`"
    assert semantics(SEMANTICS.read_text()) == SEMANTICS.read_text(), "run `make docs`"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_windows_has_a_name_of_its_own_an_entry_and_a_frame(kind: str) -> None:
    of_kind = [(entry, each) for entry in kinds().values() for each, _ in entry.instances.values() if type(each).__name__ == kind]
    assert kind not in {node.__name__ for node in NODES}, "plans as JSON know operators and windows by the name of their class"
    assert of_kind, "a kind of windows has an entry in tests/operators"
    assert all(issubclass(frame_class(windows), Frame) for _, windows in of_kind)
    assert isinstance(of_kind[0][1], Grid) or any(entry.ctis for entry, _ in of_kind), "its entry says how far a CTI goes"


@dataclass(frozen=True, slots=True)
class Weekly(Snapshot):
    """A kind that no frame keeps."""


def test_a_kind_without_a_frame_is_refused_by_name() -> None:
    query = WindowAggregate(Source("s"), Weekly(), sd.Clip.NONE, sd.Output.ALIGN, (BoundAgg(builtin.Collect()),), Field("a0"))
    with pytest.raises(QueryError, match=r"(?s)kind test_completeness have no frame.*Hint: .*class TestCompletenessFrame"):
        sd.Stream(query).open()


LIFETIMES = ("rows", "order", "combining")
KEEPS_LIFETIMES = {"where", "select", "select_many", "scan", "multicast", "bind"}
DRAWN = re.compile(r"\n    .*(\[[-\w]+\)|\|)")


def test_every_operator_that_makes_lifetimes_shows_them_on_a_timeline() -> None:
    methods = [method for family in LIFETIMES for method in families()[family] if method[1] not in KEEPS_LIFETIMES]
    methods += [(Stream, name) for name in windows() if name != "tumbling_window"]
    assert [name for cls, name in methods if not DRAWN.search(doc_of(cls, name))] == []


@pytest.mark.parametrize("facade", FACADES)
def test_every_operator_of_the_facade_has_an_example_that_runs(facade: type) -> None:
    public = [method for name, method in inspect.getmembers(facade, inspect.isfunction) if not name.startswith("_")]
    assert [method.__qualname__ for method in public if ">>>" not in (inspect.getdoc(method) or "")] == []


def test_the_table_of_spark_is_that_of_the_code_and_has_everything_that_spark_lists() -> None:
    assert spark_matrix.written(spark_matrix.PAGE.read_text()) == spark_matrix.PAGE.read_text(), "run `make docs`"
    plans = spark_matrix.plans()
    shown_nodes = set().union(*map(nodes_of, plans), {Group, GroupApply})
    assert [cls.__name__ for cls in NODES if cls not in shown_nodes] == [], "a row says how it runs, or why it does not"
    assert set(LOWERINGS) <= set(NODES)
    assert set(WINDOW_AGGREGATIONS) == {
        type(node.windows) for plan in plans for node in plan.walk() if isinstance(node, Windowed)
    }
    assert {kind for kind in MODULES if not any(isinstance(each, kind) for each in spark_matrix.MODULES.values())} == set()
    shown = {type(each.function) for each in spark_matrix.AGGREGATES.values()}
    known = {cls for _, cls in inspect.getmembers(builtin, inspect.isclass) if cls.__module__ == builtin.__name__}
    assert known - shown == {builtin.AnyBuiltin, builtin.Builtin}
