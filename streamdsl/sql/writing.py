"""Writing plans as SQL, as far as the language can express them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.nodes import Binary, Choose, Constant, Expr, Field, Function, Make, Unary, is_boolean
from streamdsl.expr.schema import Shape
from streamdsl.plan.end_expressions import LE
from streamdsl.plan.node import (
    AlterLifetime,
    Distinct,
    Group,
    GroupApply,
    Join,
    Node,
    Select,
    Source,
    Union,
    Where,
    WindowAggregate,
    to_points_at_end,
)
from streamdsl.sql.grammar import quoted
from streamdsl.temporal import INFINITY
from streamdsl.temporal.identifiers import snake
from streamdsl.temporal.time import CHRONON
from streamdsl.udm import builtin
from streamdsl.udm.bound_agg import BoundAgg
from streamdsl.windows import Clip, Hopping, Output, Session, Snapshot

_SAME: Final = ("+", "-", "*", "/", "%", "<", "<=", ">", ">=")
_SIGNS: Final = {"&": "AND", "|": "OR", "==": "=", "!=": "<>", **dict(zip(_SAME, _SAME, strict=True))}
_AGGREGATES: Final[Mapping[type, str]] = {
    kind: name for name, kind in builtin.BUILTINS.items() if name not in ("count_distinct", "quantile")
}
_CASTS: Final = {"int": "INT", "float": "FLOAT", "str": "TEXT", "bool": "BOOL"}
Texts = Callable[[Field], str]


def written(node: Node) -> str:
    """Return a plan as a query in SQL; raises `QueryError` for a plan that the language cannot express.

    >>> import streamdsl as sd
    >>> trips = sd.source("trips", unit="tick").where(lambda e: e.fare > 5)
    >>> written(trips.group_by("zone").tumbling_window(10).aggregate(n=sd.count()).plan())
    'SELECT zone, count(*) AS n FROM (SELECT * FROM trips WHERE fare > 5) AS t GROUP BY zone, TUMBLE(10)'
    """
    match node:
        case Source(source=name):
            return f"SELECT * FROM {quoted(name)}"
        case Where(input=below, predicate=predicate):
            return f"SELECT * FROM {_from(below)} WHERE {_value(predicate)}"
        case Select(input=below, projection=Make(schema=schema) as made) if schema.shape is Shape.RECORD:
            return f"SELECT {_items(made, _value)} FROM {_from(below)}"
        case Union(inputs=inputs):
            if len({each.schema.names for each in inputs if each.schema is not None and each.schema.names}) > 1:
                raise _unsaid("a union of rows with different fields")
            return " UNION ALL ".join(f"({written(each)})" for each in inputs)
        case AlterLifetime(input=below) if node == to_points_at_end(below):
            return f"DSTREAM ({written(below)})"
        case AlterLifetime(input=below, le=start) if start == LE and node.ends.duration is not None:
            return _lived(below, node.ends.duration)
        case Distinct(input=below):
            return f"SELECT DISTINCT * FROM {_from(below)}"
        case WindowAggregate(input=below):
            return f"SELECT {_aggregates(node)} FROM {_from(below)} GROUP BY {_window(node)}"
        case GroupApply(input=below, key=key, body=WindowAggregate(input=Group()) as body):
            return _grouped(below, key, body, node.projection)
        case Join(projection=Make(schema=schema)) if schema.shape is Shape.RECORD and node.matching.where is None:
            return _joined(node)
    raise _unsaid(snake(node.name))


def _unsaid(what: str, hint: str = "") -> QueryError:
    return QueryError(
        f"there is no SQL for {what}",
        hint=hint or "docs/sql.md lists what SQL can express; query.plan().to_json() encodes any plan for other tools",
    )


def _from(node: Node) -> str:
    return quoted(node.source) if isinstance(node, Source) else f"({written(node)}) AS t"


def _lived(below: Node, length: Any) -> str:
    if length == CHRONON:
        return f"ISTREAM ({written(below)})"
    if not isinstance(below, Source):
        raise _unsaid("a duration of rows that are not a source's")
    extent = "UNBOUNDED" if length == INFINITY else f"{length}"
    return f"SELECT * FROM {quoted(below.source)} [RANGE {extent}]"


def _window(node: WindowAggregate) -> str:
    if node.clip is not Clip.NONE or node.output is not Output.ALIGN:
        raise _unsaid("windows with input clipping, or with other lifetimes of results than the window's")
    match node.windows:
        case Hopping(size, hop, offset):
            rest = [offset] if offset else []
            return f"TUMBLE({_list([size, *rest])})" if size == hop else f"HOP({_list([size, hop, *rest])})"
        case Session(gap, longest):
            return f"SESSION({_list([gap, *([] if longest is None else [longest])])})"
        case Snapshot():
            return "SNAPSHOT()"
    raise _unsaid(f"windows of the kind {node.windows.kind}")


def _aggregates(node: WindowAggregate) -> str:
    projection = node.projection
    if not isinstance(projection, Make) or projection.schema.shape is not Shape.RECORD:
        raise _unsaid("an aggregate whose result is not a record")
    found = {f"a{place}": _aggregate(agg) for place, agg in enumerate(node.aggregates)}
    return _items(projection, lambda expr: _value(expr, lambda field: found[field.name]))


def _aggregate(agg: BoundAgg) -> str:
    name = _AGGREGATES.get(type(agg.function))
    if agg.where is not None:
        raise _unsaid("an aggregate with where=")
    if isinstance(agg.function, builtin.CountDistinct) and agg.argument is not None:
        return f"count(DISTINCT {_value(agg.argument)})"
    if name is None:
        raise _unsaid(f"the aggregate {agg.function.label}")
    return f"{name}({'*' if agg.argument is None else _value(agg.argument)})"


def _grouped(below: Node, key: Expr, body: WindowAggregate, projection: Expr) -> str:
    keys = list(key.values) if isinstance(key, Make) and key.schema.shape is Shape.RECORD else [key]
    if not all(isinstance(each, Field) for each in keys) or not isinstance(projection, Make):
        raise _unsaid("a key of expressions that are not columns")
    names = [_value(each) for each in keys]
    inside = body.projection.schema.names if isinstance(body.projection, Make) else ()
    if tuple(projection.schema.names) != (*(each.name for each in keys if isinstance(each, Field)), *inside):
        raise _unsaid("results of groups whose fields are not the key, then the aggregates")
    return f"SELECT {_list([*names, _aggregates(body)])} FROM {_from(below)} GROUP BY {_list([*names, _window(body)])}"


def _joined(node: Join) -> str:
    left, right = (f"({written(each)})" for each in (node.left, node.right))
    sides: Texts = lambda field: f"{'lr'[field.side]}.{quoted(field.name)}"  # noqa: E731
    on = ""
    if node.matching.left_key is not None and node.matching.right_key is not None:
        pairs = zip(_parts(node.matching.left_key), _parts(node.matching.right_key), strict=True)
        on = " AND ".join(f"l.{_value(one)} = r.{_value(other)}" for one, other in pairs)
    assert isinstance(node.projection, Make)
    items = _items(node.projection, lambda expr: _value(expr, sides))
    return f"SELECT {items} FROM {left} AS l JOIN {right} AS r{' ON ' + on if on else ''}"


def _parts(key: Expr) -> Sequence[Expr]:
    parts = key.values if isinstance(key, Make) else (key,)
    if not all(isinstance(part, Field) for part in parts):
        raise _unsaid("a join on expressions that are not columns")
    return parts


def _items(made: Make, text: Callable[[Expr], str]) -> str:
    return _list(_item(name, text(value)) for name, value in zip(made.schema.names, made.values, strict=True))


def _item(name: str, text: str) -> str:
    return text if text == quoted(name) else f"{text} AS {quoted(name)}"


def _value(expr: Expr, column: Texts | None = None) -> str:
    match expr:
        case Field(name, 0) if column is None:
            return quoted(name)
        case Field() if column is not None:
            return column(expr)
        case Constant(value):
            return _constant(value)
        case Binary("&" | "|", left, right) if not (is_boolean(left) and is_boolean(right)):
            raise _unsaid(
                f"the expression {describe(expr)}", "AND and OR combine conditions, such as sd.functions.cast(e.flag, bool)"
            )
        case Binary(op, left, right) if op in _SIGNS:
            return f"{_inner(left, column)} {_SIGNS[op]} {_inner(right, column)}"
        case Unary("not", operand):
            return f"NOT ({_value(operand, column)})"
        case Unary("is_none", operand):
            return f"{_inner(operand, column)} IS NULL"
        case Unary("-", operand):
            return f"-{_inner(operand, column)}"
        case Unary("abs", operand):
            return f"abs({_value(operand, column)})"
        case Function(name, (operand,)) if name in _CASTS:
            return f"CAST({_value(operand, column)} AS {_CASTS[name]})"
        case Function("coalesce" | "length" as name, arguments):
            return f"{name}({_list(_value(each, column) for each in arguments)})"
        case Choose(branches, otherwise):
            whens = " ".join(f"WHEN {_value(test, column)} THEN {_value(value, column)}" for test, value in branches)
            return f"CASE {whens} ELSE {_value(otherwise, column)} END"
    raise _unsaid(f"the expression {describe(expr)}")


def _inner(expr: Expr, column: Texts | None) -> str:
    text = _value(expr, column)
    negative = isinstance(expr, Constant) and text.startswith("-")
    return f"({text})" if negative or isinstance(expr, (Binary, Unary)) else text


def _constant(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | float() if abs(value) < float("inf"):
            return f"{value!r}"
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise _unsaid(f"the constant {value!r}")


def _list(parts: Any) -> str:
    return ", ".join(map(str, parts))


__all__ = ["written"]
