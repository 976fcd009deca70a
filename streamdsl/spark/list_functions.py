"""Python's functions of lists as SQL: `len`, an item, and `in`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction
from streamdsl.spark.column_types import BOOL, INT, ListType, as_nullable
from streamdsl.spark.operations import apply
from streamdsl.spark.sql_text import NotNative, Sql
from streamdsl.spark.task_errors import error_marker, not_none


def apply_to_list(word: ScalarFunction, arguments: Sequence[Sql]) -> Sql:
    """Return the SQL of a function whose first argument is a list, or raise `NotNative`."""
    found = _SQL.get(word.name)
    if found is None:
        raise NotNative(f"{word.name} of lists runs in Python")
    return found(*arguments)


def _known(items: Sql, problem: str) -> Sql:
    """Return a list that fails the task where it is None."""
    if not items.type.nullable:
        return items
    return Sql(f"coalesce({items.text}, {error_marker(TypeError(problem))})", as_nullable(items.type, False), True)


def _length(items: Sql) -> Sql:
    items = _known(items, "object of type 'NoneType' has no len()")
    return Sql(f"cast(size({items.text}) as bigint)", INT, items.raises)


def _item(items: Sql, index: Sql) -> Sql:
    assert isinstance(items.type, ListType)
    if index.kind != "int":
        raise NotNative("an item at what is no integer is read in Python")
    kind, items = items.type.item, _known(items, "'NoneType' object is not subscriptable")
    index = not_none(index, TypeError("list indices must be integers or slices, not NoneType"))
    size = f"cast(size({items.text}) as bigint)"
    place = f"if({index.text} < 0L, {index.text} + {size}, {index.text})"
    outside = error_marker(IndexError("list index out of range"))
    found = f"get({items.text}, cast({place} as int))"
    return Sql(f"CASE WHEN {place} >= 0L AND {place} < {size} THEN {found} ELSE {outside} END", kind, True)


def _contains(items: Sql, value: Sql) -> Sql:
    assert isinstance(items.type, ListType)
    if value.raises:
        raise NotNative("Spark would not compute what is in an empty list")
    kind, items = items.type.item, _known(items, "'NoneType' object is not iterable")
    equal = apply(SCALAR_FUNCTIONS["=="], [value, replace(value, text="item", type=kind)])
    return Sql(f"exists({items.text}, item -> {equal.text})", BOOL, items.raises)


_SQL: Final[Mapping[str, Callable[..., Sql]]] = {"length": _length, "[]": _item, "contains": _contains}
