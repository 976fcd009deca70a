"""Which windows lifetimes make, and what belongs to them, against brute-force loops over instants."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import QueryError, TimeOverflow, UnboundedOutputError
from streamdsl.temporal import INFINITY, MIN_TIME, Lifetime
from streamdsl.windows import Clip, Count, CountBy, Hopping, Output, Session, Snapshot, Windows

FAR = 60
"""An instant after every finite time in the examples; it stands for all later ones."""

times = st.integers(-20, 30)
ends = st.one_of(st.integers(0, 12), st.just(INFINITY))
lifetimes = st.builds(lambda le, d: Lifetime(le, INFINITY if d == INFINITY else le + d), times, ends)
bounded = lifetimes.filter(lambda life: life.re != INFINITY)
many = st.lists(lifetimes, max_size=6)
hoppings = st.builds(Hopping, st.integers(1, 12), st.integers(1, 12), st.integers(-15, 15))
counts = st.builds(Count, st.integers(1, 4), st.sampled_from(["start", "end"]))
gaps, cuts = st.integers(1, 12), st.integers(1, 25)
sessions = st.builds(Session, gaps, st.one_of(st.none(), cuts))
kinds: st.SearchStrategy[Windows] = st.one_of(hoppings, counts, st.just(Snapshot()), sessions)


def instants(life: Lifetime) -> set[int]:
    return set(range(life.le, min(life.re, FAR + 1)))


def grid(hopping: Hopping) -> list[Lifetime]:
    return [Lifetime(le, le + hopping.size) for le in range(-200, 200) if (le - hopping.offset) % hopping.hop == 0]


@given(hoppings, many, st.integers(-20, 45))
def test_hopping_windows_are_the_windows_of_the_grid_that_share_an_instant_with_an_event(
    hopping: Hopping, lives: list[Lifetime], until: int
) -> None:
    shared = [w for w in grid(hopping) if any(instants(w) & instants(life) for life in lives)]
    assert hopping.over(lives, until) == [w for w in shared if w.re <= until]


@given(hoppings, st.lists(bounded, max_size=6))
def test_hopping_windows_of_events_that_end_need_no_bound(hopping: Hopping, lives: list[Lifetime]) -> None:
    assert hopping.over(lives) == hopping.over(lives, until=200)


@given(hoppings, bounded)
def test_the_windows_of_an_event_are_numbered_in_a_row(hopping: Hopping, life: Lifetime) -> None:
    assert [hopping.window(k) for k in hopping.numbers(life)] == [w for w in grid(hopping) if hopping.belongs(life, w)]


@given(hoppings, times)
def test_windows_before_and_after_a_time(hopping: Hopping, time: int) -> None:
    assert hopping.window(hopping.first_ending_after(time)) == min(w for w in grid(hopping) if w.re > time)
    assert hopping.window(hopping.last_starting_before(time)) == max(w for w in grid(hopping) if w.le < time)


@given(many)
def test_snapshots_are_the_maximal_periods_without_an_endpoint_inside(lives: list[Lifetime]) -> None:
    live = [life for life in lives if instants(life)]
    endpoints = {time for life in live for time in (life.le, min(life.re, FAR))}
    starts = [t for t in range(-20, FAR) if t in endpoints and any(t in instants(life) for life in live)]
    ends = [min(e for e in endpoints if e > t) for t in starts]
    expected = [Lifetime(t, INFINITY if end == FAR else end) for t, end in zip(starts, ends, strict=True)]
    assert Snapshot().over(lives) == expected


@given(many, st.integers(-20, 45))
def test_snapshots_up_to_a_time_are_those_that_end_by_then(lives: list[Lifetime], until: int) -> None:
    assert Snapshot().over(lives, until) == [w for w in Snapshot().over(lives) if w.re <= until]


@given(st.integers(1, 4), st.sampled_from(["start", "end"]), many, st.one_of(st.just(INFINITY), st.integers(-20, 45)))
def test_count_windows_go_from_each_endpoint_to_just_after_the_nth(
    n: int, by: CountBy, lives: list[Lifetime], until: int
) -> None:
    live = [life for life in lives if life.le < life.re]
    points = {life.le for life in live} if by == "start" else {life.re for life in live if life.re < INFINITY}
    found = Count(n, by).over(lives, until)
    expected = []
    for first in sorted(points):
        following = sorted(point for point in points if point >= first)[:n]
        if len(following) == n and following[-1] + 1 <= until:
            expected.append(Lifetime(first, following[-1] + 1))
    assert found == expected


def linked(lives: list[Lifetime], gap: int) -> list[list[Lifetime]]:
    """Events by session: two of which one starts before the other's end + gap are in the same one."""
    found: list[list[Lifetime]] = []
    for life in (life for life in lives if life.le < life.re):
        near = [group for group in found if any(max(life.le, other.le) < min(life.re, other.re) + gap for other in group)]
        found = [group for group in found if group not in near] + [[life, *(other for group in near for other in group)]]
    return found


@given(gaps, many)
def test_a_session_goes_from_its_first_start_to_the_gap_after_its_last_end(gap: int, lives: list[Lifetime]) -> None:
    spans = [(min(life.le for life in group), max(life.re for life in group)) for group in linked(lives, gap)]
    assert Session(gap).over(lives) == sorted(Lifetime(le, re if re == INFINITY else re + gap) for le, re in spans)


@given(gaps, cuts, many, st.integers(-20, 45))
def test_a_session_that_lasts_too_long_is_cut_from_its_start_on(gap: int, cut: int, lives: list[Lifetime], until: int) -> None:
    pieces = [
        Lifetime(le, min(le + cut, session.re))
        for session in Session(gap).over(lives)
        for le in range(session.le, min(session.re, FAR), cut)
    ]
    shared = [w for w in pieces if any(instants(w) & instants(life) for life in lives)]
    assert Session(gap, cut).over(lives, until) == [w for w in shared if w.re <= until]


@given(gaps, st.one_of(st.none(), cuts), many)
def test_the_windows_of_sessions_do_not_overlap(gap: int, cut: int | None, lives: list[Lifetime]) -> None:
    windows = Session(gap, cut).over(lives, until=FAR)
    assert all(a.re <= b.le for a, b in itertools.pairwise(windows))


@given(kinds, many)
def test_every_window_has_a_member_and_empty_lifetimes_belong_to_none(windows: Windows, lives: list[Lifetime]) -> None:
    for window in windows.over(lives, until=FAR):
        assert any(windows.belongs(life, window) for life in lives)
        assert not any(windows.belongs(life, window) for life in lives if life.le == life.re)


@given(kinds, many)
def test_belonging_is_sharing_an_instant_and_for_count_windows_having_the_endpoint_inside(
    windows: Windows, lives: list[Lifetime]
) -> None:
    for window in windows.over(lives, until=FAR):
        for life in lives:
            if not isinstance(windows, Count):
                inside = bool(instants(life) & instants(window))
            elif windows.by == "start":
                inside = life.le < life.re and life.le in instants(window)
            else:
                inside = life.le < life.re and life.re in instants(window)
            assert windows.belongs(life, window) == inside


@given(kinds, many, st.sampled_from(Clip))
def test_clipping_keeps_what_is_inside_and_moves_no_other_end(windows: Windows, lives: list[Lifetime], clip: Clip) -> None:
    for window in windows.over(lives, until=FAR):
        for life in (life for life in lives if windows.belongs(life, window)):
            clipped = clip.apply(life, window)
            assert clipped.le <= clipped.re
            assert instants(clipped) & instants(window) == instants(life) & instants(window)
            assert clipped.le == (max(life.le, window.le) if clip in (Clip.LEFT, Clip.FULL) else life.le)
            assert clipped.re == (min(life.re, window.re) if clip in (Clip.RIGHT, Clip.FULL) else life.re)


def test_a_count_by_end_member_may_be_clipped_to_nothing() -> None:
    window = Lifetime(5, 9)
    assert Count(2, "end").belongs(Lifetime(1, 5), window)
    assert Clip.FULL.apply(Lifetime(1, 5), window) == Lifetime(5, 5)


def test_an_event_without_end_fills_hopping_windows_for_ever() -> None:
    with pytest.raises(UnboundedOutputError, match=r"\[3, inf\) never ends.*\nHint: .*until"):
        Hopping(10, 10).over([Lifetime(3, INFINITY)])
    assert Hopping(10, 10).over([Lifetime(3, INFINITY)], until=20) == [Lifetime(0, 10), Lifetime(10, 20)]
    assert Snapshot().over([Lifetime(3, INFINITY)]) == [Lifetime(3, INFINITY)]
    assert Count(1).over([Lifetime(3, INFINITY)]) == [Lifetime(3, 4)]
    assert Session(5).over([Lifetime(3, INFINITY)]) == [Lifetime(3, INFINITY)]


def test_an_event_without_end_fills_cut_sessions_for_ever() -> None:
    with pytest.raises(UnboundedOutputError, match=r"\[3, inf\) never ends.*session\(5, max_duration=10\).*\nHint: .*until"):
        Session(5, 10).over([Lifetime(0, 1), Lifetime(3, INFINITY)])
    assert Session(5, 10).over([Lifetime(0, 1), Lifetime(3, INFINITY)], until=29) == [Lifetime(0, 10), Lifetime(10, 20)]


@pytest.mark.parametrize(
    ("windows", "life"),
    [
        (Hopping(10, 10), Lifetime(INFINITY - 5, INFINITY - 3)),
        (Hopping(10, 3), Lifetime(MIN_TIME, MIN_TIME + 1)),
        (Count(1, "end"), Lifetime(0, INFINITY - 1)),
        (Session(3), Lifetime(0, INFINITY - 3)),
    ],
    ids=lambda value: value.describe() if isinstance(value, Windows) else "",
)
def test_a_window_outside_the_range_of_times_is_refused(windows: Windows, life: Lifetime) -> None:
    with pytest.raises(TimeOverflow):
        windows.over([life])


@pytest.mark.parametrize(("size", "hop"), [(0, 5), (5, 0), (-5, 5), (5, -5)])
def test_sizes_and_hops_are_positive(size: int, hop: int) -> None:
    with pytest.raises(QueryError, match="positive durations"):
        Hopping(size, hop)


def test_a_count_is_at_least_one_and_of_starts_or_ends() -> None:
    with pytest.raises(QueryError, match="at least one endpoint, not 0"):
        Count(0)
    with pytest.raises(QueryError, match='by="start" or by="end"'):
        Count(2, "middle")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gap", "cut", "wrong"), [(0, None, "gap.*not 0"), (-1, 5, "gap.*not -1"), (5, 0, "max_d.*not 0"), (5, -2, "max_d.*not -2")]
)
def test_gaps_and_longest_durations_are_positive(gap: int, cut: int | None, wrong: str) -> None:
    with pytest.raises(QueryError, match=f"a session's {wrong}\nHint: "):
        Session(gap, cut)


def test_what_explain_shows() -> None:
    kinds: list[Windows] = [Hopping(5, 5), Hopping(5, 2, 1), Snapshot(), Count(3, "end"), Session(5), Session(5, 60)]
    shown = [
        "tumbling(5)",
        "hopping(5, 2, offset=1)",
        "snapshot",
        "count(3, by=end)",
        "session(5)",
        "session(5, max_duration=60)",
    ]
    assert [windows.describe() for windows in kinds] == shown


def test_which_policies_keep_a_modules_own_timestamps() -> None:
    assert [output for output in Output if output.keeps_stamps] == [Output.UNCHANGED, Output.CLIP, Output.TIME_BOUND]
