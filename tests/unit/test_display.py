"""What Jupyter shows by itself: pictures above tables and trees."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

import streamdsl as sd
from streamdsl import cql
from streamdsl.errors import UserCodeError
from streamdsl.temporal.display import scrolled
from streamdsl.temporal.html import text
from streamdsl.testing import check_udm
from streamdsl.testing.laws import LAWS

ROWS = sd.from_rows([(1, 5, {"k": "<a>", "v": 2}), (3, sd.INFINITY, {"k": "b", "v": None})])


def test_a_history_is_a_table_of_lifetimes_and_fields() -> None:
    shown = ROWS.run()._repr_html_()
    assert shown == ROWS.run().cht()._repr_html_()
    picture, shown = shown.split("</svg></div>")
    assert "&lt;a&gt;" in picture
    titles, *rows = shown.split("</tr>")[:-1]
    assert [title for title in ("le", "re", "k", "v") if f">{title}</th>" in titles] == ["le", "re", "k", "v"]
    assert [[cell in row for cell in (">1<", ">5<", "&lt;a&gt;", ">2<")] for row in rows] == [[True] * 4, [False] * 4]
    assert ">inf<" in rows[1]
    assert ">None<" in rows[1]


def test_a_long_history_says_how_many_rows_are_left_out() -> None:
    shown = sd.from_rows([(n, n + 1, n) for n in range(53)]).run()._repr_html_()
    picture, below = shown.split("</svg></div>")
    assert below.count("<tr>") == 51
    assert picture.count("<circle") == 53
    assert "... 3 rows more" in below
    many = sd.from_rows([(n, n + 1, n) for n in range(5_003)]).run()
    for value in (many, many.cht()):
        picture, below = value._repr_html_().split("</svg></div>")
        assert "5,003 rows in 400 bins" in picture
        assert len(picture) < 20_000
        assert "... 4,953 rows more" in below


def test_an_empty_history_is_a_table_without_rows() -> None:
    shown = sd.from_rows([(1, 2, 3)]).where(lambda e: e > 3).run()._repr_html_()
    assert "<svg" not in shown
    assert shown.count("<tr>") == 1


def test_a_query_and_its_plan_are_trees() -> None:
    query = sd.source("trips").where(lambda e: e.fare < 3)
    for shown in (query._repr_html_(), query.plan()._repr_html_()):
        assert "where_1 e.fare &lt; 3" in shown
        assert "└─ source:trips" in shown


def test_a_plan_is_shown_in_a_process_that_has_run_nothing() -> None:
    program = "import streamdsl as sd; print(sd.source('trips').shift(5).plan()._repr_html_())"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "source:trips" in shown


def test_a_relation_is_drawn_over_its_batches() -> None:
    relation = cql.stream_group(S=[("<a>", 1, 1), ("b", 1, 2), ("c", 3, 1)]).S.rows(1).select(lambda e: e.value)
    shown = relation._repr_html_()
    assert shown.count('rx="3"') == 3
    for said in ("t=1", "(1, 1)", "(1, 2)", "t=2", "empty", "(3, 1)", "&lt;a&gt;"):
        assert said in shown
    assert "<a>" not in shown


def test_a_long_relation_and_a_table_of_cql_are_rows() -> None:
    long = cql.stream_group(S=[(n, n) for n in range(100)]).S.rows(1)
    for relation in (long, cql.table([{"v": 1}])):
        assert "<table>" in relation._repr_html_()
        assert "<svg" not in relation._repr_html_()
    assert '<td style="text-align: left">(7, 1)</td>' in long._repr_html_()
    assert "... 40 rows more" in long._repr_html_()


def test_what_a_push_has_caused_is_a_picture_above_its_numbers() -> None:
    session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    session.push([sd.point("a", 3, 1)])
    out = session.feed([sd.point("b", 4, 1), sd.Cti(20)])
    assert str(out.timeline()).splitlines()[1:] == [
        "n=1 : xxxxxxxxxxx            # RE 10 -> 0",
        "n=2 : [=========)",
        "cti : --------------------|",
    ]
    picture, numbers = out._repr_html_().split("</svg></div>")
    assert ">n=2<" in picture
    assert numbers == text("3 events: 1 insert, 1 retract, 1 cti")


def test_a_session_is_shown_by_how_far_it_has_come() -> None:
    x = sd.source("x", unit="s", progress=sd.Progress.slack("3s"))
    session = x.union(sd.source("<y>", unit="s")).tumbling_window("10s").aggregate(n=sd.count()).open("final")
    assert "<svg" not in session._repr_html_()
    session.push([sd.point("early", 20, 3)], "<y>")
    session.push([sd.point("a", 13, 7), sd.point("b", 33, 7)], "x")
    assert ">no CTI yet<" in session._repr_html_()
    session.push([sd.point("c", 22, 3), sd.Cti(12)], "<y>")
    picture, below = session._repr_html_().split("</svg></div>")
    for behind in ("3s behind", "21s behind", "23s behind"):
        assert f">{behind}<" in picture
    titles, x_row, y_row, output_row = re.findall(r"<tr>(.*?)</tr>", below)
    assert ">behind by<" in titles
    assert [cell in x_row for cell in (">x<", ">2 in<", ">1970-01-01T00:00:33Z<", ">1970-01-01T00:00:30Z<", ">3s<")] == [True] * 5
    assert [cell in y_row for cell in (">&lt;y&gt;<", ">2 in<", ">1970-01-01T00:00:12Z<", ">21s<")] == [True] * 4
    assert [cell in output_row for cell in (">1970-01-01T00:00:10Z<", ">23s<")] == [True] * 2
    assert "source &#x27;&lt;y&gt;&#x27; has only reached the CTI" in below
    assert "└─ source" in below
    assert repr(session) == (
        "<Session open, emit='final': x 2 in, CTI 1970-01-01T00:00:30Z; <y> 2 in, CTI 1970-01-01T00:00:12Z; "
        "output 0 out, CTI 1970-01-01T00:00:10Z>"
    )


def test_a_session_that_has_failed_or_ended_is_still_shown() -> None:
    session = sd.source("x").select(lambda e: 1 // e).open()
    session.push([sd.point("a", 3, 1), sd.Cti(4)])
    with pytest.raises(UserCodeError):
        session.push([sd.point("b", 5, 0)])
    assert "2 in" in session._repr_html_()
    ended = sd.source("x").open()
    ended.push([sd.point("a", 3, 1)])
    ended.close()
    assert ">inf<" in ended._repr_html_()


def test_a_source_may_be_called_output() -> None:
    session = sd.source("output").open("final")
    session.push([sd.interval("a", 3, 9, 1), sd.Cti(4)])
    assert repr(session) == "<Session open, emit='final': output 1 in, CTI 4; output 0 out, CTI 3>"


def test_a_traced_session_is_shown_by_its_events() -> None:
    session = sd.source("x").open()
    session.trace()
    session.push([sd.point("a", 3, "A"), sd.Cti(7)])
    picture, below = session._repr_html_().split("</svg></div>")
    assert ">A<" in picture
    assert "1 in" in below
    assert "1 out" in below


def test_streams_that_wait_for_an_aggregate_show_what_flows_into_them() -> None:
    trips = sd.source("<trips>")
    for stream in (trips.group_by("zone"), trips.tumbling_window(10), trips.group_by("zone").tumbling_window(10)):
        picture, below = stream._repr_html_().split("</svg></div>")
        assert "&lt;trips&gt;" in picture
        assert below == text(repr(stream))


def test_an_answer_of_a_trace_is_a_picture_above_its_tree() -> None:
    session = sd.source("trips").tumbling_window(10).aggregate(n=sd.count()).open()
    trace = session.trace()
    for event in (sd.point("a", 3, "A"), sd.point("b", 4, "B")):
        session.push([event])
    why = trace.why((0, 10, {"n": 2}))
    assert [lane.title for lane in why.timeline().lanes] == ["trips", "windows", "answer"]
    assert [(lane.le.tolist(), lane.re.tolist()) for lane in why.timeline().lanes] == [([3, 4], [4, 5]), ([0], [10]), ([0], [10])]
    taken_back = trace.why(trace.output[1])
    trips, answer = taken_back.timeline().lanes
    assert [trips.payload(0), answer.payload(0), answer.re[0], answer.was[0]] == ["B", sd.Record(n=1), 0, 10]
    effects = trace.effects(trace.input[1].event)
    assert str(effects.timeline()).splitlines()[3:] == [
        "window_aggregate_1:",
        "  n=2             : [=========)",
        "  n=1             : xxxxxxxxxxx  # RE 10 -> 0",
    ]
    for answered in (why, taken_back, effects):
        assert answered._repr_html_() == scrolled(answered.timeline().svg()) + text(str(answered))


def test_a_report_on_a_module_is_a_table_of_laws_with_what_they_say() -> None:
    @sd.uda
    def spread(prices: Sequence[float]) -> float:
        return max(prices) - min(prices)

    report = check_udm(spread)
    shown = report._repr_html_()
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", shown)[1:]]
    assert [row[0] for row in rows] == list(report.held)
    assert ["order_insensitive", "Members in any order give the same result.", "30 examples"] in rows
    assert rows[0][:2] == ["answers", next(law.statement for law in LAWS if law.name == "answers")]
    assert f"{len(report.skipped)} laws do not apply to it" in shown
    assert "clipping: it is time-insensitive" in shown


def test_a_plan_as_text_is_shown_as_it_is_printed() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    plan = ROWS.shift(5).explain()
    assert "\n" in plan
    assert pretty(plan) == plan
    assert repr(plan) == repr(str(plan))
