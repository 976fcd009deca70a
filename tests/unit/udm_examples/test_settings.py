"""A setting that means nothing is refused where the query is written, with a word on what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from streamdsl.errors import QueryError
from udm_examples import (
    Busiest,
    Circle,
    DistinctSketch,
    DoubleTop,
    Ewma,
    FollowedBy,
    Geofence,
    Hysteresis,
    KllQuantile,
    LinearTrend,
    LogQuantile,
    Polygon,
    RobustZScore,
    SequencePattern,
    Sessionizer,
    SlidingQuantile,
    SlidingTopK,
    Step,
    TopK,
)
from udm_examples.settings import positive, ticks, whole

YARD = Polygon("yard", ((0, 0), (4, 0), (4, 4)))
DURATIONS: list[Callable[[Any], object]] = [
    lambda gap: Sessionizer(gap),
    lambda within: FollowedBy(bool, bool, within),
    lambda within: SequencePattern([Step("a", bool)], within),
    lambda per: LinearTrend(per),
]
SIZES: list[Callable[[Any], object]] = [Busiest, lambda k: TopK(k, by=float), lambda k: SlidingTopK(k, by=float)]
POSITIVE: list[Callable[[Any], object]] = [
    Ewma,
    lambda threshold: RobustZScore(of=float, threshold=threshold),
    lambda radius: Circle("tower", 5, 5, radius),
]
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: DistinctSketch(lg_k=3), "lg_k is a whole number between 7 and 21, not 3"),
    (lambda: DistinctSketch(lg_k=22), "between 7 and 21"),
    (lambda: KllQuantile(0.5, k=1), "k is a whole number between 8 and 65535, not 1"),
    (lambda: KllQuantile(50), "between 0 and 1, not 50"),
    (lambda: SlidingQuantile(-0.1), "between 0 and 1, not -0.1"),
    (lambda: SlidingQuantile(1.1), "between 0 and 1"),
    (lambda: SlidingQuantile(math.nan), "between 0 and 1"),
    (lambda: SlidingQuantile(0.5, "nearest"), "'linear' or 'inverted_cdf', not 'nearest'"),  # type: ignore[arg-type]
    (lambda: LogQuantile(-1), "between 0 and 1"),
    (lambda: LogQuantile(0.5, accuracy=1e-17), "(?s)between 0.000001 and 1, not 1e-17.*Hint: "),
    (lambda: LogQuantile(0.5, accuracy=1), "between 0.000001 and 1"),
    (lambda: DoubleTop(swing=0), "fractions of a price"),
    (lambda: DoubleTop(swing=1), "fractions of a price"),
    (lambda: DoubleTop(tolerance=-0.1), "fractions of a price"),
    (lambda: DoubleTop(tolerance=1), "(?s)fractions of a price.*Hint: "),
    (lambda: Polygon("line", ((0, 0), (4, 0))), "(?s)'line' has 2 corners.*Hint: "),
    (lambda: Polygon("swapped", ((0, 0), (4, 0), (52, 104))), "(?s)latitude 104.*Hint: .*longitude first"),
    (lambda: Circle("swapped", 37.8, -122.4, 500), "longitude 37.8 and latitude -122.4"),
    (lambda: Circle("nowhere", math.nan, 5, 500), "longitude nan"),
    (lambda: Circle("north of north", 5, 90.5, 500), "latitude 90.5"),
    (lambda: Hysteresis(80.0, 70.0), "low below high, not 80.0 and 70.0"),
    (lambda: Hysteresis(70.0, 70.0), "low below high"),
    (lambda: Hysteresis(70.0, math.inf), "finite"),
    (lambda: Geofence([]), "at least one fence"),
    (lambda: Geofence([YARD, YARD]), "a name of its own"),
    (lambda: SequencePattern([], 5), "at least one step"),
    (lambda: SequencePattern([Step("a", bool), Step("a", bool)], 5), "a name of its own"),
    (lambda: SequencePattern([Step("a", bool, many=True)], 5), "single, required"),
    (lambda: SequencePattern([Step("a", bool), Step("b", bool, optional=True)], 5), "single, required"),
]


@pytest.mark.parametrize("make", DURATIONS, ids=["gap", "within of a pair", "within of a sequence", "per"])
@pytest.mark.parametrize("value", [0, -5, 2.5, math.nan, "30m", timedelta(minutes=30)])
def test_a_duration_is_a_positive_number_of_ticks(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(QueryError, match=r"(?s)at least one tick, not .*Hint: .*unit: for half an hour"):
        make(value)


@pytest.mark.parametrize("make", SIZES, ids=["Busiest", "TopK", "SlidingTopK"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3"])
def test_a_number_of_results_is_positive(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(QueryError, match="k is a whole number of at least 1, not "):
        make(value)


@pytest.mark.parametrize("make", POSITIVE, ids=["half_life", "threshold", "radius"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "5m"])
def test_a_measure_is_positive_and_finite(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(QueryError, match="is a positive, finite number, not "):
        make(value)


def test_the_bounds_are_settings_themselves() -> None:
    assert (whole("k", 1), whole("k", 7, 7, 21), whole("k", 21, 7, 21)) == (1, 7, 21)
    assert (ticks("gap", 1), positive("rate", 5e-324)) == (1, 5e-324)


@pytest.mark.parametrize(("make", "wrong"), WRONG, ids=[wrong for _, wrong in WRONG])
def test_what_means_nothing_is_refused(make: Callable[[], object], wrong: str) -> None:
    with pytest.raises(QueryError, match=wrong):
        make()
