"""The types of what Python computes from columns, where they are certain: functions, items, and the parts of dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamdsl.expr.nodes import Constant, Expr
from streamdsl.expr.scalar_functions import ScalarFunction
from streamdsl.spark.column_types import (
    FLOAT,
    INT,
    NONE,
    STR,
    ColumnType,
    ForeignType,
    ListType,
    PickledType,
    ScalarType,
    known_type,
    unify,
)

_OF_DATES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(("year", "month", "day", ".weekday", ".isoweekday", ".toordinal"), INT),
    ".isoformat": STR,
}
_OF_TIMESTAMPS: Final[Mapping[str, ColumnType]] = {
    **_OF_DATES,
    **dict.fromkeys(("hour", "minute", "second", "microsecond"), INT),
    ".date": ForeignType("date"),
    ".timestamp": FLOAT,
}


def type_of_attribute(kind: ColumnType, name: str) -> ColumnType | None:
    """Return the type of an attribute, or (`.name`) of a method's result; an attribute of None raises, so it has no values.

    >>> type_of_attribute(ForeignType("date"), "year"), type_of_attribute(NONE, "fare") == NONE
    (ScalarType(kind='int', nullable=False), True)
    """
    if kind == NONE:
        return NONE
    shown = known_type(kind)
    if not isinstance(shown, ForeignType) or not shown.is_date:
        return None
    found = (_OF_DATES if shown.ddl == "date" else _OF_TIMESTAMPS).get(name)
    return None if found is None else _as_sure(found, [kind])


def type_of_function(word: ScalarFunction, parts: Sequence[Expr], kinds: Sequence[ColumnType]) -> ColumnType | None:
    """Return the type of a function's results from those of its arguments; what raises for None has no values there.

    >>> from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS
    >>> type_of_function(SCALAR_FUNCTIONS["+"], (), [INT, PickledType(FLOAT)])
    PickledType(declared=ScalarType(kind='float', nullable=False), nullable=True, ddl='binary')
    """
    if not word.takes_none and NONE in kinds:
        return NONE
    if word.name == "coalesce":
        return _as_sure(known_type(unify(kinds)), kinds)
    known = [known_type(kind) for kind in kinds]
    kind = word.result([part.kind if isinstance(part, ScalarType) else "" for part in known])
    if kind is not None:
        return ScalarType(kind) if word.gives else _as_sure(ScalarType(kind), kinds)
    first = known[0]
    if word.name == "local_time":
        return PickledType(ForeignType("timestamp"))
    if word.name == "truncate" and isinstance(first, ForeignType) and first.ddl.startswith("timestamp"):
        return _as_sure(first, kinds)
    if word.name == "**" and isinstance(parts[1], Constant) and type(parts[1].value) is int and parts[1].value >= 0:
        return {"int": PickledType(INT), "float": _as_sure(FLOAT, kinds)}.get(getattr(first, "kind", ""))
    if word.name == "[]" and isinstance(first, ListType):
        return _as_sure(first.item, kinds)
    if word.name == ".split" and isinstance(first, ScalarType) and first.kind == "str":
        return _as_sure(ListType(STR, False), kinds)
    return type_of_attribute(kinds[0], word.name)


def item_type(kind: ColumnType) -> ColumnType:
    """Return the type of the items of lists."""
    shown = known_type(kind)
    return PickledType(shown.item) if isinstance(shown, ListType) else PickledType(origin=getattr(kind, "origin", ""))


def _as_sure(kind: ColumnType | None, given: Sequence[ColumnType]) -> ColumnType | None:
    """Return a type that is no surer than those that it was found from: what was declared may be wrong, so it is declared too."""
    return PickledType(kind) if kind is not None and any(isinstance(each, PickledType) for each in given) else kind
