"""The arguments of `top_k`, and the projection of its ranks and rows to records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from streamdsl.building import key, key_parts
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Attribute, Call, Constant, Expr, Field, Function, Make, Opaque, Whole
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal.payload import Record, fields_of, is_taken

_RANK: Final = Field("_0")
_ROW: Final = Field("_1")


def ranked(by: Any, schema: Schema | None) -> Make:
    """Return the argument of `top_k`: the pair of the value to rank by, and the row."""
    return Make(Schema.tuple(2), (key(by, schema), Whole()))


def named_ranks(name: str, schema: Schema | None, group: Expr | None = None) -> Expr:
    """Return the projection of a pair `(rank, row)` to a record: the parts of the group's key, the rank, then the row's fields.

    A field that is the key itself is there once. Raises `QueryError` for two fields of one name.

    >>> named_ranks("rank", Schema.record(["zone", "fare"]), Field("zone")).schema
    Schema(zone, rank, fare)
    """
    parts = {} if group is None else key_parts(group)
    if name in parts:
        raise _taken(name, "a part of the key")
    parts[name] = _RANK
    own = frozenset() if group is None else _fields_that_are(group)
    if schema is None:
        return Call(_Opened(tuple(parts), own), (*parts.values(), _ROW), "record")
    fields = {field: part for field, part in _fields(schema).items() if field not in own}
    for field in fields:
        if field in parts:
            raise _taken(field, "a field of the row")
    parts |= fields
    return Make(Schema.record(tuple(parts)), tuple(parts.values()))


def _taken(name: str, what: str) -> QueryError:
    return QueryError(
        f"top_k cannot name two fields {name!r}: there is {what} of this name",
        hint='choose other names: top_k(3, by="fare", rank="place"), group_by(lambda e: {"zone": ...})',
    )


def _fields_that_are(group: Expr) -> frozenset[str]:
    """Return the fields of a row that are, under their own names, parts of its group's key."""
    if isinstance(group, Opaque) and group.recorded is not None:
        return _fields_that_are(group.recorded)
    parts = dict(zip(group.schema.names, group.values, strict=True)) if isinstance(group, Make) else {}
    named = parts if parts or not isinstance(group, Field) else {group.name: group}
    return frozenset(name for name, part in named.items() if part == Field(name))


def _fields(schema: Schema) -> Mapping[str, Expr]:
    """Return the fields of the row in a pair, as expressions."""
    if schema.shape is Shape.SCALAR:
        return {"value": _ROW}
    return {name: _field(schema, number, name) for number, name in enumerate(schema.names)}


def _field(schema: Schema, number: int, name: str) -> Expr:
    if schema.shape is Shape.TUPLE:
        return Function("[]", (_ROW, Constant(number)))
    if schema.shape is Shape.RECORD and is_taken(name):
        return Call(itemgetter(name), (_ROW,), name)
    return Attribute(_ROW, name)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A function of named values and a row: the record of these and of the row's fields, which only a run can know."""

    names: tuple[str, ...]
    own: frozenset[str]

    def __call__(self, *values: Any) -> Record:
        *named, row = values
        found = dict(zip(self.names, named, strict=True))
        for name, value in fields_of(row):
            if name in found and name not in self.own:
                raise _taken(name, "a field of the row")
            found.setdefault(name, value)
        return Record(found)


def rank_name(rank: object) -> str | None:
    """Return the name that `rank` gives to ranks, None for True and False; raises `QueryError` for anything else.

    >>> rank_name("place"), rank_name(True)
    ('place', None)
    """
    if isinstance(rank, str) and rank:
        return rank
    if not isinstance(rank, bool):
        raise QueryError(f"rank is True, False or a field's name, not {rank!r}", hint='top_k(3, by="fare", rank="place")')
    return None
