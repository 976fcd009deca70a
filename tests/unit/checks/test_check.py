"""Findings: their lines, their order, what is refused; what costs time only; the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.errors import QueryError
from streamdsl.rewrite import rewriting

S: sd.Stream[Any] = sd.source("s")
T: sd.Stream[Any] = sd.source("t")


class Highest(sd.UDO[Any, Any]):
    """The highest fare of each zone."""

    def compute_result(self, payloads: Any) -> Any:
        return [max(payloads, key=lambda e: e.fare)]


class Promising(Highest):
    """The same, with the promise."""

    commutes_with_filter_on = ("zone",)


def test_a_finding_names_the_line_that_made_the_operator() -> None:
    edges = S.to_edges()
    left = edges.left_join(
        T,
        on="k",
    )
    found = {each.operator: each for each in sd.checks.check(left)}
    lines = Path(__file__).read_text().splitlines()
    assert found["join_1"].file == found["anti_join_1"].file == __file__
    assert "left = edges.left_join(" in lines[(found["join_1"].line or 0) - 1]
    assert 'T: sd.Stream[Any] = sd.source("t")' in lines[(found["source:t"].line or 0) - 1]


def test_the_line_survives_a_change_of_the_operators_below() -> None:
    joined = sd.source("a").to_edges().join(sd.source("b"), on="k")
    in_days = joined.tumbling_window("1d").aggregate(n=sd.count())
    assert {each.file for each in sd.checks.check(in_days)} == {__file__}


def test_the_line_counts_for_nothing_else() -> None:
    one = sd.source("s").where(lambda e: e.x > 1)
    other = sd.source("s").where(lambda e: e.x > 1)
    assert one.plan().written != other.plan().written
    assert one.plan() == other.plan()
    assert hash(one.plan()) == hash(other.plan())
    assert repr(one.plan()) == repr(other.plan())


def test_findings_come_in_the_order_of_the_plan_and_a_shared_operator_once() -> None:
    edges = S.to_edges("k")
    found = [each.operator for each in sd.checks.check(edges.distinct().join(edges.stitch(), on="k"))]
    assert found == ["to_edges_1", "distinct_1", "stitch_1", "join_1"]


def test_a_source_that_is_written_twice_is_found_once() -> None:
    assert [each.operator for each in sd.checks.check(sd.source("s").join(sd.source("s").shift("1s"), on="k"))] == ["source:s"]


def test_parameters_are_checked_as_what_they_stand_for() -> None:
    longest, limit = sd.functions.param("longest", int), sd.functions.param("limit", int)
    assert sd.checks.check(S.alter_duration(longest).where(lambda e: e.v > limit).distinct()) == []


def test_bounded_inputs_end_but_what_the_query_makes_of_them_may_not() -> None:
    rows = sd.from_rows([(1, sd.INFINITY, {"k": 1})])
    assert sd.checks.check(rows.join(rows, on="k")) == []
    assert [each.level for each in sd.checks.check(rows.to_edges().distinct())] == ["warning"]


def test_opaque_lambdas_are_notes_until_they_are_expressions() -> None:
    (note,) = sd.checks.check(S.where(lambda e: e.x > 1 and e.y > 1))
    assert (note.operator, note.level) == ("where_1", "note")
    assert "opaque" in S.where(lambda e: e.x > 1 and e.y > 1).explain()
    assert sd.checks.check(S.where(lambda e: (e.x > 1) & (e.y > 1))) == []


def test_an_opaque_window_lambda_is_a_note() -> None:
    points = S.to_points().tumbling_window(5)
    (note,) = sd.checks.check(points.aggregate(lambda w: w.count() if w.count() > 1 else 0))
    assert "for every window" in note.what
    assert sd.checks.check(points.aggregate(lambda w: w.count() + 1)) == []


def test_a_filter_that_stays_above_a_module_is_a_note_until_the_module_promises_that_it_may_move() -> None:
    windows = S.to_points().tumbling_window(5)
    stays = windows.apply(Highest).where(lambda e: e.zone == "A")
    (note,) = sd.checks.check(stays)
    assert "Highest" in note.what
    assert "commutes_with_filter_on = ('zone',)" in note.remedy
    assert not rewriting(stays.plan()).fired
    moves = windows.apply(Promising).where(lambda e: e.zone == "A")
    assert sd.checks.check(moves) == []
    assert "push_filter_below_module" in [rule.__name__ for rule in rewriting(moves.plan()).fired]
    before = S.to_points().where(lambda e: e.zone == "A").tumbling_window(5).apply(Highest)
    assert sd.checks.check(before) == []


def test_windows_of_any_size_are_checked_at_once() -> None:
    year = 365 * 86_400_000_000
    for windowed in (S.hopping_window(year, 1), S.session_window(year, 1), S.count_window(10**9), S.tumbling_window(1, year)):
        sd.checks.check(windowed.aggregate(sd.time_weighted_avg(lambda e: e.x)))


def test_what_is_no_query_is_refused() -> None:
    with pytest.raises(QueryError, match="check takes a query, not <WindowedStream"):
        sd.checks.check(S.tumbling_window(5))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="runs only as a part of it"):
        S.group_by("k").apply(lambda g: sd.checks.check(g) and g)  # type: ignore[arg-type, return-value]


PROGRAM = """
import streamdsl as sd

doors = sd.source("doors").to_edges()
good = sd.source("lamps").to_points().tumbling_window(10).aggregate(n=sd.count())
slow = sd.source("lamps").to_points().where(lambda e: e.on and e.bright)
bad = doors.session_window(5).aggregate(n=sd.count())
limit = 5
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lamps_and_doors.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.delitem(__import__("sys").modules, "lamps_and_doors", raising=False)
    return "lamps_and_doors"


def test_the_command_prints_findings_with_their_lines_and_fails_for_warnings_only(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{program}:good", f"{program}:slow"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{program}:good: 0 warnings, 0 notes"
    assert "lamps_and_doors.py:6: note: where_1 calls its lambda row by row" in printed[1]
    assert printed[-1] == f"{program}:slow: 0 warnings, 1 note"
    assert main(["check", f"{program}:bad"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert "lamps_and_doors.py:7: warning: window_aggregate_1 " in printed[0]
    assert printed[-1] == f"{program}:bad: 2 warnings, 0 notes"


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("lamps_and_doors:best", "has no 'best'; its queries are: doors, good, slow, bad"),
        ("lamps_and_doors:limit", "'limit' of lamps_and_doors is no query but 5; its queries are: doors"),
        ("lamps_and_doors", "does not say which query; its queries are: doors"),
        ("lamps_and_doors.py:good", "there is no module 'lamps_and_doors.py'"),
        ("lamps_and_dogs:good", "there is no module 'lamps_and_dogs'"),
        (":good", "names no query"),
    ],
)
def test_a_wrong_name_says_what_there_is(program: str, target: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", target]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Hint: " in error
