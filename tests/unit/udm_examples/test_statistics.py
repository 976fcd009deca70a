"""Each statistical module against its definition, written out slowly, and in a small query that means something."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.testing import run_udm
from tests.laws.profiles import examples
from tests.unit.udm_examples.cases import Reading, Row
from udm_examples.ewma import Ewma
from udm_examples.exact_sum import ExactSum
from udm_examples.linear_trend import LinearTrend, Trend
from udm_examples.median import Median, SlidingMedian
from udm_examples.quantile import SlidingQuantile
from udm_examples.robust_z_score import Anomaly, RobustZScore
from udm_examples.time_weighted_average import IncrementalTimeWeightedAverage, TimeWeightedAverage
from udm_examples.top_k import SlidingTopK, TopK
from udm_examples.vwap import Trade, Vwap

values = st.floats(-1e6, 1e6)
anything = st.floats(allow_nan=False, allow_infinity=False)
events = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9), values), min_size=1, max_size=12).map(
    lambda found: [(le, le + length, value) for le, length, value in found]
)


class TestExactSum:
    @examples(72)
    @given(st.lists(st.tuples(anything, st.floats(-1e3, 1e3)), max_size=8))
    def test_is_the_fraction_that_it_stands_for(self, products: list[tuple[float, float]]) -> None:
        total = ExactSum()
        for value, times in products:
            total.add(value, times)
        exact = sum((Fraction(value) * Fraction(times) for value, times in products), Fraction())
        assert total.finite == exact
        for value, times in products:
            total.remove(value, times)
        assert total.finite == 0

    @examples(72)
    @given(st.lists(st.tuples(anything | st.sampled_from([math.nan, math.inf, -math.inf]), st.sampled_from([1, -1])), max_size=6))
    def test_rounds_once_and_keeps_what_is_no_number(self, products: list[tuple[float, float]]) -> None:
        total = ExactSum()
        for value, times in products:
            total.add(value, times)
        try:
            expected = math.fsum(value * times for value, times in products)
        except ValueError:  # both infinities
            expected = math.nan
        except OverflowError:
            expected = total.value
        assert total.value == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


class TestTimeWeightedAverage:
    @pytest.mark.parametrize("module", [TimeWeightedAverage(), IncrementalTimeWeightedAverage()])
    @examples(60)
    @given(rows=events)
    def test_is_the_mean_of_what_holds_at_each_tick(self, module: TimeWeightedAverage, rows: list[Row]) -> None:
        ticks = [math.fsum(value for le, re, value in rows if le <= tick < re) for tick in range(10)]
        assert run_udm(module, rows, (0, 10), clip=sd.Clip.FULL) == pytest.approx(statistics.fmean(ticks), abs=1e-6)

    @pytest.mark.parametrize("module", [TimeWeightedAverage(), IncrementalTimeWeightedAverage()])
    def test_the_share_of_each_hour_that_a_heating_is_on(self, module: TimeWeightedAverage) -> None:
        switches = sd.from_rows([(at, at + 1, {"on": on}) for at, on in [(0, 1), (15, 0), (45, 1), (80, 0)]])
        duty = switches.to_edges().tumbling_window(60, clip=sd.Clip.FULL).aggregate(duty=module.of(lambda e: e.on))
        assert [(le, row.duty) for le, _, row in duty.run(until=120)] == [(0, 30 / 60), (60, 20 / 60)]


class TestMedianAndQuantile:
    @pytest.mark.parametrize("module", [Median(), SlidingMedian()])
    @examples(60)
    @given(payloads=st.lists(values | st.sampled_from([math.inf, -math.inf]), min_size=1, max_size=12))
    def test_half_lies_on_each_side_of_the_median(self, module: sd.UDA[float, float], payloads: list[float]) -> None:
        assert run_udm(module, [(0, 1, value) for value in payloads], (0, 10)) == pytest.approx(
            statistics.median(payloads), rel=0, abs=0, nan_ok=True
        )

    @pytest.mark.parametrize("method", ["linear", "inverted_cdf"])
    @examples(60)
    @given(
        payloads=st.lists(values, min_size=1, max_size=12), q=st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 0.7, 0.9, 0.99, 1.0])
    )
    def test_quantiles_are_those_of_numpy(
        self, method: Literal["linear", "inverted_cdf"], payloads: list[float], q: float
    ) -> None:
        found = run_udm(SlidingQuantile(q, method), [(0, 1, value) for value in payloads], (0, 10))
        assert found == pytest.approx(float(np.quantile(payloads, q, method=method)), rel=1e-12, abs=1e-9)

    @examples(60)
    @given(st.lists(anything, min_size=1, max_size=6), st.fractions(0, 1))
    def test_quantiles_stay_among_the_values_and_rise(self, payloads: list[float], share: Fraction) -> None:
        q = float(share)
        low, high = (run_udm(SlidingQuantile(p), [(0, 1, v) for v in payloads], (0, 10)) for p in (q / 2, q))
        assert min(payloads) <= low <= high <= max(payloads)

    def test_nan_is_the_largest_and_may_go_again(self) -> None:
        module = SlidingMedian()
        state = module.add_events_to_state(module.create_state(), [math.nan, 1.0, 2.0, math.nan, math.nan])
        assert math.isnan(module.compute_result(state))
        assert module.compute_result(module.remove_events_from_state(state, [math.nan] * 2)) == 2.0

    @pytest.mark.parametrize("module", [Median(), SlidingMedian()])
    def test_between_large_values_nothing_overflows(self, module: sd.UDA[float, float]) -> None:
        assert run_udm(module, [(0, 1, 1.7e308), (0, 1, 1.6e308)], (0, 10)) == pytest.approx(1.65e308)

    def test_a_tenth_of_ten_values_is_one_of_them(self) -> None:
        assert run_udm(SlidingQuantile(0.1, "inverted_cdf"), [(0, 1, float(value)) for value in range(10)], (0, 10)) == 0.0

    def test_the_p90_of_a_service_is_corrected_by_a_request_that_is_reported_late(self) -> None:
        query = sd.source("requests", Reading).tumbling_window(100).aggregate(p90=SlidingQuantile(0.9).of(lambda r: r.value))
        session = query.open()
        session.push([sd.point(f"r{i}", 10 * i, Reading("api", 20.0 + i)) for i in range(10)])
        gone, new = (event for event in session.push([sd.point("slow", 55, Reading("api", 900.0))]))
        assert isinstance(gone, sd.Retract)
        assert gone.payload.p90 == pytest.approx(28.1)
        assert isinstance(new, sd.Insert)
        assert new.payload.p90 == pytest.approx(29.0)


class TestVwap:
    @examples(60)
    @given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 1000)), min_size=1, max_size=12))
    def test_is_the_mean_price_of_single_units(self, trades: list[tuple[float, int]]) -> None:
        units = [price for price, size in trades for _ in range(size)]
        found = run_udm(Vwap(), [(0, 1, Trade(*trade)) for trade in trades], (0, 10))
        assert found == (pytest.approx(statistics.fmean(units)) if units else None)

    def test_a_cancelled_trade_is_as_if_it_had_never_been(self) -> None:
        trades = sd.source("trades", Fill)
        query = trades.group_by("symbol").tumbling_window(60).aggregate(vwap=Vwap().of(lambda t: Trade(t.px, t.qty)))
        session = query.open()
        fills = [(1, Fill("ACME", 10.1, 300)), (5, Fill("ACME", 10.2, 100)), (9, Fill("INIT", 80.0, 10))]
        first = session.push([sd.point(f"t{at}", at, fill) for at, fill in fills])
        fat_finger = sd.point("oops", 20, Fill("ACME", 1e16, 1))
        wrong = session.push([fat_finger])
        right = session.push([sd.Retract("oops", 20, 21, 20)])
        outputs = [sd.CHT.from_events([*first, *more]).rows for more in ([], wrong, [*wrong, *right])]
        vwaps = [{row.payload.symbol: row.payload.vwap for row in rows} for rows in outputs]
        assert vwaps[0] == vwaps[2] == {"ACME": (10.1 * 300 + 10.2 * 100) / 400, "INIT": 80.0}
        assert vwaps[1]["ACME"] > 1e13
        assert vwaps[1]["INIT"] == 80.0


@dataclass(frozen=True)
class Fill:
    symbol: str
    px: float
    qty: int


class TestEwma:
    @examples(60)
    @given(st.lists(st.tuples(st.integers(0, 99), values), min_size=1, max_size=12), st.sampled_from([1, 7.5, 40]))
    def test_is_the_last_value_of_pandas(self, rows: list[tuple[int, float]], half_life: float) -> None:
        rows.sort()
        times = pd.Series(pd.to_datetime([at for at, _ in rows], unit="s"))
        step = pd.Timedelta(seconds=half_life)
        expected = pd.Series([value for _, value in rows]).ewm(halflife=step, times=times).mean()  # type: ignore[arg-type]
        found = run_udm(Ewma(half_life), [(at, at + 1, value) for at, value in rows], (0, 100))
        assert found == pytest.approx(expected.iloc[-1], rel=1e-9, abs=1e-6)

    def test_a_window_of_old_events_still_has_an_average(self) -> None:
        assert run_udm(Ewma(half_life=1), [(0, 1, 5.0), (0, 1, 7.0)], (0, 10**9)) == 6.0
        assert run_udm(Ewma(half_life=1), [(0, 1, 5.0), (10**6, 10**6 + 1, 7.0)], (0, 10**9)) == 7.0

    def test_a_price_that_is_one_half_life_older_counts_half(self) -> None:
        quotes = sd.from_rows([(at, at + 1, Reading("ACME", price)) for at, price in [(0, 100.0), (30, 103.0), (60, 112.0)]])
        query = quotes.tumbling_window(90, clip=sd.Clip.RIGHT).aggregate(ewma=Ewma(half_life=30).of(lambda r: r.value))
        assert [row.ewma for _, _, row in query.run()] == [(100 * 1 + 103 * 2 + 112 * 4) / 7]


class TestTopK:
    @pytest.mark.parametrize("kind", [TopK, SlidingTopK])
    @examples(60)
    @given(payloads=st.lists(st.integers(0, 6), min_size=1, max_size=12), k=st.integers(1, 5))
    def test_a_row_is_in_if_fewer_than_k_are_better(
        self, kind: type[TopK[int]] | type[SlidingTopK[int]], payloads: list[int], k: int
    ) -> None:
        found = run_udm(kind(k, by=lambda row: row), [(0, 1, value) for value in payloads], (0, 10))
        assert sorted(row.payload for row in found) == sorted(
            value for value in payloads if sum(other > value for other in payloads) < k
        )

    @pytest.mark.parametrize("kind", [TopK, SlidingTopK])
    def test_the_most_delayed_departures_with_ties(self, kind: type[TopK[Reading]] | type[SlidingTopK[Reading]]) -> None:
        delays = [("UA 1", 5), ("B6 9", 60), ("AA 2", 41), ("DL 7", 41), ("WN 3", 12)]
        departures = sd.from_rows([(at, at + 1, Reading(flight, delay)) for at, (flight, delay) in enumerate(delays)])
        late = departures.tumbling_window(60).apply(kind(2, by=lambda flight: flight.value))
        assert {row.sensor for _, _, row in late.run()} == {"B6 9", "AA 2", "DL 7"}

    def test_a_row_that_holds_nan_is_taken_out_by_its_content(self) -> None:
        module = SlidingTopK[Reading](1, by=lambda row: row.value)
        state = module.add_events_to_state(module.create_state(), [Reading("a", 1.0), Reading("b", math.nan)])
        assert [row.sensor for row in module.compute_result(state)] == ["b"], "NaN is the largest"
        state = module.remove_event_from_state(state, Reading("b", float("nan")))
        assert list(module.compute_result(state)) == [Reading("a", 1.0)]


class TestLinearTrend:
    @examples(60)
    @given(events.filter(lambda rows: len({le for le, _, _ in rows}) > 1))
    def test_is_the_line_of_numpy(self, rows: list[tuple[int, int, float]]) -> None:
        slope, intercept = np.polyfit([le for le, _, _ in rows], [value for _, _, value in rows], 1)
        found = run_udm(LinearTrend(), rows, (0, 10))
        assert (found.slope, found.intercept) == pytest.approx((slope, intercept), rel=1e-6, abs=1e-3)

    @pytest.mark.parametrize("start", [0, 2**62])
    def test_late_times_cost_no_digits(self, start: int) -> None:
        rows = [(start + t, start + t + 1, 0.1 * t) for t in (1, 2, 3, 5)]
        found = run_udm(LinearTrend(), rows, (start, start + 10))
        assert (found.slope, found.intercept) == (pytest.approx(0.1, rel=1e-15), pytest.approx(0, abs=1e-15))

    def test_one_moment_has_no_trend(self) -> None:
        assert run_udm(LinearTrend(), [(3, 4, 1.0), (3, 9, 2.0)], (0, 10)) == Trend(None, None)

    def test_when_a_battery_will_be_empty(self) -> None:
        start, hour = datetime(2024, 5, 1), timedelta(hours=1)
        levels = [(0, 100.0), (2, 90.0), (4, 80.0), (6, 70.0)]
        readings = sd.from_rows([(start + at * hour, start + (at + 1) * hour, Reading("b", level)) for at, level in levels])
        per_hour = LinearTrend(per=3_600_000_000)
        query = readings.tumbling_window("1d", clip=sd.Clip.RIGHT).aggregate(per_hour, lambda r: r.value)
        ((_, _, trend),) = query.run()
        assert trend.slope == -5.0
        assert trend.intercept == 100.0
        assert start + hour * (-trend.intercept / trend.slope) == datetime(2024, 5, 1, 20)


class TestRobustZScore:
    @examples(60)
    @given(
        st.lists(st.integers(-1000, 1000).map(lambda tenths: tenths / 10), min_size=1, max_size=12), st.sampled_from([1.0, 3.5])
    )
    def test_scores_are_those_of_the_textbook(self, payloads: list[float], threshold: float) -> None:
        found = run_udm(RobustZScore(of=float, threshold=threshold), [(0, 1, value) for value in payloads], (0, 10))
        expected = textbook(payloads, threshold)
        assert sorted(row.payload.row for row in found) == [value for value, _ in expected]
        assert sorted(row.payload.score for row in found) == pytest.approx([score for _, score in expected], rel=1e-5)

    def test_a_machine_that_draws_too_much_stands_out_however_much_it_draws(self) -> None:
        amperes = [4.1, 3.9, 4.0, 4.2, 4.0, 55.0, 3.8, 48.0]
        readings = sd.from_rows([(at, at + 1, Reading(f"m{at}", value)) for at, value in enumerate(amperes)])
        query = readings.hopping_window(8, 8).apply(RobustZScore(of=lambda r: r.value))
        found = [row for _, _, row in query.run()]
        assert all(isinstance(row, Anomaly) for row in found)
        assert {row.row.sensor for row in found} == {"m5", "m7"}
        mean, deviation = statistics.fmean(amperes), statistics.stdev(amperes)
        assert max(abs(value - mean) / deviation for value in amperes) < 3.5, "the ordinary z-score sees nothing"

    def test_where_most_values_are_equal_the_mean_distance_is_the_measure(self) -> None:
        found = run_udm(RobustZScore(of=float), [(0, 1, value) for value in [5.0] * 9 + [6.0]], (0, 10))
        assert [(row.payload.row, round(row.payload.score, 3)) for row in found] == [(6.0, 7.979)]
        for strange in (math.nan, math.inf):
            assert run_udm(RobustZScore(of=float), [(0, 1, 5.0)] * 9 + [(0, 1, strange)], (0, 10)) == []

    def test_by_default_an_anomaly_has_a_score_beyond_three_and_a_half(self) -> None:
        found = run_udm(RobustZScore(of=float), [(0, 1, value) for value in [-6.0, -1.0, -1.0, 0.0, 1.0, 1.0, 5.0]], (0, 10))
        assert [(row.payload.row, round(row.payload.score, 3)) for row in found] == [(-6.0, -4.047)]

    def test_distances_whose_mean_is_no_float_are_none(self) -> None:
        assert run_udm(RobustZScore(of=float), [(0, 1, 0.0)] * 9 + [(0, 1, 5e-324)], (0, 10)) == []


def textbook(payloads: Sequence[float], threshold: float) -> list[tuple[float, float]]:
    middle = statistics.median(payloads)
    distances = [abs(value - middle) for value in payloads]
    spread = statistics.median(distances)
    sigma = spread / 0.6745 if spread else 1.253314 * statistics.fmean(distances)
    scores = [(value, (value - middle) / sigma) for value in payloads if sigma]
    return sorted((value, score) for value, score in scores if abs(score) > threshold)
