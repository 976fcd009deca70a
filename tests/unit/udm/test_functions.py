"""Functions as modules: their properties, what these do in a query, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.udm.bases import UDM

ROWS = [(1, 3, {"x": 3.0, "y": 1.0}), (2, 4, {"x": 1.0, "y": 5.0}), (12, 14, {"x": 5.0, "y": 2.0})]
ENGINES: tuple[Any, ...] = ("local", "reference")


def payloads(query: sd.Stream[Any], engine: Any) -> list[Any]:
    return [row.payload for row in query.run(engine=engine).cht().rows]


def spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def covered(events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> int:
    return sum(event.end_time - event.start_time for event in events)


def test_functions_as_modules() -> None:
    @sd.uda
    def late(events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> int:
        return sum(event.start_time > window.start_time for event in events)

    @sd.udo
    def halves(events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> list[sd.IntervalEvent[float]]:
        return [sd.IntervalEvent(event.start_time, window.end_time, event.payload / 2) for event in events]

    assert (late.label, late.time_sensitive, late.returns_many) == ("late", True, False)
    assert (halves.label, halves.time_sensitive, halves.returns_many) == ("halves", True, True)
    rows = sd.from_rows([(0, 2, 4.0), (3, 12, 6.0)])
    assert rows.tumbling_window(10).aggregate(late).run().cht() == sd.CHT.from_rows([(0, 10, 1), (10, 20, 0)])
    stamped = rows.clip_interval(0, 10).tumbling_window(10, output=sd.Output.UNCHANGED).apply(halves)
    assert stamped.run().cht() == sd.CHT.from_rows([(0, 10, 2.0), (3, 10, 3.0)])


def test_bare_and_empty_parentheses_are_the_same() -> None:
    assert sd.uda()(spread) == sd.uda(spread)
    assert hash(sd.uda()(spread)) == hash(sd.uda(spread))
    assert sd.uda()(covered) == sd.uda(covered)
    assert sd.uda()(covered).time_sensitive


@pytest.mark.parametrize(
    ("properties", "attributes"),
    [
        ({"deterministic": False}, {"deterministic": False}),
        ({"order_insensitive": False, "vectorized": True}, {"order_insensitive": False, "vectorized": True}),
        ({"reads": ["x", "y"]}, {"reads": ("x", "y")}),
        ({"reads": None}, {"reads": None}),
        ({"ignores_ends_beyond_window": True}, {"ignores_ends_beyond_window": True}),
        ({"commutes_with_filter_on": ("x",)}, {"commutes_with_filter_on": ("x",)}),
        ({"empty": "nothing"}, {"empty_result": "nothing"}),
    ],
)
def test_properties_are_attributes_of_the_module(properties: dict[str, Any], attributes: dict[str, object]) -> None:
    module: Any = sd.uda(**properties)(spread)
    plain: Any = sd.uda(spread)
    assert {name: getattr(module, name) for name in attributes} == attributes
    others = [name for name in UDM.__annotations__ if name not in attributes]
    assert [getattr(module, name) for name in others] == [getattr(plain, name) for name in others]


def test_properties_do_not_reach_other_modules() -> None:
    sd.uda(deterministic=False)(spread)
    assert sd.uda(spread).deterministic


def test_properties_count_in_comparisons() -> None:
    assert sd.uda(empty=0)(spread) == sd.uda(empty=0)(spread) != sd.uda(spread)
    assert sd.udo(spread) != sd.uda(spread)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_is_the_value_of_windows_where_no_row_is_left(engine: str) -> None:
    none = sd.uda(spread)
    zero = sd.uda(empty=0.0)(spread)
    many: sd.UDA[float, list[float]] = sd.uda(empty=list)(sorted)
    query = (
        sd.from_rows(ROWS)
        .tumbling_window(10)
        .aggregate(
            none=sd.udm.get("max").of(lambda e: e.x),
            a=sd.Agg(none, lambda e: e.x, lambda e: e.y > 1.5),
            b=sd.Agg(none, lambda e: e.x, lambda e: e.y > 3),
            c=sd.Agg(zero, lambda e: e.x, lambda e: e.y > 3),
            d=sd.Agg(many, lambda e: e.x, lambda e: e.y > 3),
        )
    )
    assert payloads(query, engine) == [
        {"none": 3.0, "a": 0.0, "b": 0.0, "c": 0.0, "d": [1.0]},
        {"none": 5.0, "a": 0.0, "b": None, "c": 0.0, "d": []},
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_vectorized_function_is_given_arrays(engine: str) -> None:
    given: list[type] = []

    @sd.uda(vectorized=True)
    def largest(values: npt.NDArray[np.float64]) -> float:
        given.append(type(values))
        return float(values.max())

    @sd.udo(vectorized=True)
    def sums(columns: Mapping[str, npt.NDArray[np.float64]]) -> Iterable[float]:
        given.append(type(columns["x"]))
        return [float((columns["x"] + columns["y"]).sum())]

    windows = sd.from_rows(ROWS).tumbling_window(10)
    assert payloads(windows.aggregate(largest, lambda e: e.x), engine) == [3.0, 5.0]
    assert payloads(windows.apply(sums), engine) == [10.0, 7.0]
    assert set(given) == {np.ndarray}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_bound_function_may_be_asked_for_time_bound_output(engine: str) -> None:
    def ends(events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> list[sd.IntervalEvent[str]]:
        return [sd.IntervalEvent(event.start_time, event.end_time, "seen") for event in events]

    windows = sd.from_rows(ROWS).tumbling_window(10, output=sd.Output.TIME_BOUND)
    found = windows.apply(sd.udo(time_bound=True)(ends)).run(engine=engine).cht()  # type: ignore[arg-type]
    assert [(row.le, row.re) for row in found.rows] == [(1, 3), (2, 4), (12, 14)]
    with pytest.raises(QueryError, match="time_bound"):
        windows.apply(sd.udo(ends))


def test_a_function_with_properties_is_pickled() -> None:
    copy = pickle.loads(pickle.dumps(sd.uda(empty=0, reads=("x",))(spread)))
    assert copy == sd.uda(empty=0, reads=("x",))(spread)
    assert copy.empty_result == 0


def yielding(values: Sequence[int]) -> Iterable[int]:
    yield from values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sd.uda(determinstic=False),  # type: ignore[call-overload]
            "@uda has no property 'determinstic'; it has vectorized, deterministic, order_insensitive, "
            "ignores_ends_beyond_window, reads, commutes_with_filter_on, empty",
        ),
        (lambda: sd.uda(time_bound=True), "@uda has no property 'time_bound'"),  # type: ignore[call-overload]
        (lambda: sd.udo(empty=1), "@udo has no property 'empty'"),  # type: ignore[call-overload]
        (lambda: sd.uda(reads="price"), "reads='price' is a string, not a sequence of field names\nHint: write reads=('price',)"),
        (lambda: sd.uda(vectorized=True)(covered), "@uda(vectorized=True) needs a function of the payloads"),  # type: ignore[arg-type]
        (lambda: sd.uda(deterministic=False)(lambda: 1), "has 0 parameters"),  # type: ignore[arg-type, misc]
        (lambda: sd.uda(yielding), "yields several\nHint: use @udo for it"),
        (lambda: sd.uda(deterministic=False)(yielding), "yields several"),
    ],
)
def test_what_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make()
    assert message in str(caught.value)
