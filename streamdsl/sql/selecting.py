"""SELECT: translation of query trees to plans."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final, TypeAlias

from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Field
from streamdsl.sql.aggregating import NAMES, Aggregating
from streamdsl.sql.joining import Joining, conjuncts
from streamdsl.sql.named_inputs import Sources
from streamdsl.sql.parsing import Text, inside, name_of
from streamdsl.sql.relation_columns import TIMESTAMP, FromSource, RelationColumns
from streamdsl.sql.scalars import FUNCTIONS, Scalars, combined, condition
from streamdsl.sql.spans import in_batches
from streamdsl.stream import Stream
from streamdsl.temporal import Record

WINDOWS: Final = ("tumble", "hop", "session", "snapshot")
Outputs: TypeAlias = Sequence[tuple[str, Any]]
"""The names of the selected columns, and the trees of their expressions."""


_FILTERS: Final = 100
"""The maximal number of filters for one WHERE."""


def _in_runs(conditions: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the conditions of each filter: one by one, or in groups if there are more than `_FILTERS`."""
    size = -(-len(conditions) // _FILTERS)
    return (conditions[place : place + size] for place in range(0, len(conditions), size or 1))


class Selecting:
    """Translates query trees to streams, relations, and streams of batches."""

    def __init__(self, text: Text, sources: Sources) -> None:
        self._text = text
        self._sources = sources

    def query(self, tree: Any) -> Any:
        """Return the stream, relation, or stream of batches of a query."""
        if tree.data == "union":
            first, *others = (self.query(child) for child in tree.children if hasattr(child, "data"))
            return self._union(tree, first, others) if others else first
        if tree.data == "streamed":
            token, semantics, below = tree.children
            return self._streamed(token, semantics, self.query(below))
        return self._select(tree)

    def _union(self, tree: Any, first: Any, others: Sequence[Any]) -> Any:
        self._check_columns(tree, [_fields(each) for each in (first, *others)])
        if all(isinstance(each, Stream) for each in (first, *others)):
            return first.union(*others)
        if any(isinstance(each, Stream) or not hasattr(each, "union") for each in (first, *others)):
            hint = "unite the relations: ISTREAM (SELECT ... FROM S [ROWS 3] UNION ALL SELECT ... FROM T [ROWS 3])"
            raise self._text.refused(tree, "over batches UNION ALL takes relations, and this is a stream", hint)
        with self._text.at(tree):
            return reduce(lambda one, other: one.union(other), others, first)

    def _check_columns(self, tree: Any, fields: Sequence[tuple[str, ...] | None]) -> None:
        known = list(dict.fromkeys(filter(None, fields)))
        if len(known) > 1:
            one, other = (", ".join(names) for names in known[:2])
            hint = f"give both the same columns, in the same order: SELECT ... AS {known[0][0]}, ..."
            raise self._text.refused(tree, f"UNION ALL unites rows of {one} with rows of {other}", hint)

    def _streamed(self, token: Any, semantics: Any, rows: Any) -> Any:
        word, difference = str(token).upper(), str(semantics).upper() == "DIF"
        if semantics is not None and word == "RSTREAM":
            raise self._text.refused(semantics, "RSTREAM gives all rows of each batch", "DIF and DEL are for ISTREAM and DSTREAM")
        if isinstance(rows, Stream):
            rows = rows.distinct() if difference else rows
            return rows.to_points() if word == "ISTREAM" else rows.to_points_at_end()
        if not hasattr(rows, "istream"):
            raise self._text.refused(token, f"{word} takes a relation, and this is a stream already")
        return getattr(rows, word.lower())(*(["difference"] if difference else []))

    def _select(self, tree: Any) -> Any:
        to_stream, semantics, distinct, items, sources, where, group, having, every = tree.children
        columns = RelationColumns(self._text, self._sides(sources))
        outputs = [(self._output(item), item.children[0]) for item in items.children if item.data == "item"]
        columns.note([items, *(each for each in (where, group) if each), *sources.children[1:]])
        columns.note([call for call in inside(having, "call") if self._is_aggregate(call)])
        columns.note([having] if having else [], besides={name for name, _ in outputs})
        joining = Joining(self._text, columns, tuple(conjuncts(where.children[0])) if where else ())
        rows, asked = joining.rows(sources.children[1:])
        scalars = Scalars(self._text, columns.value, self._sources.functions, self._unknown)
        for some in _in_runs([condition(scalars.value(each)) for each in asked]):
            rows = rows.where(combined(operator.and_, some))
        if group is None and not any(self._is_aggregate(call) for part in (items, having) for call in inside(part, "call")):
            if having is not None:
                raise self._text.refused(having, "HAVING is for groups", "write WHERE")
            rows = self._projected(rows, columns, scalars, items, outputs)
        else:
            rows = self._aggregated(
                rows,
                Aggregating(self._text, columns, scalars, self._sources.modules, outputs=dict(outputs)),
                items,
                outputs,
                group,
                having,
            )
        if distinct:
            rows = rows.distinct() if isinstance(rows, Stream) else replace(rows, stream=rows.stream.distinct())
        if every is not None:
            with self._text.at(every):
                return rows.output_every(in_batches(self._text, every.children[0], self._sources.unit))
        return rows if to_stream is None else self._streamed(to_stream, semantics, rows)

    def _projected(self, rows: Any, columns: RelationColumns, scalars: Scalars, items: Any, outputs: Outputs) -> Any:
        if len(columns.sides) == 1 and [item.data for item in items.children] == ["everything"]:
            (side,) = columns.named(items.children[0])
            if not side.timed or side.fields is None:
                return rows.select(_untimed) if side.timed else rows
        wanted: dict[str, Any] = {}
        named = iter(outputs)
        for item in items.children:
            if item.data == "item":
                name, tree = next(named)
                self._add(wanted, name, scalars.value(tree), item)
            else:
                for column in columns.everything(item):
                    self._add(wanted, columns.name(column), E(Field(columns.name(column))), item)
        return rows.select(**wanted)

    def _aggregated(self, rows: Any, aggregating: Aggregating, items: Any, outputs: Outputs, group: Any, having: Any) -> Any:
        window = self._window_of(rows, group)
        aggregating.group_by([part for part in group.children if part is not window] if group else [])
        if len(outputs) < len(items.children):
            raise self._text.refused(items, "* cannot be selected from groups", "name columns of GROUP BY, and aggregates")
        for name, tree in outputs:
            if tree.data == "call" and self._is_aggregate(tree):
                aggregating.add(tree, name)
        for tree in (items, *([having] if having else [])):
            for call in filter(self._is_aggregate, inside(tree, "call")):
                aggregating.add(call)
        made = aggregating.aggregate(rows, window)
        results = aggregating.results()
        if having is not None:
            made = made.where(condition(aggregating.named_results().value(having.children[0])))
        wanted: dict[str, Any] = {}
        for (name, tree), item in zip(outputs, items.children, strict=True):
            self._add(wanted, name, results.value(tree), item)
        same = all(value._node == Field(name) for name, value in wanted.items())
        return made if same and list(wanted) == aggregating.fields else made.select(**wanted)

    def _window_of(self, rows: Any, group: Any) -> Any:
        windows = [part for part in group.children if part.data in WINDOWS] if group else []
        if len(windows) > 1:
            raise self._text.refused(windows[1], "GROUP BY takes one kind of window", "use a subquery")
        if windows and not isinstance(rows, Stream):
            raise self._text.refused(windows[0], "over batches, windows are in brackets", "write FROM S [RANGE 60 SLIDE 60]")
        return windows[0] if windows else None

    def _is_aggregate(self, call: Any) -> bool:
        name = name_of(call.children[0])
        return name in self._sources.modules or (name.lower() in NAMES and name not in self._sources.functions)

    def _output(self, item: Any) -> str:
        tree, alias = item.children
        if alias is not None:
            return name_of(alias)
        if tree.data == "column":
            return name_of(tree.children[-1])
        if tree.data == "call":
            word = name_of(tree.children[0])
            known = word.lower() in (*NAMES, *FUNCTIONS) and word not in self._sources.modules
            return word.lower() if known and word not in self._sources.functions else word
        raise self._text.refused(tree, "this column has no name", f"write {self._text.of(tree)} AS name")

    def _add(self, wanted: dict[str, Any], name: str, value: Any, item: Any) -> None:
        if name in wanted:
            every = item.data == "everything"
            hint = "name the columns, one AS other_name" if every else f"write {self._text.of(item)} AS other_name"
            raise self._text.refused(item, f"two columns are called {name!r}", hint)
        wanted[name] = value

    def _unknown(self, call: Any) -> E:
        name, aggregates = name_of(call.children[0]), [*NAMES, *self._sources.modules]
        if name in aggregates or name.lower() in NAMES:
            hint = "aggregates are in SELECT and HAVING: for one of an aggregate, use a subquery"
            raise self._text.refused(call, f"the aggregate {name!r} has no rows here", hint)
        known = ", ".join([*FUNCTIONS, *self._sources.functions, *aggregates])
        problem = f"there is no function {name!r} here; there are: {known}"
        raise self._text.refused(call, problem, "give your own by name: sd.sql(text, S=stream, f=function)")

    @staticmethod
    def _listed(sources: Any) -> list[Any]:
        first, *joins = sources.children
        return [first, *(join.children[0] if join.data == "cross" else join.children[1] for join in joins)]

    def _sides(self, sources: Any) -> list[FromSource]:
        found: dict[str, FromSource] = {}
        for source in self._listed(sources):
            side = self._side(source)
            if side.alias in found:
                hint = f"write {self._text.of(source)} AS another, and AS one where it comes first"
                raise self._text.refused(source, f"two sources are called {side.alias!r}", hint)
            found[side.alias] = side
        return list(found.values())

    def _side(self, source: Any) -> FromSource:
        timed = False
        if source.data == "nested":
            rows, alias = self.query(source.children[0]), name_of(source.children[1])
        else:
            name, frame, alias_token = source.children
            rows, alias = self._sources.frame(name, frame), name_of(alias_token or name)
            timed = self._sources.is_batched(name)
        stream = rows if isinstance(rows, Stream) else getattr(rows, "stream", None)
        if stream is None:
            raise self._text.refused(
                source, "a stream of batches is read through a window", "name it first: A = ISTREAM(...); then A [ROWS 1]"
            )
        return FromSource(alias, rows, _fields(rows), timed)


def _untimed(row: Record) -> Record:
    """Return a row of a window over batches without its timestamp."""
    return Record((name, value) for name, value in row.items() if name != TIMESTAMP)


def _fields(rows: Any) -> tuple[str, ...] | None:
    """Return the field names of rows, None if they are unknown."""
    stream = rows if isinstance(rows, Stream) else getattr(rows, "stream", None)
    schema = None if stream is None else stream.plan().schema
    return tuple(schema.names) if schema is not None and schema.names else None
