"""The page of a trace: what it says is what the trace answers, and a real browser can be asked it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.debugger import EventTrace, page_answers, trace_page
from streamdsl.debugger.page_answers import MOST_CAUSES
from streamdsl.debugger.trace_page import MOST_ROWS, page
from streamdsl.errors import QueryError
from tests.laws.choices import Random
from tests.laws.compositions import composition
from tests.laws.scenarios import scenario

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --virtual-time-budget=5000"
HOSTILE = "</script><script>document.title='broken'</script><!--<img src=x onerror=alert(1)>\u2028'\"&"
QUERY = sd.source("trips").where(lambda e: e["fare"] > 5).group_by("zone").tumbling_window(10).aggregate(n=sd.count())


def traced(payloads: Sequence[Any], query: Any = QUERY) -> EventTrace:
    session = query.open()
    trace: EventTrace = session.trace(last=None)
    for n, payload in enumerate(payloads):
        session.push([sd.interval(f"e{n}", 3 * n, 3 * n + 4, payload)])
    return trace


def data_of(trace: EventTrace, why: Sequence[Any] | None = None) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(trace, why), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def trips(*fares: int) -> list[dict[str, Any]]:
    return [{"zone": "AB"[n % 2], "fare": fare} for n, fare in enumerate(fares)]


def test_the_events_are_those_of_the_trace_in_order() -> None:
    session = QUERY.open()
    trace = session.trace()
    session.push([sd.edge_start("a", 1, {"zone": "A", "fare": 9}), sd.Cti(1)])
    session.push([sd.edge_end("a", 1, 4)])
    data = data_of(trace)
    came = [event for event in data["events"] if event[1]]
    assert [event[2:8] for event in came] == [
        ["insert", "a", "1", data["infinity"], None, "zone='A' fare=9"],
        ["cti", "", "1", "1", None, ""],
        ["retract", "a", "1", data["infinity"], "4", ""],
    ]
    assert [event[0] for event in came] == [0, 0, 1]
    assert len(data["events"]) - len(came) == len(trace.output)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_the_causes_of_answers_are_those_that_why_names(fares: list[int]) -> None:
    trace = traced(trips(*fares))
    data = data_of(trace)
    inputs = [n for n, event in enumerate(data["events"]) if event[1] and event[2] == "insert"]

    def below(place: int) -> set[int]:
        row = data["rows"][place]
        return set(row[8]).union(*map(below, row[7]))

    here: set[int] = set()
    for moment in data["moments"]:
        here = (here - set(moment["went"])) | set(moment["came"])
    answers = [data["rows"][place] for place in here if data["operators"][data["rows"][place][0]] == data["output"]]
    assert len(answers) == len(trace.cht())
    for row in answers:
        zone, n = re.fullmatch(r"zone='(\w)' n=(\d+)", row[3]).groups()  # type: ignore[union-attr]
        why = trace.why((int(row[1]), int(row[2]), {"zone": zone, "n": int(n)}))
        expected = {inputs[int(str(cause.events[0].id)[1:])] for cause in why.inputs}  # type: ignore[union-attr]
        assert below(data["rows"].index(row)) == expected


def test_a_row_that_is_made_of_other_rows_later_has_the_later_causes() -> None:
    session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    trace = session.trace()
    session.push([sd.point("a", 3, 7)])
    session.push([sd.Retract("a", 3, 4, 3), sd.point("b", 4, 7)])
    data = data_of(trace)
    answers = [row for row in data["rows"] if data["operators"][row[0]] == data["output"]]
    assert [row[3] for row in answers] == ["n=1", "n=1"]
    events = [data["events"][data["rows"][row[7][0]][8][0]][3] for row in answers]
    assert events == ["a", "b"]


@given(st.integers(0, 10**6))
def test_rows_are_of_what_had_come_by_then_for_random_queries(seed: int) -> None:
    """Rows of sources have the lifetimes that their events give, and those of operators are made of rows that are there."""
    trace = random_trace(seed)
    data = data_of(trace)
    here: set[int] = set()
    for moment in data["moments"]:
        here = (here - set(moment["went"])) | set(moment["came"])
        for row in map(data["rows"].__getitem__, here):
            assert set(row[7]) <= here
            came = [data["events"][n] for n in row[8]]
            assert [event for event in came if event[0] > moment["push"]] == []
            if came:
                assert (row[1], row[2]) == (came[0][4], came[-1][6] or came[-1][5])


def random_trace(seed: int) -> EventTrace:
    rng = Random(seed)
    _, query = composition(rng)
    session = query.open()
    trace: EventTrace = session.trace(last=None)
    for source, events in scenario(rng, 2, unending=True, max_size=5).pushes:
        if source in session.sources:
            session.push(list(events), source=source)
    return trace


@given(st.integers(0, 10**6))
def test_what_the_page_says_of_an_answer_is_what_why_says_for_random_queries(seed: int) -> None:
    trace = random_trace(seed)
    data = data_of(trace)
    numbers = [n for n, event in enumerate(data["events"]) if not event[1]]
    assert {int(n) for n in data["answers"]} <= set(numbers)
    for n, event in zip(numbers, trace.output, strict=True):
        if str(n) not in data["answers"]:
            continue
        said, why = data["answers"][str(n)], trace.why(event)
        assert said["complete"] == why.is_complete
        for causes, expected in (said["causes"], why.inputs), (said["changed"], why.changed_by):
            assert [cause[1:] for cause in causes] == [[cause.necessary, cause.is_context] for cause in expected]
            for (events, *_), cause in zip(causes, expected, strict=True):
                came = [data["events"][number] for number in events]
                assert [(each[1], each[3]) for each in came] == [(cause.source, str(each.id)) for each in cause.events]  # type: ignore[union-attr]
        if why.tree is None:
            assert said["row"] is None
        else:
            assert tuple(data["rows"][said["row"]][1:3]) == (str(why.tree.row.le), str(why.tree.row.re))


def test_causes_are_tried_of_the_newest_answers_or_of_those_that_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_answers, "_WORK", 30_000)
    trace = traced(trips(*[9] * 40), sd.source("trips").where(lambda e: e["fare"] > 5))
    data = data_of(trace)
    answers = [n for n, event in enumerate(data["events"]) if not event[1]]
    known = sorted(map(int, data["answers"]))
    assert known == answers[-len(known) :] != answers
    assert f"known of {len(known)} of 40 answers" in data["notes"][-1]
    many = traced(trips(*[9] * 60), sd.source("trips").tumbling_window(1000).aggregate(n=sd.count()))
    (answer,) = data_of(many, why=[many.output[-1]])["answers"].values()
    assert [cause[1] for cause in answer["causes"]] == [True] * MOST_CAUSES + [None] * (60 - MOST_CAUSES)
    chosen = data_of(trace, why=[trace.output[2], trace.output[7]])
    assert sorted(map(int, chosen["answers"])) == [answers[2], answers[7]]
    assert data_of(trace, why=[])["answers"] == {}


def test_a_choice_of_what_is_not_in_the_output_is_refused_and_ctis_are_passed_over() -> None:
    trace = traced(trips(9))
    with pytest.raises(QueryError, match="not in the output"):
        page(trace, [trace.input[0].event])
    assert data_of(trace, [sd.Cti(3)])["answers"] == {}


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_the_versions_of_an_answer_are_those_that_its_ids_name(fares: list[int]) -> None:
    """With these queries a window of a zone has one answer at a time: its events are those of all its versions."""
    trace = traced(trips(*fares))
    data = data_of(trace)
    rows = {n: (event[4], zone_of(data, event)) for n, event in enumerate(data["events"]) if not event[1] and event[2] != "cti"}
    by_window, by_first = dict[Any, list[int]](), dict[Any, list[int]]()
    for n, window in rows.items():
        by_window.setdefault(window, []).append(n)
        by_first.setdefault(data["events"][n][10], []).append(n)
    assert sorted(by_first.values()) == sorted(by_window.values())
    assert all(events[0] == first for first, events in by_first.items())


def zone_of(data: Any, event: list[Any]) -> str:
    return str(data["events"][event[9]][7].split()[0])


@pytest.mark.parametrize(("policy", "reason"), [("drop", "dropped"), ("adjust", "its LE became the CTI")])
def test_events_that_came_too_late_are_marked(policy: Any, reason: str) -> None:
    session = sd.source("trips", on_violation=policy).tumbling_window(10).aggregate(n=sd.count()).open()
    trace = session.trace()
    session.push([sd.point("a", 3, 1), sd.Cti(5)])
    session.push([sd.interval("b", 2, 9, 1), sd.interval("c", 6, 9, 1)])
    data = data_of(trace)
    ((number, what),) = data["late"].items()
    assert data["events"][int(number)][1:4] == ["trips", "insert", "b"]
    assert what.startswith("it broke the CTI 5, ")
    assert reason in what


def test_long_recordings_say_what_the_page_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_page, "MOST_MOMENTS", 20)
    monkeypatch.setattr(page_answers, "_WORK", 10_000)
    trace = traced(trips(*[9] * 25), sd.source("trips").where(lambda e: e["fare"] > 5))
    data = data_of(trace)
    assert len(data["moments"]) == 20
    assert "after 20 of 25 pushes" in data["notes"][0]
    assert data["moments"][-1]["push"] == 24
    assert [note for note in data["notes"] if "necessary is known of" in note]
    session = sd.source("trips").where(lambda e: e["fare"] > 5).open()
    long = session.trace(last=None)
    session.push([sd.point(n, n, {"fare": n}) for n in range(MOST_ROWS + 1)])
    assert any("no causes are shown" in note for note in data_of(long)["notes"])
    assert "to_html" in long._repr_html_()


def test_payloads_are_data_and_never_code() -> None:
    trace = traced([{"zone": HOSTILE, "fare": 9}])
    text = page(trace)
    assert text.count("<script") == 2
    assert HOSTILE not in text
    assert HOSTILE in data_of(trace)["events"][0][7].replace("\\u2028", "\u2028").replace("\\'", "'")
    frame = trace._repr_html_()
    assert re.findall(r"<(/?\w+)", frame) == ["style", "/style", "iframe", "/iframe"]
    assert unescape(frame.partition('srcdoc="')[2].partition('"></iframe>')[0]) == text


def in_browser(trace: EventTrace, tmp_path: Path, script: str, place: str = "", refresh: float | None = None) -> Any:
    """Return what a script in the page gives, as a real browser runs it; errors of the page are an "error"."""
    assert BROWSER is not None
    trap = "<script>window.onerror = message => { document.body.dataset.error = message; };</script>"
    asked = (
        f"<script>setTimeout(() => {{ document.body.dataset.found = JSON.stringify((() => {{ {script} }})()); }}, 300);</script>"
    )
    path = tmp_path / "page.html"
    path.write_text(page(trace, refresh=refresh).replace("<head>", f"<head>{trap}", 1) + asked, encoding="utf-8")
    command = [BROWSER, *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,800", "--dump-dom"]
    command.append(path.as_uri() + place)
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "data-error" not in shown, re.findall(r'data-error="([^"]*)"', shown)
    (found,) = re.findall(r'data-found="([^"]*)"', shown)
    return json.loads(unescape(found))


in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no browser: Debian has one, apt-get install chromium")


@in_a_browser
def test_a_click_on_an_answer_lights_its_causes(tmp_path: Path) -> None:
    trace = traced(trips(9, 2, 7))
    last = max(n for n, event in enumerate(data_of(trace)["events"]) if not event[1] and event[2] == "insert")
    script = f"""
        document.querySelector('.event[data-event="{last}"]').click(); list();
        return [[...document.querySelectorAll(".event.cause")].map(e => e.textContent), $("why").textContent];
    """
    causes, why = in_browser(trace, tmp_path, script)
    assert [re.sub(r"^\d+→ trips", "", each) for each in causes] == [
        "insert[0, 4)zone='A' fare=9",
        "insert[6, 10)zone='A' fare=7",
    ]
    assert "2 rows in a window, tumbling(10)" in why
    assert "count over 2 rows gave 2" in why


DEAREST = sd.source("trips").tumbling_window(20).aggregate(most=sd.max(lambda e: e["fare"]))


@in_a_browser
def test_a_click_on_an_answer_tells_necessary_causes_from_possible_ones(tmp_path: Path) -> None:
    script = """
        pick(1); list();
        const first = [...document.querySelectorAll(".mark")].map(e => e.textContent);
        answers[1] = undefined; pick(1);
        return [first, [...document.querySelectorAll(".mark")].length, $("why").textContent];
    """
    first, without, why = in_browser(traced(trips(9), DEAREST), tmp_path, script)
    assert (first, without) == (["necessary"], 0)
    assert "was not tried: to_html(path, why=[event])" in why
    query = sd.source("trips").distinct()
    script = """
        pick(events.findIndex(event => !event[SOURCE])); list();
        const all = css => [...document.querySelectorAll(css)].map(e => e.textContent);
        return [all("#why .mark"), all(".event.possible").length];
    """
    session = query.open()
    trace = session.trace()
    session.push([sd.interval(name, 1, 4, 7) for name in "ab"])
    assert [cause.necessary for cause in trace.why(trace.output[0]).inputs] == [False]
    assert in_browser(trace, tmp_path, script) == [["possible"], 1]


@in_a_browser
def test_a_click_on_a_corrected_answer_tells_what_was_believed_and_which_input_changed_it(tmp_path: Path) -> None:
    session = DEAREST.open()
    trace = session.trace()
    session.push([sd.point("a", 3, {"fare": 7})])
    session.push([sd.point("b", 4, {"fare": 2}), sd.point("c", 5, {"fare": 9})])
    session.push([sd.Retract("a", 3, 4, 3), sd.Retract("b", 4, 5, 4), sd.Retract("c", 5, 6, 5)])
    script = """
        const text = (item, css) => item.querySelector(css)?.textContent;
        const told = () => [...document.querySelectorAll(".version")].map(e => [text(e, ".because"), text(e, ":scope > button")]);
        pick(1); const first = told(); pick(events.length - 1); const last = told();
        return [first, last];
    """
    first, last = in_browser(trace, tmp_path, script)
    assert first == last
    assert [believed for _, believed in first] == ["[0, 20) most=7", "[0, 20) most=9", "nothing"]
    assert [why for why, _ in first][:2] == [None, "↓ 4: trips insert [5, 6) fare=9"]
    assert "trips retract [5, 6)" in first[2][0]


@in_a_browser
def test_a_click_on_an_input_lights_its_effects_and_names_the_push(tmp_path: Path) -> None:
    trace = traced(trips(9, 2, 7))
    script = "pick(0); list(); return [[...effects].map(n => events[n][PAYLOAD]), $('why').textContent];"
    effects, why = in_browser(trace, tmp_path, script)
    assert sorted(effects) == ["zone='A' n=1", "zone='A' n=2"]
    assert "In the same push (1)" in why


@in_a_browser
def test_the_page_steps_plays_and_stops_at_what_is_found(tmp_path: Path) -> None:
    trace = traced(trips(9, 2, 7, 8))
    script = """
        const key = name => document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
        key("Home"); const start = at; key("ArrowRight"); key("ArrowRight"); const two = at;
        $("find").value = "fare=7"; find(true); const found = picked;
        [...document.querySelectorAll("#kinds button")][0].click();
        const none = shown.every(n => events[n][KIND] !== "insert");
        return [start, two, events[found][PAYLOAD], none, visible(lanes.get("trips")).length];
    """
    assert in_browser(trace, tmp_path, script) == [0, 2, "zone='A' fare=7", True, 3]


@in_a_browser
def test_the_page_fills_its_window_with_notes_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_page, "MOST_MOMENTS", 10)
    script = "const box = document.querySelector('main').getBoundingClientRect();"
    script += "return [$('notes').hidden, innerHeight - box.bottom];"
    assert in_browser(traced(trips(9)), tmp_path, script) == [True, 0]
    assert in_browser(traced(trips(*[9] * 15)), tmp_path, script) == [False, 0]


@in_a_browser
def test_an_operator_that_is_chosen_shows_its_rows_at_that_moment(tmp_path: Path) -> None:
    trace = traced(trips(9, 2, 7))
    script = """
        document.querySelector('[data-box="window_aggregate_1"]').dispatchEvent(new MouseEvent("click", {bubbles: true}));
        const payloads = () => hits.filter(hit => hit[4].row !== undefined).map(hit => hit[4].payload);
        draw(); const end = payloads(); go(2); draw(); return [end, payloads()];
    """
    assert in_browser(trace, tmp_path, script) == [["n=2"], ["n=1"]]


@in_a_browser
def test_beside_its_rows_an_operator_shows_what_it_holds_at_that_moment(tmp_path: Path) -> None:
    session = QUERY.open()
    trace = session.trace()
    session.push([sd.point("a", 3, {"zone": "A", "fare": 9})])
    session.push([sd.point("b", 14, {"zone": "<b>B", "fare": 9}), sd.Cti(12)])
    script = """
        const told = part => part.textContent.replace(/[0-9,]+ (bytes|kB)$/, "N bytes");
        const line = name => [...document.querySelectorAll(`[data-held="${name}"] small`)].map(told);
        const title = () => { holding(); return $("held").querySelector("h2").textContent; };
        const all = () => [title(), line("source:trips"), line("window_aggregate_1")];
        const end = all(); go(2); const one = all(); go(0); holding(); const none = $("held").textContent;
        go(2); holding(); document.querySelector('[data-held="window_aggregate_1"]').click();
        return [end, one, none, chosen, document.querySelectorAll("#held b").length];
    """
    end, one, none, chosen, n_bold = in_browser(trace, tmp_path, script)
    assert end == [
        "What is held after push 2",
        ["holds 1 row that can still change; N bytes", "2 in, 2 out; CTI 12"],
        ["holds 1 open window in 1 group: '<b>B'; N bytes", "2 in, 2 out; CTI 12, sent 10", "'<b>B' [10, 20): count() values=1"],
    ]
    assert one == [
        "What is held after push 1",
        ["holds 1 row that can still change; N bytes", "1 in, 1 out; no CTI yet"],
        ["holds 1 open window in 1 group: 'A'; N bytes", "1 in, 1 out; no CTI yet", "'A' [0, 10): count() values=1"],
    ]
    assert (none, chosen, n_bold) == ("Nothing has come yet", "window_aggregate_1", 0)


@in_a_browser
def test_payloads_stand_beside_rows_unless_they_would_take_too_many_lines(tmp_path: Path) -> None:
    script = """
        const part = () => { draw(); return hits.filter(hit => lanes.get("trips").rows.some(row => row.from === hit[4].from)); };
        const told = () => [part().some(hit => hit[4].text), new Set(part().map(hit => hit[4].y)).size > MOST_LINES];
        const all = told(); go(12); return [all, told()];
    """
    query = sd.source("trips").where(lambda e: e["fare"] > 5)
    assert in_browser(traced(trips(*[9] * 100), query), tmp_path, script) == [[False, False], [True, False]]


@in_a_browser
def test_hostile_payloads_run_nothing_in_a_browser(tmp_path: Path) -> None:
    trace = traced([{"zone": HOSTILE, "fare": 9}])
    title, texts = in_browser(trace, tmp_path, "pick(1); return [document.title, $('why').textContent];")
    assert title == "Trace"
    assert "</script><script>" in texts


@in_a_browser
def test_a_live_page_is_read_again_and_keeps_its_place(tmp_path: Path) -> None:
    session = QUERY.open()
    trace = session.trace(last=8)
    for n, payload in enumerate(trips(9, 2, 7)):
        session.push([sd.interval(f"e{n}", 3 * n, 3 * n + 4, payload)])
    script = """
        $("find").value = "<'&"; kindButtons.get("cti").click(); chosen = "window_aggregate_1"; pick(3); go(4); keep();
        return [location.hash, listed(events[3][LIFE]), payloadOf(3)];
    """
    place, *event = in_browser(trace, tmp_path, script, refresh=60)
    script = """
        return [at + data.left_out, picked + data.left_out, chosen, $("find").value, [...kinds], $("live").hidden, data.left_out,
            listed(events[picked][LIFE]), payloadOf(picked)];
    """
    for n, payload in enumerate(trips(4, 2, 7), 3):
        session.push([sd.interval(f"e{n}", 3 * n, 3 * n + 4, payload)])
    *kept, left_out, life, shown = in_browser(trace, tmp_path, script, place)
    assert kept == [4, 3, "window_aggregate_1", "<'&", ["insert", "retract"], True]
    assert left_out > 0
    assert [life, shown] == event
    # Time that goes on only in the browser would let it read the page again for ever.
    loads = """
        sessionStorage.loads = Number(sessionStorage.loads || 0) + 1;
        if (sessionStorage.loads > 1) isLive = false;
        return [sessionStorage.loads, at === events.length];
    """
    n_loads, is_at_end = in_browser(trace, tmp_path, loads, refresh=2)
    assert n_loads == "2"
    assert is_at_end


def test_a_live_page_is_written_as_a_whole(tmp_path: Path) -> None:
    trace = traced(trips(9))
    trace.to_html(tmp_path / "trips.html", refresh=0.5)
    assert [each.name for each in tmp_path.iterdir()] == ["trips.html"]
    assert (tmp_path / "trips.html").read_text(encoding="utf-8") == page(trace, refresh=0.5)
    for wrong in (0, -1, "2", True, float("nan"), float("inf")):
        with pytest.raises(QueryError, match="refresh is a number of seconds"):
            trace.to_html(tmp_path / "trips.html", refresh=wrong)  # type: ignore[arg-type]
