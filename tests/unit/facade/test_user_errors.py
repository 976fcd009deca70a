"""What an error of user code says: operator, event or window, the user's line, the expression that failed, what it was given."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimestampViolation, UserCodeError
from streamdsl.udm import UDSO

FILE = Path(__file__).name
Query = Callable[["sd.Stream[Any]"], "sd.Stream[Any]"]


@dataclass(frozen=True)
class Trip:
    """A payload with a field that may be None."""

    zone: str
    fare: float | None


class Spread(sd.UDA[Any, Any]):
    """A module that fails on None."""

    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return max(payloads) - min(payloads)


class Total(sd.IncrementalUDA[Any, Any, Any]):
    """A module with a state that fails on None."""

    def create_state(self) -> Any:
        return 0

    def add_event_to_state(self, state: Any, payload: Any) -> Any:
        return state + payload

    def compute_result(self, state: Any) -> Any:
        return state


ROWS: list[tuple[Any, Any, Trip]] = [("2026-03-01", "2026-03-02", Trip("A", 4.0)), ("2026-03-01", "2026-03-02", Trip("B", None))]
WINDOW = r"window \[2026-03-01T00:00:00Z, 2026-03-0\dT\S+Z\)"
OF_ROWS: dict[str, tuple[Query, str]] = {
    "where": (lambda s: s.where(lambda e: (e.zone == "B") & (e.fare / 2 > 1)), "e.fare / 2"),
    "select": (lambda s: s.select(x=lambda e: e.fare * 2 + 1), "e.fare * 2"),
    "key": (lambda s: s.group_by(lambda e: -e.fare).tumbling_window("1d").aggregate(n=sd.count()), "-e.fare"),
    "argument": (lambda s: s.tumbling_window("1d").aggregate(n=sd.sum(lambda e: e.fare * 2)), "e.fare * 2"),
    "where of an aggregate": (lambda s: s.snapshot_window().aggregate(n=sd.count(where=lambda e: e.fare > 2)), "e.fare > 2"),
    "condition of a join": (lambda s: s.semi_join(s, where=lambda a, b: a.fare > b.fare), "l.fare > r.fare"),
    "rank": (lambda s: s.tumbling_window("1d").top_k(1, by=lambda e: e.fare + 1), "e.fare + 1"),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_an_error_of_a_traced_lambda_shows_line_expression_and_payload(name: str) -> None:
    make, part = OF_ROWS[name]
    with pytest.raises(UserCodeError) as raised:
        make(sd.from_rows(ROWS)).run()
    text = str(raised.value)
    assert re.search(
        rf"TypeError in user code: .*\n  at operator \w+, event .*lambda in {FILE}, line \d+ \({re.escape(part)}\)", text
    )
    assert "payload Trip(zone='B', fare=None)" in text or "Trip(zone='B', fare=None))" in text


OF_WINDOWS: dict[str, Query] = {
    "a module": lambda s: s.tumbling_window("1d").aggregate(Spread(), lambda e: e.fare),
    "a module among others": lambda s: s.tumbling_window("1d").aggregate(n=sd.count(), x=Spread().of(lambda e: e.fare)),
    "a module with a state": lambda s: s.tumbling_window("1d").aggregate(Total(), lambda e: e.fare),
    "of sessions": lambda s: s.session_window("1s").aggregate(Spread(), lambda e: e.fare),
}


@pytest.mark.parametrize("name", OF_WINDOWS)
def test_an_error_of_a_module_shows_line_window_and_what_it_was_given(name: str) -> None:
    with pytest.raises(UserCodeError) as raised:
        OF_WINDOWS[name](sd.from_rows(ROWS)).run()
    found = re.search(
        rf"at operator window_aggregate_1, {WINDOW}, (\w+\.\w+) in {FILE}, line \d+, 2 payloads: (.*)",
        str(raised.value),
    )
    assert found
    assert sorted(found[2].split(", ")) == ["4.0", "None"]


def test_of_many_payloads_few_are_shown_and_each_is_cut() -> None:
    rows = [(1, 2, "x" * 500) for _ in range(50)]
    with pytest.raises(UserCodeError) as raised:
        sd.from_rows(rows).tumbling_window(5).aggregate(Spread).run()
    assert ", 50 payloads: 'xxx" in str(raised.value)
    assert str(raised.value).count("... (502 characters)") == 3
    assert str(raised.value).endswith("... (502 characters), ...")


def test_of_a_wide_payload_the_fields_that_were_read_are_shown() -> None:
    wide: Any = make_dataclass("Wide", [f"field_{number}" for number in range(100)], frozen=True)
    row = wide(*("a" * 20 for _ in range(99)), None)
    with pytest.raises(
        UserCodeError, match=r"\(e.field_99 > e.field_3\), payload Wide\(field_3='a{20}', field_99=None, \.\.\.\)"
    ):
        sd.from_rows([(1, 2, row)]).where(lambda e: e.field_99 > e.field_3).run()


def test_a_long_expression_is_cut() -> None:
    name = "a" * 300
    with pytest.raises(UserCodeError, match=r"line \d+ \(e\.a{98}\.\.\.\), payload"):
        sd.from_rows([(1, 2, {name: None})]).select(x=lambda e: e[name] + 1).run()


def test_a_hint_of_the_cause_comes_last_and_once() -> None:
    with pytest.raises(UserCodeError) as raised:
        sd.from_rows([(1, 2, {"flag": None})]).where(lambda e: e.flag).run()
    what, where, hint = str(raised.value).splitlines()
    assert what == "NotBooleanError in user code: a predicate returned None, which is neither true nor false"
    assert re.fullmatch(
        rf"  at operator where_1, event 0, lambda in {FILE}, line \d+ \(e\.flag\), payload Record\(flag=None\)", where
    )
    assert hint.startswith("Hint: a function returns its answer")


def test_the_error_of_a_session_is_the_same_after_a_pickle_and_ends_it() -> None:
    session = sd.source("s", unit="s").tumbling_window("1d").aggregate(Spread).open()
    with pytest.raises(UserCodeError, match=r"window \[2026-03-01T00:00:00Z, ") as raised:
        session.push([sd.point("a", "2026-03-01", None)])
    assert isinstance(raised.value.__cause__, TypeError)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), again.operator, again.window) == (str(raised.value), "window_aggregate_1", raised.value.window)


@pytest.mark.parametrize("payload", [Trip("A", 4.0), {"zone": "A", "fare": 4.0}], ids=["class", "mapping"])
def test_a_misspelt_field_of_a_lambda_that_is_called_has_a_hint(payload: Any) -> None:
    with pytest.raises(UserCodeError, match=r"\nHint: did you mean 'fare'\?$"):
        sd.source("s").where(lambda e: e.zone == "A" and e.faer > 3).run({"s": [(1, 2, payload)]})


def test_a_session_says_how_it_stands() -> None:
    session = sd.source("clicks", unit="s").select(lambda e: 1 // e).open("final")
    assert repr(session) == "<Session open, emit='final': clicks 0 in, CTI none yet; output 0 out, CTI none yet>"
    session.push([sd.Cti("2026-03-01")])
    assert "clicks 0 in, CTI 2026-03-01T00:00:00Z; " in repr(session)
    with pytest.raises(UserCodeError):
        session.push([sd.point("a", "2026-03-02", 0), sd.Cti("2026-03-03")])
    assert repr(session).startswith("<Session failed, ")
    other = sd.source("clicks").open()
    other.close()
    assert repr(other) == "<Session closed, emit='speculative': clicks 0 in, CTI inf; output 0 out, CTI inf>"


class Falling(UDSO[float, float, float]):
    """A stream operator that fails on None."""

    def create_state(self) -> float:
        return 0.0

    def process(self, state: float, payload: float, le: int) -> tuple[float, list[float]]:
        return payload, [payload - state]


@pytest.mark.parametrize("batch", [1, 100])
def test_an_error_of_a_stream_operator_shows_line_start_and_payload(batch: int) -> None:
    rows = [sd.point(number, f"2026-03-01T00:{number:02}", None if number == 40 else 1.0) for number in range(60)]
    session = sd.source("s", unit="s").scan(Falling).open()
    text = r"at operator scan_1, LE 2026-03-01T00:40:00Z, Falling\.process in test_user_errors\.py, line \d+, payload None"

    def feed() -> None:
        for start in range(0, 60, batch):
            session.push(rows[start : start + batch])
        session.push([sd.Cti("2026-03-02")])

    with pytest.raises(UserCodeError, match=text):
        feed()


class Early(sd.TimeSensitiveUDO[Any, Any]):
    """A module that stamps its output before its window."""

    def compute_result(self, events: Sequence[sd.IntervalEvent[Any]], window: sd.WindowDescriptor) -> Any:
        return [sd.IntervalEvent(window.start_time - 60, window.end_time, "x")]


def test_a_lifetime_that_a_module_may_not_give_is_said_in_dates() -> None:
    windows = sd.from_rows(ROWS, unit="s").tumbling_window("1d", output=sd.Output.UNCHANGED)
    text = r"output event \[2026-02-28T23:59:00Z, 2026-03-02T00:00:00Z\) before the start of its window \[2026-03-01T00:00:00Z"
    with pytest.raises(TimestampViolation, match=text) as raised:
        windows.apply(Early).run()
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    ticks = sd.from_rows([(1, sd.INFINITY, "a")]).snapshot_window(output=sd.Output.UNCHANGED).apply(Early)
    with pytest.raises(TimestampViolation, match=r"\[-59, inf\) before the start of its window \[1, inf\)"):
        ticks.run()
