"""What an operator of the local engine is: net changes and a CTI in, net changes and a CTI out."""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch
from streamdsl.engine.frontiers import UNKNOWN, Frontier
from streamdsl.engine.ids import Ids, name
from streamdsl.engine.keys import KeyTable, parts_of
from streamdsl.engine.row_batch import RowBatch, size_of
from streamdsl.engine.window_budget import MOST, Arrivals
from streamdsl.errors import UserCodeError
from streamdsl.expr import Inputs, RowError, evaluate, evaluate_nested, held, key_values, truth
from streamdsl.expr.held import AnyColumn
from streamdsl.expr.nodes import Expr
from streamdsl.expr.scalars import Program, RowFunction, Step, left_to_columns
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Column, flatnonzero
from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import INFINITY, MIN_TIME

MatchKey: TypeAlias = tuple[int | None, Hashable]
"""The group that a row is in, and what its key has in common with equal ones."""


class Piece(NamedTuple):
    """One piece of input or output: the net changes, and then the CTI that holds (MIN_TIME: none yet)."""

    batch: Batch
    cti: int


piece_of: Final[Callable[[tuple[Batch, int]], Piece]] = functools.partial(tuple.__new__, Piece)
"""A piece of its parts, made at less than half the cost: there is one for each operator and push."""


@dataclass(frozen=True, slots=True)
class EmitPolicy:
    """Which windows may show their results, given the watermark (api, section 5)."""

    by_end: bool = False
    until: int = INFINITY
    final: bool = False
    """Whether only results that no longer change are wanted: an operator may keep the others back."""
    most: int = MOST
    """How many windows may come of a push, as in `WindowBudget`."""

    def limit(self, high_water: int) -> int:
        """Return the latest LE (or, by end, RE) that is open."""
        return high_water

    def is_open(self, le: int, re: int, high_water: int) -> bool:
        """Say whether a window may show its result."""
        return (re if self.by_end else le) <= high_water and re <= self.until


class Operator(ABC):
    """A running operator. `step` is called once per piece of a push, when all inputs have their part of it.

    Subclasses say how changes pass (`change`), what a CTI lets them forget (`forget`), how far it settles their output
    (`output_cti`), up to which RE its rows are final (`final_frontier`), and which rows they hold back (`held_back`), which
    their own CTI waits for. Between steps an operator keeps only what a later legal change can still need.
    """

    kind: str = ""
    """The engine operator's name in `explain()`."""
    takes_emit_policy: ClassVar[bool] = False
    """Whether it is made with the gate too: it shows results cell by cell, or window by window."""

    takes_slices: ClassVar[bool] = False
    """Whether it takes a batch in slices as they have come through the operators before it."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.key_table: KeyTable | None = None
        self.input_ctis: list[int] = []
        self.cti_limit = MIN_TIME
        self.cti = MIN_TIME
        self.rows_in = 0
        self.rows_out = 0
        self.udm_calls = 0
        self.ending = False

    def step(self, inputs: Sequence[Piece]) -> Piece:
        """Take one piece of every input and return the piece of output that it causes."""
        batches, ctis = [], []
        for batch, cti in inputs:
            batches.append(batch)
            ctis.append(cti)
        risen = ctis != self.input_ctis
        if not risen and not self.ending and not any(map(len, batches)):
            return Piece(EMPTY, self.cti)
        self.input_ctis = ctis
        if len(batches) > 1:
            out = self._change_rows_of_one(batches)
        else:
            out = self.change_rows(batch, cti) if type(batch) is RowBatch else None
        out = self.change([each.columns if type(each) is RowBatch else each for each in batches], ctis) if out is None else out
        for batch in batches:
            self.rows_in += size_of(batch)
        self.rows_out += size_of(out)
        if risen:
            self._follow_ctis(ctis)
        return piece_of((out, self._risen()))

    def _change_rows_of_one(self, batches: Sequence[Batch]) -> Batch | None:
        """Let few changes of one input pass, if that is all; None, and nothing is done, where columns have to say."""
        came = [place for place, batch in enumerate(batches) if size_of(batch)]
        few = batches[came[0]] if len(came) == 1 else None
        return self.change_rows_of(came[0], few) if type(few) is RowBatch else None

    def process_rows(self, batch: RowBatch, cti: int) -> tuple[Batch, int]:
        """Do as `step` does with a piece of the only input."""
        out = self.change_rows(batch, cti)
        if out is None:
            return self.step((piece_of((batch.columns, cti)),))
        return self.finish_rows(batch, out, [cti])

    def finish_rows(self, batch: RowBatch, out: Batch, ctis: list[int]) -> tuple[Batch, int]:
        """Note what has come and what is made of it, and these CTIs of all inputs; return that, and the CTI."""
        self.rows_in += len(batch.changes)
        self.rows_out += len(out.changes) if type(out) is RowBatch else len(out)
        if ctis != self.input_ctis:
            self.input_ctis = ctis
            self._follow_ctis(ctis)
        return out, self.cti if self.cti_limit <= self.cti else self._risen()

    def _follow_ctis(self, ctis: list[int]) -> None:
        """Let go of what is not needed after the CTIs of the inputs, and find out how far they settle the output."""
        cti = min(ctis)
        self.forget(cti)
        self.cti_limit = INFINITY if cti == INFINITY else self.output_cti(ctis)

    def _risen(self) -> int:
        """Return its CTI, which goes as far as the output is settled and no rows are held back."""
        if self.cti_limit > self.cti:
            self.cti = INFINITY if self.cti_limit == INFINITY else max(self.cti, min(self.cti_limit, self.held_back()))
        return self.cti

    @abstractmethod
    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        """Return the net change of the output; the new CTIs count for the watermark."""

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        """Return what `change` does, in Python's own values; None, and nothing is done, where that is not so simple."""
        return None

    def change_rows_of(self, place: int, batch: RowBatch) -> Batch | None:
        """Return what `change_rows` does, of changes of one of several inputs and of none of the others."""
        return None

    def forget(self, cti: int) -> None:
        """Drop the state that no change with sync time >= `cti` can need."""

    @property
    def passes_ctis(self) -> bool:
        """Whether its CTI is that of its input, always."""
        return False

    @property
    def emits_at_window_end(self) -> bool:
        """Whether it is of windows that show their results when a CTI passes their ends, and then only."""
        return False

    @property
    def is_grouped(self) -> bool:
        """Whether it is in the body of a group-apply."""
        return self.key_table is not None

    def path(self, group: int | None) -> Hashable:
        """Return what stands for a group in row ids."""
        return None if self.key_table is None or group is None else self.key_table.path(group)

    def held_groups(self) -> Iterable[int | None]:
        """Return the groups of which there is state; all others may be forgotten."""
        return ()

    def max_new_windows(self, arrivals: Arrivals) -> float:
        """Return at most how many windows it makes of what comes; 0 if that is bounded by what came before."""
        return 0

    def output_cti(self, ctis: list[int]) -> int:
        """Return how far the output is settled after CTIs (semantics, section 2, liveliness)."""
        return min(ctis)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """Return up to which RE the output's rows are final, where that is later than what its CTI says."""
        return UNKNOWN

    def held_back(self) -> int:
        """Return the first LE of the rows that wait to be shown, INFINITY if there are none."""
        return INFINITY

    def held_ends(self) -> list[int]:
        """Return the REs of the results that are not shown as they are not final (`EmitPolicy.final`)."""
        return []

    def flush_deferred(self) -> None:
        """Put into its place what has been left aside, as somebody looks at the state."""

    def state(self) -> dict[str, int]:
        """Return the sizes of the state: windows and events."""
        return {"windows": 0, "events": 0}

    def stats(self) -> dict[str, int]:
        """Return the operator's figures for `session.stats()`."""
        return {
            **self.state(),
            "in": self.rows_in,
            "out": self.rows_out,
            "input_cti": min(self.input_ctis, default=MIN_TIME),
            "output_cti": self.cti,
            "udm_calls": self.udm_calls,
        }

    def evaluate(self, expr: Expr, inputs: Inputs, batch: Batch) -> Column:
        """Return an expression's column; an exception of user code names this operator and the event."""
        try:
            return evaluate(expr, inputs)
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause

    def evaluate_nested(self, expr: Expr, inputs: Inputs, batch: Batch) -> AnyColumn:
        """Return an expression's column, payloads as rows of a table; errors as in `evaluate`."""
        try:
            return evaluate_nested(expr, inputs)
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause

    def holds(self, predicate: Expr, inputs: Inputs, batch: Batch) -> NDArray[np.bool_]:
        """Return `bool(predicate)` of every row; errors as in `evaluate`."""
        try:
            return truth(predicate, inputs)
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause

    def argument(self, expr: Expr, where: Expr | None, batch: Batch, inputs: Inputs) -> tuple[Column, NDArray[np.bool_] | None]:
        """Return an aggregate's argument and which rows its `where` has chosen, None: all; on no other row is it evaluated."""
        chosen = None if where is None else self.holds(where, inputs, batch)
        if chosen is None or chosen.all():
            return self.evaluate(expr, inputs, batch), chosen
        rows = flatnonzero(chosen)
        part = batch.take(rows)
        values = self.evaluate(expr, inputs_of(part), part)
        column = np.full(len(batch), None, dtype=object) if values.dtype == object else np.zeros(len(batch), dtype=values.dtype)
        column[rows] = values
        return column, chosen

    def keys(self, key: Expr | None, batch: Batch) -> list[MatchKey]:
        """Return each row's group, and what equal keys have in common; errors as in `evaluate`."""
        groups = batch.group_keys()
        if key is None:
            return [(group, None) for group in groups]
        try:
            return list(zip(groups, key_values(key, inputs_of(batch)), strict=True))
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause

    def key_parts(self, key: Expr, batch: Batch) -> list[AnyColumn]:
        """Return the parts of each row's key. An error is that of the first row whose key fails, whichever part of it."""
        inputs = inputs_of(batch)
        try:
            return [held(part, inputs) for part in parts_of(key)]
        except RowError:
            self.evaluate(key, inputs, batch)
            raise AssertionError("a key fails where one of its parts does") from None

    def user_error(self, error: RowError, ids: Ids | None = None, window: Hashable = None) -> UserCodeError:
        """Return what a user sees of an error in row `error.row`."""
        event: Any = None if ids is None else plain(name(ids[error.row]))
        return UserCodeError(error.cause, operator=self.label, event=event, window=window, payloads=error.payloads)


class RowOperator(Operator):
    """An operator that looks at each row by itself and keeps none, so that a batch may pass it slice by slice.

    `change` is given rows only, and has no part in CTIs; so a step costs little besides.
    """

    reads_re = False
    """Whether what becomes of a row depends on its RE; of others CTIs and final frontiers are those of the input."""

    @property
    @abstractmethod
    def row_step(self) -> Step:
        """What becomes of a row's values and of its group."""

    @functools.cached_property
    def _program(self) -> Program:
        return Program([self.row_step])

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return inputs[0].final

    def step(self, inputs: Sequence[Piece]) -> Piece:
        ((batch, cti),) = inputs
        passed = batch.mapped(self._program.of(batch.schema), self._program.schema) if type(batch) is RowBatch else None
        if passed is not None:
            out, _ = passed
        else:
            batch = batch.columns if type(batch) is RowBatch else batch
            out = self.change([batch], [cti]) if len(batch.le) else EMPTY
        self.rows_in += size_of(batch)
        self.rows_out += size_of(out)
        if cti > self.cti:
            self.input_ctis = [cti]
            self.cti = cti if cti == INFINITY else max(self.cti, self.output_cti(self.input_ctis))
        return piece_of((out, self.cti))


class FusedOperators:
    """Row operators in a row, which few changes pass at once, by one function.

    Where it cannot be said in Python's own values what one of them does, those behind it are passed one by one. They are told how
    many rows have passed when somebody looks at them (`flush_counters`).
    """

    def __init__(self, operators: Sequence[RowOperator]) -> None:
        self._operators = operators
        self._program = Program([operator.row_step for operator in operators])
        self._of: Schema | None = None
        self._function: RowFunction = left_to_columns
        self._schema = Schema.object()
        self._fused: Sequence[RowOperator] = ()
        self._rest: Sequence[RowOperator] = ()
        self._size = 0
        self._cti = MIN_TIME

    def process_rows(self, batch: RowBatch, cti: int) -> tuple[Batch, int]:
        """Take one piece and return what comes of it."""
        if batch.schema is not self._of:
            self._fuse_for(batch.schema)
        passed = batch.mapped(self._function, self._schema)
        if passed is None:
            return through(self._operators, piece_of((batch.columns, cti)))
        out, dropped = passed
        self._size += len(batch.changes)
        self._cti = cti
        if dropped:
            self._uncount(dropped)
        return through(self._rest, piece_of((out, cti))) if self._rest else (out, cti)

    def step(self, inputs: Sequence[Piece]) -> Piece:
        """Take one piece in columns, as operators do."""
        (piece,) = inputs
        self.flush_counters()
        return through(self._operators, piece)

    def _fuse_for(self, schema: Schema) -> None:
        """Find out which operators the rows of a schema pass at once."""
        self.flush_counters()
        self._of, self._function = schema, self._program.of(schema)
        self._schema, length = self._program.schema, self._program.length
        self._fused, self._rest = self._operators[:length], self._operators[length:]

    def _uncount(self, dropped: Sequence[int]) -> None:
        """Let operators know of rows that have been dropped before they came out, or in."""
        for place, operator in enumerate(self._fused):
            operator.rows_in -= sum([step < place for step in dropped])
            operator.rows_out -= sum([step <= place for step in dropped])

    def flush_counters(self) -> None:
        """Let operators know how many rows, and which CTI, have passed since the last time."""
        for operator in self._fused:
            operator.rows_in += self._size
            operator.rows_out += self._size
            if self._cti > operator.cti:
                operator.input_ctis = [self._cti]
                operator.cti = self._cti
        self._size = 0


class InputPort:
    """One input of an operator of several, while nothing comes to the others: an operator of one input, as it were."""

    def __init__(self, operator: Operator, place: int) -> None:
        self._operator = operator
        self._place = place

    def process_rows(self, batch: RowBatch, cti: int) -> tuple[Batch, int]:
        """Take one piece and return what comes of it."""
        operator, place = self._operator, self._place
        out = operator.change_rows_of(place, batch)
        if out is None:
            return self.step((piece_of((batch.columns, cti)),))
        ctis = list(operator.input_ctis)
        ctis[place] = cti
        return operator.finish_rows(batch, out, ctis)

    def step(self, inputs: Sequence[Piece]) -> Piece:
        """Take one piece in columns, as operators do."""
        pieces = [piece_of((EMPTY, cti)) for cti in self._operator.input_ctis]
        (pieces[self._place],) = inputs
        return self._operator.step(pieces)


Part: TypeAlias = Operator | FusedOperators | InputPort
"""What few changes pass one after the other."""


def through(parts: Iterable[Part], piece: Piece) -> Piece:
    """Run a piece through operators, each of which reads the one before it."""
    batch, cti = piece
    for part in parts:
        batch, cti = part.process_rows(batch, cti) if type(batch) is RowBatch else part.step((piece_of((batch, cti)),))
    return piece_of((batch, cti))


def pipeline_of(operators: Iterable[Operator | InputPort]) -> list[Part]:
    """Return operators, each of which reads the one before it, as few rows pass them: row operators together."""
    found: list[Part] = []
    for passes_rows, run in itertools.groupby(operators, lambda operator: isinstance(operator, RowOperator)):
        each: list[Any] = list(run)
        found += [FusedOperators(each)] if passes_rows else each
    return found


def inputs_of(batch: Batch) -> Inputs:
    """Return a batch as what expressions are evaluated over; `life` is the lifetime after the change."""
    re = (lambda: batch.re_new) if batch.are_points else batch.re_new
    return Inputs((batch.table,), batch.table.size, batch.le, re)
