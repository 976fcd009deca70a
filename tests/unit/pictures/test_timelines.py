"""Timelines: each row is where the axis says, text and SVG say the same, and of many rows it is said what is left out."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import QueryError, SessionError
from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.bins import live, packed
from streamdsl.pictures.lanes import Lane, events_lane
from streamdsl.pictures.timeline_picture import Timeline
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, CHTRow, Insert
from streamdsl.temporal.display import scrolled
from streamdsl.testing import marbles, timeline
from streamdsl.testing.strategies import chts, physical_streams, records
from tests.unit.pictures.reading import SVG, Shape, parsed, shapes, texts, written_axis

TIMES = st.integers(-40, 400)
ROWS = st.lists(
    st.tuples(TIMES, st.one_of(st.integers(1, 90), st.none()), st.text("abcxyz", min_size=1, max_size=6)), min_size=1, max_size=25
)


def history(rows: list[tuple[int, int | None, str]]) -> CHT[str]:
    return CHT.from_rows([(le, INFINITY if long is None else le + long, payload) for le, long, payload in rows])


@given(ROWS)
def test_each_row_of_the_svg_has_its_place_on_the_axis(rows: list[tuple[int, int | None, str]]) -> None:
    cht = history(rows)
    svg = cht.timeline().svg()
    assume("∞" not in texts(svg) or len({time for row in cht for time in (row.le, row.re)}) > 3)
    place = written_axis(svg)
    drawn = list(shapes(svg))
    assert sorted((each.le, each.re, each.payload) for each in drawn) == sorted(cht)
    for each in drawn:
        assert each.low == pytest.approx(place(each.le), abs=0.6)
        if each.kind == "bar":
            assert each.high == pytest.approx(place(each.re), abs=0.7)
        elif each.kind == "edge":
            assert each.re == INFINITY
            assert each.high >= max(place(time) for row in cht for time in (row.le, row.re) if time != INFINITY)
        else:
            assert each.kind == "point"
            assert each.re == each.le + 1 or place(each.re) - place(each.le) < 3.2


@given(ROWS)
def test_bars_do_not_overlap_and_stay_in_the_picture(rows: list[tuple[int, int | None, str]]) -> None:
    svg = history(rows).timeline().svg()
    root = parsed(svg)
    drawn = list(shapes(svg))
    assert all(0 <= each.low <= each.high <= float(root.attrib["width"]) for each in drawn)
    assert all(0 <= each.top < float(root.attrib["height"]) - 10 for each in drawn)
    lines = [each._replace(top=round(each.top / 8)) for each in drawn if each.kind != "point"]
    assert [(a, b) for a, b in combinations(lines, 2) if a.top == b.top and a.low < b.high - 0.2 and b.low < a.high - 0.2] == []


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), min_size=1, max_size=20))
def test_text_that_is_to_scale_says_all_of_the_rows(lives: list[tuple[int, int]]) -> None:
    """`marbles` reads text on its own, and the SVG has the same rows: both are of one model."""
    cht = CHT.from_rows([(le, le + long, f"r{n}") for n, (le, long) in enumerate(lives)])
    picture = cht.timeline()
    read = [(event.le, event.re, event.payload) for event in marbles(str(picture)) if isinstance(event, Insert)]
    assert sorted(read) == sorted(cht) == sorted((each.le, each.re, each.payload) for each in shapes(picture.svg()))
    assert str(picture) == timeline(cht)


@given(st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(1, 2**61)), min_size=1, max_size=12))
def test_text_that_is_not_to_scale_has_each_lifetime_in_its_comment(lives: list[tuple[int, int]]) -> None:
    cht = CHT.from_rows([(le, le + long, f"r{n}") for n, (le, long) in enumerate(lives)])
    lines = str(cht.timeline()).splitlines()[1:]
    found = [re.match(r"(\w+) *: (-*)(\*|\[=*\))(?: +# \[(-?\d+), (-?\d+)\))?$", line) for line in lines]
    starts = []
    for row, each in zip(cht, found, strict=True):
        assert each is not None
        assert each[1] == row.payload
        assert each[4] is None or (int(each[4]), int(each[5])) == (row.le, row.re)
        starts.append(len(each[2]))
    assert starts == sorted(starts)
    assert max(map(len, lines)) < 140


@given(ROWS, st.integers(1, 30))
def test_density_counts_the_rows_that_live_in_each_bin(rows: list[tuple[int, int | None, str]], bins: int) -> None:
    cht = history(rows)
    le, re_ = (np.array([getattr(row, end) for row in cht]) for end in ("le", "re"))
    first, last = int(le.min()), int(le.max()) + bins
    axis = TimeAxis(first, first + (last - first) // bins * bins, None, 0.0, 1.0)
    wide = axis.span // bins
    counted = live(axis, le, re_, bins).tolist()
    cells = [(first + n * wide, first + (n + 1) * wide) for n in range(bins)]
    ends = {0: -(2**62), bins - 1: INFINITY}
    for n, (start, end) in enumerate(cells):
        reach = end if n < bins - 1 else ends[n]
        assert counted[n] == sum(row.le < reach and row.re > start for row in cht)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 30))))
def test_what_is_packed_does_not_overlap_and_needs_no_more_lines_than_it_must(found: list[tuple[float, float]]) -> None:
    spans = [(low, low + wide) for low, wide in found]
    lines = packed(spans)
    for (a, one), (b, other) in combinations(zip(spans, lines, strict=True), 2):
        assert one != other or a[1] <= b[0] or b[1] <= a[0]
    assert max(lines, default=-1) + 1 == max((sum(low <= at < high for low, high in spans) for at, _ in spans), default=0)


@given(physical_streams(chts(records())))
def test_a_lane_of_events_is_their_history_and_what_was_taken_away(events: list[sd.Event[Any]]) -> None:
    lane = events_lane("s", events)
    rows = zip(lane.le.tolist(), lane.re.tolist(), map(lane.payload, range(len(lane))), strict=True)
    assert CHT(CHTRow(*row) for row in rows) == CHT.from_events(events)
    ends: list[list[int]] = []
    use: dict[Any, list[int]] = {}
    for event in events:
        if isinstance(event, sd.Insert):
            use[event.id] = [event.re]
            ends.append(use[event.id])
        elif isinstance(event, sd.Retract):
            use[event.id].append(event.re_new)
    assert lane.ever.tolist() == list(map(max, ends))
    assert set(lane.ctis.tolist()) == {event.time for event in events if isinstance(event, sd.Cti)}


def test_what_a_retraction_takes_away_is_struck_through() -> None:
    events: list[sd.Event[str]] = [
        sd.edge_start("a", 1, "A"),
        sd.interval("b", 2, 9, "B"),
        sd.Retract("b", 2, 9, 2),
        sd.edge_end("a", 1, 6),
    ]
    picture = Timeline([events_lane("trips", events)])
    assert str(picture).splitlines() == [
        "time: 0    5",
        "A   : -[====)xxxx  # RE inf -> 6",
        "B   : --xxxxxxxx   # RE 9 -> 2",
    ]
    root = parsed(picture.svg())
    gone = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "gone"]
    place = written_axis(picture.svg())
    assert [float(each.attrib["x"]) for each in gone] == pytest.approx([place(6), place(2)], abs=0.1)
    assert float(gone[1].attrib["width"]) == pytest.approx(place(9) - place(2), abs=0.1)
    assert [each.text for each in root.iter(f"{SVG}text") if "struck" in each.get("class", "")] == ["B"]


def test_a_row_that_was_lengthened_is_not_struck_through() -> None:
    svg = Timeline([events_lane("", [sd.interval("a", 1, 3, "A"), sd.Retract("a", 1, 3, 8)])]).svg()
    assert 'class="gone"' not in svg
    (bar,) = shapes(svg)
    assert (bar.le, bar.re) == (1, 8)


def test_a_row_whose_insertion_is_not_known_is_drawn_from_its_retraction() -> None:
    assert str(Timeline([events_lane("", [sd.Retract("a", 1, 9, 4)])])).splitlines()[1:] == ["a   : -[==)xxxxx  # RE 9 -> 4"]


def test_ctis_are_lines_where_they_are() -> None:
    picture = Timeline([events_lane("", [sd.point("a", 1, "A"), sd.Cti(3), sd.Cti(8), sd.Cti(INFINITY)])])
    assert str(picture).splitlines()[-1] == "cti : ---|----||>"
    place = written_axis(picture.svg())
    lines = [float(each.attrib["x1"]) for each in parsed(picture.svg()).iter(f"{SVG}line") if each.get("class") == "cti"]
    assert lines[:2] == pytest.approx([place(3), place(8)], abs=0.6)
    assert lines[2] > place(8)
    assert "<title>CTI 3</title>" in picture.svg()


def test_dates_are_dates() -> None:
    rides = sd.from_rows([("2026-03-28T09:00", "2026-03-28T09:40", "a"), ("2026-03-28T23:30", "2026-03-29T00:30", "b")], unit="s")
    picture = rides.run().timeline()
    assert str(picture).splitlines()[1].endswith("# [2026-03-28T09:00:00Z, 2026-03-28T09:40:00Z)")
    assert [text for text in texts(picture.svg()) if "2026" in text] == ["2026-03-28", "2026-03-29"]
    assert {"10:00", "18:00", "00:00"} <= set(texts(picture.svg()))
    assert "[2026-03-28T09:00:00Z, 2026-03-28T09:40:00Z) a" in picture.svg()


def test_names_are_escaped_and_cut() -> None:
    rows = [(1, 3, "<script>alert('&')</script>"), (2, 4, "x" * 300)]
    picture = sd.from_rows(rows).run().timeline()
    assert "<script" not in picture.svg()
    assert "<script>alert('&')</script>" in texts(picture.svg())
    assert "x" * 27 + "…" in texts(picture.svg())
    assert "\n" not in str(sd.from_rows([(1, 3, "a\nb: #c")]).run().timeline()).splitlines()[1]


@pytest.mark.parametrize("rows", [[], [(3, 4, "a")], [(5, INFINITY, "a")], [(MIN_TIME, INFINITY, "a")], [(MIN_TIME, 5, "a")]])
def test_a_timeline_of_hardly_anything_is_drawn(rows: list[tuple[int, int, str]]) -> None:
    picture = CHT(CHTRow(*row) for row in rows).timeline()
    assert len(str(picture).splitlines()) == 1 + len(rows)
    assert len(list(shapes(picture.svg().replace(f"[{MIN_TIME},", "[0,")))) == len(rows)


def many(n: int) -> sd.Stream[Any]:
    return sd.from_rows([(k * 3, k * 3 + 5, {"k": k}) for k in range(n)])


def test_many_rows_are_binned_and_sampled_and_it_says_so() -> None:
    picture = many(10_000).run().timeline()
    lines = str(picture).splitlines()
    assert lines[1].endswith("10,000 rows in 72 bins, at most 141 in one")
    assert lines[2].startswith("12 of them")
    assert len(lines) == 15
    assert lines[3].strip().startswith("k=0 ")
    assert lines[-1].strip().startswith("k=9999 ")
    assert "10,000 rows in 400 bins, at most 27 in one" in texts(picture.svg())
    assert len(list(shapes(picture.svg()))) == 24
    assert len(picture.svg()) < 20_000


def test_of_many_rows_only_those_that_are_drawn_become_payloads() -> None:
    asked: set[int] = set()

    def payload(row: int) -> int:
        asked.add(row)
        return row

    le = np.arange(1_000_000, dtype=np.int64)
    picture = Timeline([Lane("rows", le, le + 3, payload)])
    assert "1,000,000 rows in 72 bins" in str(picture)
    assert asked == set(np.linspace(0, 999_999, 12).astype(int).tolist())
    asked.clear()
    assert "1,000,000 rows in 400 bins" in picture.svg()
    assert asked == set(np.linspace(0, 999_999, 24).astype(int).tolist())


def test_rows_that_need_too_many_lines_are_binned() -> None:
    deep = sd.from_rows([(k, 200 + k, k) for k in range(100)]).run().timeline()
    assert "100 rows in 400 bins, at most 100 in one" in texts(deep.svg())


def test_input_windows_and_output_are_one_above_the_other_on_one_axis() -> None:
    trips = sd.from_rows([(1, 5, "A"), (4, 12, "B"), (8, 9, "C")])
    picture = trips.tumbling_window(10).aggregate(n=sd.count()).timeline(windows=True)
    drawn = list(shapes(picture.svg()))
    place = written_axis(picture.svg())
    boxes = [each for each in drawn if each.kind == "window"]
    assert [(each.le, each.re, each.payload) for each in boxes] == [(0, 10, "3 rows"), (10, 20, "1 row")]
    assert boxes[0].high == pytest.approx(place(10), abs=1.1)
    inputs, outputs = ([each for each in drawn if each.payload.startswith(name)] for name in ("A", "n="))
    assert inputs[0].top < boxes[0].top < outputs[0].top
    assert [each.payload for each in drawn if inside(each, boxes[0])] == ["A", "B", "C"]
    assert [lane.title for lane in picture.lanes] == ["input", "windows", "output"]


def inside(shape: Shape, box: Shape) -> bool:
    return shape != box and box.low <= shape.low and shape.high <= box.high and box.top < shape.top < box.top + 60


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from("xy")), min_size=1, max_size=12))
def test_windows_and_their_members_are_those_of_the_definition(rows: list[tuple[int, int, str]]) -> None:
    stream = sd.from_rows([(le, le + long, {"k": key, "n": n}) for n, (le, long, key) in enumerate(rows)])
    picture = stream.group_by("k").hopping_window(8, 4).aggregate(n=sd.count()).timeline(windows=True)
    lane = next(lane for lane in picture.lanes if lane.role == "windows")
    assert lane.members is not None
    found = [
        (le, re_, lane.payload(n).split()[-1], [members.payload(m)["n"] for m in range(len(members))])
        for n, (le, re_, members) in enumerate(zip(lane.le.tolist(), lane.re.tolist(), lane.members, strict=True))
    ]
    expected = [
        (*window, key, [row.payload["n"] for row in members])
        for key in "xy"
        if len(group := stream.where(sd.col("k") == key).run().cht())
        for window, members in stream.hopping_window(8, 4).describe(group)
    ]
    assert sorted(found) == sorted(expected)


def test_a_window_draws_some_of_many_members_and_says_how_many_more() -> None:
    picture = sd.from_rows([(k, k + 3, k) for k in range(30)]).tumbling_window(100).aggregate(n=sd.count()).timeline(windows=True)
    assert "… 22 more" in texts(picture.svg())
    assert "24 members more" in str(picture)


def test_windows_of_too_many_rows_are_not_drawn_and_it_says_so() -> None:
    picture = many(2_001).tumbling_window(10).aggregate(n=sd.count()).timeline(windows=True)
    note = "windows are drawn of at most 2,000 rows of input, here are 2,001"
    assert note in str(picture)
    assert any(note in text for text in texts(picture.svg()))


def test_a_query_is_drawn_with_what_it_is_given() -> None:
    query = sd.source("trips").where(lambda e: e > 1)
    with pytest.raises(QueryError, match=r"shows its input, and the source 'trips' is bound to none\nHint: timeline\(bindings="):
        query.timeline()
    events: list[sd.Event[int]] = [sd.point("a", 1, 1), sd.edge_start("b", 2, 5), sd.Cti(3), sd.edge_end("b", 2, 6)]
    assert str(query.timeline(bindings={"trips": events})).splitlines() == [
        "time  : 0    5",
        "trips :",
        "  1   : -*",
        "  5   : --[===)x  # RE inf -> 6",
        "  cti : ---|",
        "output:",
        "  5   : --[===)",
    ]


def test_several_sources_have_their_names() -> None:
    one, other = sd.source("bids"), sd.source("asks")
    picture = one.union(other).timeline(bindings={"bids": [(1, 3, "b")], "asks": [(2, 9, "a")]})
    assert [lane.title for lane in picture.lanes] == ["bids", "asks", "output"]
    colours = re.findall(r'class="bar"[^>]*fill="(#\w+)"', picture.svg())
    assert len(set(colours)) == 3


def recorded(n: int) -> Any:
    session = sd.source("trips", on_violation="drop").where(lambda e: e > 0).open()
    session.trace(last=n)
    return session


def test_a_session_draws_the_newest_events_of_each_side() -> None:
    session = recorded(6)
    for k in range(10):
        session.push([sd.point(f"e{k}", k, k % 3)])
    picture = session.timeline()
    trips, output = picture.lanes
    assert (trips.le.tolist(), output.le.tolist()) == ([6, 7, 8, 9], [7, 8])
    assert trips.note == "10 older events are left out: the recording is a ring of the last 6"


def test_a_session_leaves_out_what_was_dropped_and_shows_the_ctis_of_its_policy() -> None:
    policy = sd.Progress.slack(2)
    session = sd.source("trips", progress=policy, on_violation="drop").open()
    session.trace()
    session.push([sd.point("a", 5, "A")])
    session.push([sd.point("late", 1, "L"), sd.point("b", 9, "B")])
    trips, _ = session.timeline().lanes
    assert [trips.payload(n) for n in range(len(trips))] == ["A", "B"]
    assert trips.note == "1 late, see rejected()"
    assert max(trips.ctis.tolist()) == session.ctis["trips"] == 7


@pytest.mark.parametrize("on_violation", ["drop", "adjust"])
def test_a_query_leaves_out_what_was_dropped_and_says_how_many_were_late(on_violation: Any) -> None:
    events: list[sd.Event[str]] = [sd.point("a", 9, "A"), sd.Cti(5), sd.interval("late", 3, 8, "L"), sd.point("b", 6, "B")]
    kept, output = sd.from_events(events, on_violation=on_violation).timeline().lanes
    assert kept.note == "1 late, see rejected()"
    shown = [kept.payload(n) for n in range(len(kept))]
    assert shown == (["A", "B"] if on_violation == "drop" else ["A", "L", "B"])
    assert len(output) == len(shown)


def test_pairs_of_rows_show_the_fields_of_both() -> None:
    pairs = sd.from_rows([(1, 5, {"k": 1, "v": "x"})]).join(sd.from_rows([(2, 9, {"k": 1})]), on="k").run()
    assert "(k=1 v='x', k=1)" in texts(pairs.timeline().svg())
    assert texts(pairs.timeline().svg()) == texts(pairs.cht().timeline().svg())


def test_a_session_keeps_frames_and_dates_and_the_end() -> None:
    import pandas as pd

    session = sd.source("trips", unit="s").open()
    session.trace()
    times = pd.to_datetime(["2026-03-28T09:00", "2026-03-28T09:10"])
    session.push(pd.DataFrame({"le": times, "re": times + pd.Timedelta("5min"), "v": [1, 2]}))
    session.push([sd.interval("x", "2026-03-28T09:30", "2026-03-28T09:40", {"v": 3})])
    session.close()
    trips, output = session.timeline().lanes
    assert [lane.payload(n)["v"] for lane in (trips, output) for n in range(len(lane))] == [1, 2, 3, 1, 2, 3]
    assert trips.ctis.tolist()[-1] == output.ctis.tolist()[-1] == INFINITY
    assert "[2026-03-28T09:00:00Z, 2026-03-28T09:05:00Z)" in session.timeline().svg()
    assert "<svg" in session._repr_html_()


def test_a_session_that_was_not_asked_to_keeps_nothing_and_says_how_to_ask() -> None:
    session = sd.source("trips").open()
    with pytest.raises(SessionError, match=r"(?s)kept none of its events.*session\.trace\(\)"):
        session.timeline()
    assert "none yet" in session._repr_html_()


def test_a_restored_session_keeps_what_comes_from_then_on(tmp_path: Path) -> None:
    query = sd.source("trips").where(lambda e: e > 0)
    session = query.open()
    session.push([sd.edge_start("a", 1, 5)])
    session.checkpoint(tmp_path / "trips")
    again = query.restore(tmp_path / "trips")
    again.trace()
    again.push([sd.edge_end("a", 1, 4)])
    _, trips, row, *_ = str(again.timeline()).splitlines()
    assert trips.endswith("# 1 input events came before the recording began")
    assert row.startswith("  a   : -[==)x  # RE inf -> 4")


def test_a_picture_is_saved_as_svg_or_as_text(tmp_path: Path) -> None:
    picture = sd.from_rows([(1, 5, "a")]).run().timeline()
    for name in ("rows.svg", "rows.txt"):
        picture.save(tmp_path / name)
    assert (tmp_path / "rows.svg").read_text() == picture.svg()
    assert picture._repr_html_() == scrolled(picture.svg())
    assert (tmp_path / "rows.txt").read_text() == f"{picture}\n"


def test_the_style_of_a_picture_is_about_the_picture_alone() -> None:
    style = next(parsed(sd.from_rows([(1, 5, "a")]).run().timeline().svg()).iter(f"{SVG}style")).text or ""
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", style.replace("@media(prefers-color-scheme:dark){", "").replace("}}", "}"))
    assert rules
    assert [rule for rule in rules if not re.match(r"\.sd[ :]", rule)] == []
    assert "prefers-color-scheme:dark" in style
