"""Plans as JSON text and back: one mechanism for all values of a plan, field by field, each type by its name.

A plan is a list of parts (operators and expressions), each over earlier ones, so that what is shared stays shared. Nothing is
unpickled or imported: a name in the text stands for one of the types below, for a module of the repository (`sd.udm`), or for a
class that the reader gives.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, Final, get_args
from zoneinfo import ZoneInfo

from streamdsl.errors import QueryError
from streamdsl.expr import nodes as expressions
from streamdsl.expr.facade import invert
from streamdsl.expr.functions import Udf
from streamdsl.expr.nodes import Expr, Opaque
from streamdsl.expr.schema import Schema, Shape
from streamdsl.expr.vocabulary import IMMUTABLE
from streamdsl.plan import node as algebra
from streamdsl.plan.base import Node
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Matching
from streamdsl.plan.outputs import Outputs
from streamdsl.plan.wellformed import misfits
from streamdsl.temporal import Progress
from streamdsl.udm import builtin
from streamdsl.udm.aggregates import BoundAgg
from streamdsl.udm.bases import UDM
from streamdsl.udm.repository import name_of, repository
from streamdsl.udm.top_k import TopK
from streamdsl.windows import Clip, Count, Hopping, Output, Session, Snapshot

VERSION: Final = 1
"""The version of the text; a reader takes only its own."""
FORMAT: Final = "streamdsl plan"


def _of(module: Any, base: type) -> list[type]:
    return [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, base) and each is not base]


_ABSTRACT: Final = {algebra.TwoInputs, algebra.Windowed, Opaque}
TYPES: Final[dict[str, type]] = {
    each.__name__: each
    for each in (
        *_of(algebra, Node),
        *_of(expressions, Expr),
        *(Outputs, Matching, BoundAgg, Schema, Progress, Hopping, Snapshot, Count, Session),
    )
    if each not in _ABSTRACT
}
"""The types of a plan's values, by their names."""
ENUMS: Final[dict[str, type[Enum]]] = {each.__name__: each for each in (Clip, Output, Shape)}
MODULES: Final[dict[str, type[UDM]]] = {
    each.__name__: each for each in (*_of(builtin, builtin.Builtin), builtin.TimeWeightedAvg, TopK)
}
"""The modules of the package, which are written with their settings."""
_PLAIN_TYPES: Final[dict[str, Any]] = {getattr(each, "__name__", ""): each for each in (*IMMUTABLE, object)}


def to_json(plan: Node) -> str:
    """Return a plan as JSON text; raises `QueryError` for what has no text, such as an opaque lambda.

    >>> from streamdsl.plan.node import Shift, Source
    >>> print(to_json(Shift(Source("trips"), 5)))  # doctest: +ELLIPSIS
    {
     "format": "streamdsl plan",
     "version": 1,
     "parts": [
      {"type": "Source", "source": "trips", "payload": null, "time_unit": null, "progress": null, "on_violation": "error"},
      {"type": "Shift", "input": {"$ref": 0}, "duration": 5}
     ],
     "output": {"$ref": 1}
    }
    """
    writer = _Writer(labels(plan))
    output = writer.value(plan)
    parts = ",\n  ".join(json.dumps(part, allow_nan=False) for part in writer.parts)
    return (
        f'{{\n "format": {json.dumps(FORMAT)},\n "version": {VERSION},\n "parts": [\n  {parts}\n ],\n'
        f' "output": {json.dumps(output)}\n}}'
    )


@dataclass(slots=True)
class _Writer:
    """The parts that are written so far, and where each is."""

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
        if isinstance(value, UDM):
            return self._module(value)
        written = _constant(value)
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
                "register it: sd.udm.register(name, Module); its parameters are what its attributes of the same names say"
                if getattr(module, "function", None) is None
                else "a module that is a function is registered by a name: sd.udm.register(name, function)",
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
    """Return what a module's class is called with to make the like; None if its attributes do not say."""
    names = inspect.signature(type(module)).parameters
    values = {name: getattr(module, name) for name in names if hasattr(module, name)}
    try:
        made = type(module)(**values)
    except TypeError:
        return None
    return values if made == module or (hasattr(made, "__dict__") and vars(made) == vars(module)) else None


def _classes(value: Any) -> tuple[Any, ...]:
    return get_args(value) if isinstance(value, UnionType) else (value,)


def _constant(value: Any) -> Any:
    """Return the JSON of a constant, None for what is none."""
    if type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Enum):
        return {"$enum": [type(value).__name__, value.name]} if type(value).__name__ in ENUMS else None
    found = next((name for name, (kind, _, _) in _CONSTANTS.items() if type(value) is kind), None)
    return None if found is None else {f"${found}": _CONSTANTS[found][1](value)}


def _zone(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        return [_parts(offset), *name]
    raise QueryError(
        f"the time zone {zone!r} cannot be written as JSON", hint="datetime.timezone, or zoneinfo.ZoneInfo by its key"
    )


def _in_zone(found: Any) -> tzinfo | None:
    if isinstance(found, list):
        (days, seconds, microseconds), *name = found
        return timezone(timedelta(days, seconds, microseconds), *name) if any(found[0]) or name else UTC
    return None if found is None else ZoneInfo(found)


def _parts(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _clock(value: datetime | time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, _zone(value.tzinfo), value.fold]


def _from_clock(make: Callable[..., Any], *parts: Any) -> Any:
    *numbers, zone, fold = parts
    return make(*numbers, tzinfo=_in_zone(zone), fold=fold)


_CONSTANTS: Final[dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), lambda text: base64.b64decode(text, validate=True)),
    "datetime": (datetime, lambda v: [v.year, v.month, v.day, *_clock(v)], lambda parts: _from_clock(datetime, *parts)),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, _clock, lambda parts: _from_clock(time, *parts)),
    "timedelta": (timedelta, _parts, lambda parts: timedelta(*parts)),
    "timezone": (timezone, _zone, _in_zone),
    "Decimal": (Decimal, str, Decimal),
    "Fraction": (Fraction, str, Fraction),
}
"""Constants that JSON has no form for: their type, how they are written, and how they are read."""


def from_json(text: str, classes: Iterable[type] = ()) -> Node:
    """Return the plan that a text holds: equal to the one that was written, and sharing what that shared.

    `classes` are the payload classes that the text may name. Nothing is imported or unpickled; modules come from the repository
    by name. Raises `QueryError` for another version, and for whatever the text holds that is no plan.

    >>> from streamdsl.plan.node import Shift, Source
    >>> from_json(to_json(Shift(Source("trips"), 5))) == Shift(Source("trips"), 5)
    True
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _no_plan(f"it is no JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _no_plan(f'it has no "format": "{FORMAT}"')
    if found.get("version") != VERSION:
        raise QueryError(
            f"the text holds a plan of version {found.get('version')}, and this is streamdsl with version {VERSION}",
            hint="write it again with this version, or read it with the one that wrote it",
        )
    if not isinstance(found.get("parts"), list) or "output" not in found:
        raise _no_plan('it has no "parts" and "output"')
    reader = _Reader({f"{each.__module__}:{each.__qualname__}": each for each in classes})
    for part in found["parts"]:
        reader.parts.append(reader.object(part))
    plan = reader.value(found["output"])
    if not isinstance(plan, Node):
        raise _no_plan(f"its output is no operator but {plan!r}")
    return plan


def _no_plan(what: str) -> QueryError:
    return QueryError(f"the text holds no plan: {what}", hint="plan.to_json() writes one")


@dataclass(slots=True)
class _Reader:
    """The parts that are read so far, and the classes that the text may name."""

    classes: Mapping[str, type]
    parts: list[Any] = field(default_factory=list)

    def value(self, found: Any) -> Any:
        """Return the value that JSON holds."""
        if isinstance(found, list):
            return tuple(map(self.value, found))
        if not isinstance(found, dict):
            return found
        if "type" in found:
            return self.object(found)
        special = next(iter(found), "")
        try:
            return self._special(special, found)
        except QueryError:
            raise
        except (TypeError, ValueError, KeyError, ArithmeticError) as error:
            raise self._wrong(f"{found!r} cannot be read: {error}") from None

    def object(self, found: Any) -> Any:
        """Return the operator, expression or other value of a plan that JSON holds."""
        if not isinstance(found, dict) or not isinstance(found.get("type"), str):
            raise self._wrong(f"{found!r} has no type")
        cls = TYPES.get(found["type"])
        if cls is None:
            raise self._wrong(
                f"there is no {found['type']!r}; there are: {', '.join(sorted(TYPES))}",
                hint="a later streamdsl may have written it",
            )
        values = {name: self.value(each) for name, each in found.items() if name != "type"}
        wrong = misfits(cls, values)
        if wrong:
            raise self._wrong(f"a {found['type']} does not fit: {wrong}")
        return cls(**values)

    def _special(self, special: str, found: dict[str, Any]) -> Any:
        held = found.get(special)
        if special == "$ref":
            if type(held) is not int or not 0 <= held < len(self.parts):
                raise self._wrong(f"{held!r} is no part before it")
            return self.parts[held]
        if special == "$float":
            return float(str(held))
        if special == "$enum":
            kind, name = held  # type: ignore[misc]
            return ENUMS[kind][name]
        if special == "$class":
            return self._class(held)
        if special == "$module":
            return self._made(MODULES[str(held)], found.get("settings", {}))
        if special == "$udm":
            return self._registered(str(held), found.get("parameters"))
        if special == "$function" and held == "~":
            return invert
        if special == "$item":
            return itemgetter(*held)  # type: ignore[misc]
        return _CONSTANTS[special.removeprefix("$")][2](held)

    def _made(self, cls: type, settings: dict[str, Any]) -> Any:
        values = {name: self.value(each) for name, each in settings.items()}
        names = inspect.signature(cls).parameters
        made: Any = cls(**{name: values[name] for name in names})
        if vars(made) != values:
            raise self._wrong(f"{cls.__name__} has no settings {values!r}")
        return made

    def _registered(self, name: str, parameters: Any) -> Any:
        return repository.get(name, **{each: self.value(value) for each, value in (parameters or {}).items()})

    def _class(self, names: Any) -> Any:
        union: Any = None
        for name in names:
            found = self._one_class(name)
            union = found if union is None else union | found
        return union

    def _one_class(self, name: str) -> Any:
        module, _, short = name.partition(":")
        if module in ("builtins", "datetime", "decimal", "fractions") and short in (*_PLAIN_TYPES, "NoneType"):
            return _PLAIN_TYPES.get(short, NoneType)
        if name not in self.classes:
            raise self._wrong(
                f"it names the class {name}, which is not among the classes given: {', '.join(self.classes) or '(none)'}",
                hint=f"nothing is imported: sd.plan_from_json(text, classes=[{short}])",
            )
        return self.classes[name]

    def _wrong(self, what: str, hint: str | None = None) -> QueryError:
        return QueryError(f"part {len(self.parts)} of the plan cannot be read: {what}", hint=hint)
