"""What type checkers infer for functions as modules with properties, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import streamdsl as sd
from streamdsl.udm.function_modules import FunctionUDA, FunctionUDO, TimeSensitiveFunctionUDA, TimeSensitiveFunctionUDO
from tests.typing.payloads import trips

hours = trips.tumbling_window("1h")


@sd.uda(deterministic=False, order_insensitive=False, reads=("fare",), commutes_with_filter_on=["zone"], empty=0)
def spread(prices: Sequence[float]) -> float:
    return max(prices) - min(prices)


@sd.uda()
def covered(events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> int:
    return sum(event.end_time - event.start_time for event in events)


@sd.uda(vectorized=True)
def largest(prices: npt.NDArray[np.float64]) -> float:
    return float(prices.max())


@sd.udo(order_insensitive=True, vectorized=False)
def ends(prices: Sequence[float]) -> list[float]:
    return [min(prices), max(prices)]


@sd.udo(time_bound=True)
def late(events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> Iterable[sd.IntervalEvent[str]]:
    return events


@sd.udo(vectorized=True, reads=("fare",))
def dear(columns: Mapping[str, npt.NDArray[np.float64]]) -> list[float]:
    return [float(fare) for fare in columns["fare"] if fare > 50]


def inferred() -> None:
    assert_type(spread, FunctionUDA[float, float])
    assert_type(covered, TimeSensitiveFunctionUDA[str, int])
    assert_type(largest, FunctionUDA[Any, float])
    assert_type(ends, FunctionUDO[float, float])
    assert_type(late, TimeSensitiveFunctionUDO[str, str])
    assert_type(dear, FunctionUDO[Any, float])
    assert_type(hours.aggregate(spread, lambda e: e.fare), sd.Stream[float])
    assert_type(hours.aggregate(largest, lambda e: e.fare), sd.Stream[float])
    assert_type(hours.apply(late, lambda e: e.vendor), sd.Stream[str])
    assert_type(hours.apply(dear), sd.Stream[float])


def refused() -> None:
    hours.aggregate(spread, lambda e: e.vendor)  # type: ignore[arg-type, return-value]
    hours.aggregate(ends, lambda e: e.fare)  # type: ignore[arg-type]
    sd.uda(determinstic=False)  # type: ignore[call-overload]
    sd.uda(reads=3)  # type: ignore[call-overload]
    sd.uda(time_bound=True)  # type: ignore[call-overload]
    sd.udo(empty=0)  # type: ignore[call-overload]
