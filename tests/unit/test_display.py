"""What Jupyter shows: histories and results as tables, queries and plans as trees."""

from __future__ import annotations

import subprocess
import sys

import streamdsl as sd
from streamdsl import cql

ROWS = sd.from_rows([(1, 5, {"k": "<a>", "v": 2}), (3, sd.INFINITY, {"k": "b", "v": None})])


def test_a_history_is_a_table_of_lifetimes_and_fields() -> None:
    shown = ROWS.run()._repr_html_()
    assert shown == ROWS.run().cht()._repr_html_()
    picture, shown = shown.split("</svg>")
    assert "&lt;a&gt;" in picture
    titles, *rows = shown.split("</tr>")[:-1]
    assert [title for title in ("le", "re", "k", "v") if f">{title}</th>" in titles] == ["le", "re", "k", "v"]
    assert [[cell in row for cell in (">1<", ">5<", "&lt;a&gt;", ">2<")] for row in rows] == [[True] * 4, [False] * 4]
    assert ">inf<" in rows[1]
    assert ">None<" in rows[1]


def test_a_long_history_says_how_many_rows_are_left_out() -> None:
    shown = sd.from_rows([(n, n + 1, n) for n in range(53)]).run()._repr_html_()
    assert shown.count("<tr>") == 51
    assert "<svg" not in shown
    assert "... 3 rows more" in shown


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
    for text in ("t=1", "(1, 1)", "(1, 2)", "t=2", "empty", "(3, 1)", "&lt;a&gt;"):
        assert text in shown
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
    picture, numbers = out._repr_html_().split("</svg>")
    assert ">n=2<" in picture
    assert numbers == "<pre>3 events: 1 insert, 1 retract, 1 cti</pre>"
