"""Traces: what is recorded, within which bounds, and what is said of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.debugger import EventTrace, load
from streamdsl.errors import QueryError, SessionError, StreamDslError, UnboundedOutputError, UserCodeError

PACKAGE = str(Path(sd.__file__).parent)
TRIPS = [
    sd.point("a", 3, {"zone": "A", "fare": 7}),
    sd.point("b", 4, {"zone": "A", "fare": 2}),
    sd.point("c", 12, {"zone": "B", "fare": 9}),
]
DEAR = sd.source("trips").where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count(), most=sd.max(lambda e: e.fare))


def text(answer: object) -> list[str]:
    return str(answer).splitlines()


def test_a_session_that_is_not_traced_makes_no_call_that_it_would_not_make_without_a_debugger() -> None:
    warm, never, stopped = DEAR.open(), DEAR.open(), DEAR.open()
    for events in ([TRIPS[0]], TRIPS[1:], [sd.Cti(20)]):
        warm.push(events)
    warm.close()
    stopped.trace().stop()
    assert vars(never).keys() == vars(stopped).keys()
    for events in ([TRIPS[0]], TRIPS[1:], [sd.Cti(20)]):
        calls = [calls_of(partial(session.push, events)) for session in (never, stopped)]
        assert calls[0] == calls[1]
        assert not [file for file, _ in calls[0] if "debugger" in file]
    assert calls_of(never.close) == calls_of(stopped.close)


def test_a_session_that_is_traced_is_seen_to_record() -> None:
    session = DEAR.open()
    session.trace()
    assert [file for file, _ in calls_of(lambda: session.push(TRIPS)) if "debugger" in file]


def calls_of(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the functions of the package that a call makes run, in order."""
    found: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def test_the_debugger_is_imported_only_when_it_is_asked_for() -> None:
    code = """
import sys, streamdsl as sd
query = sd.source("s").where(lambda e: e > 1)
session = query.open()
session.push([sd.point("a", 1, 2)])
session.close()
query.run({"s": []})
print([name for name in sys.modules if "debugger" in name])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_ring_holds_the_newest_events_and_says_how_many_it_has_let_go() -> None:
    session = sd.source("trips").where(lambda e: e > 0).open()
    trace = session.trace(last=10)
    for n in range(100):
        session.push([sd.point(n, n, n + 1)])
    assert [event.id for _, event in trace.input if isinstance(event, sd.Insert)] == [95, 96, 97, 98, 99]
    assert trace.left_out == ["190 older events are left out: the recording is a ring of the last 10"]
    assert trace.why(trace.output[-1]).is_complete
    assert "190 older" in str(trace.why((7, 8, 8)))
    with pytest.raises(QueryError, match="cannot be replayed"):
        trace.replay()


def test_a_push_of_more_than_the_ring_holds_leaves_its_newest_events() -> None:
    session = sd.source("trips").where(lambda e: e > 0).open()
    trace = session.trace(last=10)
    session.push([sd.point(n, n, n + 1) for n in range(100)])
    assert len(trace.input) + len(trace.output) == 10
    assert trace.why(trace.output[-1]).is_complete


def test_an_answer_whose_causes_were_let_go_is_said_to_lack_them() -> None:
    session = sd.source("trips").tumbling_window(1000).aggregate(n=sd.count()).open()
    trace = session.trace(last=10)
    for n in range(20):
        session.push([sd.point(n, n, n)])
    why = trace.why(trace.output[-1])
    assert not why.is_complete
    assert "does not hold all" in str(why)


def test_a_sample_has_all_events_of_a_key_or_none() -> None:
    session = sd.source("trips").where(lambda e: e.fare > 0).open()
    trace = session.trace(sample=(0.4, "zone"))
    events = [sd.interval((zone, n), n, 99, {"zone": zone, "fare": 1}) for n in range(3) for zone in "ABCDEFGHIJ"]
    session.push(events)
    session.push([sd.Retract(e.id, e.le, 99, 50, e.payload) for e in events])
    zones = {event.payload.zone if hasattr(event.payload, "zone") else event.payload["zone"] for _, event in trace.input}  # type: ignore[union-attr]
    assert 0 < len(zones) < 10
    assert len(trace.input) == 6 * len(zones)
    again = sd.source("trips").where(lambda e: e.fare > 0).open()
    same = again.trace(sample=(0.4, lambda e: e.zone))
    again.push(events)
    assert [event.id for _, event in same.input if isinstance(event, sd.Insert)] == [
        e.id for e in events if e.payload["zone"] in zones
    ]


@pytest.mark.parametrize("given", [{"last": 0}, {"sample": (0, "zone")}, {"sample": (2, "zone")}])
def test_bounds_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(QueryError):
        DEAR.open().trace(**given)


def test_a_session_is_traced_once_at_a_time_and_what_came_before_is_said() -> None:
    session = DEAR.open()
    session.push(TRIPS[:2])
    trace = session.trace()
    with pytest.raises(SessionError, match="traced already"):
        session.trace()
    assert trace.left_out == ["2 input events came before the recording began"]
    trace.stop()
    session.push(TRIPS[2:])
    assert trace.input == []
    assert session.trace().input == []


def test_times_are_shown_as_dates() -> None:
    trips = sd.source("trips", unit="s").tumbling_window("1h").aggregate(n=sd.count())
    trace = trips.trace({"trips": [("2026-03-01T10:00", "2026-03-01T10:01", 7)]})
    assert text(trace.why(trace.output[0])) == [
        "[2026-03-01T10:00:00Z, 11:00:00Z) n=1  <- window_aggregate_1: "
        "[2026-03-01T10:00:00Z, 11:00:00Z) 1 row in a window, tumbling(1h)",
        "   count over 1 row gave 1",
        "   [2026-03-01T10:00:00Z, 10:01:00Z) 7  <- source:trips: insert 0 [2026-03-01T10:00:00Z, 10:01:00Z)",
    ]
    assert trace.why(("2026-03-01T10:00", "2026-03-01T11:00", {"n": 1})).is_complete


def test_rows_of_groups_are_found_among_dated_ones() -> None:
    trips = sd.source("trips", unit="s").group_by(lambda e: e % 2).tumbling_window("1h").aggregate(n=sd.count())
    trace = trips.trace({"trips": [("2026-03-01T10:00", "2026-03-01T10:01", n) for n in (7, 8, 9)]})
    assert [len(trace.why(row).inputs) for row in trace.cht()] == [1, 2]


def test_a_correction_is_explained_by_what_changed_it() -> None:
    session = DEAR.open()
    trace = session.trace()
    session.push([TRIPS[0]])
    session.push([sd.point("d", 5, {"zone": "B", "fare": 11})])
    (taken_back,) = [event for event in trace.output if isinstance(event, sd.Retract)]
    why = trace.why(taken_back)
    assert [(cause.source, cause.row) for cause in why.changed_by] == [("trips", (5, 6, sd.Record(zone="B", fare=11)))]
    assert [cause.necessary for cause in why.changed_by] == [True]
    assert text(why) == [
        "[0, 10) n=1 most=7 was taken back; it was changed by",
        "   [5, 6) zone='B' fare=11  <- source:trips: insert 'd' [5, 6)",
    ]


def test_a_final_answer_names_the_ctis_that_let_it_out() -> None:
    session = sd.source("x").union(sd.source("y")).tumbling_window(10).aggregate(n=sd.count()).open("final")
    trace = session.trace()
    session.push([sd.point("a", 3, 1)], "x")
    session.push([sd.Cti(20)], "x")
    session.push([sd.Cti(15)], "y")
    why = trace.why(trace.output[0])
    assert why.needed_ctis == {"x": 20, "y": 15}
    assert text(why)[-2:] == ["let out by the CTI 20 of 'x'", "let out by the CTI 15 of 'y'"]


def test_what_stays_out_of_sight_is_a_row_that_was_needed_for_the_time_it_brought() -> None:
    """Window [10, 20) is out as an event at 12 has come, though that one was deleted."""
    session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open()
    trace = session.trace()
    session.push([sd.interval("long", 3, 15, 1)])
    session.push([sd.point("gone", 12, 2)])
    session.push([sd.Retract("gone", 12, 13, 12, 2)])
    why = trace.why((10, 20, {"n": 1}))
    assert [(cause.events[0].id, cause.is_context, cause.necessary) for cause in why.inputs] == [  # type: ignore[union-attr]
        ("long", False, True),
        ("gone", True, True),
    ]
    assert "and there must be, or else it would be another answer:" in text(why)


def test_of_a_retraction_the_effects_are_those_of_all_that_follow_it() -> None:
    session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open()
    trace = session.trace()
    session.push([sd.interval("a", 3, 25, 1), sd.Cti(3)])
    session.push([sd.Retract("a", 3, 25, 15, 1)])
    session.push([sd.point("b", 22, 2)])
    effects = trace.effects(trace.input[2].event)
    assert effects.output.made == (sd.CHTRow(20, 30, sd.Record(n=1)),)
    assert effects.output.prevented == (sd.CHTRow(20, 30, sd.Record(n=2)),)


def test_an_event_that_changes_nothing_is_said_to() -> None:
    trace = (
        sd.from_rows([(1, 2, 7), (3, 4, 9)]).tumbling_window(10).aggregate(m=sd.max(lambda e: e)).select(lambda e: e.m).trace()
    )
    assert "nothing would be different" not in str(trace.effects(trace.input[0].event))
    assert trace.effects(trace.input[0].event).output.made == ()
    assert [cause.necessary for cause in trace.why((0, 10, 9)).inputs] == [False, True]


def test_a_late_event_is_why_an_answer_is_missing() -> None:
    trips = sd.source("trips", on_violation="drop")
    trace = trips.where(lambda e: e > 5).trace({"trips": [sd.point("a", 9, 7), sd.Cti(8), sd.point("late", 3, 8)]})
    answer = trace.why_not((3, 4, 8))
    assert [(remedy.kind, remedy.rejected[0].cti) for remedy in answer.remedies] == [("late", 8)]
    assert text(answer) == [
        "it would be there if",
        "   source:trips had taken [3, 4) 8 as it was sent: "
        "insert 'late' [3, 4) broke the CTI 8, dropped: it changes a time before the CTI",
        "then: [3, 4) 8",
    ]
    assert trace.effects(trace.input[2].event).late == "dropped: it changes a time before the CTI"


def test_several_causes_act_together() -> None:
    trips = sd.source("trips", on_violation="drop")
    trace = trips.where(lambda e: e > 5).trace({"trips": [sd.point("a", 9, 7), sd.Cti(8), sd.point("late", 3, 2)]})
    assert sorted(remedy.kind for remedy in trace.why_not(lambda e: e == 2).remedies) == ["late", "operator"]


def test_a_window_that_is_not_closed_is_held_by_the_input_whose_cti_is_behind() -> None:
    session = sd.source("x").union(sd.source("y")).tumbling_window(10).aggregate(n=sd.count()).open("final")
    trace = session.trace()
    session.push([sd.point("a", 3, 1), sd.Cti(20)], "x")
    session.push([sd.Cti(7)], "y")
    answer = trace.why_not(lambda e: e.n == 1)
    assert [(remedy.kind, remedy.name, remedy.cti) for remedy in answer.remedies] == [("cti", "y", 7)]
    assert text(answer) == ["it would be there if", "   the CTI of 'y' went on: it is at the CTI 7", "then: [0, 10) n=1"]


def test_rows_in_the_way_are_named() -> None:
    lamps, doors = sd.source("lamps"), sd.source("doors")
    given = {"lamps": [sd.interval("l", 1, 9, {"room": 1})], "doors": [sd.interval(n, 0, 20, {"room": 1}) for n in "pq"]}
    answer = lamps.anti_join(doors, on="room").trace(given).why_not(lambda e: e.room == 1)
    assert [(remedy.kind, remedy.name, remedy.events[0].id) for remedy in answer.remedies] == [  # type: ignore[union-attr]
        ("input", "doors", "p"),
        ("input", "doors", "q"),
    ]


def test_of_many_rows_the_one_in_the_way_is_named() -> None:
    lamps, doors = sd.source("lamps"), sd.source("doors")
    rooms = [sd.interval(n, 0, 20, {"room": n}) for n in (5, 4, 1, 2)]
    given = {"lamps": [sd.interval("l", 1, 9, {"room": 1}), sd.interval("m", 1, 9, {"room": 3})], "doors": rooms}
    (remedy,) = lamps.anti_join(doors, on="room").trace(given).why_not(lambda e: e.room == 1).remedies
    assert (remedy.kind, remedy.name, remedy.rows) == ("input", "doors", ((0, 20, sd.Record(room=1)),))


def test_no_input_could_give_what_a_filter_of_the_output_refuses() -> None:
    answer = sd.from_rows([(1, 2, 7)]).where(lambda e: e > 5).shift(3).trace().why_not((4, 5, 2))
    assert str(answer) == "no input could give it: where_1 lets no such row pass: e > 5"


def test_no_input_could_give_a_window_that_there_is_none_of() -> None:
    query = sd.source("s").group_by("k").tumbling_window(10).aggregate(n=sd.count())
    trace = query.trace({"s": [(1, 2, {"k": "a"})]})
    assert str(trace.why_not((5, 15, {"k": "a", "n": 1}))) == (
        "no input could give it: window_aggregate_1 has no such window: tumbling(10)"
    )
    assert str(trace.why_not((10, 20, {"k": "a", "n": 1}))).startswith("no recorded input gives it")


def test_what_no_recorded_input_gives_is_said_with_what_was_tried() -> None:
    answer = sd.from_rows([(1, 2, 7)]).where(lambda e: e > 5).trace().why_not((4, 5, 9))
    assert text(answer) == [
        "no recorded input gives it, whatever was changed",
        "   filters and joins open: 1",
        "   input rows left out: 1",
    ]


def test_questions_that_make_no_sense_are_refused() -> None:
    trace = DEAR.trace({"trips": TRIPS})
    for ask, says in (
        (lambda: trace.why(sd.Cti(3)), "no lineage"),
        (lambda: trace.why((0, 10, {"n": 99, "most": 1})), "never had"),
        (lambda: trace.why((0, 10, {"n": 1})), "with its lifetime it had"),
        (lambda: trace.why(sd.point("z", 3, 1)), "not in the output"),
        (lambda: trace.effects(sd.point("z", 3, 1)), "did not come in"),
        (lambda: trace.effects(sd.Cti(3)), "changes no row"),
        (lambda: trace.why_not((0, 10, {"n": 1, "most": 7})), "not missing"),
        (lambda: trace.why(7), "no row"),  # type: ignore[arg-type]
        (lambda: trace.why_not(lambda e: e.fares == 7), "fares"),
        (lambda: trace.save(7), "given by its path"),  # type: ignore[arg-type]
        (lambda: load(7), "given by its path"),  # type: ignore[arg-type]
    ):
        with pytest.raises(StreamDslError, match=says):
            ask()


def test_a_clock_is_replayed_as_it_was() -> None:
    now = [0]
    clock = sd.Progress.wall_clock("10s", clock=lambda: now[0] * 10**9)
    query = sd.source("s", unit="s", progress=clock, on_violation="drop").tumbling_window("10s").aggregate(n=sd.count())
    session = query.open("final")
    trace = session.trace()
    for now[0], time in ((5, 4), (12, 13), (31, 9), (40, 33)):
        session.push([sd.point(now[0], time, 1)])
    assert trace.replay() == trace.output
    assert [row.le for row in trace.cht()] == [0, 10, 30]
    assert [remedy.kind for remedy in trace.why_not(lambda e: e.n == 2).remedies] == ["late"]


def test_reference_data_is_a_cause() -> None:
    zones = sd.sources.from_table([{"zone": "A", "city": "X"}, {"zone": "B", "city": "Y"}])
    query = sd.source("trips").join(zones, on="zone", select=lambda t, z: {"fare": t.fare, "city": z.city})
    session = query.open()
    trace = session.trace()
    (answer, *_) = session.push(TRIPS[:1])
    why = trace.why(answer)
    assert why.is_complete
    assert sorted(cause.source for cause in why.inputs) == sorted(session.sources)
    assert query.trace({"trips": TRIPS}).why((3, 4, {"fare": 7, "city": "X"})).is_complete
    assert trace.replay() == trace.output


def test_what_reference_data_gives_by_itself_is_recorded_too() -> None:
    session = sd.sources.from_table([{"v": 1}, {"v": 2}]).union(sd.source("s")).open()
    trace = session.trace()
    out = session.push([sd.point("a", 3, {"v": 9})], "s")
    assert trace.output == out
    assert len(out) == 3
    assert trace.replay() == out


@dataclass(frozen=True)
class Trip:
    zone: str
    fare: int | None


class Plain:
    pass


def test_a_file_holds_payloads_of_classes_by_their_names(tmp_path: Path) -> None:
    trace = (
        sd.source("trips", Trip)
        .where(lambda e: e.zone != "B")
        .trace({"trips": [sd.point(("a", 1), 3, Trip("A", None)), sd.Cti(9)]})
    )
    trace.save(tmp_path / "trips.trace")
    again = load(tmp_path / "trips.trace", types=[Trip])
    assert (again.input, again.output) == (trace.input, trace.output)
    assert again.replay() == trace.output
    assert str(again.why(again.output[0])) == str(trace.why(trace.output[0]))
    with pytest.raises(QueryError, match="Trip"):
        load(tmp_path / "trips.trace")


def test_a_query_without_a_form_in_json_is_given_to_load(tmp_path: Path) -> None:
    query = sd.source("trips").select_many(lambda e: [e] * e)
    trace = query.trace({"trips": [sd.point("a", 3, 2)]})
    trace.save(tmp_path / "trips.trace")
    with pytest.raises(QueryError, match="has no query"):
        load(tmp_path / "trips.trace")
    assert load(tmp_path / "trips.trace", query).replay() == trace.output


def test_what_has_no_form_in_json_is_refused(tmp_path: Path) -> None:
    trace = sd.source("trips").where(lambda e: True).trace({"trips": [sd.point("a", 3, Plain())]})
    with pytest.raises(QueryError, match="Plain, which has no form in JSON"):
        trace.save(tmp_path / "trips.trace")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"format": "streamdsl trace", "version": 0}', '{"format": "streamdsl trace", "version": 1, "plan": null}'],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(QueryError):
        load(tmp_path / "x")
    with pytest.raises(QueryError):
        load(tmp_path / "x", sd.source("s"))


def test_of_equal_rows_each_has_a_cause_of_its_own() -> None:
    trace = sd.source("s").where(lambda e: e > 1).tumbling_window(10).aggregate(n=sd.count()).trace({"s": [(1, 2, 7), (1, 2, 7)]})
    assert [(cause.is_context, cause.necessary) for cause in trace.why((0, 10, {"n": 2})).inputs] == [(False, True)] * 2


def test_a_module_is_shown_with_the_lifetimes_that_it_saw() -> None:
    query = sd.source("s").tumbling_window(10, clip=sd.Clip.FULL).aggregate(mean=sd.time_weighted_avg(lambda e: e))
    trace = query.trace({"s": [sd.interval("a", 3, 25, 4.0), sd.interval("b", 8, 12, 6.0)]})
    tree = trace.why(trace.cht().rows[1]).tree
    assert tree is not None
    assert tree.calls[0].arguments == (sd.IntervalEvent(10, 20, 4.0), sd.IntervalEvent(10, 12, 6.0))
    assert tree.did == "2 rows in a window, tumbling(10), clip full"
    assert "over 2 rows seen as [10, 20), [10, 12) gave" in str(trace.why(trace.cht().rows[1]))


def test_answers_are_short_as_values_and_whole_in_notebooks() -> None:
    trace = DEAR.trace({"trips": TRIPS})
    why = trace.why((0, 10, {"n": 1, "most": 7}))
    assert repr(why) == "Why([0, 10) n=1 most=7, of 1 row of input)"
    assert repr(why.tree) == "Cause(window_aggregate_1: [0, 10) n=1 most=7, of 1)"
    assert "&lt;- source:trips" in why._repr_html_()
    assert repr(trace.effects(trace.input[0].event)) == "Effects(insert 'a' [3, 4), at 3 operators)"
    passed = sd.source("s").where(lambda e: e > 5).trace({"s": [(3, 4, 2)]})
    assert repr(passed.why_not(lambda e: e == 2)) == "WhyNot(operator where_1)"
    assert repr(passed.why_not(lambda e: e == 7)) == "WhyNot(no remedy)"
    assert why.windows == [(0, 10)]
    assert why.events == [("trips", trace.input[0].event)]


def test_answers_over_dates_print_dates() -> None:
    start, end = "'2026-03-01T10:00:00Z'", "'2026-03-01T10:05:00Z'"
    query = sd.source("trips", unit="s").tumbling_window("1h").aggregate(n=sd.count())
    trace = query.trace({"trips": [sd.interval("a", "2026-03-01T10:00", "2026-03-01T10:05", 7)]})
    why = trace.why(trace.cht().rows[0])
    (cause,) = why.inputs
    row = f"CHTRow(le={start}, re={end}, payload=7)"
    assert repr(cause) == (
        f"InputCause(source='trips', row={row}, events=(Insert(id='a', le={start}, re={end}, payload=7),), "
        "is_context=False, number=0)"
    )
    assert repr(why.tree) == "Cause(window_aggregate_1: [2026-03-01T10:00:00Z, 11:00:00Z) n=1, of 1)"
    assert repr(trace.effects(cause.events[0]).operators[0]) == (
        f"OperatorEffect(operator='source:trips', made=({row},), prevented=())"
    )


def test_the_way_to_emit_is_kept_as_far_as_it_says_which_rows_are_out() -> None:
    emits: list[Any] = [sd.emit.Emit(hold=5), sd.emit.Emit(every=1), "watermark", "final"]
    for emit in emits:
        session = DEAR.open(emit)
        trace = session.trace()
        session.push([*TRIPS, sd.Cti(30)])
        assert trace.replay() == trace.output
        assert all(trace.why(row).is_complete for row in trace.cht())
        assert len(trace.cht()) == 2


def test_what_comes_out_at_the_end_is_explained() -> None:
    session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open("final")
    trace = session.trace()
    session.push([sd.point("a", 3, 1)])
    (answer, _) = session.close()
    assert trace.why(answer).is_complete
    assert [cause.necessary for cause in trace.why(answer).inputs] == [True]


def test_a_session_that_is_traced_is_saved_restored_and_undone_as_any_other(tmp_path: Path) -> None:
    session = DEAR.open()
    trace = session.trace()
    session.push(TRIPS[:1])
    with pytest.raises(UnboundedOutputError):
        session.push([sd.interval("endless", 5, 10**12, {"zone": "A", "fare": 9}), sd.Cti(10**12)])
    assert len(trace.input) == 1
    session.checkpoint(tmp_path / "x")
    again = DEAR.restore(tmp_path / "x")
    assert "_push" not in vars(again)
    later = again.trace()
    assert again.push(TRIPS[1:]) == session.push(TRIPS[1:])
    assert later.left_out == ["1 input events came before the recording began"]
    assert trace.replay() == trace.output
    assert session.feed([sd.Cti(30)]).events() == trace.output[-1:]


def test_pushes_without_events_do_not_grow_a_ring() -> None:
    session = DEAR.open()
    trace = session.trace(last=5)
    for _ in range(20):
        session.push([])
    assert len(trace.recording.pushes) == 5


def test_late_events_are_known_in_a_push_of_which_the_ring_holds_a_part() -> None:
    session = sd.source("s", on_violation="drop").open()
    trace = session.trace(last=10)
    session.push([sd.Cti(10), *(sd.point(n, n % 2 * 20, n) for n in range(40))])
    late = [event for _, event in trace.input if isinstance(event, sd.Insert) and event.le == 0]
    assert late
    assert {trace.effects(event).late for event in late} == {"dropped: it changes a time before the CTI"}


def test_a_file_of_a_sample_says_that_it_is_one(tmp_path: Path) -> None:
    session = DEAR.open()
    trace = session.trace(sample=(0.5, "zone"))
    session.push(TRIPS)
    trace.save(tmp_path / "x")
    assert load(tmp_path / "x").left_out == trace.left_out == ["it has the input of 50.000% of the keys"]


def test_a_sample_takes_rows_that_have_no_key() -> None:
    session = sd.source("trips").open()
    trace = session.trace(sample=(0.0001, "zone"))
    assert session.push([sd.point("a", 1, 5)])
    assert len(trace.input) == 1


def test_a_trace_shows_how_much_it_has() -> None:
    trace: EventTrace = DEAR.trace({"trips": TRIPS})
    assert repr(trace) == f"EventTrace: 3 events in, {len(trace.output)} out"


def test_a_predicate_chooses_the_one_row_that_is_asked_about() -> None:
    query = sd.source("trips").group_by("zone").tumbling_window(10).aggregate(n=sd.count())
    session = query.open()
    trace = session.trace()
    session.push([sd.point("a", 3, {"zone": "A"}), sd.point("b", 4, {"zone": "B"}), sd.point("c", 13, {"zone": "B"})])
    session.push([sd.Retract("a", 3, 4, 3), sd.point("d", 14, {"zone": "B"})])
    why = trace.why(lambda e, life: e.zone == "B" and life.le == 10)
    assert [cause.events[0].id for cause in why.inputs] == ["c", "d"]  # type: ignore[union-attr]
    assert str(why) == str(trace.why((10, 20, {"zone": "B", "n": 2})))
    # What is not there any more is looked for among what was; now there is one row with n=1, then there were three.
    assert trace.why(lambda e: e.zone == "A").row == (0, 10, sd.Record(zone="A", n=1))
    assert trace.why(lambda e: e.n == 1).row == (0, 10, sd.Record(zone="B", n=1))
    assert trace.effects(lambda e: e.zone == "A").event == trace.input[0].event
    assert trace.effects(lambda e, life: life.le == 14).output == trace.effects(trace.input[4].event).output


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (
            lambda t: t.why(lambda e: e.n > 0),
            QueryError,
            r"2 output rows: \[0, 10\) n=1; \[10, 20\) n=2\nHint: .* and life.le == 0, ",
        ),
        (lambda t: t.why(lambda e: e.n > 7), QueryError, r"no output row\nHint: trace.why_not"),
        (
            lambda t: t.effects(lambda e: e > 1),
            QueryError,
            r"2 input rows: \[13, 14\) 2; \[14, 15\) 3\nHint: .* and life.le == 13, ",
        ),
        (lambda t: t.effects(lambda e: e > 7), QueryError, r"no input row\nHint: trace.input has"),
        (lambda t: t.why(lambda row: row.payload.n == 1), QueryError, "takes the payload, which has no 'payload'"),
        (lambda t: t.why(lambda row: row.le == 0), QueryError, "lambda e, life: life.le == 0"),
        (lambda t: t.why(lambda e: e.n / 0), UserCodeError, "the predicate of why"),
        (lambda t: t.effects(lambda e: e.fare), UserCodeError, "the predicate of effects"),
        (lambda t: t.why_not(lambda e: e.fare), UserCodeError, "the predicate of why_not"),
    ],
)
def test_a_predicate_of_none_or_several_rows_is_refused_and_the_rows_are_listed(ask: Any, error: Any, message: str) -> None:
    query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
    trace = query.trace({"trips": [sd.point("a", 3, 1), sd.point("b", 13, 2), sd.point("c", 14, 3)]})
    with pytest.raises(error, match=message):
        ask(trace)
