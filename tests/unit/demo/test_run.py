from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.demo import tables
from streamdsl.demo.corrections import Corrections, CountChange, largest_change
from streamdsl.demo.data import Data, Feed, Flight
from streamdsl.demo.flight_files import LeftOut, Period
from streamdsl.demo.local_run import Answer, play, pushes
from streamdsl.demo.main import agree, corrected
from streamdsl.demo.queries import QUESTIONS, flights
from streamdsl.demo.spark_run import difference, why_no_spark

NOON = 1360342800


def feed(times: list[int]) -> Feed:
    return Feed.of([sd.point(f"e{time}", time, "x") for time in times], np.zeros(len(times), dtype=np.int64))


def small_data() -> Data:
    flight = Flight("UA", 1, "EWR", "ORD", 5)
    events: list[sd.Event[Flight]] = [sd.edge_start("a", NOON, flight), sd.edge_end("a", NOON, NOON + 3600, flight)]
    trips = Feed.of(events, np.array([60, 120]))
    period = Period("a day", pd.Timestamp(NOON, unit="s").date(), pd.Timestamp(NOON, unit="s").date())
    return Data(period, 1, 1, LeftOut(0, 0, 0, 0, 0.0), trips, feed([]), feed([]))


def test_a_push_holds_what_arrived_in_a_period_source_by_source() -> None:
    found = pushes({"left": feed([1, 5, 12, 31]), "right": feed([4, 33])}, period=10)
    assert [(source, [event.id for event in events if isinstance(event, sd.Insert)]) for source, events in found] == [
        ("left", ["e1", "e5"]),
        ("right", ["e4"]),
        ("left", ["e12"]),
        ("left", ["e31"]),
        ("right", ["e33"]),
    ]


def test_a_feed_without_events_is_never_pushed() -> None:
    assert list(pushes({"left": feed([]), "right": feed([1])})) == [("right", feed([1]).events)]


def test_a_question_is_answered_and_its_progress_is_shown() -> None:
    shown: list[tuple[int, int]] = []
    answer = play(QUESTIONS[0], small_data(), lambda done, total: shown.append((done, total)))
    assert [(row.le, row.re, row.payload) for row in answer.cht] == [(NOON, NOON + 3600, {"carrier": "UA", "aloft": 1})]
    assert shown == [(1, 2), (2, 2)]
    assert (answer.reports, answer.pushes) == (2, 2)
    assert answer.corrections == Corrections(insertions=1, withdrawn=0, moved=1)


def count(id: str, le: int, re: int, aloft: int) -> sd.Insert[sd.Record]:
    return sd.Insert(id, le, re, sd.Record(carrier="UA", aloft=aloft))


def test_the_largest_change_compares_what_was_said_with_what_held() -> None:
    events: list[sd.Event[sd.Record]] = [
        count("a", 0, 10, 1),
        count("b", 10, 20, 2),
        sd.Retract("b", 10, 20, 10),
        count("c", 10, 20, 7),
    ]
    assert largest_change(events, sd.CHT.from_events(events)) == CountChange("UA", 10, 2, 7)


def test_a_count_of_which_nothing_is_left_changed_to_none() -> None:
    events: list[sd.Event[sd.Record]] = [count("a", 0, 10, 3), sd.Retract("a", 0, 10, 0)]
    change = largest_change(events, sd.CHT.from_events(events))
    assert change == CountChange("UA", 0, 3, 0)
    assert change.size == 3


def test_without_output_nothing_changed() -> None:
    assert largest_change([], sd.CHT.from_rows([])) is None


def test_a_run_that_corrects_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    answer = play(QUESTIONS[0], small_data(), lambda done, total: None)
    silent = Answer(answer.question, [], answer.cht, 2, 1, 0.0, Corrections(1, 0, 0))
    assert corrected({"aloft": answer})
    assert not corrected({"aloft": answer, "delays": silent})
    assert "nothing was corrected in a" in capsys.readouterr().out


def test_an_answer_that_differs_fails_and_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    data = small_data()
    answer = play(QUESTIONS[0], data, lambda done, total: None)
    assert agree({"aloft": answer}, data, lambda question, data: answer.cht)
    assert "the same, row for row" in capsys.readouterr().out
    assert not agree({"aloft": answer}, data, lambda question, data: sd.CHT.from_rows([]))
    assert "DIFFERENT" in capsys.readouterr().out


def test_small_differences_of_floats_are_none() -> None:
    assert difference(sd.CHT.from_rows([(0, 1, 0.1 + 0.2)]), sd.CHT.from_rows([(0, 1, 0.3)])) is None
    assert "only in the first" in str(difference(sd.CHT.from_rows([(0, 1, 0.31)]), sd.CHT.from_rows([(0, 1, 0.3)])))


def test_without_java_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    told = why_no_spark()
    assert told is not None
    assert "install Java 17" in told
    assert "\n" not in told


def test_numbers_stand_to_the_right() -> None:
    assert tables.text_table(["name", "n"], [["a", 1_000], ["bcdef", 2]]) == ["name       n", "a      1,000", "bcdef      2"]
    assert tables.text_table(["from", "to"], []) == ["from  to"]


def test_times_are_shown_as_in_new_york() -> None:
    assert tables.local_time(NOON) == "Fri 08 Feb 12:00"


def test_the_queries_are_over_named_sources_only() -> None:
    assert [question.letter for question in QUESTIONS] == list("abcde")
    assert "flights" in flights.explain()


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    assert main(["demo", "--no-spark", "--out", str(tmp_path / "taken")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("streamdsl demo: ")
    assert "taken" in told.err


def test_the_command_line_knows_its_version_and_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as asked:
        main(["--version"])
    assert asked.value.code == 0
    assert capsys.readouterr().out.startswith("streamdsl ")
    with pytest.raises(SystemExit) as wrong:
        main(["dance"])
    assert wrong.value.code == 2
