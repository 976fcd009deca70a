"""Lowering of group-apply: the key becomes a column that every grouping, window and join of the body keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.plan.node import Group, GroupApply, Node, Source
from streamdsl.spark import stages
from streamdsl.spark.column_types import ColumnType, PickledType, is_native, known_type
from streamdsl.spark.expressions import Env, PayloadRef, infer, to_sql
from streamdsl.spark.flow import Flow, GroupKey, GroupScope
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.sql_text import NotNative, Sql


def group(low: LoweringContext, node: Group, scope: GroupScope) -> Flow:
    """The rows of the enclosing group."""
    return scope.groups[node.level]


def group_apply(low: LoweringContext, node: GroupApply, scope: GroupScope) -> Flow:
    """The results of the body for every group, with the projection of the group's key and the body's payload."""
    flow = low.lower(node.input, scope)
    try:
        key = _key(node, scope.env(flow, low.label(node)))
    except NotNative as why:
        return _in_python(low, node, flow, scope, why)
    low.note(node, "native")
    level = node.input.level + 1
    inside = _inside(flow, GroupKey(level, key.type), key, scope)
    body = low.broadcast(low.lower(node.body, inside), inside.groups[level].keys, inside)
    made = stages.project(low, node, body, inside, node.projection, "its projection: ", node.body.schema)
    return _outside(made, level)


def _key(node: GroupApply, env: Env) -> Sql:
    key = to_sql(node.key, env)
    if not is_native(key.type):
        raise NotNative("its keys are Python objects")
    return key


def _inside(flow: Flow, key: GroupKey, value: Sql, scope: GroupScope) -> GroupScope:
    """Return the scope of the body, in which the rows have their key as a column."""
    columns = [*flow.columns, f"{value.text} as {key.column}"]
    rows = flow.with_same_lifetimes(lambda df: df.selectExpr(*columns)).with_keys((*flow.keys, key))
    return GroupScope({**scope.groups, key.level: rows}, key.level)


def _outside(flow: Flow, level: int) -> Flow:
    """Return the rows without the key column of a group, at its end."""
    keys = tuple(key for key in flow.keys if key.level != level)
    columns = ["le", "re", "p", *(key.column for key in keys)]
    return flow.then(lambda df: df.selectExpr(*columns)).with_keys(keys)


def _in_python(low: LoweringContext, node: GroupApply, flow: Flow, scope: GroupScope, why: object) -> Flow:
    """Run the whole group-apply in Python: one call per key, as Python compares keys; one task if the body reads other inputs."""
    key = _type_of_key(low, node, flow, scope)
    body = _type_of_body(low, node, flow, scope, key)
    others = _others(low, node, scope)
    own = "in" + "'" * len(others)
    for below in node.body.walk_all():
        low.rules(low, below)
        low.note(below, "groups", f"inside {low.label(node)}")
    fragment = dataclasses.replace(node, input=Source(own, None, flow.unit), body=_alone(node.body, node.input.level + 1))
    out = infer(node.projection, Env((PayloadRef(body),), key=key, operator=low.label(node)))
    by = None if others else [stages.with_python_key(low, node, flow, node.key)]
    return stages.apply_groups(low, node, fragment, {own: flow, **others}, scope, why, out, by)


def _type_of_key(low: LoweringContext, node: GroupApply, flow: Flow, scope: GroupScope) -> Sql:
    """Return a key that Python computes, of which no more than the type is known."""
    kind = infer(node.key, scope.env(flow, low.label(node)))
    return Sql("null", PickledType(known_type(kind), origin=getattr(kind, "origin", "")))


def _type_of_body(low: LoweringContext, node: GroupApply, flow: Flow, scope: GroupScope, key: Sql) -> ColumnType:
    """Return the type of what the body gives, which is the same however it runs: it is lowered for the sake of its type."""
    try:
        return low.lower(node.body, _inside(flow, GroupKey(node.input.level + 1, key.type), key, scope)).type
    except UnsupportedOnSpark:  # one by one its operators do not run, in Python they may
        return PickledType()


def _others(low: LoweringContext, node: GroupApply, scope: GroupScope) -> Mapping[str, Flow]:
    """Return the other inputs of the body: sources by name, enclosing groups by level."""
    own, found = node.input.level + 1, {}
    for below in node.body.walk_all():
        if isinstance(below, Source):
            found[below.source] = low.lower(below, scope)
        elif isinstance(below, Group) and below.level < own and below.level in scope.groups:
            found[_outer(below)] = scope.groups[below.level]
    return found


def _outer(node: Group) -> str:
    return f"group {node.level}"


def _alone(node: Node, own: int) -> Node:
    """Return a body as that of an outermost group-apply: enclosing groups become sources, its own group has level 0."""
    if isinstance(node, Group):
        outer = node.level < own
        return Source(_outer(node), None, node.time_unit) if outer else dataclasses.replace(node, level=node.level - own)
    return node.map_below(lambda below: _alone(below, own))
