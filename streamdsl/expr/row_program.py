"""What a row goes through as one Python function: what columns give, for rows that come one by one."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Choose,
    Constant,
    Expr,
    Field,
    Function,
    Key,
    Make,
    Method,
    Unary,
    Whole,
    application,
    is_boolean,
)
from streamdsl.expr.row_evaluator import attribute_of
from streamdsl.expr.schema import Schema, Shape
from streamdsl.temporal.names import literal
from streamdsl.temporal.payload import PLAIN, Record

Values: TypeAlias = tuple[Any, ...]
"""The values of a payload's fields, or of the parts of a key: plain ones, that hold no others."""
ProgramResult: TypeAlias = tuple[Sequence[Values], Sequence[int] | None, Sequence[int], Sequence[int]]
"""What becomes of rows: values, numbers of groups, and if some are dropped, which are left, and which steps drop the others."""
RowFunction: TypeAlias = Callable[[Sequence[Values], Sequence[int] | None], ProgramResult | None]

_BOOLEAN_TYPES: Final = frozenset({bool, int, float, str})
"""The types whose values are true or false in a predicate; of what others give, columns know."""
_NO_GROUPS: Final = itertools.repeat(None)
_MAX_NODES: Final = 100
"""Expressions with more nodes are left to columns: what is shared in them is written out here."""
_PLAIN_OPERATORS: Final = frozenset(("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="))
"""The operators that give plain values of plain ones; `**` may give a complex number."""
_SYMBOLS: Final = {"-x": "(-{})", "+x": "(+{})", "not": "(not {})", "is_none": "({} is None)"}


def plain_values(payload: Any, schema: Schema) -> Values | None:
    """Return the values of a payload's fields; None where it needs a closer look, which `Table.from_payloads` takes.

    >>> plain_values(("a", 2), Schema.tuple(2)), plain_values(("a",), Schema.tuple(2))
    (('a', 2), None)
    """
    names, kind, shape = schema.names, type(payload), schema.shape
    values: Values
    if shape is Shape.TUPLE and kind is tuple:
        values = payload
    elif shape is Shape.RECORD and kind in (dict, Record) and len(payload) == len(names):
        if not PLAIN.issuperset(map(type, payload)):
            return None
        values = tuple([payload.get(name, payload) for name in names])
    elif shape is Shape.CLASS and kind is schema.cls:
        values = tuple([getattr(payload, name) for name in names])
    elif shape is Shape.SCALAR:
        values = (payload,)
    else:
        return None
    return values if len(values) == len(names) and PLAIN.issuperset(map(type, values)) else None


class Groups(Protocol):
    """The groups that rows are in, by number."""

    @property
    def schema(self) -> Schema | None:
        """The schema of keys, None: each is a single value."""

    @property
    def is_nested(self) -> bool:
        """Whether there are groups around these."""

    def number(self, values: Sequence[Any], around: int | None) -> int:
        """Return the number of a group, given the parts of its key and the group around it."""

    def key(self, number: int) -> Values:
        """Return the parts of a group's key."""

    def outer_of(self, number: int) -> int:
        """Return the group around a group."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """Rows are kept for which a predicate holds."""

    predicate: Expr

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        name = text.plain(self.predicate)
        if not is_boolean(self.predicate):
            text.say(f"if type({name}) not in ANSWERS: return None")
        text.drop(f"not {name}")


@dataclass(frozen=True, slots=True)
class GroupStep:
    """Rows get the number of their group."""

    parts: tuple[Expr, ...]
    groups: Groups

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        parts = "".join([f"{text.plain(part)}, " for part in self.parts])
        text.say(f"g = {text.named(self.groups.number)}(({parts}), g)")
        text.in_groups = True


@dataclass(frozen=True, slots=True)
class ProjectStep:
    """Rows get other values, which may be made of those of their group's key (`groups`)."""

    projection: Expr
    groups: Groups | None = None

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        projection = self.projection
        if isinstance(projection, Whole):
            text.keep_side(projection.side)
            return
        if self.groups is not None and any(isinstance(part, Key) for part in projection.walk()):
            text.say(f"k = {text.named(self.groups.key)}(g)")
        text.keys = None if self.groups is None else self.groups.schema or Schema.scalar()
        if isinstance(projection, Make):
            text.give(projection.values, projection.schema)
        else:
            text.give((projection,), Schema.scalar())


@dataclass(frozen=True, slots=True)
class UngroupStep:
    """Rows get their values of a projection of them and of their group's key, and are then in the group around it."""

    projection: Expr
    groups: Groups

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        ProjectStep(self.projection, self.groups).write(text)
        text.in_groups = self.groups.is_nested
        if text.in_groups:
            text.say(f"g = {text.named(self.groups.outer_of)}(g)")


Step: TypeAlias = FilterStep | GroupStep | ProjectStep | UngroupStep


class RowProgram:
    """Steps that rows take one after the other, as one Python function of their values and of the numbers of their groups.

    What is not certain to be as in columns, or fails, is left to them: then the function gives None, or raises.

    >>> double = Make(Schema.tuple(1), (Binary("*", Field("x"), Constant(2)),))
    >>> program = RowProgram([FilterStep(Field("y")), ProjectStep(double)])
    >>> function = program.of(Schema.record(["x", "y"]))
    >>> function([(5, False), (21, True)], [3, 4]), program.schema
    (([(42,)], [4], [1], [0]), Schema(_0))
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        self._of: Schema | None = None
        self._other: Schema | None = None
        self._function: RowFunction = no_program
        self.length = 0
        """So many of the steps, the first ones, are in the function."""
        self.is_refused = False
        """Whether some steps are not, of the rows that there have been."""
        self.schema: Schema = Schema.object()
        """The schema of what the function gives."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RowProgram:
        return RowProgram(copy.deepcopy(self._steps, memo))  # the function keeps what its steps refer to

    def of(self, schema: Schema, other: Schema | None = None) -> RowFunction:
        """Return the function for rows of a schema, or for pairs of rows: each is then the values of one and of the other."""
        if schema is not self._of or other is not self._other:
            if schema != self._of or other != self._other:
                self._write(schema, other)
            self._of, self._other = schema, other
        return self._function

    def _write(self, schema: Schema, other: Schema | None) -> None:
        text = ProgramWriter(schema, other)
        if all(each.shape is not Shape.OBJECT for each in text.sides):
            text.take(self._steps)
        self.length, self.schema = text.place, text.schema
        self.is_refused = text.place < len(self._steps)
        self._function = text.function() if text.place else no_program


def no_program(rows: Sequence[Values], groups: Sequence[int] | None) -> ProgramResult | None:
    """Return None: this is the function of steps that cannot be said in Python's own values."""
    return None


class _NotCompilableError(Exception):
    """An expression has no words here."""


class ProgramWriter:
    """The source text of steps over the values `v` of each of some rows and its group `g`, and what the names in it stand for.

    `sides` are the schemas of a row, or of both rows of a pair, whose values stand one behind the other.
    """

    def __init__(self, schema: Schema, other: Schema | None = None) -> None:
        self.sides = (schema,) if other is None else (schema, other)
        self.keys: Schema | None = None
        self.place = 0
        self.in_groups: bool | None = None
        self._drops = False
        self._fields = self._given = [f"v[{place}]" for place in range(sum([len(each.names) for each in self.sides]))]
        self._names: dict[str, Any] = {"PLAIN": PLAIN, "ANSWERS": _BOOLEAN_TYPES, "NO_GROUPS": _NO_GROUPS}
        self._lines: list[str] = []
        self._n_nodes = 0

    def take(self, steps: Sequence[Step]) -> None:
        """Write steps up to the first for which there are no words."""
        for step in steps:
            lines, names = list(self._lines), dict(self._names)
            self.keys = None
            try:
                step.write(self)
            except _NotCompilableError:
                self._lines, self._names = lines, names
                return
            self.place += 1

    def function(self) -> RowFunction:
        """Return the function."""
        head, lines, lists = "for v, g in zip(rows, groups or NO_GROUPS):", list(self._lines), []
        values, groups, kept, dropped = "rows", "groups", "()", "()"
        if self._drops or self._fields != self._given:
            values = "values"
            lines.append(f"values.append({self._row()})")
        if self.in_groups or (self._drops and self.in_groups is None):
            groups = "numbers" if self.in_groups else "groups and numbers"
            lists.append("numbers = []")
            lines.append("numbers.append(g)")
        elif self.in_groups is False:
            groups = "None"
        if self._drops:
            head, kept, dropped = "for place, (v, g) in enumerate(zip(rows, groups or NO_GROUPS)):", "kept", "dropped"
            lines.append("kept.append(place)")
        lists += [f"{name} = []" for name in (values, kept, dropped) if name in ("values", "kept", "dropped")]
        loop = [head, *[f" {line}" for line in lines]] if lines else []
        result = f"return {values}, {groups}, {kept}, {dropped}"
        exec("\n ".join(["def program(rows, groups):", *lists, *loop, result]), self._names)
        made: RowFunction = self._names["program"]
        return made

    def _row(self) -> str:
        return "v" if self._fields == self._given else f"({''.join([f'{field}, ' for field in self._fields])})"

    def say(self, line: str) -> None:
        """Add a line."""
        self._lines.append(line)

    def drop(self, condition: str) -> None:
        """Let this step drop rows."""
        self._drops = True
        self.say(f"if {condition}: dropped.append({self.place}); continue")

    def give(self, values: Sequence[Expr], schema: Schema) -> None:
        """Let the row have other values."""
        self._fields = list(map(self.plain, values))
        self.sides = (schema,)

    def keep_side(self, side: int) -> None:
        """Let the row be that of one side."""
        schema, first = self._side(side)
        self._fields = self._fields[first : first + len(schema.names)]
        self.sides = (schema,)

    @property
    def schema(self) -> Schema:
        """The schema of the row, or of the first row of a pair."""
        return self.sides[0]

    def plain(self, expr: Expr) -> str:
        """Return the text of an expression whose value is plain: where that is not certain, it is asked for."""
        text = self.of(expr)
        if type(expr) is Field:
            return text
        name = f"x{len(self._lines)}"
        self.say(f"{name} = {text}")
        if not _is_plain(expr):
            self.say(f"if type({name}) not in PLAIN: return None")
        return name

    def of(self, expr: Expr) -> str:
        """Return the text of an expression."""
        self._n_nodes += 1
        form = _WRITERS.get(type(expr))
        if form is None or self._n_nodes > _MAX_NODES:
            raise _NotCompilableError
        return form(self, expr)

    def named(self, value: Any) -> str:
        """Return a name for a value."""
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name

    def field(self, expr: Field) -> str:
        schema, first = self._side(expr.side)
        return self._fields[first + _field_index(expr.name, schema)]

    def whole(self, expr: Whole) -> str:
        schema, first = self._side(expr.side)
        return self._fields[first + _field_index("value", schema if schema.shape is Shape.SCALAR else None)]

    def key(self, expr: Key) -> str:
        return self._key("value", self.keys if self.keys is not None and self.keys.shape is Shape.SCALAR else None)

    def attribute(self, expr: Attribute) -> str:
        if not isinstance(expr.operand, Key):
            return f"{self.named(attribute_of)}({self.of(expr.operand)}, {literal(expr.name)})"
        return self._key(expr.name, self.keys if self.keys is not None and self.keys.shape is Shape.RECORD else None)

    def _side(self, side: int) -> tuple[Schema, int]:
        """Return the schema of a side, and the place of its first value."""
        if side >= len(self.sides):
            raise _NotCompilableError
        return self.sides[side], len(self.sides[0].names) if side else 0

    def _key(self, name: str, keys: Schema | None) -> str:
        return f"k[{_field_index(name, keys)}]"

    def choose(self, expr: Choose) -> str:
        text = self.of(expr.otherwise)
        for condition, value in reversed(expr.branches):
            text = f"({self.of(value)} if {self.of(condition)} else {text})"
        return text

    def apply(self, expr: Expr) -> str:
        applied = application(expr)
        assert applied is not None
        word, parts = applied
        if word.name == "is_none" and type(parts[0]) is Whole and self._side(parts[0].side)[0].shape is not Shape.SCALAR:
            return "False"  # a row with fields
        texts = list(map(self.of, parts))
        if isinstance(expr, Binary):
            return f"({texts[0]} {expr.op} {texts[1]})"
        return _SYMBOLS[word.name].format(*texts) if word.name in _SYMBOLS else f"{self.named(word.python)}({', '.join(texts)})"


def _field_index(name: str, schema: Schema | None) -> int:
    if schema is None or name not in schema.names:
        raise _NotCompilableError
    return schema.names.index(name)


def _is_plain(expr: Expr) -> bool:
    """Say whether the value of an expression over plain fields is certain to be plain."""
    if isinstance(expr, Binary):
        return expr.op in _PLAIN_OPERATORS and _is_plain(expr.left) and _is_plain(expr.right)
    return type(expr) is Field or (type(expr) is Constant and type(expr.value) in PLAIN)


_WRITERS: Final[dict[type[Expr], Callable[[ProgramWriter, Any], str]]] = {
    Field: ProgramWriter.field,
    Whole: ProgramWriter.whole,
    Key: ProgramWriter.key,
    Constant: lambda writing, expr: writing.named(expr.value),
    Attribute: ProgramWriter.attribute,
    Choose: ProgramWriter.choose,
    **dict.fromkeys((Binary, Unary, Method, Function), ProgramWriter.apply),
}
