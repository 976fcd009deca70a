"""The encoder of plans: from operators and expressions to JSON values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import itemgetter
from types import UnionType
from typing import Any, get_args

from streamdsl.errors import QueryError
from streamdsl.expr.expression_functions import Udf
from streamdsl.expr.facade import invert
from streamdsl.expr.nodes import Expr, Opaque
from streamdsl.plan.base import Node
from streamdsl.plan.json.constants import constant
from streamdsl.plan.json.named_types import MODULES, TYPES
from streamdsl.udm.bases import UDM
from streamdsl.udm.repository import name_of
from streamdsl.windows.sequences.description import AnySequence


@dataclass(slots=True)
class PlanWriter:
    """The parts written so far, each once; `places` has their indices by `id()`, and `operator` names the one being written."""

    names: dict[int, str]
    parts: list[dict[str, Any]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    operator: str = "the plan"

    def value(self, value: Any) -> Any:
        """Return the JSON of a value."""
        if isinstance(value, (Node, Expr)):
            return {"$ref": self._part(value)}
        if type(value) is tuple:
            return [self.value(item) for item in value]
        if type(value).__name__ in TYPES and TYPES[type(value).__name__] is type(value):
            return self._fields(value)
        if isinstance(value, AnySequence):
            hint = "write it as linear(...), range_slide(...) or by another of the names without functions"
            raise self._refused(f"the window sequence of functions {value.describe()}", hint)
        if isinstance(value, UDM):
            return self._module(value)
        written = constant(value)
        if written is not None or value is None:
            return written
        if isinstance(value, (type, UnionType)):
            return {"$class": [f"{each.__module__}:{each.__qualname__}" for each in _classes(value)]}
        if callable(value):
            return self._function(value)
        raise self._refused(f"a {type(value).__name__}, {value!r}", "plans hold constants, expressions and modules")

    def _part(self, part: Node | Expr) -> int:
        if id(part) not in self.places:
            outer, self.operator = self.operator, self.names.get(id(part), self.operator)
            if isinstance(part, Opaque):
                raise self._refused(
                    f"the opaque lambda {part.name}",
                    "write it as an expression (see explain()), or register a function under @sd.udf",
                )
            self.parts.append(self._fields(part))
            self.places[id(part)], self.operator = len(self.parts) - 1, outer
        return self.places[id(part)]

    def _fields(self, value: Any) -> dict[str, Any]:
        if type(value).__name__ not in TYPES:
            raise self._refused(f"a {type(value).__name__}", "it is no operator of the algebra")
        return {"type": type(value).__name__} | {
            each.name: self.value(getattr(value, each.name)) for each in fields(value) if each.compare
        }

    def _module(self, module: UDM) -> dict[str, Any]:
        if MODULES.get(type(module).__name__) is type(module):
            return {"$module": type(module).__name__, "settings": {name: self.value(each) for name, each in vars(module).items()}}
        name = name_of(module)
        if name is not None:
            return {"$udm": name}
        name = name_of(type(module))
        given = None if name is None else _arguments(module)
        if name is None or given is None:
            raise self._refused(
                f"the module {module.label}",
                "register it: sd.udm.register(name, Module); each parameter needs an attribute of the same name"
                if getattr(module, "function", None) is None
                else "register the function under a name: sd.udm.register(name, function)",
            )
        return {"$udm": name, "parameters": {each: self.value(value) for each, value in given.items()}}

    def _function(self, function: Callable[..., Any]) -> dict[str, Any]:
        if function is invert:
            return {"$function": "~"}
        if isinstance(function, itemgetter):
            return {"$item": list(function.__reduce__()[1])}
        name = name_of(function) if isinstance(function, Udf) else None
        if name is None:
            raise self._refused(
                f"the function {getattr(function, '__name__', function)!r}", "register it: sd.udm.register(name, udf)"
            )
        return {"$udm": name}

    def _refused(self, what: str, hint: str) -> QueryError:
        return QueryError(f"{self.operator} holds {what}, which cannot be written as JSON", hint=hint)


def _arguments(module: UDM) -> dict[str, Any] | None:
    """Return arguments with which the module's class makes an equal module, None if its attributes do not have them."""
    names = inspect.signature(type(module)).parameters
    values = {name: getattr(module, name) for name in names if hasattr(module, name)}
    try:
        made = type(module)(**values)
    except TypeError:
        return None
    return values if made == module or (hasattr(made, "__dict__") and vars(made) == vars(module)) else None


def _classes(value: Any) -> tuple[Any, ...]:
    return get_args(value) if isinstance(value, UnionType) else (value,)
