"""The names that a plan's text may use: the types of a plan's values, and the built-in modules."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from inspect import isabstract, signature
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from streamdsl import udm, windows
from streamdsl.expr import nodes as expressions
from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nodes import Expr, Opaque
from streamdsl.expr.schema import Schema, Shape
from streamdsl.plan.asof import Nearness
from streamdsl.plan.node import NODES, Matching
from streamdsl.plan.outputs import Outputs
from streamdsl.plan.pattern_steps import PatternStep
from streamdsl.temporal import LifetimeColumns, Progress
from streamdsl.udm.bases import UDM, AnyUDA, AnyUDO
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.udm.builtin import Builtin
from streamdsl.windows import Clip, Output, Windows
from streamdsl.windows.sequences.named import LastN, Linear, Sliding


def _of(module: Any, base: type) -> list[type]:
    found = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, base)]
    return [each for each in found if each is not base and not isabstract(each)]


def _in(package: ModuleType, base: type) -> list[type]:
    """Return the classes of a package that are no bases, whether the package exports them or not."""
    modules = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    return [each for module in modules for each in _of(module, base) if each.__module__.startswith(package.__name__)]


KINDS: Final[dict[str, type[Windows]]] = {each.__name__: each for each in _in(windows, Windows)}
"""The kinds of windows, by the names of their classes."""
TYPES: Final[dict[str, type]] = {
    each.__name__: each
    for each in (
        *NODES,
        *_of(expressions, Expr),
        *KINDS.values(),
        *(Linear, LastN, Sliding),
        *(Outputs, Matching, Nearness, PatternStep, BoundAgg, Schema, Progress, LifetimeColumns),
    )
    if each is not Opaque
}
"""The types of a plan's values, by name. `Opaque` is left out: it holds arbitrary Python code."""
ENUMS: Final[dict[str, type[Enum]]] = {each.__name__: each for each in (Clip, Output, Shape)}
_BASES: Final = (AnyUDA, AnyUDO, Builtin)
MODULES: Final[dict[str, type[UDM]]] = {
    each.__name__: each for each in _in(udm, UDM) if each not in _BASES and "function" not in signature(each).parameters
}
"""The built-in modules, which are written with their settings. Those that wrap a function of the query are left out."""
PLAIN_TYPES: Final[dict[str, Any]] = {getattr(each, "__name__", ""): each for each in (*IMMUTABLE, object)}
