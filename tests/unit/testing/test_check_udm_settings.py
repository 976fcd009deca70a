"""What `check_udm` may be given: events in any form, a window, clips and outputs; and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.testing import check_udm, events, marbles
from tests.unit.testing import modules
from tests.unit.testing.broken import broken_law
from tests.unit.testing.modules import Earliest, Echo, Fares, Mean, Number, Spread, Through
from tests.unit.testing.sabotaged import Caches, TakesFirst

ROWS: list[tuple[int, int, Any]] = [
    (0, 4, {"fare": 2.0, "tip": 1}),
    (3, 9, {"fare": 3.0, "tip": 2}),
    (5, 6, {"fare": 5.0, "tip": 3}),
]


class Keyed(sd.UDA[Any, float]):
    """A module whose payloads only examples can tell."""

    reads: ClassVar[Sequence[str] | None] = ("fare",)

    def compute_result(self, payloads: Sequence[Any]) -> float:
        return float(sum(payload.fare for payload in payloads))


TABLE = """
    kind    id  le  re   re_new  fare  tip
    insert  a   1   inf  -       2.5   1
    retract a   1   inf  6
    insert  b   4   9    -       4.0   2
"""


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        sd.CHT.from_rows(ROWS),
        [sd.IntervalEvent(*row) for row in ROWS],
        events(TABLE),
        TABLE,
        marbles("a-b==)c===>", {name: {"fare": 1.0 + i, "tip": i} for i, name in enumerate("abc")}),
        iter(ROWS),
    ],
    ids=["rows", "CHT", "IntervalEvents", "physical events", "event table", "marbles", "an iterator"],
)
def test_events_may_be_given_in_any_form(given: Any) -> None:
    assert {"reads", "arrival_order"} <= set(check_udm(Keyed, given, examples=8).held)


def test_events_that_are_given_are_all_that_a_module_sees() -> None:
    seen: set[str] = set()

    @sd.uda
    def spying(payloads: Sequence[str]) -> int:
        seen.update(payloads)
        return len(payloads)

    check_udm(spying, [(1, 5, "x"), (2, 9, "y")])
    assert seen == {"x", "y"}


def test_one_event_is_enough_for_most_laws() -> None:
    report = check_udm(Fares, [(1, 5, {"fare": 1.0})])
    assert report.skipped["order_insensitive"] == "it needs 2 events"
    assert "deterministic" in report.held


def test_events_of_a_calendar_unit_keep_it() -> None:
    start = datetime(2013, 1, 1, tzinfo=UTC)
    cht = sd.CHT.from_rows([(start, start.replace(day=2), 3), (start.replace(hour=5), start.replace(day=3), 4)], "s")
    assert "arrival_order" in check_udm(modules.Coverage, cht).held


def test_events_that_are_given_find_what_made_up_ones_do_not() -> None:
    class Longest(sd.UDA[str, int]):
        def compute_result(self, payloads: Sequence[str]) -> int:
            return max(map(len, payloads)) if "zz" not in payloads else payloads.index("zz")

    check_udm(Longest)
    assert broken_law(Longest, [(0, 3, "zz"), (1, 5, "b"), (2, 4, "c")]) == "order_insensitive"


def test_claims_excuse_from_laws() -> None:
    points = [(t, t + 1, payload) for t, payload in enumerate("cabd")]
    report = check_udm(Earliest, points)
    assert report.skipped["order_insensitive"] == "it claims order_insensitive = False"
    assert broken_law(TakesFirst, points) == "order_insensitive"
    assert "deterministic" in check_udm(Number).skipped
    assert broken_law(Caches) == "deterministic"


def test_output_and_clips_say_how_queries_use_a_module() -> None:
    assert broken_law(Echo) == "no_output_in_the_past"
    assert "Output.CLIP" in check_udm(Echo, output=sd.Output.CLIP, examples=8).skipped["no_output_in_the_past"]
    assert "no_output_in_the_past" in check_udm(Echo, clips=[sd.Clip.LEFT, sd.Clip.FULL], examples=15).held

    class Duration(sd.TimeSensitiveUDA[int, int]):
        def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
            assert all(event.end_time <= window.end_time for event in events)
            return sum(event.end_time - event.start_time for event in events)

    assert broken_law(Duration) == "clipping"
    assert "clipping" in check_udm(Duration, clips=[sd.Clip.FULL], examples=15).held


def test_the_window_may_be_chosen() -> None:
    seen: set[sd.WindowDescriptor] = set()

    class Sized(sd.TimeSensitiveUDA[int, int]):
        def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
            seen.add(window)
            return len(events)

    check_udm(Sized, window=(200, 300))
    assert (200, 300) in seen
    check_udm(Sized, [(210, 220, 1), (250, 400, 2), (1000, 1001, 3)], window=(205, 300))
    assert (205, 300) in seen


class NeedsSetting(sd.UDA[float, float]):
    def __init__(self, k: int) -> None:
        self.k = k

    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) * self.k


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (NeedsSetting, {}, r"(?s)cannot be made without parameters.*check_udm\(NeedsSetting\(\.\.\.\)\)"),
        (max, {}, "(?s)no user-defined module.*@sd.uda"),
        (Mean().of(lambda e: e), {}, r"(?s)Hint: give the module itself, without \.of"),
        (3, {}, "one of the eight bases"),
        (Keyed, {}, r"(?s)no payloads of type .*Any can be made up.*events=\["),
        (Fares, {"events": [(0, 1, 2, 3)]}, "is no event"),
        (Fares, {"events": [sd.Cti(3), (0, 1, 2)]}, "physical events and rows at once"),
        (Spread, {"events": [(0, 1, 2.0)], "window": (5, 9)}, "no event overlaps"),
        (Spread, {"output": sd.Output.UNCHANGED}, "stamps no results"),
        (Spread, {"output": "align"}, "is not an output policy"),
        (Spread, {"clips": []}, "clips names no clipping"),
        (Through, {"spark": "no session"}, "not the active Spark session"),
    ],
    ids=range(12),
)
def test_what_cannot_be_checked_is_refused(module: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        check_udm(module, **options)


def test_a_module_that_needs_the_fields_it_does_not_read_is_found_out() -> None:
    class Unpacked(Keyed):
        def compute_result(self, payloads: Sequence[Any]) -> float:
            return float(sum(fare for fare, _ in (tuple(dict(payload).values()) for payload in payloads)))

    assert broken_law(Unpacked, ROWS) == "reads"
