"""What Jupyter shows: histories and results as tables, queries and plans as trees."""

from __future__ import annotations

import streamdsl as sd

ROWS = sd.from_rows([(1, 5, {"k": "<a>", "v": 2}), (3, sd.INFINITY, {"k": "b", "v": None})])


def test_a_history_is_a_table_of_lifetimes_and_fields() -> None:
    shown = ROWS.run()._repr_html_()
    assert shown == ROWS.run().cht()._repr_html_()
    titles, *rows = shown.split("</tr>")[:-1]
    assert [title for title in ("le", "re", "k", "v") if f">{title}</th>" in titles] == ["le", "re", "k", "v"]
    assert [[cell in row for cell in (">1<", ">5<", "&lt;a&gt;", ">2<")] for row in rows] == [[True] * 4, [False] * 4]
    assert ">inf<" in rows[1]
    assert ">None<" in rows[1]


def test_a_long_history_says_how_many_rows_are_left_out() -> None:
    shown = sd.from_rows([(n, n + 1, n) for n in range(53)]).run()._repr_html_()
    assert shown.count("<tr>") == 51
    assert "... 3 rows more" in shown


def test_a_query_and_its_plan_are_trees() -> None:
    query = sd.source("trips").where(lambda e: e.fare < 3)
    for shown in (query._repr_html_(), query.plan()._repr_html_()):
        assert "where_1 e.fare &lt; 3" in shown
        assert "└─ source:trips" in shown
