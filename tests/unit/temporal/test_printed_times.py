"""Events, rows and refusals of a stream over dates print dates, as text that a source reads again; they hold ticks."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import EventError, UnboundedOutputError
from streamdsl.temporal import Unit

ROWS: list[tuple[Any, Any, str]] = [("2026-03-01", "2026-03-02", "a"), ("2026-03-01T06:00", sd.INFINITY, "b")]
NAMES = {"Insert": sd.Insert, "Retract": sd.Retract, "Cti": sd.Cti, "INFINITY": sd.INFINITY, "CHTRow": sd.CHTRow}
FIRST: dict[Unit, str] = dict.fromkeys(("s", "ms", "us", "ns"), "2026-03-01T00:00:00Z")


def read(shown: str) -> Any:
    """Return what a printed event or row says in Python."""
    return eval(shown, dict(NAMES))


@pytest.mark.parametrize("unit", FIRST)
def test_the_events_of_a_result_print_dates_and_are_read_again(unit: Unit) -> None:
    result = sd.from_rows(ROWS, unit=unit).run()
    insert, *_, cti = result.events()
    assert repr(insert) == f"Insert(id=0, le={FIRST[unit]!r}, re={FIRST[unit].replace('01T', '02T')!r}, payload='a')"
    assert repr(cti) == "Cti(time=INFINITY)"
    assert type(insert) is sd.Insert
    assert type(insert.le) is int
    again = [read(repr(event)) for event in result.events()]
    assert sd.from_events(again, unit=unit).run() == result


def test_a_session_prints_dates_in_all_that_it_gives_out() -> None:
    session = sd.source("s", unit="s", on_violation="drop").open(engine_options={"attach": "on"})
    other = session.attach(sd.source("s", unit="s").to_points())
    trace = session.trace()
    start = sd.edge_start("a", "2026-03-01", 1)
    pushed = session.push([start]) + session.push([sd.edge_end("a", "2026-03-01", "2026-03-02"), sd.Cti("2026-03-02")])
    assert [str(event) for event in pushed] == [
        "Insert(id='a', le='2026-03-01T00:00:00Z', re=INFINITY, payload=1)",
        "Retract(id='a', le='2026-03-01T00:00:00Z', re=INFINITY, re_new='2026-03-02T00:00:00Z', payload=1)",
        "Cti(time='2026-03-02T00:00:00Z')",
    ]
    fed = session.feed([sd.point("late", "2026-03-01", 2), sd.point("b", "2026-03-03", 3)])
    (late,) = session.rejected()
    shown = [fed.events()[0], late, other.pull()[0], trace.input[0].event, trace.output[0], *session.close()]
    assert ["2026-03-0" in str(each) or "INFINITY" in str(each) for each in shown] == [True] * len(shown)
    assert "cti='2026-03-02T00:00:00Z'" in str(late)
    assert not [each for each in shown if "le=17" in str(each)]


def test_ticks_are_printed_as_ticks() -> None:
    result = sd.from_rows([(1, sd.INFINITY, "a")]).run()
    assert str(result.events()[0]) == "Insert(id=0, le=1, re=INFINITY, payload='a')"
    assert str(result.cht().rows) == "[CHTRow(le=1, re=INFINITY, payload='a')]"


@pytest.mark.parametrize("unit", FIRST)
def test_the_rows_of_a_history_print_dates_and_are_those_of_ticks(unit: Unit) -> None:
    for history in (sd.from_rows(ROWS, unit=unit).run().cht(), sd.CHT.from_rows(ROWS, unit)):
        row = history.rows[0]
        assert repr(row).startswith(f"CHTRow(le={FIRST[unit]!r}, re='2026-03-02")
        plain = sd.CHTRow(row.le, row.re, row.payload)
        assert (row == plain, hash(row) == hash(plain), isinstance(row, sd.CHTRow)) == (True, True, True)
        assert repr(row._replace(payload="c")).startswith(f"CHTRow(le={FIRST[unit]!r}")
        for again in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
            assert again == row
        assert sd.CHT.from_rows([read(repr(each)) for each in history], unit) == history


def test_events_are_equal_and_copied_without_their_unit() -> None:
    event = sd.from_rows(ROWS).run().events()[0]
    assert isinstance(event, sd.Insert)
    plain = sd.Insert(event.id, event.le, event.re, event.payload)
    assert event == plain
    assert hash(event) == hash(plain)
    assert copy.copy(event) == pickle.loads(pickle.dumps(event)) == plain


WRONG: dict[str, list[Any]] = {
    "its sync time 2026-03-01T00:00:00Z is before the CTI 2026-03-02T00:00:00Z, by a Cti of 's', push 1": [
        sd.point("x", "2026-03-01", 1)
    ],
    "its LE 2026-03-05T00:00:00Z is after its RE 2026-03-04T00:00:00Z": [sd.Insert("x", "2026-03-05", "2026-03-04", 1)],
    "its RE 2026-03-06T00:00:00Z is not the event's current one, 2026-03-07T00:00:00Z": [
        sd.Insert("x", "2026-03-05", "2026-03-07", 1),
        sd.Retract("x", "2026-03-05", "2026-03-06", "2026-03-05"),
    ],
}


@pytest.mark.parametrize("rule", WRONG)
def test_a_refusal_names_dates_and_goes_through_a_pickle(rule: str) -> None:
    session = sd.source("s", unit="s").open()
    with pytest.raises(EventError, match=rule) as refused:
        session.push([sd.Cti("2026-03-02"), *WRONG[rule]])
    assert "le='2026-03-0" in str(refused.value)
    assert refused.value.rule == rule
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), str(again)) == (type(refused.value), str(refused.value))


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2026-03-01T06:00:00", "2026-03-01T06:00:00Z"),
        ("2026-03-01T06:00:00.5", "2026-03-01T06:00:00.500Z"),
        ("2026-03-01T06:00:00.000001", "2026-03-01T06:00:00.000001Z"),
        ("2026-03-01T06:00:10", "2026-03-01T06:00:10Z"),
    ],
)
def test_a_printed_time_has_the_thousandths_that_there_are_and_is_read_again(time: str, shown: str) -> None:
    (event, _) = sd.from_rows([(time, sd.INFINITY, "a")]).run().events()
    assert repr(event) == f"Insert(id=0, le={shown!r}, re=INFINITY, payload='a')"
    (again, _) = sd.from_events([read(repr(event))]).run().events()
    assert (again, again.le) == (event, event.le)  # type: ignore[union-attr]


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("function", [sd.count(), sd.max(lambda e: e)])
def test_the_error_for_windows_without_end_has_dates_and_durations(engine: Any, function: Any) -> None:
    query = sd.from_rows(ROWS).hopping_window("1h", "30m").aggregate(n=function)
    with pytest.raises(
        UnboundedOutputError, match=r"would fill hopping\(1h, 30m\) windows for ever\nHint: bound the run"
    ) as caught:
        query.run(engine=engine)
    assert engine == "local" or "the event [2026-03-01T06:00:00Z, inf) never ends" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_session_says_in_dates_that_its_windows_have_no_end() -> None:
    session = sd.source("s").tumbling_window("1h").aggregate(n=sd.count()).open()
    session.push([sd.edge_start("a", "2026-03-01", 1)])
    with pytest.raises(UnboundedOutputError, match=r"the event 'a' never ends, so it would fill tumbling\(1h\) windows"):
        session.close()
    long = sd.from_rows([("1926-03-01", "2026-03-01", 1)]).tumbling_window("1s").aggregate(n=sd.count())
    with pytest.raises(UnboundedOutputError, match=r"more than 1000000 tumbling\(1s\) windows"):
        long.run()


def test_a_plan_says_durations_as_a_query_does() -> None:
    dated = sd.source("s", unit="s").tumbling_window("3h").aggregate(n=sd.count())
    assert "tumbling(3h), a0 = count(), -> {n: e.a0} [duration 3h]" in dated.explain()
    assert "[duration 60]" in sd.source("s").tumbling_window(60).aggregate(n=sd.count()).explain()


def test_the_id_of_a_windows_result_is_printed_with_its_start_as_a_date_and_holds_ticks() -> None:
    session = sd.source("s", unit="s").group_by("zone").tumbling_window("1h").aggregate(n=sd.count()).open()
    (first,) = session.push([sd.point("a", "2026-03-01T06:10", {"zone": "('distinct_1', 3, 0)"})])
    _, again = session.push([sd.point("b", "2026-03-01T06:20", {"zone": "('distinct_1', 3, 0)"})])
    shown = """('window_aggregate_1', "('distinct_1', 3, 0)", '2026-03-01T06:00:00Z', 0)"""
    assert repr(first).startswith(f"Insert(id={shown}, le='2026-03-01T06:00:00Z', ")
    assert first.id == ("window_aggregate_1", "('distinct_1', 3, 0)", 1_772_344_800, 0)  # type: ignore[union-attr]
    assert repr(again).startswith(f"Insert(id=RowVersion(id={shown}, version=1), ")
    paired = sd.source("s", unit="s").distinct().select_many(lambda e: [e, e + 1]).open()
    found = paired.push([sd.point(("distinct_1", 3), "2026-03-01", 7)])
    assert [repr(each)[: len("Insert(id=(('distinct_1', 7, '2026")] for each in found] == [
        "Insert(id=(('distinct_1', 7, '2026"
    ] * 2
    plain = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open().push([sd.point("a", 3, 1)])
    assert repr(plain[0]) == "Insert(id=('window_aggregate_1', 0, 0), le=0, re=10, payload=Record(n=1))"


@pytest.mark.parametrize("id", [("scan_1", 3, 0), ("a", 3, 0), ("window_aggregate_1", 3), "('window_aggregate_1', 3, 0)"])
def test_other_ids_are_printed_as_they_are(id: Any) -> None:
    (event,) = sd.source("s", unit="s").open().push([sd.point(id, "2026-03-01", 1)])
    assert repr(event).startswith(f"Insert(id={id!r}, le=")
