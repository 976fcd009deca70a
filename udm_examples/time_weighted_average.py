"""The time-weighted average: each value counts for as long as it holds in the window.

Source: M. Ali, B. Chandramouli, J. Goldstein, R. Schindlauer, *The Extensibility Framework in Microsoft StreamInsight*, ICDE
2011 (paper 001), section IV.C, `MyTimeWeightedAverage`: the sum of value x lifetime over the length of the window.

Both modules take lifetimes as the query clips them. With `clip=sd.Clip.FULL` the weights are the shares of the window; unclipped,
an event that reaches beyond the window counts with all of its lifetime, as in the paper's code. A time at which nothing holds
counts as 0; `to_edges` lets each value hold until the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamdsl as sd
from udm_examples.exact_sum import ExactSum


class TimeWeightedAverage(sd.TimeSensitiveUDA[float, float]):
    """The time-weighted average as the paper writes it: all events of the window at once.

    >>> events = [sd.IntervalEvent(0, 3, 4.0), sd.IntervalEvent(2, 10, 8.0)]
    >>> TimeWeightedAverage().compute_result(events, sd.WindowDescriptor(0, 10))
    7.6

    In a query, a load that holds until the next reading, cut at the windows' ends:

    >>> loads = sd.from_rows([(0, 3, 40.0), (3, 15, 20.0), (15, 20, 60.0)])
    >>> query = loads.tumbling_window(10, clip=sd.Clip.FULL).aggregate(load=TimeWeightedAverage().of(lambda e: e))
    >>> query.run().cht()
    CHT
      [0, 10) load=26.0
      [10, 20) load=40.0
    """

    def compute_result(self, events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> float:
        """Return the sum of value x lifetime over the length of the window."""
        total = ExactSum()
        for event in events:
            total.add(event.payload, _lifetime(event))
        return total.over(ExactSum(window.duration))


class IncrementalTimeWeightedAverage(sd.TimeSensitiveIncrementalUDA[float, ExactSum, float]):
    """The time-weighted average with a state, the sum of value x lifetime: a correction costs the same in windows of any size.

    An event whose end is corrected is taken out with its old lifetime and put in with its new one. As the sum is exact, the
    result is that of the definition, to the last bit.

    >>> module, window = IncrementalTimeWeightedAverage(), sd.WindowDescriptor(0, 10)
    >>> state = module.add_events_to_state(
    ...     module.create_state(), [sd.IntervalEvent(0, 3, 4.0), sd.IntervalEvent(2, 10, 8.0)], window
    ... )
    >>> module.compute_result(state, window)
    7.6
    >>> module.compute_result(module.remove_event_from_state(state, sd.IntervalEvent(0, 3, 4.0), window), window)
    6.4

    In a query it stands where the other one does:

    >>> loads = sd.from_rows([(0, 3, 40.0), (3, 15, 20.0), (15, 20, 60.0)])
    >>> loads.tumbling_window(10, clip=sd.Clip.FULL).aggregate(IncrementalTimeWeightedAverage(), lambda e: e).run().cht()
    CHT
      [0, 10) 26.0
      [10, 20) 40.0
    """

    def create_state(self) -> ExactSum:
        """Return the sum of nothing."""
        return ExactSum()

    def add_event_to_state(self, state: ExactSum, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> ExactSum:
        """Add value x lifetime."""
        state.add(event.payload, _lifetime(event))
        return state

    def remove_event_from_state(self, state: ExactSum, event: sd.IntervalEvent[float], window: sd.WindowDescriptor) -> ExactSum:
        """Take value x lifetime out again."""
        state.remove(event.payload, _lifetime(event))
        return state

    def merge_states(self, a: ExactSum, b: ExactSum) -> ExactSum:
        """Return the sum of two parts."""
        a.merge(b)
        return a

    def compute_result(self, state: ExactSum, window: sd.WindowDescriptor) -> float:
        """Return the sum over the length of the window."""
        return state.over(ExactSum(window.duration))


def _lifetime(event: sd.IntervalEvent[float]) -> int:
    return event.end_time - event.start_time
