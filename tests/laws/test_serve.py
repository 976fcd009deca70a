"""The law of `query.serve`: wherever the job is cut off, and however often, the tables are what the reference says of the input.

In one process no change of a file gets through from some change on, for each kind of change that there is; a process of its own
is killed at random moments. It is the same law with workers: each start has another number of them, and they are killed too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.connect import Sink, iterable
from streamdsl.errors import WorkerError
from streamdsl.sinks import DatabaseTable, ParquetTable
from streamdsl.temporal import CHT
from tests.laws.power import KILLED, Change, changes_seen, cut_off_after, exit_after
from tests.laws.profiles import MANY


def queries(on_violation: Any = "error") -> dict[str, sd.Stream[Any]]:
    trips, zones = (sd.source(name, unit="tick", on_violation=on_violation) for name in ("trips", "zones"))
    return {
        "rows": trips.where(lambda e: e.fare > 2),
        "windows": trips.group_by("zone").tumbling_window(10).aggregate(n=sd.count(), fare=sd.sum(lambda e: e.fare)),
        "snapshots": trips.snapshot_window().aggregate(most=sd.max(lambda e: e.fare)),
        "semi join": trips.semi_join(zones, on="zone"),
        "sessions": trips.group_by("zone").session_window(3).aggregate(n=sd.count(), most=sd.max(lambda e: e.fare)),
    }


IN_WORKERS = ("rows", "semi join", "sessions")
"""Windows are cheap, and stay in the session's process; snapshots over all rows cannot be cut."""
EMITS = ("speculative", "watermark", "final")
KILLS = 12


def events(rng: Random, source: str, endless: bool = False) -> list[Any]:
    """Return rows, corrections and CTIs that no later event breaks: null keys, ids that come back, rows without an end."""
    found, living, cti, gone = list[Any](), dict[str, sd.Insert[Any]](), -20, list[str]()
    for n in range(rng.randint(3, 14)):
        roll = rng.random()
        if roll < 0.25:
            cti = max(cti, rng.randint(cti, cti + 12))
            found.append(sd.Cti(cti))
            gone += [id for id, row in living.items() if row.re < cti]
            living = {id: row for id, row in living.items() if row.re > cti}
        elif roll < 0.4 and living:
            row = living.pop(rng.choice(sorted(living)))
            end = max(cti, row.le, (row.le + 9 if row.re == sd.INFINITY else row.re) - rng.randint(0, 6))
            found.append(sd.Retract(row.id, row.le, row.re, end, row.payload))
        else:
            le, id = cti + rng.randint(0, 20), gone.pop() if gone and rng.random() < 0.5 else f"{source}{n}"
            payload: Any = {"zone": rng.choice(["A", "B", None]), "fare": rng.randint(0, 9)}
            row = sd.Insert(id, le, sd.INFINITY if endless and rng.random() < 0.2 else le + rng.randint(1, 12), payload)
            living[id] = row
            found.append(row)
    return found


def with_late(rng: Random, given: list[Any], part: object = "") -> list[Any]:
    """Return events among which some are late: behind a CTI, or retractions of one that is."""
    found, cti, late = list[Any](), -20, 0
    for event in given:
        found.append(event)
        cti = max(cti, event.time) if isinstance(event, sd.Cti) else cti
        if cti > -20 and rng.random() < 0.4:
            le, late = cti - rng.randint(1, 9), late + 1
            found.append(sd.Insert(f"late{part}-{late}", le, le + rng.randint(1, 12), {"zone": "A", "fare": late}))
            if rng.random() < 0.3:
                found.append(sd.Retract(found[-1].id, le, found[-1].re, le, found[-1].payload))
    return found


class Case:
    """A query with its input, and the sinks in a folder."""

    def __init__(self, seed: int, folder: Path, in_workers: bool = False) -> None:
        rng = Random(seed)
        names = IN_WORKERS if in_workers else list(queries())
        self.folder, self.name, self.emit = folder, rng.choice(names), rng.choice(EMITS)
        self.in_workers, self.rng = in_workers, Random(seed)
        self.every = rng.choice((1, 2, 5, 100))
        sources = ("trips", "zones") if self.name == "semi join" else ("trips",)
        self.is_endless = self.name != "windows"  # which would be without end too
        self.given = {name: events(rng, name, self.is_endless) for name in sources}
        self.at_once = rng.randint(1, 4)
        self.emits = rng.choice([(), ("speculative", "final"), ("final", "watermark"), ("final", sd.emit.Emit(every=2))])
        self.on_violation = rng.choice(("error", "drop", "adjust"))
        self.query = queries(self.on_violation)[self.name]
        if self.on_violation != "error":
            self.given = {name: with_late(rng, given) for name, given in self.given.items()}

    def __repr__(self) -> str:
        return f"{self.name}, {self.emits or self.emit}, {self.on_violation}, every {self.every}, {self.given}"

    def sinks(self) -> list[Sink]:
        database = DatabaseTable(lambda: sqlite3.connect(self.folder / "rows.db"), "rows")
        return [ParquetTable(self.folder / "rows", every=16), database]

    def given_sinks(self) -> Any:
        """Return the sinks of `serve`, where there are two ways to emit by these."""
        both = self.sinks()
        return dict(zip(self.emits, both, strict=True)) if self.emits else both

    def workers(self) -> int | None:
        """Return a number of workers; a state of several shards goes on in one process too."""
        if not self.in_workers:
            return None
        return self.rng.choice((1, 2, None) if newest(self) >= 0 else (1, 2))

    def items(self, name: str) -> Any:
        return self.given[name]

    def serve(self) -> Any:
        sources = {name: iterable(self.items(name), at_once=self.at_once) for name in self.given}
        return self.query.serve(
            sources,
            self.given_sinks(),
            checkpoint=self.folder / "state",
            every=self.every,
            emit="speculative" if self.emits else self.emit,  # type: ignore[arg-type]
            late=DatabaseTable(lambda: sqlite3.connect(self.folder / "late.db"), "late"),
            workers=self.workers(),
        )

    def check(self) -> None:
        """Raise unless both tables are what the input means, and each late event was told of once."""
        assert self.late_rows() == self.late_events()
        history = self.query.run(self.given, engine="reference").cht()
        expected, fields = rows_of(history), list(next(iter(history)).payload) if len(history) else []
        found = pq.read_table(self.folder / "rows").to_pylist() if (self.folder / "rows").exists() else []
        payloads = [{name: each for name, each in row.items() if name not in ("id", "le", "re")} for row in found]
        assert sorted(repr((row["le"], row["re"], payload)) for row, payload in zip(found, payloads, strict=True)) == expected
        with closing(sqlite3.connect(self.folder / "rows.db")) as connection:
            there = {row[1] for row in connection.execute("PRAGMA table_info(rows)")}
            names = DatabaseTable(lambda: sqlite3.connect(self.folder / "rows.db"), "rows").columns()
            names = {name: column for name, column in names.items() if column in there}
            columns = ", ".join(f'"{name}"' for name in names.values())
            rows = connection.execute(f"SELECT le, re, {columns} FROM rows").fetchall() if names else []
        payloads = [dict(zip(names, values, strict=True)) for _, _, *values in rows]
        # A field that has been null so far has no column yet.
        shown = [{name: payload.get(name) for name in fields} for payload in payloads]
        assert sorted(repr((le, re, payload)) for (le, re, *_), payload in zip(rows, shown, strict=True)) == expected

    def late_rows(self) -> list[tuple[Any, ...]]:
        """Return what the sink of late events has, by source in order of arrival; the numbers are without gaps."""
        with closing(sqlite3.connect(self.folder / "late.db")) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'late'").fetchall():
                return []
            rows = connection.execute("SELECT le, source, record, reason, cti FROM late ORDER BY le").fetchall()
        assert [row[0] for row in rows] == list(range(len(rows)))
        told = [(source, json.loads(record)["id"], reason, cti) for _, source, record, reason, cti in rows]
        return sorted(told, key=itemgetter(0))

    def late_events(self) -> list[tuple[Any, ...]]:
        """Return the late events of the input, as a session hands them over that is never cut off."""
        found, session = list[tuple[Any, ...]](), self.query.open()
        for name, given in self.given.items():
            late = list[sd.temporal.Rejected]()
            session.on_late(late.extend)
            session.push(given, name)
            found += [(name, each.event.id, each.reason, str(each.cti)) for each in late]
        return found


def rows_of(cht: CHT[Any]) -> list[str]:
    def shown(row: Any) -> str:
        return repr(
            (row.le, None if row.re == sd.INFINITY else row.re, dict(zip(row.payload, row.payload.values(), strict=True)))
        )

    return sorted(map(shown, cht))


processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["streamdsl.connect.serving", "streamdsl.sinks", "pandas", "tests.laws.test_serve"])


def in_process(seed: int, folder: str, last: int | None, in_workers: bool) -> None:
    """Run a job as the whole of a process, which ends for good at the change of a file after the `last`."""
    case = SlowCase(seed, Path(folder), in_workers)
    case.rng = Random(os.getpid())
    if last is not None:
        exit_after(last)
    case.serve()


class SlowCase(Case):
    """A case whose input is long, and comes slowly enough to be killed in the middle of it."""

    parts = 20

    def __init__(self, seed: int, folder: Path, in_workers: bool = False) -> None:
        super().__init__(seed, folder, in_workers)
        rng = Random(seed)
        self.given = {
            name: [each for n in range(self.parts) for each in moved(self.part(rng, name, n), n)] for name in self.given
        }
        self.every = 5

    def part(self, rng: Random, name: str, n: int) -> list[Any]:
        found = events(rng, f"{name}{n}-", self.is_endless)
        return found if self.on_violation == "error" else with_late(rng, found, n)


class KilledWorkers(SlowCase):
    """A case whose workers are killed while an item is read: all as soon as there are some, later one now and then.

    That one may be another's, which the case does not notice.
    """

    parts = 3
    killed = False

    def workers(self) -> int:
        return self.rng.choice((1, 2))

    def items(self, name: str) -> Any:
        def read() -> Iterator[Any]:
            for item in self.given[name]:
                running = running_workers() if not self.killed or self.rng.random() < 0.05 else []
                for pid in running if not self.killed else running and [self.rng.choice(running)]:
                    os.kill(pid, signal.SIGKILL)
                    self.killed = True
                yield item

        return read


def running_workers() -> list[int]:
    """Return the workers that this process has started and that run. It may have started others, such as a JVM."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            is_worker = b"worker_process" in (process / "cmdline").read_bytes()
            found += [int(process.name)] if is_worker and int(parent) == os.getpid() and state != "Z" else []
    return found


def moved(given: list[Any], n: int) -> list[Any]:
    """Return events that come after those of the part before: all later."""

    def later(time: int) -> int:
        return time if time == sd.INFINITY else time + n * 200

    return [
        sd.Cti(later(each.time))
        if isinstance(each, sd.Cti)
        else sd.Insert(each.id, later(each.le), later(each.re), each.payload)
        if isinstance(each, sd.Insert)
        else sd.Retract(each.id, later(each.le), later(each.re), later(each.re_new), each.payload)
        for each in given
    ]


SEEDS: Final = range(max(1, MANY // 10))
"""Of the laws whose examples take seconds each."""
in_both_ways = pytest.mark.parametrize("in_workers", [False, True], ids=["alone", "in workers"])


@in_both_ways
@pytest.mark.parametrize("seed", range(MANY or 8))
def test_tables_are_exact_however_often_the_job_is_cut_off(seed: int, in_workers: bool, tmp_path: Path) -> None:
    rng, case, cuts = Random(seed), Case(seed, tmp_path, in_workers), 0
    while cuts < 500:
        with cut_off_after(rng.randint(0, 60)) as was_cut:
            case.serve()
        if not was_cut[0]:
            break
        cuts += 1
    case.check()
    assert case.serve().micro_batches == 0
    case.check()


@in_both_ways
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_exact_at_whichever_change_of_a_file_the_job_is_cut_off(seed: int, in_workers: bool, tmp_path: Path) -> None:
    """The changes are those of two micro-batches and more; of what is done in a folder again and again, two are enough."""

    def short(name: str) -> Case:
        case = Case(seed, tmp_path / name, in_workers)
        case.given, case.every = {name: given[:6] for name, given in case.given.items()}, 3
        case.folder.mkdir()
        return case

    whole = short("whole")
    with changes_seen() as seen:
        whole.serve()
    done = Counter[Change]()
    for n, (what, folder) in enumerate(seen):
        change = what, folder.relative_to(whole.folder) if folder.is_relative_to(whole.folder) else Path()
        done[change] += 1
        if not MANY and done[change] > (1 if in_workers else 2):
            continue
        case = short(str(n))
        with cut_off_after(n) as was_cut:
            case.serve()
        assert was_cut[0] or in_workers, "each run changes as many files, with as many workers"
        case.serve()
        case.check()
    assert len(seen) > 20


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_exact_though_workers_are_killed(seed: int, tmp_path: Path) -> None:
    case, told = KilledWorkers(seed, tmp_path, in_workers=True), 0
    while told < 500:
        try:
            case.serve()
            break
        except WorkerError:
            told += 1
    case.check()
    assert told


@in_both_ways
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_exact_though_processes_are_killed(seed: int, in_workers: bool, tmp_path: Path) -> None:
    rng, reached, case = Random(seed), set[int](), SlowCase(seed, tmp_path, in_workers)
    kills = KILLS // 3 if in_workers else KILLS  # each start has workers to start, too
    for kill in range(kills):
        last = rng.randint(0, 120) if kill % 4 == 0 else None
        job = processes.Process(target=in_process, args=(seed, str(tmp_path), last, in_workers))
        until = newest(case) + rng.randint(0, 2)
        job.start()
        while last is None and job.is_alive() and newest(case) < until:
            time.sleep(0.001)
        if last is None:
            time.sleep(rng.random() * 0.05)
            job.kill()
        job.join(60)
        assert job.exitcode in (0, -signal.SIGKILL, KILLED)
        reached.add(newest(case))
    case.serve()
    case.check()
    assert in_workers or len(reached) > kills * 2 // 5, "it was killed at different places"


def newest(case: Case) -> int:
    """Return the number of the last micro-batch that is committed."""
    return max((int(path.name) for path in (case.folder / "state" / "served" / "positions").glob("[0-9]*")), default=-1)
