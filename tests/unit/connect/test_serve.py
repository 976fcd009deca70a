"""What `query.serve` does with sources that pause, end, fail or give bad records, and with signals."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.connect import (
    END,
    BadRecord,
    Batch,
    End,
    JsonlFile,
    OpenSource,
    async_iterable,
    calling,
    csv_file,
    events_of,
    file_folder,
    iterable,
    jsonl_file,
    replay,
    source_at,
    stdin_jsonl,
)
from streamdsl.errors import CheckpointError, InputError, QueryError, SinkError
from streamdsl.sinks import DatabaseTable, ParquetTable

trips = sd.source("trips")
counts = trips.tumbling_window(10).aggregate(n=sd.count())
TRIPS = [sd.point(n, n, {"fare": n}) for n in range(25)]


class Steps:
    """A source that gives what it is told, step by step; None: nothing now."""

    def __init__(self, *steps: Any) -> None:
        self.steps, self.committed, self.closed = steps, list[Any](), 0

    def open(self, position: Any) -> OpenSource:
        return StepReader(self, position or 0)


class StepReader(OpenSource):
    def __init__(self, source: Steps, at: int) -> None:
        self.source, self.at = source, at

    def poll(self, timeout: float) -> Batch | End | None:
        if self.at >= len(self.source.steps):
            time.sleep(timeout)
            return None
        step = self.source.steps[self.at]
        self.at += 1
        if callable(step):
            return step()  # type: ignore[no-any-return]
        if isinstance(step, BadRecord):
            return Batch([], self.at, [step])
        return Batch(step, self.at) if isinstance(step, (list, pd.DataFrame, pa.Table)) else step

    def committed(self, position: Any) -> None:
        self.source.committed.append(position)

    def close(self) -> None:
        self.source.closed += 1


def rows(events: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((row.le, row.re, *row.payload.values()) for row in sd.CHT.from_events(events))


def test_with_once_the_job_ends_where_nothing_is_there_and_goes_on_later(tmp_path: Path) -> None:
    found: list[Any] = []
    for n, end in [(2, "caught up"), (3, "caught up"), (3, "caught up"), (4, "ended")]:
        source = Steps(TRIPS[:5], TRIPS[5:15], TRIPS[15:], END)
        source.steps = source.steps[:n]
        assert counts.serve(source, calling(found.extend), checkpoint=tmp_path, once=True).end == end
        assert source.closed == 1
    assert rows(found) == [(0, 10, 10), (10, 20, 10), (20, 30, 5)]
    assert found[-1] == sd.Cti(sd.INFINITY)
    assert counts.serve(Steps(TRIPS), calling(found.extend), checkpoint=tmp_path).micro_batches == 0


def test_a_micro_batch_is_so_many_rows_or_so_long(tmp_path: Path) -> None:
    sizes: list[int] = []
    source = iterable(TRIPS, at_once=2)
    counts.serve(source, calling(id), every=5, watch=lambda figures: sizes.append(figures["rows_in"]))
    assert sizes == [6, 6, 6, 6, 1]
    sizes.clear()
    counts.serve(source, calling(id), every=timedelta(hours=1), watch=lambda figures: sizes.append(figures["rows_in"]))
    assert sizes == [25]
    sizes.clear()
    slow = Steps(TRIPS[:5], None, lambda: time.sleep(0.06), TRIPS[5:], END)
    counts.serve(slow, calling(id), every="50ms", watch=lambda figures: sizes.append(figures["rows_in"]))
    assert sizes == [5, 20]


def test_sources_learn_what_is_durable_and_a_failure_there_is_nothing() -> None:
    source = Steps(TRIPS[:5], TRIPS[5:], None)
    counts.serve(source, calling(id), every=1, once=True)
    assert source.committed == [1, 2]
    source.committed = None  # type: ignore[assignment]
    assert counts.serve(source, calling(id), every=1, once=True).micro_batches == 2


def test_each_sink_gets_all_of_it(tmp_path: Path) -> None:
    found: list[Any] = []
    table = DatabaseTable(lambda: sqlite3.connect(tmp_path / "a.db"), "counts")
    file = JsonlFile(tmp_path / "a.jsonl")
    counts.serve(iterable(TRIPS), [calling(found.extend), table, file, ParquetTable(tmp_path / "t")], checkpoint=tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert sorted(connection.execute("SELECT le, re, n FROM counts")) == rows(found)
    assert len(file.path.read_text().splitlines()) == len(found)


def test_what_ends_does_not_hold_back_the_others() -> None:
    found: list[Any] = []
    joined = trips.semi_join(sd.source("zones"), on="zone")
    given = [sd.point(n, n, {"zone": "A"}) for n in range(5)]
    zones = iterable([sd.interval("z", 0, 100, {"zone": "A"})])
    joined.serve({"trips": Steps(given, [sd.Cti(6)]), "zones": zones}, calling(found.extend), emit="final", once=True)
    assert rows(found) == [(n, n + 1, "A") for n in range(5)]


@dataclass(frozen=True)
class Trip:
    fare: int


@pytest.mark.parametrize(
    ("query", "data"),
    [
        (trips, [(n, n + 1, {"fare": n}) for n in range(4)]),
        (trips, [{"le": n, "re": n + 1, "fare": n} for n in range(4)]),
        (trips, pd.DataFrame({"le": range(4), "fare": range(4)})),
        (trips, pa.table({"le": range(4), "fare": range(4)})),
        (sd.source("trips", Trip), [{"le": n, "fare": n, "more": 7} for n in range(4)]),
        (trips, [{"kind": "insert", "id": n, "le": n, "re": n + 1, "re_new": None, "fare": n} for n in range(4)]),
    ],
)
def test_data_has_the_forms_that_queries_take(query: Any, data: Any) -> None:
    found: list[Any] = []
    query.where(lambda e: e.fare > 1).serve(Steps(data, END), calling(found.extend))
    assert rows(found) == [(2, 3, 2), (3, 4, 3)]


def test_a_clock_goes_on_while_no_rows_come() -> None:
    now, found = [0], list[Any]()

    def later() -> None:
        now[0] += 30 * 10**9

    clocked = sd.source("trips", unit="s", progress=sd.Progress.wall_clock("1s", clock=lambda: now[0]))
    source = Steps([sd.point("a", 3, {"fare": 1})], later, None, END)
    seen: list[int] = []
    query = clocked.tumbling_window(10).aggregate(n=sd.count())
    query.serve(source, calling(found.extend), emit="final", every=1, watch=lambda figures: seen.append(figures["rows_out"]))
    assert rows(found) == [(0, 10, 1)]
    assert seen[:2] == [0, 1], "before the source ends"


def test_dates_stay_dates_after_a_restart(tmp_path: Path) -> None:
    file = JsonlFile(tmp_path / "out.jsonl")
    steps = [[{"le": f"2024-01-0{day}", "fare": 1}] for day in (1, 2, 3)]
    for n in (1, 2, 3):
        counts_by_day = trips.tumbling_window("1d").aggregate(n=sd.count())
        counts_by_day.serve(Steps(*steps[:n]), file, checkpoint=tmp_path / "state", once=True)
    starts = [json.loads(line)["le"] for line in file.path.read_text().splitlines()]
    assert [str(datetime.fromisoformat(le).date()) for le in starts] == ["2024-01-01", "2024-01-02", "2024-01-03"]


BAD = [{"le": 1, "fare": 1}, {"le": None, "fare": 2}, {"le": 3, "fares": 3}, {"le": 4, "fare": 4}]


def test_a_bad_record_ends_the_job_with_its_name_and_nothing_is_lost(tmp_path: Path) -> None:
    found: list[Any] = []
    with pytest.raises(
        InputError, match=r"trips' cannot be taken, record 1 after position None, \{.*\}: .*start is null(.|\n)*Hint: "
    ):
        counts.serve(Steps(BAD), calling(found.extend), checkpoint=tmp_path)
    assert found == []
    mended = [row for row in BAD if row in (BAD[0], BAD[3])]
    counts.serve(Steps(mended, END), calling(found.extend), checkpoint=tmp_path)
    assert rows(found) == [(0, 10, 2)]


def test_bad_records_go_to_the_dead_letters(tmp_path: Path) -> None:
    found: list[Any] = []
    letters = DatabaseTable(lambda: sqlite3.connect(tmp_path / "a.db"), "letters")
    undecoded = BadRecord(b"caf\xe9", "is no text", "message 7 of partition 2")
    source = Steps(TRIPS[:2], BAD, undecoded, [sd.Cti(20)], [sd.point("late", 3, {"fare": 1})], TRIPS[20:], END)
    for _ in range(2):
        done = counts.serve(source, calling(found.extend), checkpoint=tmp_path / "state", every=1, dead_letters=letters)
    assert rows(found) == [(0, 10, 4), (20, 30, 5)]
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        kept = list(connection.execute("SELECT le, source, place, record, reason FROM letters ORDER BY le"))
    assert [row[:3] for row in kept] == [
        (0, "trips", "record 1 after position 1"),
        (1, "trips", "record 2 after position 1"),
        (2, "trips", "message 7 of partition 2"),
        (3, "trips", "record 0 after position 4"),
    ]
    assert [row[3] for row in kept][:3] == ['{"le": null, "fare": 2}', '{"le": 3, "fares": 3}', "caf\\xe9"]
    assert "CTI" in kept[3][4]
    assert done.micro_batches == 0


def test_a_bad_row_of_a_frame_is_found() -> None:
    found, letters = list[Any](), list[Any]()
    for frame in (pd.DataFrame(BAD[:2]), pa.Table.from_pylist(BAD[:2])):
        counts.serve(Steps(frame, END), calling(found.extend), dead_letters=calling(letters.extend))
    assert [letter.payload.place for letter in letters] == ["record 1 after position None"] * 2
    assert len([event for event in found if isinstance(event, sd.Insert)]) == 2


def test_an_error_of_the_query_is_not_one_of_a_record() -> None:
    letters: list[Any] = []
    with pytest.raises(QueryError):
        counts.serve(Steps([7]), calling(id), dead_letters=calling(letters.append))
    assert letters == []


def test_a_record_for_which_a_function_fails_is_a_dead_letter(tmp_path: Path) -> None:
    def halved(row: Any) -> Any:
        if row.fare % 10 == 7:
            raise ValueError(f"no half of {row.fare}")
        return {"half": row.fare // 2}

    query = trips.select(halved).tumbling_window(10).aggregate(n=sd.count(), most=sd.max(lambda e: e.half))
    for at_once in (1, 4, 25):
        found, letters = list[Any](), list[Any]()
        source, folder = iterable([*TRIPS, sd.Cti(30)], at_once=at_once), tmp_path / str(at_once)
        done = query.serve(source, calling(found.extend), checkpoint=folder, dead_letters=calling(letters.extend), every="1h")
        assert rows(found) == [(0, 10, 9, 4), (10, 20, 9, 9), (20, 30, 5, 12)]
        assert ["no half of 7" in letters[0].payload.reason, "no half of 17" in letters[1].payload.reason] == [True, True]
        assert (len(letters), done.bad_records, done.rows_in) == (2, 2, 26)


def test_late_events_go_to_a_sink_as_lines_that_are_read_again(tmp_path: Path) -> None:
    progress = sd.Progress.slack("10s")
    readings = sd.source("readings", unit="s", progress=progress, on_violation="drop").where(lambda e: e.v > 0)
    rows = [{"le": f"2026-03-01T00:0{minute}:00Z", "v": n} for n, minute in enumerate((5, 4, 6, 1), 1)]
    late, again = JsonlFile(tmp_path / "late.jsonl"), list[Any]()
    readings.serve(iterable(rows, at_once=1), calling(id), late=late, every=1, checkpoint=tmp_path / "state")
    told = [json.loads(line) for line in late.path.read_text().splitlines()]
    assert [(each["le"], each["source"], each["cti"][-9:], each["origin"]) for each in told] == [
        (0, "readings", "00:04:50Z", "Progress.slack('10s') of 'readings', push 1"),
        (1, "readings", "00:05:50Z", "Progress.slack('10s') of 'readings', push 3"),
    ]
    (tmp_path / "records.jsonl").write_text("".join(each["record"] + "\n" for each in told))
    sd.source("readings", unit="s").serve(jsonl_file(tmp_path / "records.jsonl"), calling(again.extend))
    assert sorted((row.payload.v, row.le) for row in again[:2]) == [(2, 1772323440), (4, 1772323260)]


def test_the_late_events_of_a_batch_with_a_bad_record_are_told_of_once() -> None:
    def half(v: int) -> int:
        if v == 3:
            raise ValueError("no half of 3")
        return v // 2

    late, letters = list[Any](), list[Any]()
    query = sd.source("s", unit="tick", on_violation="drop").select(half=lambda e: half(e.v))
    a, b, c, d = (sd.point(id, le, {"v": v}) for id, le, v in (("a", 5, 2), ("b", 7, 4), ("c", 12, 3), ("d", 3, 6)))
    query.serve(iterable([a, sd.Cti(9), b, c, d]), calling(id), dead_letters=calling(letters.extend), late=calling(late.extend))
    assert [json.loads(each.payload.record)["id"] for each in late] == ["b", "d"]
    assert len(letters) == 1


def test_a_checkpoint_of_the_version_before_late_rows_goes_on(tmp_path: Path) -> None:
    letters = JsonlFile(tmp_path / "letters.jsonl")
    source = [{"le": 1, "v": 2}, {"le": None}, {"le": 4, "v": 4}, {"le": None}]
    for given in (source[:2], source):
        steps = Steps(*([each] for each in given))
        counts.serve(steps, calling(id), checkpoint=tmp_path / "state", once=True, dead_letters=letters, late=calling(id))
        record = max((tmp_path / "state" / "served" / "positions").glob("[0-9]*"), key=lambda path: int(path.name))
        held = json.loads(record.read_text())
        del held["late"], held["late_batches"]
        record.write_text(json.dumps(held))
    assert [json.loads(line)["le"] for line in letters.path.read_text().splitlines()] == [0, 1]


@pytest.mark.parametrize("settings", [{}, {"emit": "final", "dead_letters": calling(id)}])
def test_otherwise_an_error_of_a_function_ends_the_job(settings: Any, tmp_path: Path) -> None:
    query = trips.select(part=lambda e: 1 // e.fare).tumbling_window(10).aggregate(n=sd.count(), m=sd.max(lambda e: e.part))
    with pytest.raises(sd.errors.UserCodeError):
        query.serve(iterable(TRIPS), calling(id), **settings)


def test_lines_that_are_no_json_have_a_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"le": 1, "fare": 2}\nnothing\n')
    with pytest.raises(InputError, match=r"line 2 of .*a\.jsonl, nothing: JSONDecodeError"):
        counts.serve(jsonl_file(tmp_path / "a.jsonl"), calling(id))


def test_a_sink_that_fails_gets_the_micro_batch_again(tmp_path: Path) -> None:
    found, fails = list[Any](), [True]

    def take(events: list[Any]) -> None:
        if fails:
            raise SinkError("the table is full")
        found.extend(events)

    with pytest.raises(SinkError, match="the table is full"):
        counts.serve(iterable(TRIPS), calling(take), checkpoint=tmp_path)
    fails.clear()
    counts.serve(iterable(TRIPS), calling(take), checkpoint=tmp_path)
    assert rows(found) == [(0, 10, 10), (10, 20, 10), (20, 30, 5)]


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

query = sd.source("trips").tumbling_window(10).aggregate(n=sd.count())
source = jsonl_file("in.jsonl", follow=True, decode=decode)
done = query.serve(source, JsonlFile("out.jsonl"), checkpoint="state", every="1h", watch=print)
print(done.end)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_commits_and_ends(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"le": n, "fare": 1}) + "\n" for n in range(25)))
    job = subprocess.Popen(
        [sys.executable, "-c", JOB], cwd=tmp_path, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    while not (tmp_path / "seen").exists():
        assert job.poll() is None
        time.sleep(0.01)
    job.send_signal(number)
    out, _ = job.communicate(timeout=30)
    assert job.returncode == 0
    assert out.decode().splitlines()[-1] == "stopped"
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def test_a_job_in_another_thread_catches_no_signal() -> None:
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(counts.serve(iterable(TRIPS), calling(id))))
    thread.start()
    thread.join(30)
    assert done[0].end == "ended"


def test_a_cancelled_task_drains_and_commits(tmp_path: Path) -> None:
    found: list[Any] = []

    async def main() -> int:
        ticks, job = 0, asyncio.create_task(counts.serve_async(Steps(TRIPS), calling(found.extend), every="1h"))
        for _ in range(20):
            await asyncio.sleep(0.01)
            ticks += 1
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return ticks

    assert asyncio.run(main()) == 20
    assert rows(found) == [(0, 10, 10), (10, 20, 10), (20, 30, 5)]


def test_an_asynchronous_iterator_feeds_an_asynchronous_job() -> None:
    async def some() -> AsyncIterator[Any]:
        for event in TRIPS:
            await asyncio.sleep(0.001)
            yield event

    found: list[Any] = []
    assert asyncio.run(counts.serve_async(async_iterable(some), calling(found.extend), every=3)).micro_batches > 3
    assert rows(found) == [(0, 10, 10), (10, 20, 10), (20, 30, 5)]


def test_a_slow_iterator_is_not_waited_for_until_a_batch_is_full() -> None:
    def slow() -> Iterator[Any]:
        for event in TRIPS[:4]:
            time.sleep(0.03)
            yield event

    sizes: list[int] = []
    counts.serve(iterable(slow), calling(id), every=1, watch=lambda figures: sizes.append(figures["rows_in"]))
    assert sizes == [1, 1, 1, 1, 0]


def test_what_a_file_has_recorded_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "trips.jsonl"
    given = [
        sd.interval("a", "2024-01-01", "2024-01-03", {"fare": 7}),
        sd.Cti("2024-01-02"),
        sd.point("b", "2024-01-05", {"fare": 1}),
    ]
    trips.serve(iterable(given), JsonlFile(path), every=1)
    by_day = trips.tumbling_window("1d").aggregate(n=sd.count(), fare=sd.sum(lambda e: e.fare))
    first, again = list[Any](), list[Any]()
    by_day.serve(iterable(given), calling(first.extend))
    by_day.serve(replay(path), calling(again.extend))
    assert first == again
    assert len(first) > 4


def test_what_is_replayed_at_a_speed_is_all_and_each_at_its_time(tmp_path: Path) -> None:
    rows = [{"le": le, "v": le} for le in (0, 100, 50, 200, 300)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for unit, speed in (("tick", 1_000), ("s", 1_000), ("ms", 1)):
        reader, came, polled = replay(tmp_path / "rows.jsonl", speed=speed, unit=unit).open(None), list[Any](), list[Any]()  # type: ignore[arg-type]
        began = time.monotonic()
        while (batch := reader.poll(0.01)) is not END:
            polled.append(batch)
            came += [] if batch is None else [(row["v"], time.monotonic() - began, batch.position["line"]) for row in batch.data]
        assert [v for v, _, _ in came] == [0, 100, 50, 200, 300]
        assert all(waited >= v / 1_000 for v, waited, _ in came)
        assert None in polled
        rest = replay(tmp_path / "rows.jsonl", speed=speed).open({"offset": 0, "line": 0, **polled[0].position}).poll(1)
        assert isinstance(rest, Batch)
        assert rest.data == rows[1:3], "a restart begins with the next event, and what is late comes at once"


def test_dates_are_replayed_at_their_times(tmp_path: Path) -> None:
    rows = [{"le": f"2026-03-01T00:00:0{second}Z"} for second in (0, 1, 2)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = replay(tmp_path / "rows.jsonl", speed=4).open(None)
    assert [len(batch.data) if isinstance(batch, Batch) else batch for batch in (reader.poll(0.1), reader.poll(0.1))] == [1, None]
    assert [len(batch.data) if isinstance(batch, Batch) else batch for batch in (reader.poll(1), reader.poll(1))] == [1, 1]
    assert reader.poll(0) is END
    for speed in (0, -1, float("inf"), "2", True):
        with pytest.raises(sd.errors.QueryError, match="a speed is a number above 0"):
            replay("rows.jsonl", speed=speed)  # type: ignore[arg-type]


def test_an_error_of_an_asynchronous_job_is_raised() -> None:
    with pytest.raises(InputError):
        asyncio.run(counts.serve_async(Steps(BAD), calling(id)))


def test_two_jobs_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    def meanwhile(events: Any) -> None:
        with pytest.raises(CheckpointError, match="is in use by process"):
            counts.serve(iterable(TRIPS), calling(id), checkpoint=tmp_path)

    counts.serve(iterable(TRIPS), calling(meanwhile), checkpoint=tmp_path)


def test_a_checkpoint_older_than_the_table_is_refused(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path / "table")
    counts.serve(iterable(TRIPS), table, checkpoint=tmp_path / "a")
    with pytest.raises((CheckpointError, SinkError)):
        counts.serve(iterable(TRIPS), table, checkpoint=tmp_path / "b")


def test_a_changed_query_is_refused(tmp_path: Path) -> None:
    counts.serve(Steps(TRIPS[:3]), calling(id), checkpoint=tmp_path, once=True)
    other = trips.tumbling_window(20).aggregate(n=sd.count())
    with pytest.raises(CheckpointError, match="cannot be gone on with: the checkpoint is of another query"):
        other.serve(Steps(TRIPS[:3], TRIPS[3:]), calling(id), checkpoint=tmp_path, once=True)


class Fast(OpenSource):
    """A source of many rows that are made when they are asked for."""

    def __init__(self, at: int) -> None:
        self.at = at

    def poll(self, timeout: float) -> Batch | End | None:
        if self.at == 60_000:
            return END
        first, self.at = self.at, self.at + 2_000
        return Batch(pa.table({"le": range(first, self.at), "fare": range(first, self.at)}), self.at)

    @staticmethod
    def open(position: Any) -> OpenSource:
        return Fast(position or 0)


def test_memory_does_not_grow_with_what_a_fast_source_could_give() -> None:
    peaks: list[int] = []

    def slow(events: list[Any]) -> None:
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()

    query = sd.source("trips", progress=sd.Progress.slack(0)).tumbling_window(1_000).aggregate(n=sd.count())
    tracemalloc.start()
    try:
        query.serve(Fast, calling(slow), every=2_000)
    finally:
        tracemalloc.stop()
    assert len(peaks) > 20
    assert max(peaks[10:]) < 1.5 * max(peaks[1:10])


def given(source: Any = None, sink: Any = None, **settings: Any) -> Iterator[Any]:
    yield counts.serve(source or iterable(TRIPS), sink or calling(id), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": {"trip": iterable(TRIPS)}}, "there is no source 'trip'; the sources of this query are: trips"),
        ({"source": [1, 2]}, "the source 'trips' is given by what is no source"),
        ({"source": Path("a.jsonl")}, "the source 'trips' is given by what is no source"),
        ({"sink": print}, "this is no sink"),
        ({"every": 0}, "every is a positive duration"),
        ({"every": "soon"}, "every is a duration or a number of rows"),
        ({"source": Steps(lambda: 7)}, "the source 'trips' gave a int"),
        ({"source": Steps(lambda: Batch([], {1, 2}))}, "gave a position that JSON does not hold"),
    ],
)
def test_what_is_given_wrongly_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        list(given(**settings))


def test_every_source_needs_one() -> None:
    joined = trips.semi_join(sd.source("zones"), on="zone")
    with pytest.raises(QueryError, match="it is not said which one this is"):
        joined.serve(iterable(TRIPS), calling(id))
    with pytest.raises(QueryError, match="the source 'zones' is not given"):
        joined.serve({"trips": iterable(TRIPS)}, calling(id))


def test_reference_data_needs_no_source() -> None:
    zones = sd.sources.from_table([{"zone": "A"}])
    found: list[Any] = []
    trips.semi_join(zones, on="zone").serve(iterable([sd.point("a", 1, {"zone": "A"})]), calling(found.extend))
    assert rows(found) == [(1, 2, "A")]


def test_events_of_a_micro_batch_are_those_of_the_session() -> None:
    session = counts.open()
    out = session.feed([sd.point("a", 3, {"fare": 7}), sd.Cti(5), sd.point("b", 5, {"fare": 7})])
    assert [type(event) for event in events_of(out)] == [type(event) for event in out.events()]


def test_a_checkpoint_that_is_older_than_a_table_of_a_database_is_refused(tmp_path: Path) -> None:
    table = DatabaseTable(lambda: sqlite3.connect(tmp_path / "trips.db"), "counts")
    source = Steps(TRIPS[:5], TRIPS[5:15])
    source.steps = source.steps[:1]
    counts.serve(source, table, checkpoint=tmp_path / "state", once=True)
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    for folder, refused in (("state", nullcontext()), ("backup", pytest.raises(CheckpointError, match="taken micro-batch 1"))):
        with refused:
            counts.serve(Steps(TRIPS[:5], TRIPS[5:15]), table, checkpoint=tmp_path / folder, once=True)


@pytest.mark.parametrize("named", ["in the source", "in the query", "in both, where the source counts"])
def test_the_fields_of_lifetimes_are_named_in_the_source_or_in_the_query(named: str, tmp_path: Path) -> None:
    roles: Any = {} if named == "in the query" else {"start": "at", "end": "until"}
    of_query: Any = {"in the source": {}, "in the query": {"start": "at", "end": "until"}}.get(named, {"start": "le"})
    rows = pa.table({"at": [3, 14], "until": [5, None], "le": [7, 8], "fare": [1, 2]})
    (tmp_path / "folder").mkdir()
    pq.write_table(rows, tmp_path / "folder" / "a.parquet")
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist())
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "a.csv").write_text("at,until,le,fare\n3,5,7,1\n14,,8,2\n")
    read, write = os.pipe()
    os.write(write, lines.encode())
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        for source in (
            jsonl_file(tmp_path / "a.jsonl", **roles),
            csv_file(tmp_path / "a.csv", **roles),
            file_folder(tmp_path / "folder", **roles),
            stdin_jsonl(stream, **roles),
            source_at(f"jsonl://{tmp_path}/a.jsonl{'?start=at&end=until' if roles else ''}"),
        ):
            found = list[Any]()
            sd.source("trips", **of_query).where(lambda e: e.fare > 0).serve(source, calling(found.extend))
            assert [(each.le, each.re, each.payload.le, each.payload.fare) for each in found[:2]] == [
                (3, 5, 7, 1),
                (14, sd.INFINITY, 8, 2),
            ]


def test_a_field_of_lifetimes_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"at": 3, "fare": 1}\n')
    with pytest.raises(InputError, match=r"line 1 of .*a\.jsonl.*'when'"):
        trips.serve(jsonl_file(tmp_path / "a.jsonl", start="when"), calling(id))
    with pytest.raises(QueryError, match="'at' is both start and end"):
        jsonl_file(tmp_path / "a.jsonl", start="at", end="at")
