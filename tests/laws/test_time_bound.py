"""A module that claims to be time-bound and is not is found out at once (`test_operators.py` tries those that are)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import TimestampViolation
from streamdsl.plan.node import WindowApply
from streamdsl.temporal import MIN_TIME, CHTRow, Cti, Event, Insert, Lifetime, Retract, sync_time
from streamdsl.temporal.change import minimal_change
from streamdsl.testing.live_window import compute_rows, member
from streamdsl.windows import Windows
from tests.laws.fold import Fold, Slot
from tests.laws.modules import Number, Pairs, Through
from tests.laws.profiles import examples
from tests.laws.test_framed_windows import dense_pushes, in_small_parts
from tests.laws.test_window_operators import pushes


def over(module: Any, s: sd.Stream[Any]) -> sd.Stream[Any]:
    return s.tumbling_window(10, output=sd.Output.TIME_BOUND).apply(module, lambda e: e.v)


ROW = {"v": 1}


@pytest.mark.parametrize(
    "second",
    [Insert("c", 5, 8, ROW), Retract("a", 0, 9, 0), Retract("b", 4, 6, 4), Insert("c", 9, 30, ROW)],
    ids=["an insertion", "a full retraction", "one of a later event", "an event that stays longer"],
)
def test_a_breach_is_found_without_a_cti(second: Event[Any]) -> None:
    session = over(Number(), sd.source("s")).open()
    session.push([Insert("a", 0, 9, ROW), Insert("b", 4, 6, ROW)])
    if sync_time(second) > 0:
        message = rf"(?s)^Number .*input at {sync_time(second)} .*\[0, 10\).*starts at 0.*Hint: "
        with pytest.raises(TimestampViolation, match=message):
            session.push([second])
    else:
        assert session.push([second]), "a change at 0 may change what starts at 0"


def test_the_first_result_may_not_lie_before_its_cause_either() -> None:
    with pytest.raises(TimestampViolation, match="input at 3"):
        over(Number(), sd.source("s")).open().push([Insert("a", 3, 9, ROW)])


def test_a_window_that_is_gone_as_another_takes_it_in_is_no_breach_of_what_changes_later() -> None:
    query = sd.source("s").session_window(1, output=sd.Output.TIME_BOUND).apply(Through(), lambda e: e.v)
    session = query.open()
    session.push([Insert("a", 23, 31, ROW)])
    session.push([Retract("a", 23, 31, 25), Insert("b", 14, 25, ROW)])


def test_an_operator_whose_windows_wait_holds_its_cti_back_as_far_as_their_first_result() -> None:
    session = over(Through(), sd.source("s")).open(emit="watermark")
    assert session.push([Insert("a", 3, 7, ROW), Insert("b", 6, 8, ROW), Cti(5)]) == [Cti(3)]
    assert [event.le for event in session.push([Cti(10)]) if isinstance(event, Insert)] == [3, 6]


WINDOWS: list[Any] = [
    lambda s, **how: s.tumbling_window(5, **how),
    lambda s, **how: s.hopping_window(7, 3, offset=-2, **how),
    lambda s, **how: s.hopping_window(3, 8, offset=1, **how),
]
"""Windows that stay what they are: of others, also the ends move."""


@examples(120)
@given(st.sampled_from(WINDOWS), st.sampled_from(sd.Clip), st.sampled_from([Number(), Pairs()]), st.booleans(), st.data())
def test_a_breach_is_found_where_the_definition_finds_it(
    window: Any, clip: sd.Clip, module: Any, by_key: bool, data: st.DataObject
) -> None:
    windowed = window(sd.source("s"), clip=clip, output=sd.Output.TIME_BOUND).apply(module, lambda e: e.v)
    (spec,) = (node.windows for node in windowed.plan().walk() if isinstance(node, WindowApply))
    group = sd.source("s").group_by("k")
    query = window(group, clip=clip, output=sd.Output.TIME_BOUND).apply(module, lambda e: e.v) if by_key else windowed
    stream = data.draw(st.one_of(pushes(unending=False, failing=False), dense_pushes()))
    fold, before = Fold(), Seen({}, MIN_TIME)
    with in_small_parts(data):
        session = query.open()
        for event in (event for part in stream for event in part):
            fold.take([event])
            after = Seen({slot: row for slot, row in fold.rows.items() if row.le < row.re}, fold.high_water)
            keys = {row.payload.k for row in fold.rows.values()} if by_key else {None}
            if any(breaks(spec, module, clip, before.of(key), after.of(key)) for key in keys):
                with pytest.raises(TimestampViolation):
                    session.push([event])
                return
            session.push([event])
            before = after


@dataclass(frozen=True)
class Seen:
    """The rows of a stream by now, and the largest LE or CTI."""

    rows: Mapping[Slot, CHTRow[Any]]
    high_water: int

    def of(self, key: Any) -> Seen:
        """Return what there is of one key, None: of all."""
        return Seen({slot: row for slot, row in self.rows.items() if key in (None, row.payload.k)}, self.high_water)

    def results(self, spec: Windows, module: Any, clip: sd.Clip) -> dict[Lifetime, list[Any] | None]:
        """Return what the module makes of each window, None for one that has not begun."""

        def of(window: Lifetime, rows: list[CHTRow[Any]]) -> list[Any] | None:
            members = [member(row._replace(payload=row.payload.v)) for row in rows]
            return compute_rows(module, members, window, clip, sd.Output.TIME_BOUND) if window.le <= self.high_water else None

        return {window: of(window, rows) for window, rows in spec.divide(self.rows.values(), self.high_water + 100)}


def breaks(spec: Windows, module: Any, clip: sd.Clip, before: Seen, after: Seen) -> bool:
    """Say whether a result changes earlier than the change of a row in its window does (paper 001, III.C)."""
    old, new = (seen.results(spec, module, clip) for seen in (before, after))
    for window in old.keys() | new.keys():
        was, now = old.get(window, []), new.get(window, [])
        if was is None or now is None:
            continue  # it waits, or has waited until now: its first result is no change
        early = min((change.sync for change in minimal_change(was, now)), default=None)
        if early is not None and any(early < time for time in _causes(spec, clip, window, before.rows, after.rows)):
            return True
    return False


def _causes(spec: Windows, clip: sd.Clip, window: Lifetime, before: Any, after: Any) -> Iterator[int]:
    """Yield when the first row changes that is in a window, or was; a row looks as before if only what is clipped off changes."""
    times = []
    for slot in before.keys() | after.keys():
        old, new = before.get(slot), after.get(slot)
        if old == new or not any(row and spec.belongs(Lifetime(row.le, row.re), window) for row in (old, new)):
            continue
        if old and new and clip in (sd.Clip.RIGHT, sd.Clip.FULL) and min(old.re, new.re) >= window.re:
            continue
        times.append(min(old.re, new.re) if old and new else (old or new).le)
    if times:
        yield min(times)
