"""Row programs: the steps that rows pass (filter, project, group) compiled into one Python function, for batches of few rows.

A program computes what the columnar path does, without the overhead of making columns.
"""

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
from streamdsl.temporal.identifiers import literal
from streamdsl.temporal.payload import PLAIN, Record

Values: TypeAlias = tuple[Any, ...]
"""The values of a payload's fields, or of the parts of a key; all are plain: none contains other values."""
ProgramResult: TypeAlias = tuple[Sequence[Values], Sequence[int] | None, Sequence[int] | None]
"""The results for some rows: values, group numbers, and the indexes of those that are kept (None: a program without filters)."""
RowFunction: TypeAlias = Callable[[Sequence[Values], Sequence[int] | None], ProgramResult | None]

_BOOLEAN_TYPES: Final = frozenset({bool, int, float, str})
"""The types that a predicate's result may have in a program; the columnar path knows about others."""
_NO_GROUPS: Final = itertools.repeat(None)
_MAX_NODES: Final = 100
"""Programs with more nodes are not compiled: a shared node is written out each time, so the text may grow exponentially."""
_PLAIN_OPERATORS: Final = frozenset(("+", "-", "*", "/", "//", "%", "==", "!=", "<", "<=", ">", ">="))
"""The operators whose results are plain for plain operands; that of `**` may be a complex number."""
_SYMBOLS: Final = {"-x": "(-{})", "+x": "(+{})", "not": "(not {})", "is_none": "({} is None)"}


def plain_values(payload: Any, schema: Schema) -> Values | None:
    """Return the values of a payload's fields; None for one with other fields or values, which `Table.from_payloads` must read.

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
    """The groups of one `group_by`: their numbers and keys, and the groups around them."""

    @property
    def schema(self) -> Schema | None:
        """The schema of keys; None if each key is a single value."""

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
    """Keep the rows for which a predicate holds."""

    predicate: Expr

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        name = text.plain_variable(self.predicate)
        if not is_boolean(self.predicate):
            text.add_line(f"if type({name}) not in ANSWERS: return None")
        text.drop(f"not {name}")


@dataclass(frozen=True, slots=True)
class GroupStep:
    """Assign to each row the number of its group."""

    parts: tuple[Expr, ...]
    groups: Groups

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        parts = "".join([f"{text.plain_variable(part)}, " for part in self.parts])
        text.add_line(f"g = {text.name_for(self.groups.number)}(({parts}), g)")
        text.in_groups = True


@dataclass(frozen=True, slots=True)
class ProjectStep:
    """Compute the rows' new values, in which the key of their group may be used (`groups`)."""

    projection: Expr
    groups: Groups | None = None

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        projection = self.projection
        if isinstance(projection, Whole):
            text.keep_side(projection.side)
            return
        if self.groups is not None and any(isinstance(part, Key) for part in projection.walk()):
            text.add_line(f"k = {text.name_for(self.groups.key)}(g)")
        text.keys = None if self.groups is None else self.groups.schema or Schema.scalar()
        if isinstance(projection, Make):
            text.set_fields(projection.values, projection.schema)
        else:
            text.set_fields((projection,), Schema.scalar())


@dataclass(frozen=True, slots=True)
class UngroupStep:
    """Compute the rows' new values from them and from their group's key, and put them into the group around it."""

    projection: Expr
    groups: Groups

    def write(self, text: ProgramWriter) -> None:
        """Write this step after those before it."""
        ProjectStep(self.projection, self.groups).write(text)
        text.in_groups = self.groups.is_nested
        if text.in_groups:
            text.add_line(f"g = {text.name_for(self.groups.outer_of)}(g)")


Step: TypeAlias = FilterStep | GroupStep | ProjectStep | UngroupStep


class RowProgram:
    """Steps compiled into one Python function of the rows' values and their group numbers.

    For rows where the columnar path might compute something else, the function gives None; where an expression fails, it raises.
    In both cases the caller processes the batch on the columnar path.

    >>> double = Make(Schema.tuple(1), (Binary("*", Field("x"), Constant(2)),))
    >>> program = RowProgram([FilterStep(Field("y")), ProjectStep(double)])
    >>> function = program.function_for(Schema.record(["x", "y"]))
    >>> function([(5, False), (21, True)], [3, 4]), program.schema
    (([(42,)], [4], [1]), Schema(_0))
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        self._of: Schema | None = None
        self._other: Schema | None = None
        self._function: RowFunction = no_program
        self.is_refused = False
        """Whether some step could not be compiled for the last schema: then the function gives None."""
        self.schema: Schema = Schema.object()
        """The schema of what the function gives."""

    def __deepcopy__(self, memo: dict[int, Any]) -> RowProgram:
        return RowProgram(copy.deepcopy(self._steps, memo))  # the function keeps what its steps refer to

    def function_for(self, schema: Schema, other: Schema | None = None) -> RowFunction:
        """Return the function for rows of a schema, or for pairs of rows, whose values are then concatenated."""
        if schema is not self._of or other is not self._other:
            if schema != self._of or other != self._other:
                self._write(schema, other)
            self._of, self._other = schema, other
        return self._function

    def _write(self, schema: Schema, other: Schema | None) -> None:
        text = ProgramWriter(schema, other)
        try:
            text.write_steps(self._steps)
        except _NotCompilableError:
            self.is_refused, self._function = True, no_program
        else:
            self.is_refused, self._function, self.schema = False, text.function(), text.schema


def no_program(rows: Sequence[Values], groups: Sequence[int] | None) -> ProgramResult | None:
    """Return None: the function of a program that cannot be compiled."""
    return None


class _NotCompilableError(Exception):
    """An expression cannot be compiled into a program."""


class ProgramWriter:
    """Writes the source text of a program: a loop over rows with values `v` and group `g`; `_names` are the text's globals.

    `sides` are the schemas of a row, or of both rows of a pair, whose values are concatenated. `_fields` are the texts of the
    row's current values, which each projecting step replaces.
    """

    def __init__(self, schema: Schema, other: Schema | None = None) -> None:
        self.sides = (schema,) if other is None else (schema, other)
        self.keys: Schema | None = None
        self.in_groups: bool | None = None
        self._drops = False
        self._fields = self._given = [f"v[{place}]" for place in range(sum([len(each.names) for each in self.sides]))]
        self._names: dict[str, Any] = {"PLAIN": PLAIN, "ANSWERS": _BOOLEAN_TYPES, "NO_GROUPS": _NO_GROUPS}
        self._lines: list[str] = []
        self._n_nodes = 0

    def write_steps(self, steps: Sequence[Step]) -> None:
        """Write all steps. Raises `_NotCompilableError` if one cannot be compiled."""
        if any(each.shape is Shape.OBJECT for each in self.sides):
            raise _NotCompilableError
        for step in steps:
            self.keys = None
            step.write(self)

    def function(self) -> RowFunction:
        """Compile the text, and return the function."""
        head, lines, lists = "for v, g in zip(rows, groups or NO_GROUPS):", list(self._lines), []
        values, groups, kept = "rows", "groups", "None"
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
            head, kept = "for place, (v, g) in enumerate(zip(rows, groups or NO_GROUPS)):", "kept"
            lines.append("kept.append(place)")
        lists += [f"{name} = []" for name in (values, kept) if name in ("values", "kept")]
        loop = [head, *[f" {line}" for line in lines]] if lines else []
        result = f"return {values}, {groups}, {kept}"
        exec("\n ".join(["def program(rows, groups):", *lists, *loop, result]), self._names)
        made: RowFunction = self._names["program"]
        return made

    def _row(self) -> str:
        return "v" if self._fields == self._given else f"({''.join([f'{field}, ' for field in self._fields])})"

    def add_line(self, line: str) -> None:
        """Add a line."""
        self._lines.append(line)

    def drop(self, condition: str) -> None:
        """Add a line that drops the row if a condition holds."""
        self._drops = True
        self.add_line(f"if {condition}: continue")

    def set_fields(self, values: Sequence[Expr], schema: Schema) -> None:
        """Replace the row's values."""
        self._fields = list(map(self.plain_variable, values))
        self.sides = (schema,)

    def keep_side(self, side: int) -> None:
        """Replace a pair by the row of one side."""
        schema, first = self._side(side)
        self._fields = self._fields[first : first + len(schema.names)]
        self.sides = (schema,)

    @property
    def schema(self) -> Schema:
        """The schema of the row, or of the first row of a pair."""
        return self.sides[0]

    def plain_variable(self, expr: Expr) -> str:
        """Add a line that computes an expression, with a check if its value may not be plain; return its variable."""
        text = self.expression(expr)
        if type(expr) is Field:
            return text
        name = f"x{len(self._lines)}"
        self.add_line(f"{name} = {text}")
        if not _is_plain(expr):
            self.add_line(f"if type({name}) not in PLAIN: return None")
        return name

    def expression(self, expr: Expr) -> str:
        """Return the text of an expression."""
        self._n_nodes += 1
        form = _WRITERS.get(type(expr))
        if form is None or self._n_nodes > _MAX_NODES:
            raise _NotCompilableError
        return form(self, expr)

    def name_for(self, value: Any) -> str:
        """Return the name of a global of the text that has this value."""
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
            return f"{self.name_for(attribute_of)}({self.expression(expr.operand)}, {literal(expr.name)})"
        return self._key(expr.name, self.keys if self.keys is not None and self.keys.shape is Shape.RECORD else None)

    def _side(self, side: int) -> tuple[Schema, int]:
        """Return the schema of a side, and the index of its first value."""
        if side >= len(self.sides):
            raise _NotCompilableError
        return self.sides[side], len(self.sides[0].names) if side else 0

    def _key(self, name: str, keys: Schema | None) -> str:
        return f"k[{_field_index(name, keys)}]"

    def choose(self, expr: Choose) -> str:
        text = self.expression(expr.otherwise)
        for condition, value in reversed(expr.branches):
            text = f"({self.expression(value)} if {self.expression(condition)} else {text})"
        return text

    def apply(self, expr: Expr) -> str:
        applied = application(expr)
        assert applied is not None
        word, parts = applied
        if word.name == "is_none" and type(parts[0]) is Whole and self._side(parts[0].side)[0].shape is not Shape.SCALAR:
            return "False"  # a row with fields
        texts = list(map(self.expression, parts))
        if isinstance(expr, Binary):
            return f"({texts[0]} {expr.op} {texts[1]})"
        return (
            _SYMBOLS[word.name].format(*texts) if word.name in _SYMBOLS else f"{self.name_for(word.python)}({', '.join(texts)})"
        )


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
    Constant: lambda writing, expr: writing.name_for(expr.value),
    Attribute: ProgramWriter.attribute,
    Choose: ProgramWriter.choose,
    **dict.fromkeys((Binary, Unary, Method, Function), ProgramWriter.apply),
}
