"""The number of different values, estimated in a few kilobytes however many there are.

Source: P. Flajolet, E. Fusy, O. Gandouet, F. Meunier, *HyperLogLog: the Analysis of a Near-Optimal Cardinality Estimation
Algorithm*, AofA 2007; here as Apache DataSketches implements it (extra `sketches`). With k = 2 ** lg_k registers the relative
standard error is 1.04 / sqrt(k); below about k / 10 values there is next to none.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import streamdsl as sd
from udm_examples.settings import whole
from udm_examples.sketch_state import SketchState, datasketches


class DistinctSketch(sd.IncrementalUDA[object, SketchState, int]):
    """The estimated number of different values; `1` and `1.0` are one value, None is none.

    Values go in and never out, so a window that loses a member is counted anew. The library's own estimate of a sketch depends on
    the order in which its values came. Here it is made from the registers alone: windows with equal values have equal counts, and
    parts may be merged.

    Values are scalars, or tuples of them. `lg_k`, from 7 to 21, is the logarithm of the number of registers, a byte each: 12
    means 4 kB and a standard error of 1.6 %.

    Raises `QueryError` for another `lg_k`, or if `datasketches` is not installed.

    >>> module = DistinctSketch()
    >>> module.compute_result(module.add_events_to_state(module.create_state(), ["a", "b", "a", 1, 1.0, None]))
    3
    >>> state = module.add_events_to_state(module.create_state(), range(100_000))
    >>> abs(module.compute_result(state) - 100_000) < 5_000
    True

    In a query:

    >>> clicks = sd.from_rows([(t, t + 1, {"user": f"u{t % 3}"}) for t in range(15)])
    >>> clicks.tumbling_window(10).aggregate(users=DistinctSketch().of(lambda e: e.user)).run().cht()
    CHT
      [0, 10) users=3
      [10, 20) users=3
    """

    empty_result: Any = 0

    def __init__(self, lg_k: int = 12) -> None:
        self.lg_k = whole("lg_k", lg_k, 7, 21)
        datasketches()

    def create_state(self) -> SketchState:
        """Return an empty sketch."""
        library = datasketches()
        return SketchState(library.hll_sketch(self.lg_k, library.HLL_8))

    def add_event_to_state(self, state: SketchState, payload: object) -> SketchState:
        """Count a value."""
        if payload is not None:
            state.sketch.update(_text(payload))
        return state

    def merge_states(self, a: SketchState, b: SketchState) -> SketchState:
        """Return the sketch of the values of both."""
        return SketchState(self._union(a, b).get_result(datasketches().HLL_8))

    def compute_result(self, state: SketchState) -> int:
        """Return the estimate that the registers alone give: the union of a sketch with itself knows no order of arrival."""
        return round(float(self._union(state, state).get_estimate()))

    def _union(self, a: SketchState, b: SketchState) -> Any:
        union = datasketches().hll_union(self.lg_k)
        union.update(a.sketch)
        union.update(b.sketch)
        return union


def _text(value: object) -> str:
    """Return the same text for equal values, and only for them."""
    if isinstance(value, tuple):
        return f"({','.join(map(_text, value))})"
    if isinstance(value, (int, float, Decimal, Fraction)):
        return "{:x}/{:x}".format(*value.as_integer_ratio()) if math.isfinite(value) else repr(float(value))
    return repr(value)
