"""The status of a session: what it counts, what it costs, and what JSON makes of it."""

import json
import threading
from pathlib import Path

import pytest

import streamdsl as sd
from streamdsl.errors import UserCodeError
from streamdsl.monitoring import JobStatus, OperatorStatus, OutputStatus, SourceStatus, Status
from streamdsl.temporal import INFINITY, MIN_TIME

TRIPS = sd.source("trips", on_violation="drop")
COUNTS = TRIPS.tumbling_window(10).aggregate(n=sd.count())


def test_each_event_is_counted_once_where_it_comes_and_where_it_leaves() -> None:
    session = COUNTS.open()
    final = session.subscribe("final")
    session.push([sd.point("a", 3, 1), sd.point("b", 4, 1)])
    session.push([sd.point("c", 5, 1)])
    session.push([sd.Retract("a", 3, 4, 3, 1), sd.Cti(10), sd.point("d", 9, 1), sd.point("e", 25, 1)])
    status = session.status()
    (trips,) = status.sources
    speculative, archive = status.outputs
    assert (trips.events_in, trips.retractions_in, trips.late, trips.cti, trips.furthest) == (6, 1, 1, 10, 25)
    assert (speculative.emit, speculative.cti, speculative.held) == ("speculative", 10, 0)
    assert (archive.emit, archive.events_out, archive.retractions_out, archive.held) == ("final", 1, 0, 1)
    assert len([event for event in final.pull() if not isinstance(event, sd.Cti)]) == archive.events_out
    assert status.lag(trips) == status.lag(speculative) == 15
    dropped = "dropped: it changes a time before the CTI; CTI 10 by a Cti of 'trips', push 3"
    assert status.late == (f"insert 'd' [9, 10) 1: {dropped}",)
    assert str(status) == "trips 6 in, CTI 10; output, speculative 6 out, CTI 10; output, final 1 out, CTI 10"


@pytest.mark.parametrize("many", [3, 200])
def test_what_left_is_what_was_sent_event_by_event_and_in_columns(many: int) -> None:
    session = sd.source("trips").group_by("k").tumbling_window(10).aggregate(n=sd.count()).open()
    sent = session.push([sd.point(n, 3, {"k": n}) for n in range(many)])
    sent += session.push([sd.point(("again", n), 4, {"k": n}) for n in range(many)])
    (output,) = session.status().outputs
    assert output.events_out == len(sent) == 3 * many
    assert output.retractions_out == sum(isinstance(event, sd.Retract) for event in sent) == many


def test_a_push_that_is_refused_counts_nothing() -> None:
    session = sd.source("trips").open()
    session.push([sd.edge_start("a", 3, 1), sd.Cti(5)])
    before = session.status()
    with pytest.raises(sd.errors.StreamDslError):
        session.push([sd.edge_end("a", 3, 9), sd.point("b", 2, 1)])
    after = session.status()
    assert (after.sources, after.outputs, after.operators) == (before.sources, before.outputs, before.operators)


def test_counts_go_on_in_a_session_that_is_restored(tmp_path: Path) -> None:
    session = COUNTS.open()
    session.push([sd.point("a", 3, 1), sd.point("b", 14, 1)])
    session.push([sd.Retract("a", 3, 4, 3, 1)])
    session.checkpoint(tmp_path / "state")
    again = COUNTS.restore(tmp_path / "state").status()
    assert (again.sources, again.outputs) == (session.status().sources, session.status().outputs)


def test_bytes_are_there_if_they_are_asked_for() -> None:
    session = COUNTS.open()
    session.push([sd.point("a", 3, 1)])
    assert session.status().state_bytes is None
    sized = session.status(sizes=True)
    assert {each.name: each.state_bytes for each in sized.operators} == {
        name: figures["state_bytes"] for name, figures in session.stats().items()
    }
    assert sized.state_bytes == sum(figures["state_bytes"] for figures in session.stats().values())


def test_to_look_at_a_session_changes_nothing_of_it() -> None:
    looked, other = (COUNTS.open("final") for _ in range(2))
    for place in range(40):
        batch = [sd.point(place, 3 * place, place), *([sd.Cti(3 * place)] if place % 5 == 0 else [])]
        assert looked.push(batch) == other.push(batch)
        looked.status()
    assert looked.snapshot() == other.snapshot()


def test_a_session_that_has_failed_or_is_closed_has_a_status() -> None:
    session = sd.source("x").select(lambda e: 1 // e).open()
    with pytest.raises(UserCodeError):
        session.push([sd.point("b", 5, 0)])
    assert session.status(sizes=True).state == "failed"
    closed = sd.source("x").open()
    closed.close()
    assert (closed.status().state, closed.status().sources[0].cti) == ("closed", INFINITY)


def test_another_thread_may_ask_while_one_pushes() -> None:
    session = sd.source("x").group_by("k").session_window(5).aggregate(n=sd.count()).open()
    failed: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        try:
            while not done.is_set():
                seen = session.status(sizes=True)
                assert seen.outputs[0].retractions_out <= seen.outputs[0].events_out
        except BaseException as error:
            failed.append(error)

    looking = threading.Thread(target=look)
    looking.start()
    for n in range(400):
        session.push([sd.point((n, k), n + k, {"k": k % 7}) for k in range(20)] + ([sd.Cti(n)] if n % 3 == 0 else []))
    done.set()
    looking.join()
    assert failed == []


def test_json_keeps_all_and_passes_over_what_it_does_not_know() -> None:
    status = Status(
        time=1_790_000_000.25,
        unit="ms",
        state="closed",
        sources=(SourceStatus(name="x", events_in=3, cti=INFINITY, furthest=7, partition_ctis={"0": MIN_TIME, "1": 5}),),
        outputs=(OutputStatus(emit="final", held=2, cti=MIN_TIME), OutputStatus(emit="speculative", events_out=4, cti=9)),
        operators=(OperatorStatus(name="where_1", state_bytes=100),),
        late=("a line",),
        job=JobStatus(micro_batches=2, batch_seconds={"p50": 0.5}, positions={"x": {"0": 17}}),
    )
    told = json.loads(json.dumps(status.to_json()))
    assert Status.from_json(told) == status
    told["of a later version"] = told["sources"][0]["new"] = 1
    assert Status.from_json(told) == status
    assert (told["sources"][0]["cti"], told["outputs"][0]["cti"], told["sources"][0]["partition_ctis"]) == (
        "inf",
        None,
        {"0": None, "1": 5},
    )


def test_lag_is_in_seconds_where_time_is_that_of_a_calendar() -> None:
    behind = SourceStatus(name="x", cti=1_000, furthest=3_500)
    dated = Status(time=0.0, unit="ms", sources=(behind,))
    assert (dated.lag(behind), dated.lag_seconds(behind), dated.lag_text(behind)) == (2_500, 2.5, "2.5s")
    plain = Status(time=0.0, sources=(behind,))
    assert (plain.lag(behind), plain.lag_seconds(behind), plain.lag_text(behind)) == (2_500, None, "2500")
    silent = SourceStatus(name="y", furthest=8)
    assert (plain.lag(silent), plain.lag_text(silent)) == (None, "")
