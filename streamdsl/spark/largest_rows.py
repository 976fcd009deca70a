"""The lowering of `top_k`: the members of windows by rank, most of which Spark drops before rows are exchanged."""

from __future__ import annotations

from typing import Any, NamedTuple

from streamdsl.expr.nodes import Expr, Make
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import WindowApply
from streamdsl.spark.column_types import INT, ColumnType, PickledType, RecordType, is_comparable
from streamdsl.spark.expressions import Env, infer, to_sql
from streamdsl.spark.flow import Flow, window_clause
from streamdsl.spark.result_types import result_type
from streamdsl.spark.sql_text import NotNative, struct
from streamdsl.spark.window_members import members
from streamdsl.udm.top_k import TopK


class _Ranked(NamedTuple):
    """The operator `top_k` with its argument: the value by which it ranks, and the row that it gives."""

    module: TopK
    value: Expr
    row: Expr

    def type(self, row: ColumnType) -> ColumnType:
        return RecordType(Schema.tuple(2), (INT, row)) if self.module.rank else row


def operator_type(node: WindowApply, env: Env) -> ColumnType:
    """Return the type of an operator's results: what it declares, or of `top_k` that of its rows."""
    ranked = _ranked(node)
    return PickledType(result_type(node.module)) if ranked is None else ranked.type(infer(ranked.row, env))


def largest(node: WindowApply, flow: Flow, env: Env, until: int) -> Flow:
    """Return the largest rows of each window, for the window's lifetime; raises `NotNative` for any other operator."""
    ranked = _ranked(node)
    if ranked is None:
        raise NotNative(f"{node.module.label} is Python code")
    module, keys = ranked.module, flow.key_columns
    value, row = to_sql(ranked.value, env), to_sql(ranked.row, env)
    if not is_comparable(value.type):
        raise NotNative("values of this type are ranked in Python")
    divided = members(node.windows, keys, until, flow.unit)
    payload = struct(("cast(place as bigint)", "row")) if module.rank else "row"
    place = f"rank() {window_clause([*keys, 'wle'], 'value DESC')} as place"

    def made(df: Any) -> Any:
        rows = divided(df).selectExpr("wle", "wre", *keys, f"{value.text} as value", f"{row.text} as row")
        first = rows.where("value IS NOT NULL").selectExpr("*", place).where(f"place <= {module.k}")
        return first.selectExpr("wle as le", "wre as re", f"{payload} as p", *keys)

    return flow.then(made, ranked.type(row.type))


def _ranked(node: WindowApply) -> _Ranked | None:
    """Return `top_k` with its argument; None for other operators, and for an argument that is no pair."""
    pair = node.argument
    if not isinstance(node.module, TopK) or not isinstance(pair, Make) or pair.schema != Schema.tuple(2):
        return None
    return _Ranked(node.module, *pair.values)
