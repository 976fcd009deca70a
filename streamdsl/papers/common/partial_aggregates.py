"""Partial aggregates: the accumulator of a group until it is complete, for each kind of aggregate.

Built-in aggregates keep a few numbers where they can, incremental modules their states, all others the list of members.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol

from streamdsl.errors import QueryError
from streamdsl.expr.schema import as_payload
from streamdsl.papers.common.row_functions import reader
from streamdsl.temporal.lifetime import Lifetime
from streamdsl.temporal.payload import payload_order
from streamdsl.udm.bases import UDA, Agg, AnyUDA
from streamdsl.udm.builtin import Avg, Count, Max, Min, Sum, exact_sum
from streamdsl.udm.incremental import add, create, keeps_state, value
from streamdsl.udm.invoke import MemberRow, aggregate, empty_result, guarded, member_order
from streamdsl.windows import Clip


class PartialAggregate(Protocol):
    """The accumulator of an aggregate, to which members are added one by one, in any order."""

    def create(self) -> Any:
        """Return the state of no members."""

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        """Return the state with one more member; the given one may be changed."""

    def result(self, state: Any, extent: Lifetime) -> Any:
        """Return the aggregate's value."""


def aggregate_of(fn: Any, label: str) -> PartialAggregate:
    """Return how an aggregate such as `sd.sum(lambda e: e.v)`, a module, or a function of the payloads is made.

    >>> from streamdsl.aggregates import count
    >>> made = aggregate_of(count(), "count")
    >>> made.add(made.add(made.create(), 5, "a", Lifetime(0, 9)), 3, "b", Lifetime(0, 9))
    2
    """
    if isinstance(fn, type) and issubclass(fn, AnyUDA):
        fn = fn()
    if isinstance(fn, (Agg, AnyUDA)):
        return _of_module(fn if isinstance(fn, Agg) else Agg(fn), label)
    if not callable(fn) or getattr(fn, "__module__", None) == "streamdsl.aggregates":
        raise QueryError(
            f"{fn!r} is no aggregate", hint="give one such as sd.avg(lambda e: e.fare), or a function of a list such as len"
        )
    return PayloadListAggregate(fn, label)


def _of_module(agg: Agg[Any, Any], label: str) -> PartialAggregate:
    if type(agg.function) is Count and agg.argument is None:
        return RowCount() if agg.where is None else ExpressionAggregate(RowCount(), agg, label)
    made: PartialAggregate = _few_values(agg.function) or ModuleAggregate(agg.function)
    if agg.argument is None and agg.where is None:
        return made
    return ExpressionAggregate(made, agg, label)


class ExpressionAggregate:
    """An aggregate of an expression over payloads, or of some payloads only."""

    def __init__(self, made: PartialAggregate, agg: Agg[Any, Any], label: str) -> None:
        self._made = made
        self._module = agg.function
        self._argument = None if agg.argument is None else reader(agg.argument, label)
        self._where = None if agg.where is None else reader(agg.where, label)

    def create(self) -> Any:
        return None

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        if self._where is not None and not self._where(payload):
            return state
        value = payload if self._argument is None else self._argument(payload)
        return self._made.add(self._made.create() if state is None else state, ts, value, extent)

    def result(self, state: Any, extent: Lifetime) -> Any:
        return empty_result(self._module) if state is None else self._made.result(state, extent)


class PayloadListAggregate:
    """A function of the list of payloads, sorted by ts, then payload, so that the order of arrival does not show."""

    def __init__(self, function: Callable[[list[Any]], Any], label: str) -> None:
        self._function = function
        self._label = label

    def create(self) -> Any:
        return []

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        state.append((ts, payload))
        return state

    def result(self, state: Any, extent: Lifetime) -> Any:
        payloads = [as_payload(payload) for _, payload in sorted(state, key=lambda each: (each[0], payload_order(each[1])))]
        return guarded(self._label, extent, lambda: self._function(payloads))


class ModuleAggregate:
    """Any module: an incremental one is kept as its state, another as the list of its members."""

    def __init__(self, module: AnyUDA[Any, Any]) -> None:
        self._module = module
        self._keeps_state = keeps_state(module)

    def create(self) -> Any:
        return create(self._module) if self._keeps_state else []

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        seen = as_payload(payload)
        member = MemberRow(ts, ts + 1, seen, (seen,))  # type: ignore[arg-type]
        if self._keeps_state:
            return add(self._module, 0, state, [member], extent, Clip.NONE)
        state.append(member)
        return state

    def result(self, state: Any, extent: Lifetime) -> Any:
        if self._keeps_state:
            return value(self._module, state, extent)
        return aggregate(self._module, 0, sorted(state, key=member_order), extent, Clip.NONE)


class RowCount:
    """`count()`: the number of members."""

    def create(self) -> Any:
        return 0

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        return state + 1

    def result(self, state: Any, extent: Lifetime) -> Any:
        return state


class FewValues:
    """Aggregates of values that are not None: how many there are, and a few values that have the same aggregate as all."""

    def __init__(self, module: UDA[Any, Any], condense: Callable[[list[Any]], list[Any]]) -> None:
        self._module = module
        self._condense = condense

    def create(self) -> Any:
        return [0]

    def add(self, state: Any, ts: int | float, payload: Any, extent: Lifetime) -> Any:
        if payload is None:
            return state
        state[0] += 1
        state.append(payload)
        if len(state) >= _MANY and not len(state) & (len(state) - 1):  # what cannot be condensed is looked at ever more rarely
            state[1:] = self._condense(state[1:])
        return state

    def result(self, state: Any, extent: Lifetime) -> Any:
        n, *values = state
        if not n:
            return empty_result(self._module)
        if isinstance(self._module, Count):
            return n
        return exact_sum(values) / n if isinstance(self._module, Avg) else self._module.compute_result(values)


_MANY: Final = 64


def _few_values(module: Any) -> FewValues | None:
    """Return how a built-in aggregate is kept for which a few values are enough; None for another module."""
    if type(module) in (Sum, Avg):
        return FewValues(module, condensed)
    if type(module) in (Min, Max):
        return FewValues(module, lambda values: [module.compute_result(values)])
    return FewValues(module, lambda values: []) if type(module) is Count else None


def condensed(values: list[Any]) -> list[Any]:
    """Return fewer values whose sum is the same, bit by bit.

    >>> condensed([1, 2, 1e16, 1.0, -1e16])
    [3, 1.0]
    """
    wholes = [each for each in values if isinstance(each, int)]
    floats = [each for each in values if type(each) is float]
    if len(wholes) + len(floats) < len(values):
        return values
    finite = [each for each in floats if math.isfinite(each)]
    special = {repr(each): each for each in floats if not math.isfinite(each)}
    return [*([sum(wholes)] if wholes else []), *_expansion(finite), *special.values()]


def _expansion(floats: list[float]) -> list[float]:
    """Return floats none of which overlaps another, with the same sum (Shewchuk 1997, as in `math.fsum`)."""
    rest, found = sum(map(Fraction, floats), Fraction()), []
    while rest:
        try:
            part = float(rest)
        except OverflowError:
            return floats
        found.append(part)
        rest -= Fraction(part)
    return found or ([0.0] if floats else [])
