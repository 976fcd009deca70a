"""What `query.serve` does where workers run its operators: the same, in all that goes wrong and in all that is told of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.connect import calling, iterable, jsonl_file
from streamdsl.errors import CheckpointError, QueryError
from streamdsl.monitoring import Status
from streamdsl.testing import assert_cht_equal

pytest.importorskip("cloudpickle")

trips = sd.source("trips")
TRIPS = [sd.point(n, n, {"zone": "ABC"[n % 3], "fare": n}) for n in range(25)]


def halved(row: Any) -> Any:
    if row.fare % 10 == 7:
        raise ValueError(f"no half of {row.fare}")
    return {"zone": row.zone, "half": row.fare // 2}


by_zone = trips.group_by("zone").session_window(5).aggregate(n=sd.count(), most=sd.max(lambda e: e.fare))
halves = trips.select(halved).group_by("zone").session_window(5).aggregate(n=sd.count(), most=sd.max(lambda e: e.half))


@pytest.mark.parametrize("at_once", [1, 25])
def test_a_record_for_which_a_function_fails_in_a_worker_is_the_dead_letter_that_it_is_without(
    at_once: int, tmp_path: Path
) -> None:
    told = []
    for workers in (None, 2):
        found, letters = list[Any](), list[Any]()
        done = halves.serve(
            iterable([*TRIPS, sd.Cti(40)], at_once=at_once),
            calling(found.extend),
            checkpoint=tmp_path / f"{workers}",
            dead_letters=calling(letters.extend),
            every="1h",
            workers=workers,
        )
        told.append((done, sd.temporal.CHT.from_events(found).rows, [each.payload for each in letters]))
    (done, rows, letters), in_workers = told
    assert in_workers == (done, rows, letters)
    assert (done.bad_records, len(letters)) == (2, 2)
    assert "no half of 17" in letters[1].reason


def test_late_events_and_bad_records_are_counted() -> None:
    given = [
        sd.point("a", 9, {"zone": "A", "fare": 1}),
        sd.Cti(5),
        *(sd.point(f"l{n}", n, {"zone": "A", "fare": 1}) for n in range(3)),
    ]
    query = sd.source("trips", on_violation="drop").select(halved).group_by("zone").session_window(5).aggregate(n=sd.count())
    bad = sd.point("b", 11, {"zone": "A", "fare": 7})
    for workers in (None, 2):
        for late in (None, calling(id)):
            settings: Any = {"late": late, "dead_letters": calling(id), "workers": workers, "every": 2}
            done = query.serve(iterable([*given, bad], at_once=2), calling(id), **settings)
            assert (done.late_events, done.bad_records, done.rows_in) == (3, 1, 6)


def test_a_query_that_cannot_be_cut_is_refused_before_anything_runs(tmp_path: Path) -> None:
    query = trips.snapshot_window().aggregate(n=sd.count())
    with pytest.raises(QueryError, match=r"cannot be cut for workers: .*window_aggregate_1"):
        query.serve(iterable(TRIPS), calling(id), checkpoint=tmp_path / "state", workers=2)
    assert not (tmp_path / "state").exists()
    with pytest.raises(QueryError, match="workers is a number of processes"):
        by_zone.serve(iterable(TRIPS), calling(id), workers=0)


@pytest.mark.parametrize(
    ("query", "first", "then"),
    [(by_zone, None, 2), (by_zone, 2, None), (trips.group_by("zone").tumbling_window(5).aggregate(n=sd.count()), None, 2)],
    ids=["of one state", "of shards", "of what runs in one process anyway"],
)
def test_a_checkpoint_goes_on_with_any_number_of_workers_but_one_that_had_none_needs_none(
    query: sd.Stream[Any], first: int | None, then: int | None, tmp_path: Path
) -> None:
    lines = [json.dumps({"le": n, **trip.payload}) + "\n" for n, trip in enumerate(TRIPS)]
    found = list[Any]()

    def serve(upto: int, workers: int | None) -> None:
        (tmp_path / "in.jsonl").write_text("".join(lines[:upto]))
        source = jsonl_file(tmp_path / "in.jsonl", follow=True)
        query.serve(source, calling(found.extend), checkpoint=tmp_path / "state", once=True, workers=workers)

    serve(10, first)
    if query is by_zone and first is None:
        remedy = (
            r"without workers, .*\s+Hint: run the query as it was, without workers= if it had none, or begin a new checkpoint"
        )
        with pytest.raises(CheckpointError, match=remedy):
            serve(25, then)
        then = None
    serve(25, then)
    assert_cht_equal(sd.temporal.CHT.from_events(found), query.run({"trips": TRIPS}, engine="reference").cht())


def test_the_status_of_a_session_with_workers_has_the_figures_of_one_without() -> None:
    said: list[Status] = []
    for workers in (None, 2):
        session = by_zone.open(workers=workers)
        session.push([*TRIPS, sd.Cti(12)])
        for sizes in (False, True):
            said.append(session.status(sizes=sizes))
        session.release()
    alone, sized, in_workers, sized_in_workers = said
    for one, other in ((alone, in_workers), (sized, sized_in_workers)):
        assert [(each.name, each.windows, each.events) for each in one.operators] == [
            (each.name, each.windows, each.events) for each in other.operators
        ]
        assert (one.sources, one.outputs) == (other.sources, other.outputs)
    assert any(each.windows for each in in_workers.operators)
    assert sized_in_workers.state_bytes
    assert in_workers.state_bytes is None


def test_the_status_of_a_session_whose_worker_is_gone_is_that_of_this_process() -> None:
    session = by_zone.open(workers=2)
    session.push(TRIPS)
    os.kill(session.worker_pids[0], signal.SIGKILL)  # type: ignore[attr-defined]
    assert session.status().sources[0].events_in == 25
    with pytest.raises(sd.errors.WorkerError):
        session.push([sd.Cti(40)])
    assert session.status().state == "failed"


def test_serve_async_runs_in_workers() -> None:
    found: list[Any] = []
    done = asyncio.run(by_zone.serve_async(iterable(TRIPS), calling(found.extend), workers=2))
    assert done.end == "ended"
    assert_cht_equal(sd.temporal.CHT.from_events(found), by_zone.run({"trips": TRIPS}, engine="reference").cht())


JOB = """
import json
from pathlib import Path
import streamdsl as sd
from streamdsl.connect import JsonlFile, jsonl_file

def decode(line):
    row = json.loads(line)
    if row["le"] == 24:
        Path("seen").touch()
    return row

query = sd.source("trips").group_by("zone").session_window(3).aggregate(n=sd.count(), most=sd.max(lambda e: e.fare))
source = jsonl_file("in.jsonl", follow=True, decode=decode, at_once=5)
done = query.serve(source, JsonlFile("out.jsonl"), checkpoint="state", every="1h", workers=2)
print(done.end, done.rows_in)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_of_a_job_drains_commits_and_ends(number: signal.Signals, tmp_path: Path) -> None:
    """As from a terminal, or from systemd."""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"le": n, "zone": "AB"[n % 2], "fare": 1}) + "\n" for n in range(25)))
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    job = subprocess.Popen([sys.executable, "-c", JOB], cwd=tmp_path, stdout=subprocess.PIPE, env=env, start_new_session=True)
    while not (tmp_path / "seen").exists():
        assert job.poll() is None
        time.sleep(0.01)
    os.killpg(job.pid, number)
    out, _ = job.communicate(timeout=120)
    assert job.returncode == 0
    assert out.decode().splitlines()[-1] == "stopped 25"
    sent = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert {each["zone"]: each["n"] for each in sent if each["kind"] == "insert"} == {"A": 13, "B": 12}


@pytest.mark.parametrize("starts", [(None, None, None), (2, 1, None), (1, 2, 2)], ids=str)
def test_of_two_sources_one_ends_and_the_other_goes_on_with_other_numbers_of_workers(
    starts: tuple[int | None, ...], tmp_path: Path
) -> None:
    zones: list[dict[str, Any]] = [{"le": n, "re": n + 4, "zone": "ABC"[n % 3], "name": f"z{n}"} for n in range(0, 24, 2)]
    named = sd.source("zones")
    query = trips.join(named, on="zone", select=lambda a, b: {"fare": a.fare, "name": b.name})
    path, found, ends = tmp_path / "zones.jsonl", list[Any](), list[str]()
    for upto, workers in zip((4, 8, 12), starts, strict=True):
        path.write_text("".join(json.dumps(zone) + "\n" for zone in zones[:upto]))
        is_last = upto == 12
        done = query.serve(
            {"trips": iterable(TRIPS, at_once=4), "zones": jsonl_file(path, follow=not is_last, at_once=2)},
            calling(found.extend),
            checkpoint=tmp_path / "state",
            emit="final",
            every=3,
            once=not is_last,
            workers=workers,
        )
        ends.append(done.end)
    assert ends == ["caught up", "caught up", "ended"]
    rows = [(zone["le"], zone["re"], {"zone": zone["zone"], "name": zone["name"]}) for zone in zones]
    expected = query.run({"trips": TRIPS, "zones": sd.from_rows(rows)}, engine="reference").cht()
    assert_cht_equal(sd.temporal.CHT.from_events(found), expected)
