"""The law for local workers: any number of them, stopped and restored with any other, sends what one session sends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import CheckpointError, EventError, QueryError, UserCodeError, WorkerError
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, Cti, Insert, Retract
from streamdsl.testing import arrival_orders, assert_cht_equal
from streamdsl.testing.random_orders import arrival_order
from tests.laws.compositions import composition
from tests.laws.profiles import examples

pytest.importorskip("cloudpickle")

from streamdsl.sharding.sharded_session import ShardedSession
from streamdsl.sharding.workers import idle_workers

S, T = (sd.source(name, unit="tick") for name in "st")
SUMS = S.group_by("k").session_window(3).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
QUERIES: dict[str, sd.Stream[Any]] = {
    "windows of groups": SUMS,
    "rows alone": S.where(lambda e: e.v > -2).select(lambda e: {"k": e.k, "v": e.v * 2}).alter_duration(4),
    "a filter in Python, then groups": (
        S.where(lambda e: e.v > -2 and e.k != "b").group_by("k").snapshot_window().aggregate(n=sd.max(lambda e: e.v))
    ),
    "a key in Python": S.select(lambda e: {"k": e.k * 2, "v": e.v} if e.v else {"k": "z", "v": 7})
    .group_by("k")
    .count_window(2)
    .aggregate(n=sd.count()),
    "join": S.join(T, on="k", select=lambda a, b: {"k": a.k, "w": a.v - b.v}),
    "full join": S.full_join(T, on="v"),
    "with itself": S.semi_join(S.where(lambda e: e.v < 0), on="v"),
    "as-of join": S.asof_join(T, on="k", select=lambda a, b: (a.v, b.v)),
    "groups, then others": SUMS.group_by("n").snapshot_window().aggregate(m=sd.max(lambda e: e.most)),
    "groups, then all": SUMS.snapshot_window().aggregate(m=sd.count()),
    "totals, then groups": S.group_by("k")
    .tumbling_window(4)
    .aggregate(n=sd.count())
    .group_by("n")
    .session_window(2)
    .aggregate(m=sd.count()),
    "numbered rows": S.select(lambda e: e.v // 2).stitch(),
    "a body that numbers rows": S.group_by("k").apply(
        lambda g: g.match(lambda p: p.a.then(p.b).within(4), select=lambda m: m.b.v)
    ),
    "a module": S.group_by("k").hopping_window(8, 4).aggregate(mean=sd.avg(lambda e: e.v), least=sd.min(lambda e: e.v)),
}
GRIDS = [name for name, query in QUERIES.items() if "tumbling" in query.explain() or "hopping" in query.explain()]
INEXACT = "a filter in Python, then groups"
"""Rows that a shard filters may have opened windows in other shards."""
WORKERS = st.integers(1, 3)


@st.composite
def histories(draw: Any) -> CHT[Any]:
    """Draw rows, with keys that are null and lives that do not end among them."""
    lives, keys = st.integers(1, 9) | st.just(INFINITY), st.sampled_from("abcd") | st.none()
    rows = draw(st.lists(st.tuples(st.integers(-5, 15), lives, keys, st.integers(-3, 3)), max_size=14))
    return CHT.from_rows([(le, INFINITY if life == INFINITY else le + life, {"k": k, "v": v}) for le, life, k, v in rows])


def fitting(name: str, rows: CHT[Any]) -> CHT[Any]:
    """Return rows as a query takes them: windows of a grid do not end for lives that do not, and a key in Python is of a text."""
    ends = name in GRIDS
    return CHT.from_rows(
        [
            (le, le + 7 if ends and re == INFINITY else re, {**row, "k": row["k"] or "e"} if name == "a key in Python" else row)
            for le, re, row in rows
        ]
    )


def shown(events: Sequence[Any]) -> list[Any]:
    """Return events without their ids, which tell shards apart where an operator numbers its rows."""
    kinds = {Insert: ("le", "re", "payload"), Retract: ("le", "re", "re_new", "payload"), Cti: ("time",)}
    return [(type(each).__name__, *(getattr(each, name) for name in kinds[type(each)])) for each in events]


def batches(rng: Random, inputs: dict[str, CHT[Any]], seed: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the events of all sources in random batches, each to its end."""
    left = {name: [*arrival_orders(history, 1, seed)[0], Cti(sd.INFINITY)] for name, history in inputs.items()}
    while waiting := [name for name, events in left.items() if events]:
        name = rng.choice(waiting)
        n = rng.randint(1, len(left[name]))
        yield name, left[name][:n]
        left[name] = left[name][n:]


def obeys(
    query: sd.Stream[Any], inputs: dict[str, CHT[Any]], emit: Any, seed: int, workers: int, path: Path, exactly: bool = False
) -> None:
    """Check that a session with workers sends what one of this process does, whenever it is stopped, and that it is right.

    After each push the same rows stand before the same CTI. Those after it do too, unless windows or cells are opened by the
    high water, which may be another in a shard; `exactly`: they have come to stand so by the same events, but ids.
    """
    rng = Random(seed)
    opens_cells = emit != "final" and any(node.opens_cells for node in query.plan().walk_all())
    one, several = query.open(emit), query.open(emit, workers=workers)
    sent: list[Any] = []
    of_one: list[Any] = []
    for source, events in batches(rng, inputs, seed):
        if isinstance(several, ShardedSession) and rng.random() < 0.3:
            several.checkpoint(path)
            several.release()
            several = query.restore(path, workers=rng.choice((None, 1, 2, 3)))
        expected, found = one.push(events, source), several.push(events, source)
        of_one, sent = of_one + expected, sent + found
        assert [each for each in found if type(each) is Cti] == [each for each in expected if type(each) is Cti]
        cti = max((each.time for each in sent if type(each) is Cti), default=MIN_TIME)
        before = INFINITY if exactly or not opens_cells else cti
        stands, stood = ([row for row in CHT.from_events(each) if row.le < before] for each in (sent, of_one))
        assert_cht_equal(stands, stood)
        if exactly:
            assert shown(found) == shown(expected)
    one.close(), several.close()
    assert_cht_equal(CHT.from_events(sent), denote(query.plan(), inputs))


@pytest.mark.parametrize("name", QUERIES)
@examples(10)
@given(histories(), histories(), st.sampled_from(["speculative", "watermark", "final"]), st.integers(0, 2**32), WORKERS)
def test_workers_send_what_one_session_sends(
    name: str, tmp_path_factory: Any, s: CHT[Any], t: CHT[Any], emit: Any, seed: int, workers: int
) -> None:
    query = QUERIES[name]
    inputs = {each: fitting(name, history) for each, history in {"s": s, "t": t}.items() if each in query.open().sources}
    obeys(query, inputs, emit, seed, workers, tmp_path_factory.mktemp("workers") / "checkpoint", exactly=name != INEXACT)


@examples(60)
@given(st.integers(0, 2**32), WORKERS)
def test_random_queries_in_workers(tmp_path_factory: Any, seed: int, workers: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    try:
        several = query.open(workers=workers)
    except QueryError:  # test_what_cannot_be_cut_is_refused
        return
    rows = [
        [
            (le, le + rng.randint(1, 9), {"k": rng.choice(["a", "b", "c", None]), "v": rng.randint(-1, 3)})
            for le in rng.choices(range(-5, 16), k=8)
        ]
        for _ in several.sources
    ]
    inputs = {name: CHT.from_rows(each) for name, each in zip(several.sources, rows, strict=True)}
    several.close()
    emit = rng.choice(["speculative", "watermark", "final"])
    obeys(query, inputs, emit, seed, workers, tmp_path_factory.mktemp("workers") / "checkpoint")


@pytest.mark.parametrize("name", QUERIES)
@examples(10)
@given(histories(), histories(), WORKERS)
def test_a_run_in_workers_is_the_same_run(name: str, s: CHT[Any], t: CHT[Any], workers: int) -> None:
    query = QUERIES[name]
    inputs = {"s": arrival_order(fitting(name, s), Random(1)), "t": arrival_order(fitting(name, t), Random(2))}
    inputs = {each: events for each, events in inputs.items() if each in query.open().sources}
    assert_cht_equal(query.run(inputs, workers=workers).cht(), query.run(inputs).cht())


@pytest.mark.parametrize("emit", ["speculative", "final"])
def test_ids_are_those_of_one_session_where_no_operator_numbers_rows(emit: Any) -> None:
    rows = [sd.interval(f"{n}", n // 40, n // 40 + 3, {"k": f"{n % 3}", "v": n}) for n in range(800)]
    for query in (SUMS, QUERIES["join"], QUERIES["rows alone"]):
        one, several = query.open(emit), query.open(emit, workers=2)
        for source in one.sources:
            assert several.push([*rows, Cti(15)], source) == one.push([*rows, Cti(15)], source)
        assert several.close() == one.close()


def test_frames_go_to_workers_in_columns() -> None:
    n = 300_000
    frame = pd.DataFrame({"start": np.arange(n) // 10, "k": [f"key {i % 97}" for i in range(n)], "v": np.arange(n) % 1013})
    rows = sd.source("rows", start="start")
    query = rows.where(lambda e: e.v > 3).group_by("k").session_window(40).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
    pairs = rows.alter_duration(2).join(rows.where(lambda e: e.v % 50 == 0), on="k", select=lambda a, b: (a.v, b.v))
    for each in (query, pairs):
        pd.testing.assert_frame_equal(each.run({"rows": frame}, workers=2).to_pandas(), each.run({"rows": frame}).to_pandas())


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_read_files_themselves(suffix: str, workers: int, tmp_path: Path) -> None:
    """Each file is read by a worker, in any order; rows meet those of the other files with their keys."""
    for part in range(4):
        n = 300 * part
        frame = pd.DataFrame(
            {"start": np.arange(n) // 4 + part, "k": [f"k{i % 7}" if i % 11 else None for i in range(n)], "v": np.arange(n) % 19}
        )
        if suffix == "parquet":
            frame.to_parquet(tmp_path / f"{part}.parquet")
        else:
            frame.to_json(tmp_path / f"{part}.jsonl", orient="records", lines=True)
    rows = sd.source("rows", start="start")
    counts = rows.where(lambda e: e.v != 3).group_by("k").session_window(2).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
    queries = [
        counts,
        rows.alter_duration(2).join(rows.where(lambda e: e.v == 5), on="k", select=lambda a, b: (a.v, b.v)),
        rows.select(lambda e: e.v * 2 if e.v else "none"),
        counts.group_by("n").snapshot_window().aggregate(m=sd.count()),
        counts.snapshot_window().aggregate(m=sd.count()),
        rows.left_join(rows.where(lambda e: e.v > 9), on="k", select=lambda a, b: (a.v, 0 if b is None else b.v)),
    ]
    for query in queries:
        inputs = {"rows": sd.sources.from_files(sorted(tmp_path.iterdir())[1:], start="start")}
        assert_cht_equal(query.run(inputs, workers=workers).cht(), query.run(inputs).cht())


@examples(10)
@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab") | st.none()), min_size=1, max_size=30), max_size=3))
def test_texts_of_several_pieces_mean_what_the_reference_says(pieces: list[list[tuple[int, str | None]]]) -> None:
    """Texts are many rows a value, so that they go to workers by codes; some are null, and pieces differ."""
    kind = pa.schema([("start", pa.int64()), ("k", pa.string())])
    tables = [pa.table(dict(zip(kind.names, zip(*sorted(rows), strict=True), strict=True)), kind) for rows in pieces]
    inputs = {"rows": pa.concat_tables([kind.empty_table(), *tables])}
    rows = sd.source("rows", start="start")
    for query in (
        rows.group_by("k").session_window(2).aggregate(n=sd.count(), most=sd.max(lambda e: e.k)),
        rows.alter_duration(3).join(rows, on="k", select=lambda a, b: {"k": a.k}),
    ):
        expected = query.run(inputs, engine="reference").cht()
        for workers in (None, 2):
            assert_cht_equal(query.run(inputs, workers=workers).cht(), expected)


def again(value: Any) -> Any:
    """Return an equal value, for a text another object."""
    return "".join(list(value)) if isinstance(value, str) else value


KEYS: dict[str, list[Any]] = {
    "few texts": ["a", "bc", None],
    "many texts": [f"key {n}" for n in range(200)],
    "a text in several objects": [again("abc"), again("abc"), "xyz", None],
    "texts of any kind": ["", "é", "a'b", "\ud800", "x" * 300],
    "texts and others": ["1", 1, None, 1.5, date(2024, 1, 2)],
    "dates": [date.fromordinal(730_000 + n) for n in range(40)],
    "pairs": [("a", n) for n in range(9)],
}


@pytest.mark.parametrize("kind", KEYS)
@examples(4)
@given(st.integers(0, 2**32), st.sampled_from([1.0, 0.2]), st.booleans())
def test_many_objects_go_to_workers_and_back(kind: str, seed: int, spread: float, interned: bool) -> None:
    """So many rows have a key, and a value of its kind, that they are sent in codes or as Arrow's; most may have one key."""
    rng, keys = Random(seed), KEYS[kind]
    rows = []
    for n in range(700):
        k, v = (keys[0] if rng.random() > spread else rng.choice(keys) for _ in "kv")
        rows.append(sd.interval(f"id {n}", n // 40, n // 40 + rng.randint(1, 2), {"k": k, "v": v if interned else again(v)}))
    lefts, rights = rows[:600], rows[600:]
    for query, inputs in (
        (S.group_by("k").session_window(1).aggregate(n=sd.count(), of=sd.collect(lambda e: e.v)), {"s": rows}),
        (S.join(T, on="k", select=lambda a, b: {"k": b.k, "w": (a.v, b.v), "v": a.v}), {"s": lefts, "t": rights}),
    ):
        found = query.run(inputs, workers=2)
        assert_cht_equal(found.cht(), query.run(inputs, engine="reference").cht())
        assert sorted(map(str, found.to_pandas().itertuples())) == sorted(map(str, query.run(inputs).to_pandas().itertuples()))


def test_what_is_wrong_in_a_file_that_a_worker_reads_is_said_as_ever(tmp_path: Path) -> None:
    for part, end in enumerate((5, 1)):
        pd.DataFrame({"le": [2], "re": [end], "k": ["a"], "v": [1]}).to_parquet(tmp_path / f"{part}.parquet")
    inputs = {"s": sd.sources.from_parquet(tmp_path, start="le", end="re", unit="tick")}
    said = []
    for workers in (None, 2):
        with pytest.raises(EventError) as raised:
            SUMS.run(inputs, workers=workers)
        said.append(str(raised.value))
    assert "event 1 at source 's' is refused: its LE 2 is after its RE 1" in said[0]
    assert said[1] == said[0].replace("event 1 ", "event 0 ").replace("id=1", "id=0")  # in a worker: the row's number in its file


def test_an_error_of_user_code_in_a_worker_is_raised_in_the_session() -> None:
    query = S.group_by("k").session_window(3).aggregate(n=sd.count()).select(lambda e: 1 // (e.n - 2) if e else 0)
    rows = [sd.point(f"{n}", n, {"k": "a", "v": n}) for n in (1, 2)]
    said = []
    running = {worker.pid for worker in idle_workers()}
    for session in (query.open(), query.open(workers=2)):
        running |= set(session.worker_pids) if isinstance(session, ShardedSession) else set()
        with pytest.raises(UserCodeError) as raised:
            session.push(rows)
        said.append(str(raised.value))
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        with pytest.raises(sd.errors.SessionError, match="has failed"):
            session.push(rows)
    assert said[0] == said[1]
    assert running <= {worker.pid for worker in idle_workers()}, "the processes are there for the next session"


def test_a_worker_that_is_killed_is_told_of_and_the_checkpoint_goes_on(tmp_path: Path) -> None:
    session, whole = SUMS.open(workers=2), SUMS.open()
    rows = [sd.point(f"{n}", n, {"k": "abcd"[n % 4], "v": n}) for n in range(12)]
    sent = session.push(rows[:6])
    session.checkpoint(tmp_path / "c")
    assert isinstance(session, ShardedSession)
    os.kill(session.worker_pids[1], signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"was ended by SIGKILL\s+Hint: .*memory.*restore\(path, workers=n\)"):
        session.push(rows[6:])
    again = SUMS.restore(tmp_path / "c", workers=3)
    sent += again.push(rows[6:]) + again.close()
    assert shown(sent) == shown(whole.push(rows[:6]) + whole.push(rows[6:]) + whole.close())


ORPHANS = """
import os, sys, time
import streamdsl as sd

class Slow(sd.UDA):
    def compute_result(self, payloads):
        time.sleep(60)

def twice(e):
    return {"k": e.k, "v": e.v * 2 if e.v else 0}

query = sd.source("s").select(twice).group_by("k").session_window(3).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
session = query.open(workers=2)
print(session.push([sd.point("a", 1, {"k": "a", "v": 7})]), flush=True)
slow = sd.source("s").group_by("k").snapshot_window().aggregate(Slow(), lambda e: e.v).open(workers=2)
print(*session.worker_pids, *slow.worker_pids, flush=True)
slow.push([sd.point("a", 1, {"k": "a", "v": 7})])
"""


def test_workers_need_no_guard_in_a_script_and_end_with_their_session_though_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ORPHANS)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=env)
    assert running.stdout is not None
    assert "most=14" in running.stdout.readline()
    pids = list(map(int, running.stdout.readline().split()))
    assert len(set(pids)) == 4
    assert all(map(is_running, pids))
    running.kill()
    running.wait()
    end = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, pids))


def is_running(pid: int) -> bool:
    """Say whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_state_is_bounded_in_workers() -> None:
    session = SUMS.open("final", workers=2)
    held = []
    for start in range(0, 4000, 400):
        session.push([*(sd.point(f"{start + n}", start + n, {"k": f"{n % 5}", "v": n}) for n in range(400)), Cti(start + 400)])
        stats = session.stats()
        held.append(stats["window_aggregate_1"]["events"])
        assert stats["group_apply_1"]["in"] == start + 400
    assert max(held) < 100


def test_texts_that_do_not_come_again_are_forgotten_in_workers() -> None:
    rows = sd.source("rows", start="start", progress=sd.Progress.slack(0))
    query = rows.group_by("k").session_window(3).aggregate(n=sd.count(), most=sd.max(lambda e: e.v))
    session, size, held = query.open("final", workers=2), 4000, []
    for first in range(0, 24 * size, size):
        texts = [f"a text of number {first + n}" for n in range(size)]
        session.feed(pd.DataFrame({"start": np.arange(first, first + size) // 20, "k": texts, "v": texts}))
        held.append(sum(stats["state_bytes"] for stats in session.stats().values()))
    assert max(held[12:]) < 1.25 * max(held[:12])
    session.close()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (S.snapshot_window().aggregate(n=sd.count()), "window_aggregate_1 is outside of any group"),
        (S.join(T, where=lambda a, b: a.v < b.v), "join_1 is outside of any group"),
    ],
)
def test_what_cannot_be_cut_is_refused(query: sd.Stream[Any], why: str) -> None:
    inputs: dict[str, list[Any]] = {name: [] for name in query.open().sources}
    for call in (lambda: query.open(workers=2), lambda: query.run(inputs, workers=2)):
        with pytest.raises(QueryError, match=f"cannot be cut for workers: .*{why}"):
            call()


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "2", 10**30])
def test_a_number_of_workers_is_a_whole_one(n: Any) -> None:
    with pytest.raises(QueryError, match=r"workers is a number of processes"):
        SUMS.open(workers=n)
    with pytest.raises(QueryError, match=r"workers is a number of processes"):
        SUMS.run({"s": []}, workers=n)


def test_totals_stay_in_the_session_s_process() -> None:
    totals = S.group_by("k").tumbling_window(5).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v))
    assert not isinstance(totals.open(workers=2), ShardedSession)
    assert (
        totals.explain(workers=2).splitlines()[-1]
        == "stage 1 of s: in this process: totals of windows cost less than to send the rows"
    )
    assert "stage 1 of s: in workers, shards by e.k" in SUMS.explain(workers=2)


def test_shards_go_on_in_the_session_s_process_but_one_state_is_not_cut(tmp_path: Path) -> None:
    rows = [sd.point(f"{n}", n, {"k": "abcd"[n % 4], "v": n}) for n in range(12)]
    session, one = SUMS.open(workers=2), SUMS.open()
    assert shown(session.push(rows[:6])) == shown(one.push(rows[:6]))
    session.checkpoint(tmp_path / "shards")
    one.checkpoint(tmp_path / "one")
    here = SUMS.restore(tmp_path / "shards")
    assert isinstance(here, ShardedSession)
    assert set(here.worker_pids) == {os.getpid()}
    assert shown(here.push(rows[6:]) + here.close()) == shown(one.push(rows[6:]) + one.close())
    with pytest.raises(CheckpointError, match=r"without workers, whose state is not cut by key\s+Hint: restore\(path\)"):
        SUMS.restore(tmp_path / "one", workers=2)
    damaged = (tmp_path / "shards").read_bytes()
    for cut in (damaged[:-9], damaged[:50], damaged[:-9] + b"123456789"):
        (tmp_path / "shards").write_bytes(cut)
        with pytest.raises(CheckpointError, match="damaged"):
            SUMS.restore(tmp_path / "shards", workers=2)


def test_workers_are_used_again() -> None:
    """Also if they are more than there are cores."""
    n = max(2, os.cpu_count() or 1) + 1
    first = SUMS.open(workers=n)
    assert isinstance(first, ShardedSession)
    first.close()
    waiting = {worker.pid for worker in idle_workers()}
    second = SUMS.open(workers=n)
    assert isinstance(second, ShardedSession)
    assert set(second.worker_pids) <= waiting
    second.close()
