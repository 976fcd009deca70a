"""Anomalies by median and MAD: what lies far from the middle, measured so that the anomalies themselves do not widen the measure.

Source: B. Iglewicz, D. C. Hoaglin, *How to Detect and Handle Outliers*, ASQC Quality Press 1993: the modified z-score
`0.6745 * (x - median) / MAD`, MAD the median of the distances from the median; an anomaly has one beyond 3.5. The constant is the
third quartile of the standard normal distribution: it gives the scores of normal data the scale of ordinary z-scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import streamdsl as sd
from udm_examples.exact_sum import ExactSum
from udm_examples.median import Median
from udm_examples.settings import positive

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAD_TO_SIGMA: Final = 0.6745
"""The MAD of a normal distribution, in standard deviations."""
MEAN_TO_SIGMA: Final = math.sqrt(2 / math.pi)
"""The mean distance from the middle of a normal distribution, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Anomaly(Generic[T_co]):
    """A row that does not fit its window, and its modified z-score."""

    row: T_co
    score: float


class RobustZScore(sd.UDO[T, Anomaly[T]]):
    """The rows of a window whose value has a modified z-score beyond the threshold.

    Where more than half of the values are equal the MAD is 0, and the mean distance from the median takes its place, as in IBM
    SPSS. Where all are equal nothing is an anomaly. Rows whose value is NaN or infinite take no part.

    Raises `QueryError` if the threshold is not positive and finite.

    >>> found = RobustZScore(of=lambda amount: amount).compute_result([11.0, 12.0, 13.0, 12.5, 11.5, 90.0])
    >>> [(anomaly.row, round(anomaly.score, 1)) for anomaly in found]
    [(90.0, 69.9)]

    In a query it gives back whole rows:

    >>> amounts = [11, 12, 13, 12, 11, 90, 12]
    >>> payments = sd.from_rows([(t, t + 1, {"card": f"C{t}", "amount": amount}) for t, amount in enumerate(amounts)])
    >>> query = payments.tumbling_window(10).apply(RobustZScore(of=lambda payment: payment.amount))
    >>> [(le, re, anomaly.row.card, anomaly.row.amount) for le, re, anomaly in query.run()]
    [(0, 10, 'C5', 90)]
    """

    def __init__(self, of: Callable[[T], float], threshold: float = 3.5) -> None:
        self.of = of
        self.threshold = positive("threshold", threshold)

    def compute_result(self, payloads: Sequence[T]) -> Iterator[Anomaly[T]]:
        """Yield the anomalies with their scores."""
        measured = [(row, value) for row in payloads if math.isfinite(value := self.of(row))]
        if not measured:
            return
        middle = _median([value for _, value in measured])
        distances = [abs(value - middle) for _, value in measured]
        sigma = _median(distances) / MAD_TO_SIGMA or _mean(distances) / MEAN_TO_SIGMA
        if not sigma:
            return
        for row, value in measured:
            if abs(value - middle) > self.threshold * sigma:
                yield Anomaly(row, (value - middle) / sigma)


_median = Median().compute_result


def _mean(values: Sequence[float]) -> float:
    total = ExactSum()
    for value in values:
        total.add(value)
    return total.over(ExactSum(len(values)))
