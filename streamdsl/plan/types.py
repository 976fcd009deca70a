"""Type inference: the types of the fields of a plan's output, from declared classes, constants and scalar functions."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from streamdsl.expr.annotations import declared_type
from streamdsl.expr.nodes import Attribute, Choose, Constant, Expr, Field, Key, Life, Make, Whole, application
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Group, GroupApply, Join, Node, Scan, Select, Source, Union, WindowAggregate
from streamdsl.plan.nodes.combining import LeftRows
from streamdsl.plan.nodes.keyed import ByPayload
from streamdsl.udm import builtin
from streamdsl.udm.bound_agg import BoundAgg

Hints: TypeAlias = Mapping[str, Any]
"""Annotations by field; a field without one has an unknown type."""
_NONE: Final = type(None)
_KINDS: Final[Mapping[Any, str]] = {int: "int", float: "float", bool: "bool", str: "str", _NONE: "none"}
_CLASSES: Final[Mapping[str, Any]] = {kind: cls for cls, kind in _KINDS.items()}


def output_types(plan: Node) -> Hints:
    """Return the known types of the fields of a plan's output; values of any type may also be None.

    Types are those that are declared: a field declared as `float` may still hold an integer.

    >>> from dataclasses import make_dataclass
    >>> import streamdsl as sd
    >>> trips = sd.source("trips", make_dataclass("Trip", [("zone", str), ("fare", int)])).group_by("zone").tumbling_window(10)
    >>> output_types(trips.aggregate(total=sd.sum(lambda e: e.fare), mean=sd.avg(lambda e: e.fare)).plan())
    {'zone': <class 'str'>, 'total': <class 'int'>, 'mean': <class 'float'>}
    """
    found = _types(plan, {})
    return {name: hint for name, hint in found.items() if hint is not _NONE}


@dataclass(frozen=True, slots=True)
class _Around:
    """The environment of an expression: the types of the fields of each side, and of the group's key."""

    sides: Sequence[Hints]
    key: Any = None


def _types(plan: Node, groups: Mapping[int, Hints]) -> Hints:
    """Return the types of a plan's output; `groups` has the types of the rows of the enclosing groups, by level."""
    known: dict[int, Hints] = {}
    for node in plan.walk():
        known[id(node)] = _of_node(node, [known[id(each)] for each in node.inputs], groups)
    return known[id(plan)]


def _of_node(node: Node, given: Sequence[Hints], groups: Mapping[int, Hints]) -> Hints:
    match node:
        case Source(payload=schema):
            return {} if schema is None else _of_schema(schema)
        case Group(level=level):
            return groups.get(level, {})
        case Select(projection=projection):
            return _of_payload(projection, _Around(given))
        case Join(projection=Expr() as projection):
            return _of_payload(projection, _Around(given))
        case GroupApply(key=key, body=body, projection=projection):
            inside = _types(body, {**groups, node.input.level + 1: given[0]})
            return _of_payload(projection, _Around([inside], _of_expr(key, _Around(given))))
        case WindowAggregate(aggregates=aggregates, projection=projection):
            results = {f"a{place}": _of_aggregate(each, _Around(given)) for place, each in enumerate(aggregates)}
            return _of_payload(projection, _Around([{name: hint for name, hint in results.items() if hint is not None}]))
        case Union():
            return {name: hint for name, hint in given[0].items() if all(other.get(name) == hint for other in given[1:])}
        case Scan(module=module) if module.keeps_payloads:
            return given[0]
        case ByPayload() | LeftRows():
            return given[0]
        case _:
            return given[0] if node.passes_payload else {}


def _of_schema(schema: Schema) -> Hints:
    """Return the types that the payload class of a source declares."""
    kind = schema.kind
    found = {name: kind or declared_type(schema.cls, name) for name in schema.names}
    return {name: hint for name, hint in found.items() if hint is not None}


def _of_payload(projection: Expr, around: _Around) -> Hints:
    """Return the types of the fields of a projection's values."""
    if isinstance(projection, Whole):
        return around.sides[projection.side]
    if isinstance(projection, Make):
        found = {name: _of_expr(each, around) for name, each in zip(projection.schema.names, projection.values, strict=True)}
    else:
        found = {"value": _of_expr(projection, around)}
    return {name: hint for name, hint in found.items() if hint is not None}


def _of_expr(expr: Expr, around: _Around) -> Any:
    """Return the type of an expression's values, None if unknown."""
    known: dict[int, Any] = {}
    for part in expr.evaluated():
        known[id(part)] = _of_part(part, around, known)
    return known[id(expr)]


def _of_part(part: Expr, around: _Around, known: Mapping[int, Any]) -> Any:
    match part:
        case Field(name=name, side=side):
            return around.sides[side].get(name)
        case Whole(side=side):
            return around.sides[side].get("value") if len(around.sides[side]) == 1 else None
        case Life():
            return int
        case Key():
            return around.key
        case Constant(value=value):
            return type(value) if type(value) in _KINDS else None
        case Attribute(operand=operand, name=name):
            return declared_type(known[id(operand)], name)
        case Choose(branches=branches, otherwise=otherwise):
            return _common([*(known[id(value)] for _, value in branches), known[id(otherwise)]])
    applied = application(part)
    if applied is None:
        return None
    word, parts = applied
    kind = word.result([_KINDS.get(known[id(each)], "") for each in parts])
    return None if kind is None else _CLASSES[kind]


def _common(hints: Sequence[Any]) -> Any:
    """Return the single type among these, ignoring `NoneType`; None if they differ or one is unknown."""
    found = set(hints) - {_NONE}
    return found.pop() if len(found) == 1 else None if found else _NONE


def _of_aggregate(agg: BoundAgg, around: _Around) -> Any:
    gives = agg.function.gives if isinstance(agg.function, builtin.AnyBuiltin) else ""
    if gives in _CLASSES:
        return _CLASSES[gives]
    value = None if agg.argument is None else _of_expr(agg.argument, around)
    if gives == "V":
        return int if isinstance(agg.function, builtin.Sum) and value is bool else value
    if gives == "list[V]":
        return None if value is None else types.GenericAlias(list, (value,))
    bases = (base for cls in type(agg.function).__mro__ for base in vars(cls).get("__orig_bases__", ()))
    out = next((typing.get_args(base)[-1] for base in bases if typing.get_args(base)), None)
    return None if isinstance(out, typing.TypeVar) else out


__all__ = ["Hints", "output_types"]
