"""SELECT with aggregates: collects the aggregates and the key of a query, and projects the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from streamdsl import aggregates
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Field
from streamdsl.sql.parsing import Text, name_of
from streamdsl.sql.relation_columns import RelationColumns, free
from streamdsl.sql.scalars import Scalars
from streamdsl.sql.spans import windowed
from streamdsl.stream import Stream
from streamdsl.udm import builtin
from streamdsl.udm.bases import Agg, AnyUDA

_PLAIN: Final = ("sum", "avg", "min", "max", "median", "stddev", "variance", "first", "last", "collect", "time_weighted_avg")
NAMES: Final = ("count", *_PLAIN, "quantile")
"""The names of the built-in aggregates."""


@dataclass
class Aggregating:
    """The aggregation of a SELECT with GROUP BY or aggregates: `group_by` and `add` collect, `aggregate` builds the plan."""

    text: Text
    columns: RelationColumns
    scalars: Scalars
    modules: Mapping[str, Any]
    """The user-defined aggregates, by the names that the query calls them by."""
    found: dict[str, Any] = field(default_factory=dict)
    """The aggregates to compute, by the names of their result fields."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """The selected expressions (trees), by the names of their columns."""
    _named: dict[tuple[Any, ...], str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """The columns of the key: their names in the rows, and in the results."""

    def group_by(self, parts: Sequence[Any]) -> None:
        """Add the columns of the key; raises `SqlError` for an expression that is not a column."""
        for part in parts:
            if part.data != "column" or self.columns.find(part).attributes:
                hint = "name it in a subquery: SELECT ... FROM (SELECT price % 10 AS digit, ... FROM ...) AS t GROUP BY digit"
                raise self.text.refused(part, "rows are grouped by columns", hint)
            name = self.columns.name(self.columns.find(part))
            self.keys[name] = name

    def add(self, call: Any, name: str | None = None) -> str:
        """Add an aggregate, and return its result field; equal calls share one field."""
        word, *rest = call.children
        written = (self._word(word), *rest)
        if written not in self._named:
            taken = {*self.found, *self.keys}
            self._named[written] = name if name and name not in taken else free(f"_{len(self.found) + 1}", taken)
            self.found[self._named[written]] = self._aggregate(call)
        return self._named[written]

    @property
    def fields(self) -> list[str]:
        """The names of the result fields: key, then aggregates."""
        return [*self.keys.values(), *self.found]

    def aggregate(self, rows: Any, window: Any) -> Any:
        """Return the plan of the results: per group and window of a stream, or per batch of a relation."""
        if not self.found:
            self.found[free("_1", self.keys)] = aggregates.count()
        names = list(self.keys)
        grouped = rows.group_by(names[0] if len(names) == 1 else names) if names else rows
        return (windowed(self.text, grouped, window) if isinstance(rows, Stream) else grouped).aggregate(**self.found)

    def results(self) -> Scalars:
        """Return the translator from trees to expressions over the results."""
        return Scalars(self.text, self._result, self.scalars.functions, lambda call: E(Field(self.add(call))))

    def named_results(self) -> Scalars:
        """Return the translator for HAVING, which may also use the names of selected columns."""
        return replace(self.results(), column=self._named_result)

    def _named_result(self, tree: Any) -> E:
        name = name_of(tree.children[-1])
        if len(tree.children) > 1 or name in self.keys or name not in self.outputs:
            return self._result(tree)
        value: E = self.results().value(self.outputs[name])
        return value

    def _result(self, tree: Any) -> E:
        name = name_of(tree.children[-1])
        column = self.columns.find(tree)
        if (inside := self.columns.name(column)) not in self.keys:
            raise self.text.refused(
                tree,
                f"column {self.text.of(tree)!r} is neither in GROUP BY nor in an aggregate",
                f"write first({name}), or group by it",
            )
        return self.columns.read(column, E(Field(inside)))

    def _aggregate(self, call: Any) -> Any:
        name, distinct, arguments = call.children
        word = self._word(name)
        rows = arguments is None or arguments.data == "all_rows"
        values = [] if rows else arguments.children
        if distinct and (word != "count" or word in self.modules):
            raise self.text.refused(name, "only count has DISTINCT")
        if word in self.modules:
            module = self.modules[word]
            with self.text.called(call):
                return (module() if isinstance(module, type) else module).of(*self.scalars.values(values))
        return self._built_in(call, word, values, distinct)

    def _built_in(self, call: Any, word: str, values: Sequence[Any], distinct: bool) -> Any:
        self._check_number(call, word, len(values))
        if word == "count":
            return Agg(builtin.CountDistinct() if distinct else builtin.Count(), *self.scalars.values(values))
        if word == "quantile":
            if values[1].data not in ("number", "integer"):
                raise self.text.refused(values[1], "the q of a quantile is a number from 0 to 1", "write quantile(price, 0.9)")
            with self.text.at(call):
                return aggregates.quantile(self.scalars.value(values[0]), float(self.text.of(values[1])))
        function: Callable[..., Any] = getattr(aggregates, word)
        return function(self.scalars.value(values[0]))

    def _word(self, name: Any) -> str:
        """Return the name of an aggregate: user-defined ones are case-sensitive, built-in ones are not."""
        written = name_of(name)
        return written if written in self.modules else written.lower()

    def _check_number(self, call: Any, word: str, given: int) -> None:
        expected = 2 if word == "quantile" else 1
        if given != expected and (word != "count" or given > expected):
            hint = f"write {word}(price, 0.9)" if expected == 2 else f"write {word}(price); count(*) counts rows"
            raise self.text.refused(call, f"{word} takes {expected} value{'s' * (expected > 1)}, not {given}", hint)


def is_module(value: object) -> bool:
    """Say whether a value is a user-defined aggregate, as a class or an instance."""
    return isinstance(value, AnyUDA) or (isinstance(value, type) and issubclass(value, AnyUDA))
