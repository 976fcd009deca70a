"""Resolution of column names to fields of the rows of a FROM clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamdsl.errors import closest
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import Field
from streamdsl.sql.parsing import Text, inside, name_of

TIMESTAMP: Final = "t"


@dataclass(frozen=True)
class FromSource:
    """A source of a FROM clause: its alias, its rows, and the names of their fields (None: unknown)."""

    alias: str
    rows: Any
    fields: tuple[str, ...] | None
    timed: bool = False
    """Whether the rows come from a window over batches: then their timestamp is the column `t`, which `*` leaves out."""

    @property
    def all(self) -> tuple[str, ...]:
        """The fields that `*` stands for."""
        return tuple(name for name in self.fields or () if not (self.timed and name == TIMESTAMP))


@dataclass(frozen=True)
class Column:
    """A field of a source, and the attributes that are read from it."""

    alias: str
    name: str
    attributes: tuple[str, ...] = ()


def free(name: str, taken: Container[str]) -> str:
    """Return the name, with as many underscores appended as it takes to be unused.

    >>> free("_1", {"_1", "k"})
    '_1_'
    """
    while name in taken:
        name += "_"
    return name


@dataclass
class RelationColumns:
    """The columns of a FROM clause; joined sources share one row, where equal names are prefixed with their source's alias."""

    text: Text
    sides: Sequence[FromSource]
    _names: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, trees: Sequence[Any], besides: Container[str] = ()) -> None:
        """Register the columns that trees read, except the result names `besides`; joined rows keep only registered columns."""
        found = dict.fromkeys((column.alias, column.name) for tree in trees for column in self._in(tree, besides))
        known = dict.fromkeys([*self._names, *found])
        often = Counter(name for _, name in known)
        alone = {name for name in often if often[name] == 1 or len(self.sides) == 1}
        self._names, taken = {}, set(alone)
        for alias, name in known:
            self._names[alias, name] = name if name in alone else free(f"{alias}_{name}", taken)
            taken.add(self._names[alias, name])

    def kept(self, alias: str) -> list[tuple[str, str]]:
        """Return the registered fields of a source, each with its name in the row."""
        return [(name, inside) for (source, name), inside in self._names.items() if source == alias]

    def find(self, tree: Any) -> Column:
        """Return the column that a tree names; raises `SqlError` if no source has it, or several may have it."""
        first, *rest = map(name_of, tree.children)
        for side in self.sides:
            if side.alias == first and rest:
                self._check(tree, rest[0], [side])
                return Column(first, rest[0], tuple(rest[1:]))
        if rest and not any(side.fields is None or first in side.fields for side in self.sides):
            raise self._no_source(tree, first)
        return Column(self._owner(tree, first), first, tuple(rest))

    def name(self, column: Column) -> str:
        """Return the name of a column in the row."""
        return self._names.get((column.alias, column.name), column.name)

    def value(self, tree: Any) -> E:
        """Return the expression of the column that a tree names."""
        column = self.find(tree)
        return self.read(column, E(Field(self.name(column))))

    @staticmethod
    def read(column: Column, value: E) -> E:
        """Return the attributes of a field's value that the column reads."""
        for attribute in column.attributes:
            value = getattr(value, attribute)
        return value

    def named(self, tree: Any) -> list[FromSource]:
        """Return the sources that `*` or `S.*` covers; raises `SqlError` for an unknown source."""
        wanted = [name_of(token) for token in tree.children]
        sides = [side for side in self.sides if not wanted or side.alias == wanted[0]]
        if not sides:
            raise self._no_source(tree, wanted[0])
        return sides

    def everything(self, tree: Any) -> list[Column]:
        """Return the columns that `*` or `S.*` stands for; raises `SqlError` if the fields of a source are unknown."""
        sides = self.named(tree)
        for side in sides:
            if side.fields is None:
                raise self.text.refused(
                    tree,
                    f"the fields of {side.alias} are not known",
                    "declare them: sd.source(..., payload=Trip), or name the columns",
                )
        return [Column(side.alias, name) for side in sides for name in side.all]

    def _owner(self, tree: Any, name: str) -> str:
        having = [side for side in self.sides if side.fields is not None and name in side.fields]
        unknown = [side for side in self.sides if side.fields is None]
        if len(having) + len(unknown) > 1:
            of = ", ".join(f"{side.alias}.{name}" for side in (*having, *unknown))
            raise self.text.refused(tree, f"column {name!r} may be of several sources", f"write one of {of}")
        self._check(tree, name, self.sides)
        return (having or unknown)[0].alias

    def _check(self, tree: Any, name: str, sides: Sequence[FromSource]) -> None:
        if any(side.fields is None or name in side.fields for side in sides):
            return
        known = [field for side in sides for field in side.fields or ()]
        raise self._unknown(tree, f"there is no column {name!r}", name, known)

    def _no_source(self, tree: Any, name: str) -> Exception:
        return self._unknown(tree, f"there is no source {name!r}", name, [side.alias for side in self.sides])

    def _unknown(self, tree: Any, problem: str, name: str, known: list[str]) -> Exception:
        close = closest(name, known)
        listed = f"{problem}; there are: {', '.join(known) or '(none)'}"
        hint = f"did you mean {close!r}?" if close else None
        if self.text.of(tree).startswith('"'):
            hint = f"double quotes are for names, single quotes for texts: '{name}'"
        return self.text.refused(tree, listed, hint)

    def _in(self, tree: Any, besides: Container[str]) -> Iterator[Column]:
        if len(self.sides) > 1:
            for everything in inside(tree, "everything"):
                yield from self.everything(everything)
        for column in inside(tree, "column"):
            if len(column.children) > 1 or name_of(column.children[0]) not in besides:
                yield self.find(column)
