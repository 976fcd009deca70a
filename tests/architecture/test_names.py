"""No two modules of the package have one name, and no two classes, unless they are the same thing for two parents."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import streamdsl

PACKAGE: Final = Path(streamdsl.__file__).parent
_KINDS: Final = ("windows", "engine.frames")
"""A kind of windows has one name everywhere: what it is, and its frame."""
_FAMILY: Final = "the operators of one family: what they are, what they mean, and how they run on Spark"
_FAMILIES: Final = ("plan.nodes", "denote", "spark")
_PAPER: Final = "a public name of a paper's model, which is the paper's word"
_SHORT: Final = "the short name of the package of a paper's models"

MODULES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "astral": (("", "papers"), _SHORT),
    "combining": (_FAMILIES, _FAMILY),
    "cql": (("", "papers"), _SHORT),
    "grouping": (_FAMILIES, _FAMILY),
    "lower": (("engine", "spark"), "the lowering of plans to an engine"),
    "nodes": (("expr", "plan"), "the nodes of expressions, and of plans"),
    "parameters": (("expr", "plan"), "the parameters of expressions, and of plans"),
    "secret": (("", "papers"), _SHORT),
    "sinks": (("", "spark"), "the sinks, and the same ones for Spark's micro-batches"),
    "span": (("denote", "engine.operators", "spark"), "the operators on single rows: what they mean, and how they run"),
    "windowed": (_FAMILIES, _FAMILY),
}
"""The names that several modules have: the packages in which they are, and what they have in common."""

CLASSES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "Batch": (("connect.protocols", "engine.batch"), "public name: what a source gives, beside a batch of changes"),
    "Source": (("connect.protocols", "plan.nodes.origins"), "public name: what a source of a query reads from"),
    "Count": (("udm.builtin", "windows.count"), "public names: the aggregate, and the kind of windows, which users call so"),
    "Changes": (("engine.batch", "papers.cql.relation_session"), _PAPER),
    "Operator": (("engine.operator", "papers.out_of_order.punctuated_operator"), _PAPER),
    "Session": (("engine.query_session", "windows.session"), "public names: a running query, and the kind of windows"),
    "WindowAggregate": (("papers.out_of_order.aggregate", "plan.nodes.windowed"), _PAPER),
    "Tuple": (("papers.out_of_order.items", "papers.secret.tuples"), _PAPER),
    "Joined": (("papers.out_of_order.items", "papers.secret.join_simulation"), _PAPER),
    "Union": (("papers.out_of_order.punctuated_union", "plan.nodes.combining"), _PAPER),
    "Step": (("papers.secret.simulation", "pattern"), _PAPER),
    "Grid": (("papers.secret.start", "windows.grid"), _PAPER),
    "Timeline": (("papers.cql.group_timeline", "pictures.timeline_picture"), _PAPER),
    "DatabaseTable": (("sinks.database", "spark.sinks"), "the sink, and the same for Spark's micro-batches"),
    "DeltaEvents": (("sinks.delta", "spark.sinks"), "the sink, and the same for Spark's micro-batches"),
    "IcebergEvents": (("sinks.iceberg", "spark.sinks"), "the sink, and the same for Spark's micro-batches"),
    "ParquetEvents": (("sinks.event_files", "spark.sinks"), "the sink, and the same for Spark's micro-batches"),
    "ParquetTable": (("sinks.table_files", "spark.sinks"), "the sink, and the same for Spark's micro-batches"),
}
"""The names that several classes have: the modules in which they are, and what they have in common."""


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the dotted name of each module and package, without that of the whole package, and its file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and parts[-1] != "__main__":
            yield ".".join(parts), path


def module_places() -> dict[str, list[str]]:
    """Return the packages in which there is a module of each name."""
    found = defaultdict(list)
    for dotted, _ in modules():
        package, _, name = dotted.rpartition(".")
        found[name].append(package)
    return found


@cache
def class_places() -> dict[str, list[str]]:
    """Return the modules in which there is a class of each name."""
    found = defaultdict(list)
    for dotted, path in modules():
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.ClassDef):
                found[each.name].append(dotted)
    return found


def several(found: Mapping[str, list[str]], listed: Mapping[str, tuple[tuple[str, ...], str]]) -> dict[str, list[str]]:
    """Return the names that are in several places, of which one at least is not listed, with their places."""
    return {
        name: places
        for name, places in found.items()
        if len(places) > 1 and not any(set(places) <= {*known} for known in (_KINDS, listed.get(name, ((), ""))[0]))
    }


def once(found: Mapping[str, list[str]], listed: Mapping[str, tuple[tuple[str, ...], str]]) -> list[str]:
    """Return the names that are listed, and in one place at most."""
    return [name for name in listed if len(found.get(name, ())) < 2]


def test_no_two_modules_have_one_name() -> None:
    assert several(module_places(), MODULES) == {}, "rename one, or list in MODULES what they have in common"


def test_no_two_classes_have_one_name() -> None:
    assert several(class_places(), CLASSES) == {}, "rename one, or list in CLASSES what they have in common"


def test_the_listed_names_are_in_several_places() -> None:
    assert once(module_places(), MODULES) == []
    assert once(class_places(), CLASSES) == []
