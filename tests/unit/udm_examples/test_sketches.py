"""The sketches: errors within their bounds, no order of arrival in their answers, a clear word where the library is missing."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from udm_examples.distinct_sketch import DistinctSketch
from udm_examples.quantile_sketch import KllQuantile, LogQuantile


def points(payloads: list[Any]) -> list[tuple[int, int, Any]]:
    return [(0, 1, payload) for payload in payloads]


numbers = st.one_of(
    st.integers(-3, 3),
    st.floats(-3, 3, width=16),
    st.fractions(-3, 3, max_denominator=4),
    st.decimals(-3, 3, places=2),
    st.sampled_from([math.inf, -math.inf, Decimal("Infinity")]),
)
scalars = numbers | st.booleans() | st.text(max_size=2) | st.none()


class TestDistinctSketch:
    @examples(50)
    @given(st.lists(scalars | st.tuples(scalars, scalars), max_size=40))
    def test_few_values_are_counted_exactly(self, payloads: list[Any]) -> None:
        module = DistinctSketch()
        state = module.add_events_to_state(module.create_state(), payloads)
        assert module.compute_result(state) == len(set(payloads) - {None})

    @pytest.mark.parametrize("number", [1_000, 20_000])
    def test_many_values_are_counted_within_three_standard_errors(self, number: int) -> None:
        counts = [run_udm(DistinctSketch(), points([f"{seed}-{i}" for i in range(number)]), (0, 10)) for seed in range(5)]
        assert all(abs(count - number) < 3 * 1.04 / math.sqrt(2**12) * number for count in counts)
        assert any(count != number for count in counts), "no sketch counts so many exactly"

    def test_neither_order_nor_repetition_nor_parts_show(self) -> None:
        module, values = DistinctSketch(), [f"user {i}" for i in range(5_000)]
        shuffled = [*values, *values[:1000]]
        random.Random(7).shuffle(shuffled)
        parts = [module.add_events_to_state(module.create_state(), shuffled[i::3]) for i in range(3)]
        merged = module.merge_states(module.merge_states(parts[0], parts[1]), parts[2])
        whole = [module.add_events_to_state(module.create_state(), order) for order in (values, shuffled)]
        assert len({module.compute_result(state) for state in (*whole, merged)}) == 1

    def test_values_are_one_if_they_are_equal(self) -> None:
        equal: list[Any] = [1, 1.0, True, Decimal("1.00"), ("a", 2), ("a", 2.0), math.nan, Decimal("NaN")]
        assert run_udm(DistinctSketch(), points([*equal, "1", 1.5, ("a", "2"), ("a,2",)]), (0, 10)) == 7

    def test_visitors_of_a_page_without_those_who_were_no_people(self) -> None:
        visits = sd.source("visits")
        query = visits.tumbling_window(60).aggregate(visitors=DistinctSketch().of(lambda e: e.user))
        session = query.open()
        output = session.push([sd.point(i, i, {"user": f"u{i % 4}"}) for i in range(30)])
        output += session.push([sd.point("bot", 40, {"user": "bot"})])
        assert sd.CHT.from_events(output).rows[0].payload.visitors == 5
        output += session.push([sd.Retract("bot", 40, 41, 40)])
        assert sd.CHT.from_events(output).rows[0].payload.visitors == 4

    def test_of_a_window_without_people_there_are_none(self) -> None:
        visits = sd.from_rows([(1, 2, {"user": "ann", "bot": False}), (12, 13, {"user": "crawler", "bot": True})])
        people: sd.Agg[Any, int] = sd.Agg(DistinctSketch(), lambda e: e.user, lambda e: sd.not_(e.bot))
        assert [payload.n for _, _, payload in visits.tumbling_window(10).aggregate(n=people).run()] == [1, 0]


def rank_of(value: float, payloads: list[float]) -> tuple[float, float]:
    """Return the shares of values below a value, and at or below it."""
    return sum(p < value for p in payloads) / len(payloads), sum(p <= value for p in payloads) / len(payloads)


class TestKllQuantile:
    @examples(60)
    @given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    def test_of_few_values_it_is_exact(self, payloads: list[float], q: float) -> None:
        found = run_udm(KllQuantile(q), points(payloads), (0, 10))
        assert found == sorted(payloads)[max(0, math.ceil(round(q * len(payloads), 9)) - 1)]

    def test_a_share_that_is_no_float_is_read_at_its_face_value(self) -> None:
        assert run_udm(KllQuantile(0.07), points([float(i) for i in range(1, 101)]), (0, 10)) == 7.0

    @pytest.mark.parametrize("q", [0.01, 0.5, 0.99])
    def test_of_many_it_is_off_by_few_ranks(self, q: float) -> None:
        rng = random.Random(3)
        payloads = [rng.lognormvariate(3, 1) for _ in range(20_000)]
        below, at = rank_of(run_udm(KllQuantile(q), points(payloads), (0, 10)), payloads)
        assert below - 0.04 <= q <= at + 0.04

    def test_merged_parts_keep_the_bound(self) -> None:
        module, payloads = KllQuantile(0.5), [float(i) for i in range(20_000)]
        parts = [module.add_events_to_state(module.create_state(), payloads[i::4]) for i in range(4)]
        state = parts[0]
        for part in parts[1:]:
            state = module.merge_states(state, part)
        found = module.compute_result(state)
        assert found is not None
        assert abs(found / len(payloads) - 0.5) < 0.04

    def test_nothing_has_no_quantile(self) -> None:
        assert run_udm(KllQuantile(0.5), points([math.nan]), (0, 10)) is None


class TestLogQuantile:
    @examples(72)
    @given(
        st.lists(st.floats(-1e300, 1e300).filter(lambda value: value == 0 or abs(value) > 1e-300), min_size=1, max_size=40),
        st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
        st.sampled_from([0.001, 0.01, 0.2]),
    )
    def test_it_is_off_by_a_small_share_of_the_value(self, payloads: list[float], q: float, accuracy: float) -> None:
        exact = sorted(payloads)[max(0, math.ceil(round(q * len(payloads), 9)) - 1)]
        found = run_udm(LogQuantile(q, accuracy), points(payloads), (0, 10))
        assert abs(found - exact) <= accuracy * abs(exact) * (1 + 1e-9)

    @pytest.mark.parametrize("accuracy", [0.001, 0.01, 0.2, 0.9])
    @pytest.mark.parametrize("largest", [sys.float_info.max, -sys.float_info.max])
    def test_the_largest_numbers_stay_numbers(self, accuracy: float, largest: float) -> None:
        assert run_udm(LogQuantile(0.5, accuracy), points([largest]), (0, 10)) == pytest.approx(largest, rel=accuracy)

    def test_what_is_no_number_has_its_place(self) -> None:
        payloads = [math.nan, -math.inf, 5.0, math.inf]
        found = [run_udm(LogQuantile(q), points(payloads), (0, 10)) for q in (0.25, 0.75, 1.0)]
        assert found[:2] == [-math.inf, math.inf]
        assert math.isnan(found[2])


@pytest.mark.parametrize("module", [KllQuantile(0.99), LogQuantile(0.99)], ids=["KLL", "logarithmic"])
def test_a_slow_endpoint_shows_in_its_p99(module: sd.IncrementalUDA[float, Any, float]) -> None:
    latencies = [("/search", 20.0 + i % 7) for i in range(100)] + [("/pay", 30.0 if i < 97 else 2_000.0) for i in range(100)]
    requests = sd.from_rows([(i, i + 1, {"path": path, "ms": ms}) for i, (path, ms) in enumerate(latencies)])
    query = requests.group_by("path").tumbling_window(1000).aggregate(p99=module.of(lambda e: e.ms))
    p99 = {row.path: row.p99 for _, _, row in query.run()}
    assert p99 == {"/search": pytest.approx(26, rel=0.01), "/pay": pytest.approx(2_000, rel=0.01)}


@pytest.mark.parametrize("make", [DistinctSketch, lambda: KllQuantile(0.5)], ids=["distinct", "KLL"])
def test_a_missing_library_is_named_with_its_extra(make: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(sd.errors.QueryError, match=r"(?s)datasketches.*Hint: pip install 'streamdsl\[sketches\]'"):
        make()
