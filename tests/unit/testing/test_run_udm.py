from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import pytest

from streamdsl.errors import TimestampViolation
from streamdsl.temporal import CHT, CHTRow
from streamdsl.testing import run_udm
from streamdsl.udm.bases import UDA, UDO, IntervalEvent, TimeSensitiveUDO, WindowDescriptor
from streamdsl.windows import Clip, Output


class AsGiven(UDA[int, list[int]]):
    def compute_result(self, payloads: Sequence[int]) -> list[int]:
        return list(payloads)


class Twice(UDO[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> Iterable[int]:
        return [value for value in payloads for _ in range(2)]


class Echo(TimeSensitiveUDO[int, int]):
    time_bound: ClassVar[bool] = True

    def compute_result(self, events: Sequence[IntervalEvent[int]], window: WindowDescriptor) -> Iterable[IntervalEvent[int]]:
        return events


EVENTS = [(0, 3, 1), (2, 12, 2), (9, 10, 3), (10, 11, 4)]


def test_a_module_sees_what_overlaps_its_window_in_no_promised_order() -> None:
    assert sorted(run_udm(AsGiven(), EVENTS, (0, 10))) == [1, 2, 3]
    assert len({tuple(run_udm(AsGiven(), EVENTS, (0, 10), seed=seed)) for seed in range(20)}) > 1
    assert run_udm(AsGiven(), EVENTS, (50, 60)) is None


def test_operators_give_rows_stamped_as_the_policy_says() -> None:
    assert run_udm(Twice(), CHT.from_rows([(1, 2, 7)]), (0, 10)) == [CHTRow(0, 10, 7)] * 2
    assert run_udm(Twice(), [(1, 2, 7)], (0, 10), output=Output.POINT_AT_END) == [CHTRow(10, 11, 7)] * 2
    assert run_udm(Twice(), [], (0, 10)) == []
    events = [IntervalEvent(2, 12, 5)]
    assert run_udm(Echo(), events, (0, 10), output=Output.UNCHANGED) == [CHTRow(2, 12, 5)]
    assert run_udm(Echo(), events, (0, 10), clip=Clip.RIGHT, output=Output.UNCHANGED) == [CHTRow(2, 10, 5)]
    assert run_udm(Echo(), events, (5, 10), output=Output.CLIP) == [CHTRow(5, 10, 5)]


def test_output_before_the_window_is_a_violation() -> None:
    with pytest.raises(TimestampViolation):
        run_udm(Echo(), [(2, 12, 5)], (5, 10), output=Output.UNCHANGED)
