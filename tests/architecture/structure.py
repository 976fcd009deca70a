"""The structure of the package, read from its source: `python -m tests.architecture.structure` prints it, or draws it."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "streamdsl"
FILES: Final = sorted(PACKAGE.rglob("*.py"))

MODEL: Final = {"redaction", "errors", "extras", "temporal", "pictures"}
VALUES: Final = MODEL | {"expr", "windows", "udm"}
PLAN: Final = VALUES | {"plan"}
CORE: Final[dict[str, set[str]]] = {
    "redaction": set(),
    "errors": {"redaction"},
    "extras": {"errors"},
    "temporal": {"errors"},
    "pictures": {"errors", "extras", "temporal"},
    "monitoring": MODEL,
    "emit": MODEL,
    "expr": MODEL,
    "windows": MODEL,
    "udm": MODEL | {"expr", "windows"},
    "plan": VALUES,
    "rewrite": PLAN,
    "result": MODEL,
    "io": PLAN | {"monitoring", "result"},
    "denote": PLAN | {"io", "result"},
    "engine": PLAN | {"emit", "io", "monitoring", "result", "rewrite"},
    "sinks": PLAN | {"io", "engine"},
    "spark": PLAN | {"emit", "io", "result", "rewrite", "engine", "denote", "sinks"},
    "testing": PLAN | {"monitoring"},
    "debugger": PLAN | {"emit", "io", "denote", "engine"},
}
FACADE: Final[dict[str, set[str]]] = {
    "aggregates": {"udm"},
    "functions": {"expr"},
    "missing": {"errors", "temporal"},
    "window": {"udm"},
    "building": PLAN,
    "running": PLAN | {"emit"},
    "query_timeline": PLAN | {"running"},
    "query_binding": PLAN | {"building", "running"},
    "pattern": PLAN | {"building"},
    "ranking": PLAN | {"building"},
    "stream": PLAN | {"building", "emit", "missing", "pattern", "ranking"},
    "sources": PLAN | {"stream"},
    "naming": {"errors", "stream", "udm"},
    "checks": PLAN | {"rewrite", "running", "stream", "naming"},
    "composing": PLAN | {"building", "running", "stream"},
}
BESIDE: Final[dict[str, set[str]]] = {
    "papers": PLAN | {"denote", "io", "running", "sources", "stream"},
    "astral": {"papers"},
    "cql": {"papers"},
    "progress": {"papers"},
    "secret": {"papers"},
    "sql": PLAN | {"aggregates", "papers", "stream"},
    "connect": PLAN | {"emit", "engine", "io", "monitoring", "running", "sinks", "stream"},
    "jobs": PLAN | {"connect", "emit", "engine", "io", "monitoring", "naming", "running", "sinks", "stream"},
    "moved": {"errors"},
    "installation": set(),
    "commands": {"emit", "errors", "extras", "installation", "jobs", "monitoring", "naming", "running", "temporal", "udm"},
    "streamdsl": CORE.keys() | FACADE.keys() | {"sql"},
    "demo": PLAN | {"installation", "io", "monitoring", "streamdsl", "testing"},
    "cli": {"commands", "errors", "extras", "jobs"},
    "__main__": {"cli"},
}
LAYERS: Final = CORE | FACADE | BESIDE
"""What each room may import of the package when it is imported: rooms before it. A room is a folder, or a module that is in none.

First the core, then its facade, whose methods open the rooms of the core when they are called, then what uses both.
"""


@dataclass(frozen=True)
class Import:
    """One import of a module of the package: at its top (`eager`), when a function is called, or for type checkers only."""

    module: str
    imported: str
    name: str
    eager: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.module} imports {self.imported}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".")[:2][-1]


def imports_of(path: Path) -> list[Import]:
    return list(_imports(ast.parse(path.read_text()).body, module_name(path), eager=True, typing=False))


def _imports(nodes: Iterable[ast.AST], module: str, eager: bool, typing: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(module, alias.name, "", eager, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (Import(module, *_target(node.module, alias.name), eager, typing) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _imports(node.body, module, eager, typing=True)
            yield from _imports(node.orelse, module, eager, typing)
        else:
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _imports(filter(_has_statements, ast.iter_child_nodes(node)), module, eager and not inside, typing)


def _has_statements(node: ast.AST) -> bool:
    """Say whether a node is a statement or a part of one that has others; no expression has imports in it."""
    return isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case))


@cache
def _target(module: str, name: str) -> tuple[str, str]:
    """Return the module that `from module import name` reads, and the name in it: `module.name` if that is a module itself."""
    path = ROOT / Path(*module.split("."), name)
    is_module = path.with_suffix(".py").exists() or (path / "__init__.py").exists()
    return (f"{module}.{name}", "") if is_module else (module, name)


@cache
def imports() -> list[Import]:
    return [found for path in FILES for found in imports_of(path)]


@cache
def inside() -> list[Import]:
    return [found for found in imports() if found.imported.split(".")[0] == "streamdsl"]


def graph() -> dict[str, set[str]]:
    """Return which modules each module imports when it runs, be it late."""
    found: dict[str, set[str]] = {module_name(path): set() for path in FILES}
    for each in inside():
        if not each.typing and each.imported != each.module:
            found[each.module].add(each.imported)
    return found


def cycles(edges: Mapping[str, Iterable[str]]) -> list[frozenset[str]]:
    """Return the strongly connected components of more than one node (R. Tarjan, 1972), the largest first."""
    number: dict[str, int] = {}
    least: dict[str, int] = {}
    path: list[str] = []
    found: list[frozenset[str]] = []

    def visit(node: str) -> None:
        number[node] = least[node] = len(number)
        path.append(node)
        for other in edges.get(node, ()):
            if other not in number:
                visit(other)
            if other in path:
                least[node] = min(least[node], least[other])
        if least[node] == number[node]:
            start = path.index(node)
            found.append(frozenset(path[start:]))
            del path[start:]

    for node in edges:
        if node not in number:
            visit(node)
    return sorted((each for each in found if len(each) > 1), key=lambda each: (-len(each), sorted(each)))


def printed() -> Iterator[str]:
    """Yield the lines of the structure as text."""
    lines = sizes()
    yield f"{sum(lines.values())} lines in {len(lines)} modules. A room imports rooms above it; late: when a function is called."
    for title, rooms in (("The core", CORE), ("Its facade", FACADE), ("Beside them", BESIDE)):
        yield f"\n{title}"
        for room in rooms:
            own = [module for module in lines if room_of(module) == room]
            eager, late = (imported_rooms(room, when) for when in (True, False))
            after = f"; late: {', '.join(sorted(late - eager))}" if late - eager else ""
            size = f"{sum(map(lines.__getitem__, own)):6} lines in {len(own):3}"
            yield f"  {room:11}{size}   {', '.join(sorted(eager, key=list(LAYERS).index)) or 'nothing'}{after}"
    for what, edges in (("late imports counted", graph()), ("at import", _at_import())):
        found = cycles(edges)
        yield f"\nCycles of modules, {what}: {', '.join(str(len(each)) for each in found) or 'none'}"
        yield from (f"  {len(each):2}  {', '.join(sorted(each))}" for each in found)


def sizes() -> dict[str, int]:
    """Return how many lines each module has."""
    return {module_name(path): len(path.read_text().splitlines()) for path in FILES}


def imported_rooms(room: str, eager: bool) -> set[str]:
    """Return what a room imports of others, when it is imported or later."""
    own = (each for each in inside() if room_of(each.module) == room and each.eager is eager and not each.typing)
    return {room_of(each.imported) for each in own} - {room}


def _at_import() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in inside():
        if each.eager and not each.typing and each.imported != each.module:
            found.setdefault(each.module, set()).add(each.imported)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the structure, or draw it."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture.structure", description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw it instead, into this file")
    file: Path | None = parser.parse_args(arguments).picture
    if file is None:
        print("\n".join(printed()))
    else:
        from tests.architecture.picture import drawing

        file.write_text(drawing())


if __name__ == "__main__":
    main()
