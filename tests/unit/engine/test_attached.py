"""Queries that are attached to a running one, and leave it: what they read, what they are refused, and what they leave alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, SchemaError, SessionError, UnitError
from streamdsl.temporal import CHT, INFINITY


@dataclass(frozen=True)
class Trip:
    zone: str
    fare: int


TRIPS = sd.source("trips", Trip)
ON = {"attach": "on"}
LIMIT = sd.functions.param("limit", int)
COUNTS = TRIPS.group_by("zone").tumbling_window(10).aggregate(n=sd.count())


def trip(id: str, le: int, re: int, zone: str = "A", fare: int = 7) -> sd.Insert[Trip]:
    return sd.interval(id, le, re, Trip(zone, fare))


def test_it_reads_the_output_of_a_query_that_is_a_part_of_its_own() -> None:
    session = COUNTS.open(engine_options=ON)
    session.push([trip("a", 1, 2), trip("b", 3, 4), trip("c", 12, 14), sd.Cti(22)])
    busy = session.attach(COUNTS.where(lambda e: e.n > 1))
    assert busy.pull() == [sd.Cti(20)]  # the window [0, 10) can no longer change
    session.push([trip("d", 23, 24), trip("e", 25, 26)])
    assert CHT.from_events(busy.pull()) == CHT.from_rows([(20, 30, sd.Record(zone="A", n=2))])
    assert busy.stats()["source:(output)"]["in"] == 2


def test_an_equal_query_is_as_good_as_the_same() -> None:
    session = COUNTS.open(engine_options=ON)
    session.push([trip("a", 1, 2), sd.Cti(12)])
    again = sd.source("trips", Trip).group_by("zone").tumbling_window(10).aggregate(n=sd.count())
    assert "source:(output)" in session.attach(again).stats()


def test_a_module_that_is_not_deterministic_is_read_where_it_is_the_same() -> None:
    class Sampled(sd.UDA[Trip, int]):
        deterministic = False

        def compute_result(self, payloads: Any) -> int:
            return len(payloads)

    sampled = TRIPS.tumbling_window(10).aggregate(Sampled())
    session = sampled.open(engine_options=ON)
    assert "source:(output)" in session.attach(sampled.to_points()).stats()


def test_two_queries_follow_one_stream_each_in_its_own_way() -> None:
    session = TRIPS.open(engine_options=ON)
    first, last = session.attach(COUNTS, "speculative"), session.attach(COUNTS, "final")
    session.push([trip("a", 1, 2), trip("b", 3, 4)])
    assert len(first.pull()) == 1
    assert last.pull() == []
    session.push([sd.Cti(10)])
    assert [type(event) for event in last.pull()] == [sd.Insert, sd.Cti]


def test_one_can_be_attached_to_one_that_was_attached() -> None:
    session = TRIPS.open(engine_options=ON)
    counts = session.attach(COUNTS, engine_options=ON)
    busy = counts.attach(COUNTS.where(lambda e: e.n > 1))
    session.push([trip("a", 1, 2), trip("b", 3, 4)])
    (event,) = busy.pull()
    assert isinstance(event, sd.Insert)
    assert event.payload == sd.Record(zone="A", n=2)


def test_one_that_has_left_gets_nothing_more() -> None:
    session = TRIPS.open(engine_options=ON)
    counts = session.attach(COUNTS)
    session.push([trip("a", 1, 2)])
    assert len(session.detach(counts)) == 1
    session.push([trip("b", 12, 13)])
    assert counts.pull() == []
    with pytest.raises(SessionError, match="not attached here"):
        session.detach(counts)
    with pytest.raises(SessionError, match="closed"):
        counts.attach(COUNTS)


def test_when_the_session_closes_the_output_ends() -> None:
    session = TRIPS.open(engine_options=ON)
    counts = session.attach(COUNTS)
    session.push([trip("a", 1, 2)])
    session.close()
    assert counts.pull()[-1] == sd.Cti(INFINITY)
    for ended in (session, counts):
        with pytest.raises(SessionError, match="closed"):
            ended.attach(COUNTS)


def test_an_error_ends_the_attached_query_alone() -> None:
    session = TRIPS.open(engine_options=ON)
    failing = session.attach(TRIPS.select(lambda e: 70 // e.fare))
    counts = session.attach(COUNTS)
    session.push([trip("a", 1, 2)])
    assert len(session.push([trip("b", 3, 4, fare=0)])) == 1
    session.push([trip("c", 5, 6)])
    assert [event.payload for event in failing.pull() if isinstance(event, sd.Insert)] == [10]
    with pytest.raises(SessionError, match="ZeroDivisionError"):
        failing.pull()
    assert CHT.from_events(counts.pull()) == CHT.from_rows([(0, 10, sd.Record(zone="A", n=3))])
    session.detach(failing)


def test_an_error_over_the_live_rows_attaches_nothing() -> None:
    session = TRIPS.open(engine_options=ON)
    session.push([trip("b", 3, 4, fare=0)])
    with pytest.raises(sd.errors.UserCodeError, match="ZeroDivisionError"):
        session.attach(TRIPS.select(lambda e: 70 // e.fare))
    assert len(session.push([trip("c", 5, 6)])) == 1


def test_it_may_bring_reference_data_of_its_own() -> None:
    zones = sd.sources.from_table([{"zone": "A", "name": "Astoria"}])
    session = TRIPS.open(engine_options=ON)
    session.push([trip("a", 1, 9), sd.Cti(5)])
    named = session.attach(TRIPS.join(zones, on="zone", select=lambda trip, zone: zone["name"]))
    assert CHT.from_events(named.pull()) == CHT.from_rows([(1, 9, "Astoria")])


def test_it_is_told_why_it_shows_nothing() -> None:
    session = TRIPS.open(engine_options=ON)
    counts = session.attach(COUNTS, "watermark")
    session.push([trip("a", 1, 2), sd.Cti(4)])
    assert "its window [0, 10) has not ended" in str(counts.why_no_output())


REFUSED = [
    (sd.source("fares"), QueryError, "reads 'fares', which does not run here; there are: trips"),
    (sd.source("trips", payload=int), SchemaError, "it declares the payload Trip"),
    (sd.source("trips", Trip, on_violation="drop"), QueryError, "runs already, with progress=None, on_violation='error'"),
    (sd.source("trips", Trip).tumbling_window("5m").aggregate(n=sd.count()), UnitError, "nothing has said yet in which unit"),
    (sd.source("trips", Trip).where(lambda e: e.fare > LIMIT), QueryError, "parameters without a value: limit"),
    ("trips", QueryError, "attach takes a query, not 'trips'"),
]


@pytest.mark.parametrize(("query", "error", "text"), REFUSED)
def test_what_it_cannot_have_is_refused(query: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        TRIPS.open(engine_options=ON).attach(query)


def test_units_must_agree() -> None:
    in_seconds = sd.source("trips", Trip, unit="s")
    session = in_seconds.open(engine_options=ON)
    assert session.attach(in_seconds.tumbling_window("1m").aggregate(n=sd.count())).unit == "s"
    with pytest.raises(UnitError, match="s, us"):
        session.attach(TRIPS.tumbling_window("1m").aggregate(n=sd.count()))


def test_what_is_kept_is_what_is_live() -> None:
    session, least = COUNTS.open(engine_options=ON), 256
    with patch("streamdsl.engine.published.LEAST", least):
        for start in range(0, 100 * least, least):
            session.push([trip(f"{start + i}", start + i, start + i + 1) for i in range(0, least, 4)] + [sd.Cti(start + least)])
    assert session.published["trips"].stats()["events"] <= 2 * least
    assert session.output.stats()["events"] <= 2 * least
    attached = session.attach(TRIPS)
    assert attached.pull() == [sd.Cti(100 * least)]


@pytest.mark.parametrize("options", [None, {"attach": "off"}])
def test_a_session_that_takes_no_other_queries_keeps_nothing_for_them(options: Any) -> None:
    session = COUNTS.open(engine_options=options)
    session.push([trip("a", 1, 2), trip("b", 3, 4)])
    assert session.published["trips"].stats()["events"] == session.output.stats()["events"] == 0
    assert session.stats()["(output)"]["out"] == 1
    with pytest.raises(SessionError, match=r'(?s)keeps nothing for other queries.*Hint: .*{"attach": "on"}'):
        session.attach(COUNTS)


def test_what_is_attached_takes_others_only_if_it_is_asked_to() -> None:
    counts = TRIPS.open(engine_options=ON).attach(COUNTS)
    with pytest.raises(SessionError, match=r'{"attach": "on"}'):
        counts.attach(COUNTS)


def test_to_attach_is_on_or_off() -> None:
    with pytest.raises(QueryError, match='"on" or "off", not True'):
        TRIPS.open(engine_options={"attach": True})
