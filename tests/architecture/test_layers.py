"""The architecture, read from the source: who may import whom, and what a plan node must have everywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "streamdsl"

MODEL = {"errors", "extras", "temporal"}
VALUES = MODEL | {"expr", "windows", "udm"}
PLAN = VALUES | {"plan"}
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "extras": {"errors"},
    "temporal": {"errors"},
    "emit": MODEL,
    "expr": MODEL,
    "windows": MODEL,
    "udm": MODEL | {"expr", "windows"},
    "plan": VALUES,
    "rewrite": PLAN,
    "checks": PLAN | {"rewrite"},
    "result": MODEL,
    "io": PLAN | {"result"},
    "denote": PLAN | {"io", "result"},
    "engine": PLAN | {"emit", "io", "result", "rewrite"},
    "sinks": PLAN | {"io", "engine"},
    "spark": PLAN | {"emit", "io", "result", "rewrite", "engine", "denote", "sinks"},
    "viz": PLAN,
    "testing": PLAN,
    "papers": PLAN | {"io", "denote", "running", "sources", "stream"},
}
"""What each folder may import of the package: what stands to its left in the architecture. Other modules are the facade's."""


@dataclass(frozen=True)
class Import:
    """One import of a module of the package: at its top (`eager`), when a function is called, or for type checkers only."""

    module: str
    imported: str
    eager: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.module} imports {self.imported}"


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> list[Import]:
    return list(_imports(ast.parse(path.read_text()), module_name(path), eager=True, typing=False))


def _imports(node: ast.AST, module: str, eager: bool, typing: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(module, alias.name, eager, typing) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
            yield from (Import(module, _target(child.module, alias.name), eager, typing) for alias in child.names)
        else:
            guarded = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, module, eager and not inside, typing or guarded)


def _target(module: str, name: str) -> str:
    """Return the module that `from module import name` reads: `module.name` if that is a module itself."""
    path = PACKAGE.parent / Path(*module.split("."), name)
    return f"{module}.{name}" if path.with_suffix(".py").exists() or (path / "__init__.py").exists() else module


def folder_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports() -> list[Import]:
    return [found for path in FILES for found in imports_of(path)]


@cache
def inside() -> list[Import]:
    return [found for found in imports() if found.imported.split(".")[0] == "streamdsl"]


def test_no_relative_imports() -> None:
    relative = [path.name for path in FILES for node in ast.walk(ast.parse(path.read_text())) if getattr(node, "level", 0)]
    assert relative == []


def test_every_folder_is_placed_in_the_architecture() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - {"demo", "jobs", "sql"} <= LAYERS.keys()


@pytest.mark.parametrize("folder", LAYERS)
def test_folder_imports_only_what_stands_to_its_left(folder: str) -> None:
    allowed = LAYERS[folder] | {folder}
    eager = [found for found in inside() if folder_of(found.module) == folder and found.eager and not found.typing]
    assert [str(found) for found in eager if folder_of(found.imported) not in allowed] == []


def test_nothing_needs_the_second_reference() -> None:
    general = "streamdsl.engine.general"
    users = {found.module for found in inside() if found.imported.startswith(general) and not found.module.startswith(general)}
    assert users == set()


LATE = {
    ("streamdsl.result", "io"),
    ("streamdsl.testing.queries", "sources"),
}
"""Convenience methods that hand over to a module further right when they are called."""


def test_what_is_imported_late_from_further_right_is_listed() -> None:
    late = {
        (found.module, folder_of(found.imported))
        for found in inside()
        if (folder := folder_of(found.module)) in LAYERS
        and not found.eager
        and folder_of(found.imported) not in LAYERS[folder] | {folder}
    }
    assert late == LATE


def test_reference_and_engine_know_nothing_of_each_other() -> None:
    between = [f for f in inside() if {folder_of(f.module), folder_of(f.imported)} == {"denote", "engine"}]
    assert [str(found) for found in between] == []


def test_pyspark_is_imported_under_spark_only() -> None:
    outside = [f for f in imports() if f.imported.split(".")[0] == "pyspark" and folder_of(f.module) != "spark" and not f.typing]
    assert [str(found) for found in outside] == []
