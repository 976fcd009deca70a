"""Paper 001, "The Extensibility Framework in Microsoft StreamInsight", retold: its tables, figures and listings as tests.

Where a figure has no numbers, the three events below stand for its e1, e2 and e3. Every query runs on the local engine and by its
definition, and both must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import CtiViolation, TimestampViolation
from streamdsl.testing import assert_cht_equal


@dataclass(frozen=True)
class Sample:
    """What a sensor says."""

    id: str
    value: float


E1 = (1, 8, Sample("e1", 10.0))
E2 = (4, 12, Sample("e2", 20.0))
E3 = (11, 14, Sample("e3", 30.0))
FIGURE = sd.from_rows([E1, E2, E3])


def check(query: sd.Stream[Any], expected: Sequence[tuple[int, int, Any]], until: int | None = None) -> None:
    for engine in ("local", "reference"):
        assert_cht_equal(query.run(engine=engine, until=until).cht(), sd.CHT.from_rows(expected))


def members(windowed: sd.WindowedStream[Sample]) -> list[tuple[tuple[int, int], list[str]]]:
    """Each window of the figure with the names of the events in it."""
    return [(window, [row.payload.id for row in rows]) for window, rows in windowed.describe(FIGURE.run().cht())]


class TestStreamsAndEvents:
    """Section II.A-C."""

    TABLE_1 = sd.CHT.from_rows([(1, 5, "P1"), (4, 9, "P2")])
    TABLE_2: list[sd.Event[str]] = [
        sd.Insert("E0", 1, sd.INFINITY, "P1"),
        sd.Retract("E0", 1, sd.INFINITY, 10, "P1"),
        sd.Retract("E0", 1, 10, 5, "P1"),
        sd.Insert("E1", 4, 9, "P2"),
    ]

    def test_table_2_is_one_physical_stream_of_the_history_in_table_1(self) -> None:
        assert sd.CHT.from_events(self.TABLE_2) == self.TABLE_1
        check(sd.from_events(self.TABLE_2), [(1, 5, "P1"), (4, 9, "P2")])

    def test_each_retraction_matches_its_insertion_by_id_and_moves_its_right_endpoint(self) -> None:
        histories = [[row[:2] for row in sd.CHT.from_events(self.TABLE_2[:n])] for n in range(1, 4)]
        assert histories == [[(1, sd.INFINITY)], [(1, 10)], [(1, 5)]]

    def test_the_algebra_is_deterministic_even_when_data_arrives_out_of_order(self) -> None:
        other = [self.TABLE_2[3], *self.TABLE_2[:3]]
        counts = sd.source("s").snapshot_window().aggregate(n=sd.count())
        first, second = (counts.run({"s": events}).cht() for events in (self.TABLE_2, other))
        assert first == second == sd.CHT.from_rows([(1, 4, {"n": 1}), (4, 5, {"n": 2}), (5, 9, {"n": 1})])

    def test_a_full_retraction_deletes_an_event(self) -> None:
        gone = [*self.TABLE_2, sd.Retract("E1", 4, 9, 4)]
        assert sd.CHT.from_events(gone) == sd.CHT.from_rows([(1, 5, "P1")])

    def test_the_sync_time_is_the_earliest_time_modified(self) -> None:
        assert [sd.sync_time(event) for event in self.TABLE_2] == [1, 10, 5, 4]

    def test_point_events_last_one_chronon(self) -> None:
        check(sd.from_events([sd.point("a", 3, "x")]), [(3, 4, "x")])

    def test_edge_events_sample_a_signal_until_the_next_sample(self) -> None:
        samples = [sd.edge_start("a", 1, 20.5), sd.edge_end("a", 1, 4), sd.edge_start("b", 4, 21.0)]
        check(sd.from_events(samples), [(1, 4, 20.5), (4, sd.INFINITY, 21.0)])

    def test_a_cti_says_that_no_earlier_part_of_the_time_axis_changes_any_more(self) -> None:
        late = [sd.Insert("E0", 1, 20, "P1"), sd.Cti(10), sd.Insert("E1", 9, 12, "P2")]
        with pytest.raises(CtiViolation, match="event 'E1' is refused: its sync time 9 is before the CTI 10"):
            sd.CHT.from_events(late)

    def test_an_older_event_may_still_change_its_end_after_the_cti(self) -> None:
        fine = [sd.Insert("E0", 1, 20, "P1"), sd.Cti(10), sd.Retract("E0", 1, 20, 10)]
        assert sd.CHT.from_events(fine) == sd.CHT.from_rows([(1, 10, "P1")])
        with pytest.raises(CtiViolation):
            sd.CHT.from_events([*fine[:2], sd.Retract("E0", 1, 20, 9)])


class TestOperatorTypes:
    """Sections II.D and II.E, Figure 2."""

    def test_figure_2a_a_filter_keeps_the_entire_span_of_its_input(self) -> None:
        check(FIGURE.where(lambda e: e.value > 15), [E2, E3])

    def test_figure_2b_count_over_a_five_second_tumbling_window(self) -> None:
        counted = FIGURE.tumbling_window(5).aggregate(sd.count())
        check(counted, [(0, 5, 2), (5, 10, 2), (10, 15, 2)])


class TestTheLinqSurface:
    """Section III.A."""

    def test_a_user_defined_function_is_called_for_each_event(self) -> None:
        @sd.udf
        def val_threshold(id: str) -> float:
            return {"e1": 5.0, "e2": 25.0}.get(id, 100.0)

        check(FIGURE.where(lambda e: e.value < val_threshold(e.id)), [E2, E3])

    def test_the_median_over_a_hopping_window(self) -> None:
        result = FIGURE.hopping_window(10, 5).aggregate(lambda w: {"f1": w.median(lambda e: e.value)})
        check(result, [(-5, 5, {"f1": 15.0}), (0, 10, {"f1": 15.0}), (5, 15, {"f1": 20.0}), (10, 20, {"f1": 25.0})])

    def test_an_operator_finds_zero_or_more_patterns_in_each_window_and_stamps_them(self) -> None:
        @dataclass(frozen=True)
        class Rise:
            first: str
            second: str

        class FollowedBy(sd.TimeSensitiveUDO[Sample, Rise]):
            """A followed by a greater B: a pattern that lasts as long as both live."""

            def compute_result(
                self, events: Sequence[sd.IntervalEvent[Sample]], window: sd.WindowDescriptor
            ) -> Iterable[sd.IntervalEvent[Rise]]:
                for a in events:
                    for b in events:
                        if a.start_time < b.start_time and a.payload.value < b.payload.value:
                            yield sd.IntervalEvent(
                                b.start_time, max(b.start_time, min(a.end_time, b.end_time)), Rise(a.payload.id, b.payload.id)
                            )

        patterns = FIGURE.tumbling_window(15, output=sd.Output.UNCHANGED).apply(FollowedBy())
        check(patterns, [(4, 8, Rise("e1", "e2")), (11, 12, Rise("e2", "e3"))])


class TestTheWindowSpecification:
    """Section III.B, Figures 3 to 6."""

    def test_figure_3_every_hop_a_new_window_is_created(self) -> None:
        assert members(FIGURE.hopping_window(10, 5)) == [
            ((-5, 5), ["e1", "e2"]),
            ((0, 10), ["e1", "e2"]),
            ((5, 15), ["e1", "e2", "e3"]),
            ((10, 20), ["e2", "e3"]),
        ]

    def test_figure_4_an_event_is_a_member_of_every_tumbling_window_that_it_overlaps(self) -> None:
        assert members(FIGURE.tumbling_window(5)) == [((0, 5), ["e1", "e2"]), ((5, 10), ["e1", "e2"]), ((10, 15), ["e2", "e3"])]

    def test_figure_5_only_e1_is_in_the_first_snapshot_and_both_e1_and_e2_in_the_second(self) -> None:
        assert members(FIGURE.snapshot_window()) == [
            ((1, 4), ["e1"]),
            ((4, 8), ["e1", "e2"]),
            ((8, 11), ["e2"]),
            ((11, 12), ["e2", "e3"]),
            ((12, 14), ["e3"]),
        ]

    def test_figure_5_every_endpoint_falls_on_a_boundary(self) -> None:
        boundaries = {time for window, _ in members(FIGURE.snapshot_window()) for time in window}
        assert boundaries == {time for row in (E1, E2, E3) for time in row[:2]}

    def test_figure_6_a_count_window_starts_at_each_start_that_has_another_after_it(self) -> None:
        assert members(FIGURE.count_window(2)) == [((1, 5), ["e1", "e2"]), ((4, 12), ["e2", "e3"])]

    def test_fewer_than_n_events_make_no_window(self) -> None:
        check(FIGURE.count_window(4).aggregate(sd.count()), [])

    def test_events_with_the_same_start_all_belong_so_that_a_window_may_hold_more_than_n(self) -> None:
        ties = sd.from_rows([(1, 3, "a"), (1, 4, "b"), (2, 3, "c")])
        check(ties.count_window(2).aggregate(sd.count()), [(1, 3, 3)])

    def test_count_by_end_time_spans_ends(self) -> None:
        assert members(FIGURE.count_window(2, by="end")) == [((8, 13), ["e1", "e2"]), ((12, 15), ["e2", "e3"])]


class Lifetimes(sd.TimeSensitiveUDA[Sample, Any]):
    """What a module sees of its events."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[Sample]], window: sd.WindowDescriptor) -> Any:
        return [(e.payload.id, e.start_time, e.end_time) for e in events]


class TestClippingAndTimestamping:
    """Section III.C, Figures 7 and 8."""

    def test_figure_8_events_are_fully_clipped_to_their_tumbling_windows(self) -> None:
        check(
            FIGURE.tumbling_window(5, clip=sd.Clip.FULL).aggregate(Lifetimes()),
            [
                (0, 5, [("e1", 1, 5), ("e2", 4, 5)]),
                (5, 10, [("e1", 5, 8), ("e2", 5, 10)]),
                (10, 15, [("e2", 10, 12), ("e3", 11, 14)]),
            ],
        )

    @pytest.mark.parametrize(
        ("clip", "seen"),
        [(sd.Clip.NONE, (4, 12)), (sd.Clip.LEFT, (5, 12)), (sd.Clip.RIGHT, (4, 10)), (sd.Clip.FULL, (5, 10))],
    )
    def test_figure_7_each_policy_on_e2_in_the_window_from_5_to_10(self, clip: sd.Clip, seen: tuple[int, int]) -> None:
        alone = FIGURE.where(lambda e: e.id == "e2").tumbling_window(5, clip=clip).aggregate(Lifetimes())
        assert [row.payload for row in alone.run().cht() if row.le == 5] == [[("e2", *seen)]]

    def test_right_clipping_lets_output_time_pass_events_that_end_far_in_the_future(self) -> None:
        long = sd.CHT.from_rows([(3, 3 + 10_000, "long")])
        stream = sd.from_rows([(0, 1, "")])
        unclipped = stream.tumbling_window(10)
        clipped = stream.tumbling_window(10, clip=sd.Clip.RIGHT)
        assert [windowed.output_cti(long, 50, time_sensitive=True) for windowed in (unclipped, clipped)] == [0, 50]
        assert unclipped.output_cti(long, 10_004, time_sensitive=True) == 10_000

    @pytest.mark.parametrize(
        ("output", "lives"),
        [(sd.Output.ALIGN, (0, 10)), (sd.Output.UNCHANGED, (4, 12)), (sd.Output.CLIP, (4, 10))],
    )
    def test_output_is_aligned_unchanged_or_clipped(self, output: sd.Output, lives: tuple[int, int]) -> None:
        @sd.udo
        def echo(events: Sequence[sd.IntervalEvent[str]], window: sd.WindowDescriptor) -> Iterable[sd.IntervalEvent[str]]:
            return [event for event in events if event.start_time >= window.start_time]

        check(
            FIGURE.where(lambda e: e.id == "e2").select(lambda e: e.id).tumbling_window(10, output=output).apply(echo),
            [(*lives, "e2")],
        )

    def test_output_in_the_past_is_forbidden(self) -> None:
        class Early(sd.TimeSensitiveUDO[Sample, str]):
            def compute_result(
                self, events: Sequence[sd.IntervalEvent[Sample]], window: sd.WindowDescriptor
            ) -> Iterable[sd.IntervalEvent[str]]:
                return [sd.IntervalEvent(window.start_time - 1, window.end_time, "early")]

        query = FIGURE.tumbling_window(10, output=sd.Output.UNCHANGED).apply(Early())
        for engine in ("local", "reference"):
            with pytest.raises(TimestampViolation):
                query.run(engine=engine)


class MyAverage(sd.UDA[float, float]):
    """Section IV.C: an ordinary average, as a domain expert has it lying about."""

    def compute_result(self, payloads: Sequence[float]) -> float:
        return sum(payloads) / len(payloads)


class MyTimeWeightedAverage(sd.TimeSensitiveUDA[float, float]):
    """Section IV.C: each event counts by its lifetime against the whole window's."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[float]], window: sd.WindowDescriptor) -> float:
        total = 0.0
        for event in events:
            total += event.payload * (event.end_time - event.start_time)
        return total / (window.end_time - window.start_time)


class TestTheUdmWriter:
    """Section IV.C, end to end."""

    READINGS = sd.from_rows([(0, 3, {"v": 4.0}), (1, 9, {"v": 8.0})])

    def test_my_average(self) -> None:
        check(self.READINGS.tumbling_window(10).aggregate(MyAverage(), lambda e: e.v), [(0, 10, 6.0)])

    def test_the_mapping_expression_bridges_the_gap_to_the_expected_payload(self) -> None:
        check(self.READINGS.tumbling_window(10).aggregate(f1=MyAverage().of(lambda e: e.v * 2)), [(0, 10, {"f1": 12.0})])

    def test_my_time_weighted_average_is_stamped_with_the_entire_window(self) -> None:
        spanning = sd.from_rows([(-5, 3, {"v": 4.0}), (2, 40, {"v": 8.0})])
        average = spanning.tumbling_window(10, clip=sd.Clip.FULL).aggregate(MyTimeWeightedAverage(), lambda e: e.v)
        check(average, [(-10, 0, 2.0), (0, 10, 7.6)], until=10)

    def test_the_module_needs_no_engine_to_be_tested(self) -> None:
        assert MyAverage().compute_result([4.0, 8.0]) == 6.0


class TestTheInternals:
    """Section V."""

    def test_windows_without_events_produce_no_output(self) -> None:
        apart = sd.from_rows([(0, 1, 4), (21, 22, 8)])
        check(apart.tumbling_window(10).aggregate(sd.sum(lambda e: e)), [(0, 10, 4), (20, 30, 8)])

    def test_output_is_speculative_and_corrected_when_a_late_event_comes(self) -> None:
        session = sd.source("s").tumbling_window(10).aggregate(sd.count()).open()
        first = session.push([sd.Insert("a", 1, 3, "x")], source="s")
        second = session.push([sd.Insert("b", 8, 9, "y")], source="s")
        assert [type(event) for event in first + second] == [sd.Insert, sd.Retract, sd.Insert]
        assert sd.CHT.from_events(first + second) == sd.CHT.from_rows([(0, 10, 2)])

    @pytest.mark.parametrize(
        ("clip", "output", "expected"),
        [
            (sd.Clip.NONE, sd.Output.ALIGN, 0),
            (sd.Clip.RIGHT, sd.Output.ALIGN, 10),
            (sd.Clip.NONE, sd.Output.TIME_BOUND, 17),
        ],
        ids=["window-based, an event that never ends", "its end clipped", "time-bound"],
    )
    def test_liveliness_under_each_restriction(self, clip: sd.Clip, output: sd.Output, expected: int) -> None:
        unending = sd.CHT.from_rows([(3, sd.INFINITY, "e1")])
        windowed = sd.from_rows([(0, 1, "")]).tumbling_window(10, clip=clip, output=output)
        assert windowed.output_cti(unending, 17, time_sensitive=True) == expected

    def test_a_time_insensitive_module_lets_time_pass_its_closed_windows(self) -> None:
        session = sd.source("s").tumbling_window(10).aggregate(sd.count()).open()
        assert session.push([sd.Insert("e1", 3, sd.INFINITY, "x"), sd.Cti(17)], source="s")[-1] == sd.Cti(10)
