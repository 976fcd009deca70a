"""Charts: what Altair is told of a timeline is what the timeline has, and Altair's own schema accepts it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.temporal import CHT

EVENTS = [
    sd.interval("a", 1, 8, "A"),
    sd.edge_start("b", 4, "B"),
    sd.point("c", 5, "C"),
    sd.Cti(5),
    sd.edge_end("b", 4, 9),
    sd.edge_start("d", 10, "D"),
    sd.Cti(11),
]


def panels(chart: Any) -> list[dict[str, Any]]:
    """Return the panels of a chart, which Altair has validated; each layer has the data that it draws."""
    spec = chart.to_dict(validate=True)
    for panel in spec["vconcat"]:
        for layer in panel["layer"]:
            layer.setdefault("data", panel.get("data", spec.get("data")))
    found: list[dict[str, Any]] = spec["vconcat"]
    return found


def drawn(panel: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    """Return the rows that a panel's layers with a mark draw, after their filters."""
    rows = []
    for layer in panel["layer"]:
        if layer["mark"]["type"] == mark:
            tests = [each["filter"].removeprefix("datum.") for each in layer.get("transform", ())]
            rows += [row for row in layer["data"]["values"] if all(passes(row, test) for test in tests)]
    return rows


def passes(row: dict[str, Any], test: str) -> bool:
    if " > datum." not in test:
        return bool(row[test])
    one, other = (row[name] for name in test.split(" > datum."))
    return one is not None and bool(one > other)


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 40), st.text("abc", min_size=1, max_size=9)), min_size=1, max_size=20)
)
def test_each_row_is_a_bar_or_a_point_where_it_lives(rows: list[tuple[int, int, str]]) -> None:
    cht = CHT.from_rows([(le, le + long, name) for le, long, name in rows])
    (panel,) = panels(cht.chart())
    bars = [(row["le"], row["re"], row["name"]) for row in drawn(panel, "bar")]
    points = [(row["le"], row["le"] + 1, row["name"]) for row in drawn(panel, "point")]
    assert sorted(bars + points) == sorted(cht)
    taken = sorted((row["line"], row["le"], row["re"]) for row in drawn(panel, "bar"))
    assert [(a, b) for a, b in pairwise(taken) if a[0] == b[0] and a[2] > b[1]] == []


def test_corrections_edges_and_ctis_are_drawn() -> None:
    trips, output = panels(sd.from_events(EVENTS).chart())
    assert (trips["title"]["text"], output["title"]["text"]) == ("input", "output")
    gone = [(row["name"], row["re"]) for row in drawn(trips, "bar") if row["was"] is not None]
    assert gone == [("B", 9), ("B", 9)]
    assert {row["name"] for row in drawn(trips, "point")} == {"C", "D"}
    assert [row["name"] for row in drawn(trips, "point") if row["is_edge"]] == ["D"]
    assert [(row["at"], row["tip"]) for row in drawn(trips, "rule")] == [(5, "CTI 5"), (11, "CTI 11")]


def test_windows_tell_their_members() -> None:
    query = sd.from_rows([(n, n + 1, f"row {n}") for n in range(10)]).tumbling_window(10).aggregate(n=sd.count())
    windows = panels(query.chart(windows=True))[1]
    (window,) = drawn(windows, "bar")
    assert window["tip"] == "; ".join(["[0, 10) 10 rows", *(f"row {n}" for n in range(8)), "2 more"])


def test_all_panels_zoom_together() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = sd.from_events(EVENTS).chart().to_dict()
    (zoom,) = spec["params"]
    assert zoom["bind"] == "scales"
    for panel in spec["vconcat"]:
        assert {layer["name"] for layer in panel["layer"] if "name" in layer} & set(zoom["views"])
    assert zoom["select"]["encodings"] == ["x"]
    assert spec["resolve"] == {"scale": {"x": "shared"}}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_are_dates(unit: Any) -> None:
    (panel,) = panels(sd.from_rows([("2026-03-28T09:00", "2026-03-28T09:30", "A")], unit=unit).run().chart())
    (row,) = drawn(panel, "bar")
    assert (row["le"], row["re"]) == (1774688400_000, 1774690200_000)
    assert row["tip"].startswith("[2026-03-28T09:00:00")
    x = panel["layer"][0]["encoding"]["x"]
    assert (x["type"], x["scale"]["type"]) == ("temporal", "utc")


def test_many_rows_are_counted_in_bins_and_it_says_so() -> None:
    density, some = panels(sd.from_rows([(n, n + 3, n) for n in range(5_000)]).run().chart())
    assert density["title"]["text"] == "5,000 rows in 400 bins, at most 15 in one; below, 40 of them"
    assert len(drawn(density, "rect")) == 400
    assert max(row["rows"] for row in drawn(density, "rect")) == 15
    assert len(drawn(some, "bar")) == 40
    deep = panels(sd.from_rows([(n, 200 + n, n) for n in range(100)]).run().chart())
    assert deep[0]["title"]["text"].startswith("100 rows in 400 bins")


STEPS = [(1, 4, "a", 2.0), (4, 6, "a", 5.0), (8, 9, "a", 1.0), (1, 9, "b", None), (9, 12, "b", 7)]
ROWS = sd.from_rows([(le, re, {"k": k, "v": v, "w": 2}) for le, re, k, v in STEPS])


def test_values_are_steps_where_rows_meet_and_gaps_where_they_do_not() -> None:
    (panel,) = panels(ROWS.run().chart(y="v", by="k"))
    level, rise = panel["layer"]
    shown = [(row["series"], row["le"], row["re"], row["value"]) for row in level["data"]["values"]]
    assert sorted(shown) == [("a", 1, 4, 2.0), ("a", 4, 6, 5.0), ("a", 8, 9, 1.0), ("b", 9, 12, 7.0)]
    assert [(row["series"], row["at"], row["before"], row["after"]) for row in rise["data"]["values"]] == [("a", 4, 2.0, 5.0)]
    assert level["encoding"]["color"]["legend"]["title"] == "k"


def test_several_fields_have_a_line_each_and_inputs_stay_bars() -> None:
    source, values = panels(ROWS.chart(y=["v", "w"]))
    assert len(drawn(source, "bar")) == 5 - len(drawn(source, "point"))
    assert {row["series"] for row in drawn(values, "rule") if "series" in row} == {"v", "w"}
    (both,) = panels(ROWS.run().chart(y=["v", "w"], by="k"))
    assert {layer["encoding"]["y"]["title"] for layer in both["layer"]} == {"v, w"}
    assert {row["series"] for row in drawn(both, "rule")} == {"a v", "a w", "b v", "b w"}


def test_many_values_are_means_and_ranges_in_bins() -> None:
    (panel,) = panels(sd.from_rows([(n, n + 1, {"v": n % 10}) for n in range(4_000)]).run().chart(y="v"))
    assert panel["title"]["text"] == "4,000 values in 400 bins: mean and range of those that begin in each"
    band, level, _ = panel["layer"]
    assert band["mark"]["type"] == "rect"
    first = level["data"]["values"][0]
    assert (first["le"], first["re"], first["value"], first["low"], first["high"]) == (0, 10, 4.5, 0.0, 9.0)
    assert len(level["data"]["values"]) == 400


def test_what_is_not_finite_is_a_gap() -> None:
    values = [1.5, float("inf"), float("nan"), 10**400, None, 2]
    (panel,) = panels(CHT.from_rows([(n, n + 1, {"v": value}) for n, value in enumerate(values)]).chart(y="v"))
    assert [(row["le"], row["value"]) for row in panel["layer"][0]["data"]["values"]] == [(0, 1.5), (5, 2.0)]


def test_values_of_scalars_decimals_and_columns() -> None:
    (panel,) = panels(CHT.from_rows([(1, 2, Decimal("1.5")), (2, 3, Decimal("2"))]).chart(y="value"))
    assert [row["value"] for row in panel["layer"][0]["data"]["values"]] == [1.5, 2.0]
    counted = sd.from_rows([(1, 5, "A"), (3, 9, "B")]).snapshot_window().aggregate(n=sd.count()).run()
    assert panels(counted.chart(y="n")) == panels(counted.cht().chart(y="n"))


@pytest.mark.parametrize(
    ("y", "by", "said"),
    [
        ("mean", None, r"(?s)no field 'mean' to draw.*Hint: their fields are: 'k', 'v', 'w'"),
        ("v", "zone", "no field 'zone'"),
        ("k", None, "(?s)'k' is no number but 'a'.*Hint: y= takes fields of numbers"),
        (7, None, r"(?s)y= is the name of a field, or a list of names, not 7.*Hint: y="),
        (["v", None], None, "not \\['v', None\\]"),
        (None, "k", "(?s)by= is the name of a field whose values have a line each of y=, without y=.*Hint: y="),
        ("v", 7, "of y=, not 7"),
    ],
)
def test_what_cannot_be_drawn_is_said(y: Any, by: Any, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        ROWS.run().chart(y=y, by=by)


def test_more_lines_than_can_be_told_apart_are_refused() -> None:
    rows = sd.from_rows([(n, n + 1, {"k": n, "v": 1}) for n in range(30)]).run()
    with pytest.raises(QueryError, match=r"(?s)30 lines cannot be told apart, at most 24.*where"):
        rows.chart(y="v", by="k")


def test_an_empty_history_has_an_empty_chart() -> None:
    (panel,) = panels(CHT([]).chart())
    assert drawn(panel, "bar") == []
    with pytest.raises(QueryError, match="their fields are: none"):
        CHT([]).chart(y="n")


def test_the_same_rows_have_the_same_chart() -> None:
    assert sd.from_events(EVENTS).chart().to_dict() == sd.from_events(EVENTS).chart().to_dict()


PROGRAM = """
import sys
import streamdsl as sd
sd.from_rows([(1, 5, 2)]).run().timeline().svg()
assert "altair" not in sys.modules
sys.modules["altair"] = None
try:
    sd.from_rows([(1, 5, 2)]).run().chart()
except sd.errors.QueryError as error:
    print(error)
"""


def test_altair_is_imported_when_a_chart_is_asked_for_and_its_absence_names_the_extra() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert said == "charts need altair, which is not installed\nHint: pip install 'streamdsl[viz]'\n"
