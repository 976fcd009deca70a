"""The operator of the local engine: changes and CTIs in, net changes and a CTI out."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamdsl.engine.batch import EMPTY, Batch, together
from streamdsl.engine.frontiers import UNKNOWN, Frontier
from streamdsl.engine.ids import Ids, name
from streamdsl.engine.keys import KeyTable, parts_of
from streamdsl.engine.row_batch import RowBatch, size_of
from streamdsl.engine.window_budget import MOST, Arrivals
from streamdsl.errors import UserCodeError
from streamdsl.expr.deferred import AnyColumn
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, evaluate_deferred, evaluate_nested, key_values, truth
from streamdsl.expr.nodes import Expr
from streamdsl.expr.row_program import RowProgram, Step
from streamdsl.expr.table import Column, flatnonzero
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import plain
from streamdsl.temporal.time import INFINITY, MIN_TIME

MatchKey: TypeAlias = tuple[int | None, Hashable]
"""The group of a row and its normalized key: keys that are equal have equal ones."""


class Piece(NamedTuple):
    """One step's input or output on one stream: net changes, then the CTI that holds after them (MIN_TIME: none yet)."""

    batch: Batch
    cti: int


piece_of: Final[Callable[[tuple[Batch, int]], Piece]] = functools.partial(tuple.__new__, Piece)
"""Make a `Piece` of a tuple. This costs less than half of calling the class, and there is one per operator and step."""


class Kept(NamedTuple):
    """What an operator keeps of rows that it need not read again: the state of a module or the totals of an aggregate, by `name`.

    It is that of a group (None: there are none) and, of windows, of one of them.
    """

    group: int | None
    window: Lifetime | None
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class EmitPolicy:
    """Which windows may show their results, given the high water of the input.

    Without `by_end` a window shows from its start on (`emit="speculative"`), with it once its end is reached
    (`emit="watermark"`). A window that ends after `until`, the end of a bounded run, never shows.
    """

    by_end: bool = False
    until: int = INFINITY
    final: bool = False
    """Whether only final results are wanted (`emit="final"`): an operator may then keep back those that can still change."""
    most: int = MOST
    """The most windows that a push may make, as in `WindowBudget`."""


def figures(n_in: int, n_out: int, input_cti: int, output_cti: int, events: int, windows: int = 0) -> dict[str, int]:
    """Return what `session.stats()` says of an operator, a source or an output."""
    sizes = {"windows": windows, "events": events, "in": n_in, "out": n_out}
    return {**sizes, "input_cti": input_cti, "output_cti": output_cti, "udm_calls": 0}


class Operator(ABC):
    """A running operator. `step` is called once for each piece of a push, when every input has its part of it.

    A subclass defines how changes are processed (`change`), which state a CTI makes unnecessary (`forget`), how far the output
    CTI may advance (`output_cti`), up to which RE its rows are final (`final_frontier`), and the first LE of the rows that it
    holds back (`held_back`), which the output CTI does not pass.

    Invariants: the output CTI never goes back, no change has a sync time before it, and between steps an operator keeps only
    state that a later legal change can need.
    """

    kind: str = ""
    """The operator's name in `explain()`."""
    takes_emit_policy: ClassVar[bool] = False
    """Whether the constructor takes the `EmitPolicy` too: the operator shows results window by window, or cell by cell."""

    numbers_rows: ClassVar[bool] = False
    """Whether it numbers its rows in the order in which they come, so that in shards several get the same id."""

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
        """Process one piece of every input and return the piece of output."""
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
        """Process a row batch of one input, if the others have no changes; None, with no effect: the columnar path must run."""
        came = [place for place, batch in enumerate(batches) if size_of(batch)]
        only = batches[came[0]] if len(came) == 1 else None
        return self.change_rows_of(came[0], only) if type(only) is RowBatch else None

    def _follow_ctis(self, ctis: list[int]) -> None:
        """Drop the state that the CTIs of the inputs make unnecessary, and find out how far the output CTI may advance."""
        cti = min(ctis)
        self.forget(cti)
        self.cti_limit = INFINITY if cti == INFINITY else self.output_cti(ctis)

    def _risen(self) -> int:
        """Advance the output CTI to its limit, or to the first row that is held back, and return it."""
        if self.cti_limit > self.cti:
            self.cti = INFINITY if self.cti_limit == INFINITY else max(self.cti, min(self.cti_limit, self.held_back()))
        return self.cti

    @abstractmethod
    def change(self, batches: list[Batch], ctis: list[int]) -> Batch:
        """Return the net change of the output. The CTIs count for the high water, and are otherwise handled by `step`."""

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        """Return what `change` returns, computed row by row; None, with no effect, if the columnar path must run."""
        return None

    def change_rows_of(self, place: int, batch: RowBatch) -> Batch | None:
        """Do what `change_rows` does, for one of several inputs while the others have no changes."""
        return None

    def forget(self, cti: int) -> None:
        """Drop the state that no change with sync time >= `cti` can need."""

    @property
    def passes_ctis(self) -> bool:
        """Whether the output CTI always is the input's."""
        return False

    @property
    def brings_rows_back(self) -> bool:
        """Whether a row may be withdrawn and come again under one id and version, as its RE moves in the input."""
        return False

    @property
    def trails_cti(self) -> bool:
        """Whether the output CTI is at a fixed distance behind the input's, and so waits for nothing."""
        return False

    @property
    def emits_at_window_end(self) -> bool:
        """Whether it is a window operator that emits a result when a CTI passes the window's end, and at no other time."""
        return False

    @property
    def is_grouped(self) -> bool:
        """Whether it runs inside a group-apply."""
        return self.key_table is not None

    def path(self, group: int | None) -> Hashable:
        """Return what identifies a group in row ids."""
        return None if self.key_table is None or group is None else self.key_table.path(group)

    def held_groups(self) -> Iterable[int | None]:
        """Return the groups that have state here; the key table may forget all others."""
        return ()

    def max_new_windows(self, arrivals: Arrivals) -> float:
        """Return an upper bound of the windows that some arrivals make; 0 if earlier input bounds it already."""
        return 0

    def output_cti(self, ctis: list[int]) -> int:
        """Return how far the output CTI may advance after these input CTIs (docs/semantics.md, section 2, liveliness)."""
        return min(ctis)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        """Return the RE up to which rows of the output are final, if that is later than what the output CTI implies."""
        return UNKNOWN

    def held_back(self) -> int:
        """Return the first LE of the rows that are not shown yet, INFINITY if there are none."""
        return INFINITY

    def held_ends(self) -> list[int]:
        """Return the REs of the results that are kept back because they are not final (`EmitPolicy.final`)."""
        return []

    def kept(self) -> Iterator[Kept]:
        """Yield the states of modules and the totals of aggregates, for a debugger."""
        return iter(())

    def flush_deferred(self) -> None:
        """Bring the state into its columnar form, before it is measured or saved: the row path may have deferred that."""

    def state(self) -> dict[str, int]:
        """Return the size of the state: how many windows and events it holds."""
        return {"windows": 0, "events": 0}

    def stats(self) -> dict[str, int]:
        """Return the operator's figures for `session.stats()`."""
        cti = min(self.input_ctis, default=MIN_TIME)
        return figures(self.rows_in, self.rows_out, cti, self.cti, **self.state()) | {"udm_calls": self.udm_calls}

    def evaluate(self, expr: Expr, inputs: Inputs, batch: Batch) -> Column:
        """Evaluate an expression to a column. An exception of user code is raised with this operator and the event."""
        with self.reported(batch):
            return evaluate(expr, inputs)

    def evaluate_nested(self, expr: Expr, inputs: Inputs, batch: Batch) -> AnyColumn:
        """Evaluate an expression to a column, payloads as a nested table; errors as in `evaluate`."""
        with self.reported(batch):
            return evaluate_nested(expr, inputs)

    def holds(self, predicate: Expr, inputs: Inputs, batch: Batch) -> NDArray[np.bool_]:
        """Evaluate a predicate to a boolean column; errors as in `evaluate`."""
        with self.reported(batch):
            return truth(predicate, inputs)

    def argument(self, expr: Expr, where: Expr | None, batch: Batch, inputs: Inputs) -> tuple[Column, NDArray[np.bool_] | None]:
        """Return an aggregate's argument, and which rows its `where` selects (None: all).

        The argument is evaluated for these only.
        """
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
        """Return each row's group and normalized key; errors as in `evaluate`."""
        groups = batch.group_keys()
        if key is None:
            return [(group, None) for group in groups]
        with self.reported(batch):
            return list(zip(groups, key_values(key, inputs_of(batch)), strict=True))

    def key_parts(self, key: Expr, batch: Batch) -> list[AnyColumn]:
        """Return the columns of a key with several parts. An error is that of the first row whose key fails, in any part."""
        inputs = inputs_of(batch)
        try:
            return [evaluate_deferred(part, inputs) for part in parts_of(key)]
        except RowError:
            self.evaluate(key, inputs, batch)
            raise AssertionError("a key fails where one of its parts does") from None

    @contextmanager
    def reported(self, batch: Batch) -> Iterator[None]:
        """Raise an exception of user code over the rows of a batch with this operator and the event."""
        try:
            yield
        except RowError as error:
            raise self.user_error(error, batch.ids) from error.cause

    def user_error(self, error: RowError, ids: Ids | None = None, window: Hashable = None) -> UserCodeError:
        """Return the error that a user sees for row `error.row`."""
        event: Any = None if ids is None else plain(name(ids[error.row]))
        return UserCodeError(error.cause, operator=self.label, event=event, window=window, payloads=error.payloads)


class RowOperator(Operator):
    """A stateless operator that treats each row by itself: filter, projection, group enter and exit.

    Batches that are joined therefore pass it one by one. `change` gets rows only; CTIs are handled by `step`, at little cost.
    """

    reads_re = False
    """Whether the result for a row depends on its RE. If not, CTIs and the final frontier pass unchanged."""

    @property
    @abstractmethod
    def row_step(self) -> Step:
        """What it does to a row, as a step of a generated row program."""

    @functools.cached_property
    def _program(self) -> RowProgram:
        return RowProgram([self.row_step])

    def change_rows(self, batch: RowBatch, cti: int) -> Batch | None:
        return batch.mapped(self._program.function_for(batch.schema), self._program.schema)

    def final_frontier(self, inputs: Sequence[Frontier]) -> int:
        return inputs[0].final

    def step(self, inputs: Sequence[Piece]) -> Piece:
        ((batch, cti),) = inputs
        out = self.change_rows(batch, cti) if type(batch) is RowBatch else None
        if out is None:
            batch = batch.columns if type(batch) is RowBatch else batch
            out = together([self.change([part], [cti]) for part in batch.joined() if len(part)])
        self.rows_in += size_of(batch)
        self.rows_out += size_of(out)
        if cti > self.cti:
            self.input_ctis = [cti]
            self.cti = cti if cti == INFINITY else max(self.cti, self.output_cti(self.input_ctis))
        return piece_of((out, self.cti))


def inputs_of(batch: Batch) -> Inputs:
    """Return a batch as the inputs of expressions; `life` is the lifetime after the change."""
    re = (lambda: batch.re_new) if batch.are_points else batch.re_new
    return Inputs((batch.table,), batch.table.size, batch.le, re)
