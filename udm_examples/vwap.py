"""The volume-weighted average price: what a unit cost on average, over all units that were traded.

Source: S. A. Berkowitz, D. E. Logue, E. A. Noser, *The Total Cost of Transactions on the NYSE*, The Journal of Finance 43(1),
97-112, 1988. VWAP = sum of price x size over sum of size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import streamdsl as sd
from udm_examples.exact_sum import ExactSum


@dataclass(frozen=True, slots=True)
class Trade:
    """A price, and how many units were traded at it."""

    price: float
    size: float


@dataclass(slots=True)
class Turnover:
    """What was paid, and how much was traded: the state of `Vwap`."""

    notional: ExactSum = field(default_factory=ExactSum)
    volume: ExactSum = field(default_factory=ExactSum)


class Vwap(sd.IncrementalUDA[Trade, Turnover, float | None]):
    """The volume-weighted average price of a window; None if nothing was traded.

    Trades are cancelled and corrected, often long after larger ones have come. Both sums are exact, so a cancelled trade leaves
    nothing behind: the result is that of the trades that stand, rounded once, whatever has come and gone.

    >>> module = Vwap()
    >>> state = module.add_events_to_state(module.create_state(), [Trade(10.0, 300), Trade(10.5, 100)])
    >>> module.compute_result(state)
    10.125
    >>> fat_finger = Trade(1e16, 1)
    >>> cancelled = module.remove_event_from_state(module.add_event_to_state(state, fat_finger), fat_finger)
    >>> module.compute_result(cancelled)
    10.125

    In a query over trades it needs no expression; over other rows, one that makes a `Trade`:

    >>> trades = sd.from_rows([(1, 2, Trade(10.0, 300)), (3, 4, Trade(10.5, 100)), (12, 13, Trade(11.0, 50))])
    >>> trades.tumbling_window(10).aggregate(Vwap()).run().cht()
    CHT
      [0, 10) 10.125
      [10, 20) 11.0
    >>> fills = sd.from_rows([(1, 2, {"px": 10.0, "qty": 300}), (3, 4, {"px": 10.5, "qty": 100})])
    >>> fills.tumbling_window(10).aggregate(vwap=Vwap().of(lambda e: Trade(e.px, e.qty))).run().cht()
    CHT
      [0, 10) vwap=10.125
    """

    reads: ClassVar[Sequence[str] | None] = ("price", "size")

    def create_state(self) -> Turnover:
        """Return the turnover of no trades."""
        return Turnover()

    def add_event_to_state(self, state: Turnover, payload: Trade) -> Turnover:
        """Count a trade."""
        state.notional.add(payload.price, payload.size)
        state.volume.add(payload.size)
        return state

    def remove_event_from_state(self, state: Turnover, payload: Trade) -> Turnover:
        """Count a trade no longer."""
        state.notional.remove(payload.price, payload.size)
        state.volume.remove(payload.size)
        return state

    def merge_states(self, a: Turnover, b: Turnover) -> Turnover:
        """Return the turnover of both."""
        a.notional.merge(b.notional)
        a.volume.merge(b.volume)
        return a

    def compute_result(self, state: Turnover) -> float | None:
        """Return the price of a unit."""
        return state.notional.over(state.volume) if state.volume.value else None
