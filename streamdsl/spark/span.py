"""Lowerings of span-based operators, and of those that follow the rows of a key: `to_edges`, `distinct`, `stitch`, ..."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from streamdsl.expr.nodes import Whole
from streamdsl.plan.node import (
    AlterLifetime,
    Calendar,
    Distinct,
    Match,
    Scan,
    Select,
    SelectMany,
    Source,
    Stitch,
    ToEdges,
    Union,
    Where,
)
from streamdsl.spark import stages
from streamdsl.spark.column_types import NONE, ColumnType, ListType, PickledType, RecordType, as_nullable, unify
from streamdsl.spark.expressions import convert_sql, infer, to_items, to_sql, to_test
from streamdsl.spark.flow import Flow, GroupScope, window_clause
from streamdsl.spark.inferred_types import item_type
from streamdsl.spark.lowering_context import LoweringContext
from streamdsl.spark.result_types import result_type
from streamdsl.spark.row_stage import Alter, Filter, Flatten, Reencode
from streamdsl.spark.sql_text import NotNative, integer
from streamdsl.temporal import common_unit


def where(low: LoweringContext, node: Where, scope: GroupScope) -> Flow:
    """The rows for which the predicate holds."""
    flow = low.lower(node.input, scope)
    try:
        test = to_test(node.predicate, scope.env(flow, low.label(node)))
    except NotNative as why:
        return stages.map_rows(low, node, flow, scope, Filter(node.predicate), why)
    low.note(node, "native")
    return flow.with_same_lifetimes(lambda df: df.where(test.text))


def select(low: LoweringContext, node: Select, scope: GroupScope) -> Flow:
    """Each row with the projection of its payload."""
    return stages.project(low, node, low.lower(node.input, scope), scope, node.projection)


def select_many(low: LoweringContext, node: SelectMany, scope: GroupScope) -> Flow:
    """For each row one row per item."""
    flow = low.lower(node.input, scope)
    env = scope.env(flow, low.label(node))
    try:
        items, kind = to_items(node.items, env)
    except NotNative as why:
        kind = item_type(infer(node.items, env))
        return stages.map_rows(low, node, flow, scope, Flatten(node.items), why, kind)
    low.note(node, "native")
    return flow.select(kind, p=f"explode({items})")


def alter_lifetime(low: LoweringContext, node: AlterLifetime, scope: GroupScope) -> Flow:
    """Each row with the lifetime that its ends are; an empty one drops it."""
    flow = low.lower(node.input, scope)
    env = scope.env(flow, low.label(node))
    ends = node.in_unit(flow.unit)
    try:
        le = to_sql(ends.le, env).text
        re = to_sql(ends.re, replace(env, starts=("le", "start"))).text
    except NotNative as why:
        return stages.map_rows(low, node, flow, scope, Alter(ends), why)
    low.note(node, "native")
    names = ["start as le", f"{re} as re", "p", *flow.key_columns]
    return flow.then(lambda df: df.selectExpr("*", f"{le} as start").selectExpr(*names).where("le < re"))


def to_edges(low: LoweringContext, node: ToEdges, scope: GroupScope) -> Flow:
    """Each row, clipped at the next strictly later LE of its key."""
    flow = low.lower(node.input, scope)
    keyed, column = stages.with_key(low, node, flow, scope, node.key)
    low.note(node, "native")
    later = window_clause([*flow.key_columns, *column], "le DESC", "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    ends = f"coalesce(min(le) {later}, 9223372036854775807L) as re"
    names = ["le", ends, "p", *flow.key_columns]
    return Flow.of(flow.type, flow.unit, lambda: keyed().selectExpr(*names), flow.keys)


def calendar(low: LoweringContext, node: Calendar, scope: GroupScope) -> Flow:
    """One row for each group, or for all rows."""
    low.note(node, "native")
    flow = low.lower(node.input, scope)
    start = "first" if node.start is None else integer(node.start)
    names = [f"{start} as le", f"{integer(node.end)} as re", "cast(null as boolean) as p", *flow.key_columns]

    def make() -> Any:
        first = flow.make().groupBy(*flow.key_columns).agg(expr("min(le) as first"))
        return first.selectExpr(*names).where("le < re")

    return Flow.of(NONE, flow.unit, make, flow.keys)


def distinct(low: LoweringContext, node: Distinct, scope: GroupScope) -> Flow:
    """Each payload once, for the union of its rows' lifetimes: a row after the end of all before it starts a piece."""
    flow = low.lower(node.input, scope)
    keyed, column = stages.with_key(low, node, flow, scope, Whole())
    low.note(node, "native")
    by = [*flow.key_columns, *column]
    before = window_clause(by, "le", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")
    number = f"sum(opens) {window_clause(by, 'le', 'RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW')}"

    def make() -> Any:
        opened = keyed().selectExpr("*", f"if(le <= max(re) {before}, 0L, 1L) as opens")
        pieces = opened.selectExpr("*", f"{number} as piece").groupBy(*by, "piece")
        found = pieces.agg(*map(expr, ("min(le) as first", "max(re) as last", "first(p) as p")))
        return found.selectExpr("first as le", "last as re", "p", *flow.key_columns)

    return Flow.of(flow.type, flow.unit, make, flow.keys)


def stitch(low: LoweringContext, node: Stitch, scope: GroupScope) -> Flow:
    """Rows with equal payloads whose lifetimes meet, as one; Python follows the chains of each payload."""
    flow = low.lower(node.input, scope)
    keyed, _ = stages.with_key(low, node, flow, scope, Whole())
    fragment = Stitch(Source("in", None, flow.unit))
    return stages.apply_groups(
        low, node, fragment, {"in": flow}, scope, "chains of rows are followed in Python", flow.type, [keyed]
    )


def scan(low: LoweringContext, node: Scan, scope: GroupScope) -> Flow:
    """The results of a stream operator over the rows of each group, or over all rows in one task."""
    flow = low.lower(node.input, scope)
    fragment = Scan(Source("in", None, flow.unit), node.module)
    out = flow.type if node.module.keeps_payloads else PickledType(result_type(node.module))
    return stages.apply_groups(low, node, fragment, {"in": flow}, scope, "a module follows the rows in Python", out)


def match(low: LoweringContext, node: Match, scope: GroupScope) -> Flow:
    """The matches of a pattern; Python follows the runs of each key."""
    flow = low.lower(node.input, scope)
    by = None if node.key is None else [stages.with_key(low, node, flow, scope, node.key)[0]]
    fragment = replace(node, input=Source("in", None, flow.unit), key=None)
    many = PickledType(ListType(flow.type, False))
    taken = (many if step.many else as_nullable(flow.type, step.optional) for step in node.steps)
    out = RecordType(node.schema, tuple(taken))
    return stages.apply_groups(low, node, fragment, {"in": flow}, scope, "runs of patterns are followed in Python", out, by)


def union(low: LoweringContext, node: Union, scope: GroupScope) -> Flow:
    """All rows of all inputs, as a bag."""
    low.note(node, "native")
    flows = low.align([low.lower(part, scope) for part in node.parts], scope)
    kind = unify([flow.type for flow in flows])
    parts = [as_type(low, node, flow, kind, scope) for flow in flows]
    make = lambda: reduce(DataFrame.unionByName, [part.make() for part in parts])  # noqa: E731
    return Flow.of(kind, common_unit(*(flow.unit for flow in flows)), make, flows[0].keys)


def as_type(low: LoweringContext, node: Union, flow: Flow, kind: ColumnType, scope: GroupScope) -> Flow:
    """Return the flow with its payloads converted to a type that can hold them."""
    if as_nullable(flow.type) == as_nullable(kind):
        return flow
    try:
        return flow.select(kind, p=convert_sql("p", flow.type, kind))
    except NotNative as why:
        return stages.map_rows(low, node, flow, scope, Reencode(), why, kind)
