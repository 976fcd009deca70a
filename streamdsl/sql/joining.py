"""FROM clauses: joins of sources from left to right, into rows with the columns of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamdsl.expr.expression_functions import is_none, lit, when
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Field, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.sql.parsing import Text
from streamdsl.sql.relation_columns import RelationColumns
from streamdsl.stream import Stream


@dataclass(frozen=True)
class Joining:
    """Joins sources: equalities of columns become keys, other conditions filter the joined rows."""

    text: Text
    columns: RelationColumns
    conditions: tuple[Any, ...]
    """The conditions of WHERE."""

    def rows(self, joins: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the joined rows, and the conditions that are left to filter by."""
        sides, asked = self.columns.sides, list(self.conditions)
        rows, before = sides[0].rows, [sides[0].alias]
        for place, (side, join) in enumerate(zip(sides[1:], joins, strict=True)):
            outer, on = (None, None) if join.data == "cross" else (join.children[0], join.children[2])
            own = list(conjuncts(on)) if on is not None else []
            usable = own if outer or any(map(_adds_rows, joins[place + 1 :])) else [*own, *asked]
            keys = [pair for each in usable if (pair := self._key(each, before, side.alias))]
            met = [each for _, _, each in keys]
            left = [each for each in own if each not in met]
            if outer and left:
                raise self.text.refused(left[0], "an outer join is on equal columns only")
            asked = [*left, *(each for each in asked if each not in met)]
            rows = self._joined(rows, side, before, keys, outer, first=place == 0)
            before.append(side.alias)
        return rows, asked

    def _key(self, tree: Any, before: list[str], alias: str) -> tuple[Any, Any, Any] | None:
        """Return an equality between a column of an earlier source and one of this source as (left, right, tree); else None."""
        if tree.data != "compared" or str(tree.children[1]) != "=":
            return None
        one, _, other = tree.children
        if one.data != "column" or other.data != "column":
            return None
        columns = [self.columns.find(each) for each in (one, other)]
        if columns[0].alias == alias:
            columns.reverse()
        if columns[0].alias not in before or columns[1].alias != alias or any(each.attributes for each in columns):
            return None
        return (*columns, tree)

    def _joined(self, rows: Any, side: Any, before: list[str], keys: Sequence[Any], outer: Any, first: bool) -> Any:
        name = (lambda column: column.name) if first else self.columns.name
        on = None
        if keys:
            left, right = (Field(name(one)) for one, _, _ in keys), (Field(other.name) for _, other, _ in keys)
            on = (_key_of(list(left)), _key_of(list(right)))
        flat = [(inside, name_in if first else inside, 0) for alias in before for name_in, inside in self.columns.kept(alias)]
        flat += [(inside, name_in, 1) for name_in, inside in self.columns.kept(side.alias)]
        if not outer:
            return rows.join(side.rows, on, select=_row(flat, ()))
        if not isinstance(rows, Stream):
            raise self.text.refused(outer, "relations over batches have no outer joins")
        word = str(outer).upper().split()[0]
        if word == "LEFT":
            return rows.left_join(side.rows, on, select=_row(flat, (1,)))
        if word == "RIGHT":
            flat = [(inside, name, 1 - of) for inside, name, of in flat]
            return side.rows.left_join(rows, on and on[::-1], select=_row(flat, (1,)))
        return rows.full_join(side.rows, on, select=_row(flat, (0, 1)))


def _adds_rows(join: Any) -> bool:
    """Say whether a join adds rows without a left side: WHERE conditions must then filter the joined rows."""
    return join.data == "join" and str(join.children[0]).upper().startswith(("RIGHT", "FULL"))


def _row(fields: Sequence[tuple[str, str, int]], missing: tuple[int, ...]) -> E:
    """Return the projection to these fields of both sides; the fields of a side that is missing are None."""
    values = [_field(name, side, side in missing)._node for _, name, side in fields]
    return E(Make(Schema.record(tuple(inside for inside, _, _ in fields)), tuple(values)))


def _field(name: str, side: int, missing: bool) -> E:
    value = E(Field(name, side))
    return when(is_none(E(Whole(side)))).then(lit(None)).otherwise(value) if missing else value


def _key_of(fields: list[Field]) -> E:
    return E(fields[0]) if len(fields) == 1 else E(Make(Schema.tuple(len(fields)), tuple(fields)))


def conjuncts(tree: Any) -> Iterator[Any]:
    """Yield the conditions that AND connects.

    A conjunction that tests for NULL is not split: the conditions after the test rely on it.
    """
    if tree.data == "both" and not any(True for _ in tree.find_data("is_null")):
        yield from tree.children
    else:
        yield tree
