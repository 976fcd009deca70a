"""Numbers of all kinds, and totals to which they have been added, some of which are taken out again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streamdsl.engine.columnar.accumulator_columns import AccumulatorColumns
from streamdsl.engine.columnar.accumulators import CountAccumulator, SumAccumulator
from streamdsl.engine.columnar.terms import ROWS, Part, Terms
from streamdsl.expr.table import column_of

real = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-4, 4, width=16),
    st.sampled_from(
        [2.0**53, 1.0, 2.0**-53, 2.0**-54, -(2.0**-106), 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1]
    ),
)
numbers = st.one_of(
    real, st.sampled_from([math.nan, math.inf, -math.inf, None, True, 2**45, -(2**63), 2**64, 10**25]), st.integers(-9, 9)
)


def totals_of(
    accumulator: SumAccumulator | CountAccumulator, values: Sequence[Any], taken_out: Sequence[Any] = ()
) -> AccumulatorColumns:
    """Return one position to which values have been added, and others too that have been taken out again."""
    totals = AccumulatorColumns(1)
    for column, sign in ((column_of([*values, *taken_out]), 1), (column_of(list(taken_out)), -1)):
        terms = Terms(len(column), [Part(ROWS, None, np.ones(len(column), dtype=np.int64), 1)])
        accumulator.add_terms(column, None, terms)
        totals.add(np.zeros(len(column), dtype=np.intp), terms.times(np.full(len(column), sign)))
    return totals


def result(accumulator: SumAccumulator | CountAccumulator, totals: AccumulatorColumns) -> Any:
    return accumulator.results(totals.take(np.array([0]))).tolist()[0]
