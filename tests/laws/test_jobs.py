"""The law of jobs: whatever is done to them and to their files, the output is what the reference says of all files, once.

Each case runs the command over files that arrive bit by bit, spelled another way each time, and is cut off and killed, run twice
at once, moved and restored in between; its files are renamed, linked, touched, and removed once they are taken. Then rows and
types are read back from the sink.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr
from dataclasses import astuple, dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamdsl as sd
from streamdsl.cli import main
from streamdsl.temporal import CHT, Cti, Insert, Retract
from tests.laws.job_queries import QUERIES, Car
from tests.laws.power import cut_off_after
from tests.laws.profiles import MANY

KINDS = ("csv", "jsonl", "parquet")
FORMS = ("table", "events")
SHAPES = ("points", "intervals", "events")
RUNS = ("whole", "cut off", "killed", "two at once")
CHANGES = ("none", "moved", "restored", "renamed", "linked", "touched", "removed")
WAYS = ("in", "in/", "./in", "state/../in", "in full", "a link")
STEPS = 4
LONG = 60
SEEDS = (89, 88, 24, 6, 87, 7, 39, 47, 46, 62)
"""Those of few cases in which every kind of file meets every trouble."""
Row = dict[str, Any]

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    ["streamdsl.cli", "streamdsl.jobs.local_stream", "streamdsl.sinks", "pandas", "tests.laws.job_queries"]
)


def in_process(folder: str, said: str, options: list[str]) -> None:
    """Run the command as the whole of a process."""
    os.chdir(folder)
    with open(said, "w") as out, redirect_stderr(out):
        status = main(options)
    os._exit(status)


@dataclass
class Case:
    """A job with its folder, the files that are still to come, and the rows of those that have come."""

    rng: Random
    base: Path
    seen: Counter[tuple[str, str]]
    kind: str = ""
    form: str = ""
    name: str = ""
    shape: str = ""
    coming: list[tuple[str, list[Row]]] = field(default_factory=list)
    come: list[tuple[str, list[Row]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self.rng
        self.kind, self.form, self.name = rng.choice(KINDS), rng.choice(FORMS), rng.choice(list(QUERIES))
        self.shape = rng.choice(SHAPES)
        sources = ("cars", "tolls") if self.name == "both" else ("cars",)
        for number in range(rng.randint(2, 6)):
            self.coming.append((rng.choice(sources), self._rows(number)))
        self.log.append(f"{self.kind}, {self.form}, {self.name}, {self.shape}")

    def _rows(self, number: int) -> list[Row]:
        rng, rows = self.rng, list[Row]()
        for n in range(rng.randint(1, 8)):
            le = rng.randint(-30, 60)
            payload: Row = {"road": rng.choice(("r1", "r2", 'é, "q"')), "speed": rng.randint(0, 90)}
            payload["weight"] = rng.choice((None, rng.randint(-8, 80) / 4))
            end = le + rng.randint(1, 30)
            if self.shape == "points":
                rows.append({"le": le, **payload})
            elif self.shape == "intervals":
                rows.append({"le": le, "re": end, **payload})
            else:
                row: Row = {"kind": "insert", "id": f"{number}-{n}", "le": le, "re": end, "re_new": None, **payload}
                rows.append(row)
                if rng.random() < 0.4:
                    rows.append({**row, "kind": "retract", "re_new": rng.choice((le, end + 3, max(le + 1, end - 2)))})
        return rows

    # What is done to it

    def arrive(self) -> None:
        """Let the next file come, as a whole."""
        source, rows = self.coming.pop(0)
        folder = self.base / ("in" if source == "cars" else "tolls")
        name = f"{len(self.come)}.{self.kind}"
        write(folder / f".{name}", rows, self.kind)
        os.rename(folder / f".{name}", folder / name)
        self.come.append((source, rows))

    def options(self) -> list[str]:
        """Return the command, its input spelled in some way."""
        way = self.rng.choice(WAYS)
        link = self.base / "link"
        if way == "a link" and not link.is_symlink():
            link.symlink_to("in")
        path = {"in full": str(self.base / "in"), "a link": "link"}.get(way, way)
        inputs = ["--input", f"cars={path}", *(["--input", "tolls=tolls"] if self.name == "both" else [])]
        query = f"tests.laws.job_queries:{self.name}"
        (self.base / "state").mkdir(exist_ok=True)
        self.log.append(f"by {way}")
        return ["run", query, *inputs, "--output", "out", "--checkpoint", "state", "--format", self.form]

    def run(self, how: str) -> None:
        """Run the job in one of the ways that `RUNS` names."""
        self.log.append(how)
        self.seen[self.kind, how] += 1
        if how in ("whole", "cut off"):
            said = StringIO()
            with chdir(self.base), redirect_stderr(said), cut_off_after(self.rng.randint(0, 90) if how == "cut off" else 10**9):
                status = main(self.options())
                assert status == 0, said.getvalue()
            return
        jobs = [self._start(number) for number in range(1 if how == "killed" else 2)]
        if self.coming and self.rng.random() < 0.5:
            time.sleep(self.rng.random() * 0.1)
            self.arrive()
        for job in jobs:
            if how == "killed" or self.rng.random() < 0.5:
                time.sleep(self.rng.random() * 0.3)
                job.kill()
        for number, job in enumerate(jobs):
            job.join(LONG)
            said = StringIO((self.base / f"said{number}").read_text())
            refused = job.exitcode == 2 and "the checkpoint state is in use by " in said.getvalue()
            assert refused or job.exitcode in (0, -9), (job.exitcode, said.getvalue())

    def _start(self, number: int) -> Any:
        said = self.base / f"said{number}"
        said.touch()
        job = processes.Process(target=in_process, args=(str(self.base), str(said), self.options()))
        job.start()
        return job

    def change(self, how: str) -> None:
        """Do something to the files that have come."""
        self.log.append(how)
        self.seen[self.kind, how] += 1
        files = sorted(path for name in ("in", "tolls") for path in (self.base / name).iterdir())
        path = self.rng.choice(files) if files else None
        if how == "restored":
            there = self.base.with_name(self.base.name + "'")
            self.check()  # from here on links with a name of their own are copies
            shutil.copytree(self.base, there, symlinks=True)
            shutil.rmtree(self.base)
            self.base = there
        elif how == "moved":
            self.base = self.base.rename(self.base.with_name(self.base.name + "'"))
        elif how == "renamed" and path is not None:
            path.rename(path.with_name(f"r{len(self.log)}-{path.name}"))
        elif how == "linked" and path is not None:
            link = path.with_name(f"l{len(self.log)}-{path.name}")
            os.link(path, link) if self.rng.random() < 0.5 else os.symlink(path.resolve().name, link)
        elif how == "touched" and path is not None:
            self.check()  # what is renamed and touched at once is a new file
            os.utime(path)
        elif how == "removed":
            self.check()
            for each in files:
                each.unlink()

    def check(self) -> None:
        """Run the job to its end; raise unless the output is what the files mean."""
        self.run("whole")
        assert in_order(self.output()) == in_order(self.expected())

    def output(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the output: times, and the values of the payload."""
        folder = self.base / "out"
        found = pq.read_table(folder).to_pylist() if folder.exists() and list(folder.glob("*.parquet")) else []
        if self.form == "table":
            for row in found:
                yield row["le"], row["re"], *(each for name, each in row.items() if name not in ("id", "le", "re"))
            return
        own = ("kind", "id", "le", "re", "re_new", "shard")
        events: list[Any] = []
        for row in found:
            payload = {name: each for name, each in row.items() if name not in own}
            end = sd.INFINITY if row["re"] is None else row["re"]
            if row["kind"] == "cti":
                events.append(Cti(row["le"]))
            elif row["kind"] == "insert":
                events.append(Insert(row["id"], row["le"], end, payload))
            else:
                events.append(Retract(row["id"], row["le"], end, row["re_new"], payload))
        for each in CHT.from_events(events):
            yield each.le, each.re, *each.payload.values()

    def expected(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that the reference gives for all files that have come; windows that begin later are still to come."""
        given: dict[str, list[Any]] = {"cars": [], **({"tolls": []} if self.name == "both" else {})}
        for number, (source, rows) in enumerate(self.come):
            given[source] += [self._event(row, f"{number}:{n}") for n, row in enumerate(rows)]
        last = max((event.le for events in given.values() for event in events), default=0)
        for le, re, payload in QUERIES[self.name].run(given, engine="reference"):
            values = astuple(payload) if isinstance(payload, Car) else payload.values()
            if le <= last:
                yield le, re, *values

    def _event(self, row: Row, id: str) -> Any:
        fields = {name: row[name] for name in ("road", "speed", "weight")}
        payload = Car(**fields) if self.name == "declared" else fields
        if row.get("kind") == "retract":
            return Retract(row["id"], row["le"], row["re"], row["re_new"], payload)
        return Insert(row.get("id", id), row["le"], row.get("re", row["le"] + 1), payload)


def in_order(rows: Iterator[tuple[Any, ...]]) -> list[str]:
    """Return rows as text, which tells 1 from 1.0 and from '1'."""
    return sorted(map(repr, rows))


def write(path: Path, rows: list[Row], kind: str) -> None:
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def lived(case: Case) -> Case:
    """Let a case go through its life."""
    for name in ("in", "tolls"):
        (case.base / name).mkdir(parents=True)
    for _ in range(STEPS):
        for _ in range(case.rng.randint(0, min(2, len(case.coming)))):
            case.arrive()
        if case.rng.random() < 0.4:
            case.check()
        else:
            case.run(case.rng.choice(RUNS[1:]))
        case.change(case.rng.choice(CHANGES))
    while case.coming:
        case.arrive()
    case.check()
    case.check()
    return case


def test_a_job_gives_what_its_files_mean_each_once(tmp_path: Path) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(MANY) if MANY else SEEDS:
        case = Case(Random(seed), tmp_path / str(seed), seen)
        try:
            lived(case)
        except BaseException as error:
            error.add_note(f"seed {seed}: {'; '.join(case.log)}; in {case.base}")
            raise
        shutil.rmtree(case.base)
    if (not MANY or MANY >= 99) and len(seen) < len(KINDS) * (len(RUNS) + len(CHANGES)):
        pytest.fail(f"not every kind of file met every trouble: {seen}")
