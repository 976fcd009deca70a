"""Evaluates expressions over whole columns: with numpy where that certainly gives what Python does, else by Python row by row.

If the evaluation of columns fails, it is repeated row by row, so that the error is that of the first row that fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamdsl.expr.deferred import AnyColumn, DeferredColumn, DeferredColumns, EncodedSource, parts_of, with_parts
from streamdsl.expr.expression_functions import plain_function
from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.expr.nested import attribute_name, field_of_nested, is_nested, item_name, nested, schema_of
from streamdsl.expr.nodes import (
    Attribute,
    Binary,
    Call,
    Choose,
    Constant,
    Expr,
    Field,
    Function,
    Key,
    Life,
    Make,
    Method,
    Opaque,
    Unary,
    Whole,
    application,
    rebuilt,
)
from streamdsl.expr.row_evaluator import (
    attribute_of,
    evaluate_row,
    field_of,
    is_plain_value,
    no_lifetime_error,
    predicate_value,
    project_row,
    to_plain_value,
    with_location,
)
from streamdsl.expr.schema import Schema, Shape, as_payload
from streamdsl.expr.table import Column, Rows, Table, column_of, object_column, payload_table
from streamdsl.expr.user_calls import call_function, with_row_views
from streamdsl.expr.vector import Operand, Scalar
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_key
from streamdsl.temporal.time import Ticks
from streamdsl.temporal.value_arrays import distinct

R = TypeVar("R")
_SCALARS: Final = frozenset({int, float, bool, str, bytes, type(None)})
_TEXTS: Final = frozenset({str, type(None)})


class RowError(Exception):
    """User code raised `cause` in row `row`, the first one that fails; `payloads` are the row's."""

    def __init__(self, row: int, cause: Exception, payloads: tuple[Any, ...] = ()) -> None:
        super().__init__(f"row {row}: {type(cause).__name__}: {cause}")
        self.row = row
        self.cause = cause
        self.payloads = payloads

    def of(self, inputs: Inputs) -> RowError:
        """Return the error with its row's payloads."""
        tables = [table.take(slice(self.row, self.row + 1)) for table in inputs.tables]
        return RowError(self.row, self.cause, tuple(table.payloads()[0] for table in tables))


class Inputs(NamedTuple):
    """The rows that expressions are evaluated over: a table for each side, and their lifetimes and group keys, if they have any.

    Pairs have the LE of each side's row in `starts`, if it is read. `re` may be a function, which is called when RE is read.
    """

    tables: tuple[Table, ...]
    size: int
    le: Ticks | None = None
    re: Ticks | Callable[[], Ticks] | None = None
    keys: Table | None = None
    starts: tuple[Ticks, ...] = ()

    @property
    def ends(self) -> Ticks | None:
        """The RE of each row."""
        return self.re() if callable(self.re) else self.re


def evaluate(expr: Expr, inputs: Inputs) -> Column:
    """Return an expression's value in every row. Raises `RowError` for the first row in which it fails.

    >>> table = Table.from_payloads([{"price": 12, "venue": "X"}, {"price": 7, "venue": "X"}])
    >>> evaluate(Binary(">", Field("price"), Constant(10)), Inputs((table,), 2)).tolist()
    [True, False]
    """
    picked = _existing_column(expr, inputs)
    if picked is not None:
        return picked
    failure: Exception | None = None
    try:
        column = _ColumnEvaluator(inputs).column(expr)
    except Exception as error:
        failure = error
    if failure is not None:
        column = column_of(_row_by_row(failure, expr, inputs, evaluate_row))
    return column_of(list(map(as_payload, column.tolist()))) if isinstance(expr, Call) and column.dtype == object else column


def project(expr: Expr, inputs: Inputs) -> Table:
    """Return the payloads that a projection makes. Raises `RowError` for the first row in which it fails.

    >>> table = Table.from_payloads([1, 2])
    >>> project(Make(Schema.record(["double"]), (Binary("*", Field("value"), Constant(2)),)), Inputs((table,), 2)).payloads()
    [Record(double=2), Record(double=4)]
    """
    if isinstance(expr, Whole):
        return inputs.tables[expr.side]
    if isinstance(expr, Make):
        try:
            return _build_table(expr, inputs)
        except Exception as error:
            failure = error
        return Table.from_payloads(_row_by_row(failure, expr, inputs, project_row), expr.schema)
    column = evaluate(expr, inputs)
    if isinstance(expr, (Opaque, Call)) or not _is_scalar(column):
        return payload_table(list(map(as_payload, column.tolist())))
    return Table(Schema.scalar(), {"value": column}, inputs.size)


def truth(predicate: Expr, inputs: Inputs) -> NDArray[np.bool_]:
    """Return whether a predicate holds in every row, as `answers.holds` says. Raises `RowError`.

    >>> table = Table.from_payloads([{"n": 0}, {"n": "a"}, {"n": 2.5}])
    >>> truth(Field("n"), Inputs((table,), 3)).tolist()
    [False, True, True]
    """
    column = evaluate(predicate, inputs)
    try:
        return _as_booleans(column, partial(predicate_value, predicate))
    except RowError as error:
        raise error.of(inputs) from error.cause


def _as_booleans(column: Column, one: Callable[[Any], bool]) -> NDArray[np.bool_]:
    if column.dtype != object:
        return column.astype(np.bool_, copy=False)
    return np.array([_on_row(row, one, value) for row, value in enumerate(column.tolist())], dtype=np.bool_)


def key_values(expr: Expr, inputs: Inputs) -> list[Hashable]:
    """Return a hashable key for every row; equal payloads have equal keys, and NaN equals NaN.

    >>> key_values(Field("value"), Inputs((Table.from_payloads([1, 1.0, float("nan")]),), 3))
    [1, 1.0, ('NaN',)]
    """
    column = evaluate(expr, inputs)
    values: list[Any] = column.tolist()
    return values if column.dtype.kind in "bi" else list(map(payload_key, values))


def key_row(expr: Expr, payloads: tuple[Any, ...], life: Lifetime | None = None, key: Any = None) -> Hashable:
    """Return what `key_values` gives, for one row."""
    return payload_key(evaluate_row(expr, payloads, life, key))


def _row_by_row(failure: Exception, expr: Expr, inputs: Inputs, one: Callable[..., Any]) -> list[Any]:
    """Return an expression's value in every row, after columns have failed; raises `RowError` for the first row that fails."""
    if isinstance(failure, RowError) and isinstance(expr, Opaque):
        with_location(failure.cause, expr)
        raise failure.of(inputs) from failure.cause
    try:
        return [_on_row(row, one, expr, *arguments) for row, arguments in enumerate(_rows(inputs))]
    except RowError as error:
        raise error.of(inputs) from error.cause


def _on_row(row: int, function: Callable[..., R], *arguments: Any) -> R:
    try:
        return function(*arguments)
    except RowError as error:
        raise RowError(row, error.cause) from error.cause
    except Exception as error:
        raise RowError(row, error) from error


def _rows(inputs: Inputs) -> Iterable[tuple[tuple[Any, ...], Lifetime | None, Any, tuple[int, ...]]]:
    payloads = zip(*(table.payloads() for table in inputs.tables), strict=True) if inputs.tables else itertools.repeat(())
    lives = _lives(inputs.le, ends) if inputs.le is not None and (ends := inputs.ends) is not None else itertools.repeat(None)
    keys = inputs.keys.payloads() if inputs.keys is not None else itertools.repeat(None)
    starts = zip(*(start.tolist() for start in inputs.starts), strict=True) if inputs.starts else itertools.repeat(())
    return itertools.islice(zip(payloads, lives, keys, starts, strict=False), inputs.size)


def _lives(le: Ticks, re: Ticks) -> list[Lifetime]:
    return list(map(Lifetime, le.tolist(), re.tolist()))


def _is_scalar(column: Column) -> bool:
    if column.dtype != object:
        return True
    kinds = distinct(map(type, column.tolist()))
    return kinds <= _SCALARS or all(Schema.of_type(kind) == Schema.scalar() for kind in kinds)


def _existing_column(expr: Expr, inputs: Inputs) -> Column | None:
    """Return the column of the inputs that an expression reads and nothing else; None if it must be computed."""
    if type(expr) is Field:
        return _column_of_field(inputs.tables[expr.side], expr.name)
    part = _stored_column(expr, inputs)
    return part.column if type(part) is DeferredColumn else part  # type: ignore[return-value]


def _column_of_field(table: Table, name: str) -> Column | None:
    """Return the column of a field; None if there is none, or if bare values may have an attribute of that name."""
    column = None if table.schema.shape is Shape.OBJECT else table.columns.get(name)
    if column is None or table.schema.shape is not Shape.SCALAR:
        return column
    return column if column.dtype != object or distinct(map(type, column.tolist())) <= IMMUTABLE else None


def evaluate_deferred(expr: Expr, inputs: Inputs) -> AnyColumn:
    """Return what `evaluate` does; a column that is deferred in the inputs stays so."""
    found: AnyColumn | None = _stored_deferred(expr, inputs)
    if found is None and _existing_column(expr, inputs) is None:
        found = _ColumnEvaluator(inputs).over_distinct_values(expr)
    return evaluate(expr, inputs) if found is None else found


def evaluate_nested(expr: Expr, inputs: Inputs) -> AnyColumn:
    """Return what `evaluate` does; payloads stay rows of a table, and are not made into objects.

    >>> table = Table.from_payloads([1, 2])
    >>> pairs = evaluate_nested(Make(Schema.tuple(2), (Field("value"), Constant("a"))), Inputs((table,), 2))
    >>> is_nested(pairs), pairs.tolist()
    (True, [(1, 'a'), (2, 'a')])
    """
    try:
        found = _nested(expr, inputs)
    except Exception:  # the rows tell which of them fails first
        found = None
    return evaluate(expr, inputs) if found is None else found


def _stored_deferred(expr: Expr, inputs: Inputs) -> DeferredColumn | None:
    """Return the deferred column of the inputs that an expression reads and nothing else; else None."""
    part = _stored_column(expr, inputs)
    return part if type(part) is DeferredColumn else None


def _stored_column(expr: Expr, inputs: Inputs) -> AnyColumn | None:
    """Return the stored column of a field: of rows, of keys, or of nested payloads; None for any other expression."""
    if type(expr) is Field:
        table = inputs.tables[expr.side]
        return None if table.schema.shape in (Shape.SCALAR, Shape.OBJECT) else parts_of(table.columns).get(expr.name)
    if type(expr) is Key and inputs.keys is not None:
        return nested(inputs.keys)
    if type(expr) is Attribute:
        of = _nested_operand(expr.operand, inputs)
        field = None if of is None else attribute_name(schema_of(of), expr.name)
    elif type(expr) is Function and expr.name == "[]" and type(index := expr.arguments[1]) is Constant:
        of = _nested_operand(expr.arguments[0], inputs)
        field = None if of is None else item_name(schema_of(of), index.value)
    else:
        return None
    return None if of is None or field is None else field_of_nested(of, field)


def _nested_operand(expr: Expr, inputs: Inputs) -> AnyColumn | None:
    """Return the column of payloads that an expression reads and nothing else; else None."""
    of = nested(inputs.tables[expr.side]) if type(expr) is Whole else _stored_column(expr, inputs)
    return of if of is not None and is_nested(of) else None


def _build_table(expr: Make, inputs: Inputs) -> Table:
    found: list[AnyColumn] = []
    columns: _ColumnEvaluator | None = None
    for value in expr.values:
        column: AnyColumn | None = _nested(value, inputs)
        if (
            column is None
            and (column := _stored_column(value, inputs)) is None
            and (column := _existing_column(value, inputs)) is None
        ):
            columns = columns or _ColumnEvaluator(inputs)
            column = columns.over_distinct_values(value)
            column = columns.column(value) if column is None else column
        found.append(column)
    return Table(expr.schema, with_parts(dict(zip(expr.schema.names, found, strict=True))), inputs.size)


def _nested(expr: Expr, inputs: Inputs) -> AnyColumn | None:
    """Return payloads, or ones built of columns, as rows of a table; None for any other expression."""
    if type(expr) is Make:
        return nested(_build_table(expr, inputs))
    table = inputs.tables[expr.side] if type(expr) is Whole else None
    return None if table is None or table.schema.shape in (Shape.SCALAR, Shape.OBJECT) else nested(table)


class _DistinctValues(NamedTuple):
    """The distinct values of a deferred column: the code of each row's, and what has been evaluated over them."""

    codes: Rows
    columns: _ColumnEvaluator | None
    """None if the values are not texts."""
    parts: dict[Expr, Expr]
    """The parts of expressions over them, so that equal parts are evaluated once. [common subexpression elimination]"""


def _distinct_values_cache(inputs: Inputs) -> dict[Field, _DistinctValues] | None:
    """Return an empty cache for the distinct values of deferred columns; None if no column is deferred."""
    return {} if any(type(table.columns) is DeferredColumns for table in inputs.tables) else None


def _distinct_values(field: Field, column: DeferredColumn, sides: int) -> _DistinctValues:
    codes, values = column.encoded()
    are_texts = values.dtype == object and distinct(map(type, values.tolist())) <= _TEXTS
    table = Table(Schema.record([field.name]), {field.name: values}, len(values))
    return _DistinctValues(codes, _ColumnEvaluator(Inputs((table,) * sides, len(values))) if are_texts else None, {})


@lru_cache(maxsize=1024)
def _only_field(expr: Expr) -> Field | None:
    """Return the only field that an expression of scalar functions and constants reads; None for any other expression."""
    fields: set[Field] = set()
    for part in expr.walk():
        if type(part) is Field:
            fields.add(part)
        elif type(part) is not Constant and application(part) is None:
            return None
    return fields.pop() if len(fields) == 1 and type(expr) is not Field else None


class _ColumnEvaluator:
    """Evaluates the nodes of expressions over all rows of the inputs, or some; a shared node is evaluated once.

    `outer` is the evaluator over more rows, and which of its rows these are: what it has evaluated is not evaluated again.
    """

    __slots__ = ("done", "inputs", "outer", "rows", "size", "values")

    def __init__(self, inputs: Inputs, rows: Rows | None = None, within: tuple[_ColumnEvaluator, Rows] | None = None) -> None:
        self.inputs = inputs
        self.values: dict[Field, _DistinctValues] | None = within[0].values if within else _distinct_values_cache(inputs)
        self.rows = rows
        self.size = inputs.size if rows is None else len(rows)
        self.outer = within
        self.done: dict[int, Operand] = {}

    def at(self, rows: Rows) -> _ColumnEvaluator:
        """Return an evaluator over some of the rows."""
        if len(rows) == self.size:
            return self
        return _ColumnEvaluator(self.inputs, rows if self.rows is None else self.rows[rows], (self, rows))

    def operand(self, expr: Expr) -> Operand:
        found = self.done.get(id(expr)) if self.outer is None else self.known(id(expr))
        if found is None:
            found = self.done[id(expr)] = _EVALUATORS[type(expr)](self, expr)
        return found

    def over_distinct_values(self, expr: Expr) -> AnyColumn | None:
        """Return scalar functions of one deferred column of texts, evaluated once for each distinct value; else None."""
        if self.values is None or (only := _only_field(expr)) is None or (column := _stored_deferred(only, self.inputs)) is None:
            return None
        if only not in self.values:
            self.values[only] = _distinct_values(only, column, len(self.inputs.tables))
        codes, columns, parts = self.values[only]
        if columns is None:
            return None
        expr = rebuilt(expr, parts.get)
        parts.update((part, part) for part in expr.walk())
        try:
            found = columns.column(expr)
        except Exception:  # the rows tell which of them fails first
            return None
        codes = self.select_rows(codes)
        if found.dtype == object and not (kinds := distinct(map(type, found.tolist()))) <= _TEXTS:
            return column_of(found[codes].tolist()) if kinds <= IMMUTABLE else None
        return found[codes] if found.dtype != object else DeferredColumn(EncodedSource(codes, found))

    def known(self, node: int) -> Operand | None:
        """Return the value of a node that has been evaluated, here or in an outer evaluator."""
        found = self.done.get(node)
        if found is None and self.outer is not None:
            outer, rows = self.outer
            found = outer.known(node)
            return found[rows] if isinstance(found, np.ndarray) else found
        return found

    def column(self, expr: Expr) -> Column:
        value = self.operand(expr)
        return self.broadcast(value) if isinstance(value, Scalar) else value

    def broadcast(self, value: Operand) -> Column:
        return np.repeat(column_of([value.value]), self.size) if isinstance(value, Scalar) else value

    def select_rows(self, column: Column) -> Column:
        return column if self.rows is None else column[self.rows]

    def each(self, function: Callable[..., Any], *operands: Operand) -> Column:
        """Return a function of every row's values, called in Python."""
        if all(isinstance(value, Scalar) for value in operands):
            operands = tuple(map(self.broadcast, operands))
        items = (itertools.repeat(v.value) if isinstance(v, Scalar) else v.tolist() for v in operands)
        return column_of(list(map(function, *items)))

    def field(self, expr: Field) -> Operand:
        table = self.inputs.tables[expr.side]
        column = _column_of_field(table, expr.name)
        if column is not None:
            return self.select_rows(column)
        return column_of([field_of(payload, expr.name) for payload in self.table(expr.side).payloads()])

    def table(self, side: int) -> Table:
        """Return the rows of one side."""
        table = self.inputs.tables[side]
        return table if self.rows is None else table.take(self.rows)

    def whole(self, expr: Whole) -> Operand:
        table = self.inputs.tables[expr.side]
        if table.schema.shape is Shape.SCALAR:
            return self.select_rows(table.columns["value"])
        return object_column(list(map(as_payload, self.table(expr.side).payloads())))

    def end(self, expr: Life) -> Column:
        if self.inputs.starts and expr.end == "le":
            return self.select_rows(self.inputs.starts[expr.side])
        column = self.inputs.le if expr.end == "le" else self.inputs.ends
        if column is None:
            raise no_lifetime_error()
        return self.select_rows(column)

    def key(self, expr: Key) -> Operand:
        keys = _existing_column(expr, self.inputs)
        return Scalar(None) if keys is None else self.select_rows(keys)

    def apply(self, expr: Expr) -> Operand:
        if (picked := _existing_column(expr, self.inputs)) is not None:
            return self.select_rows(picked)
        by_value = self.over_distinct_values(expr)
        if by_value is not None:
            return by_value.column if type(by_value) is DeferredColumn else by_value  # type: ignore[return-value]
        applied = application(expr)
        assert applied is not None
        word, parts = applied
        operands = list(map(self.operand, parts))
        values = [operand.value for operand in operands if isinstance(operand, Scalar)]
        if len(values) == len(operands):
            return Scalar(word.python(*values))
        found = None if word.columns is None else word.columns(*operands)
        return self.each(word.python, *operands) if found is None else found

    def attribute(self, expr: Attribute) -> Operand:
        if (picked := _existing_column(expr, self.inputs)) is not None:
            return self.select_rows(picked)
        return self.each(lambda value: attribute_of(value, expr.name), self.operand(expr.operand))

    def call(self, expr: Call) -> Operand:
        function = plain_function(expr.function)
        if not expr.arguments:
            return column_of([to_plain_value(function()) for _ in range(self.size)])
        arguments = [
            object_column(self.table(a.side).rows()) if isinstance(a, Whole) else self.operand(a) for a in expr.arguments
        ]
        return self.each(lambda *values: to_plain_value(call_function(function, values)), *arguments)

    def choose(self, expr: Choose) -> Operand:
        waiting: Rows = np.arange(self.size)
        parts: list[tuple[Rows, Column]] = []
        for condition, value in expr.branches:
            holds = _as_booleans(self.at(waiting).column(condition), bool)
            chosen, waiting = waiting[holds], waiting[~holds]
            parts.append((chosen, self.at(chosen).column(value)) if len(chosen) else (chosen, object_column([])))
        if len(waiting):
            parts.append((waiting, self.at(waiting).column(expr.otherwise)))
        return _merge_branches([part for part in parts if len(part[0])], self.size)

    def make(self, expr: Make) -> Operand:
        columns = [self.column(value).tolist() for value in expr.values]
        values = zip(*columns, strict=True) if columns else itertools.repeat((), self.size)
        return object_column(list(map(expr.schema.build, values)))

    def opaque(self, expr: Opaque) -> Operand:
        arguments = [self.table(side).rows() for side in range(expr.sides)]
        if expr.life:
            arguments.append(_lives(self.end(Life("le")), self.end(Life("re"))))
        values = _call_each_row(expr.function, arguments)
        if set(map(type, values)) <= IMMUTABLE:
            return column_of(values)
        return column_of(
            [as_payload(value) if is_plain_value(value) else self.resolved(row, value) for row, value in enumerate(values)]
        )

    def resolved(self, row: int, value: Any) -> Any:
        """Return the payload that a user function gave for a row, with the expressions in it evaluated for that row."""
        here = self.at(np.array([row]))
        return as_payload(_on_row(row, to_plain_value, value, lambda expr: here.column(expr).tolist()[0]))


def _call_each_row(function: Callable[..., Any], arguments: list[list[Any]]) -> list[Any]:
    values: list[Any] = []
    try:
        # Not map(): a StopIteration of the function would end it, and lose rows.
        for row in zip(*arguments, strict=True):
            try:
                values.append(function(*row))
            except (AttributeError, TypeError) as error:
                function = with_row_views(function, error, row)
                values.append(function(*row))
    except Exception as error:
        raise RowError(len(values), error) from error
    return values


def _merge_branches(parts: list[tuple[Rows, Column]], size: int) -> Column:
    if len(parts) == 1:
        return parts[0][1]
    dtypes = {column.dtype for _, column in parts}
    whole = np.empty(size, dtype=dtypes.pop() if len(dtypes) == 1 else object)
    for rows, column in parts:
        whole[rows] = column.astype(whole.dtype, copy=False)
    return whole


_EVALUATORS: Final[Mapping[type[Expr], Callable[[_ColumnEvaluator, Any], Operand]]] = {
    Field: _ColumnEvaluator.field,
    Whole: _ColumnEvaluator.whole,
    Life: _ColumnEvaluator.end,
    Key: _ColumnEvaluator.key,
    Constant: lambda _, expr: Scalar(expr.value),
    **dict.fromkeys((Binary, Unary, Method, Function), _ColumnEvaluator.apply),
    Attribute: _ColumnEvaluator.attribute,
    Call: _ColumnEvaluator.call,
    Choose: _ColumnEvaluator.choose,
    Make: _ColumnEvaluator.make,
    Opaque: _ColumnEvaluator.opaque,
}
