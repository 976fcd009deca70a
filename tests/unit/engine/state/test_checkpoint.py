"""Checkpoints in files: what they hold, and what is refused, with a hint."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine.starting import restored
from streamdsl.engine.state.checkpoint import Checkpoint
from streamdsl.errors import CheckpointError, SessionError, UserCodeError
from streamdsl.testing import VirtualClock
from streamdsl.udm import UDSO

Query = sd.Stream[Any]


def counts() -> Query:
    return sd.source("trips").where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count())


TRIPS: list[sd.Event[Any]] = [sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 9}), sd.Cti(12)]


def saved(query: Query, path: Path, **options: Any) -> Path:
    session = query.open(**options)
    session.push(TRIPS)
    session.checkpoint(path)
    return path


def test_the_session_goes_on_after_a_checkpoint_and_so_does_the_restored_one(tmp_path: Path) -> None:
    session = counts().open()
    session.push(TRIPS)
    session.checkpoint(tmp_path / "trips")
    again = counts().restore(tmp_path / "trips")
    more: list[sd.Event[Any]] = [sd.point("c", 15, {"fare": 8})]
    assert again.push(more) == session.push(more) != []
    assert again.close() == session.close()


def test_a_file_is_there_as_a_whole_and_nothing_else_is(tmp_path: Path) -> None:
    path = saved(counts(), tmp_path / "trips")
    before = path.read_bytes()
    with pytest.raises(CheckpointError):
        failing(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["trips"]


FULL = """
import resource, signal, sys
import streamdsl as sd
from streamdsl.errors import CheckpointError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
session = sd.source("trips").open()
session.push([sd.point("a", 3, {"fare": 7})])
session.checkpoint(sys.argv[1])
session.push([sd.point("b", 4, {"fare": 9})])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    session.checkpoint(sys.argv[1])
except CheckpointError as error:
    print(error)
print(session.push([sd.point("c", 5, {"fare": 9})])[0].id)
"""


def test_a_disk_that_is_full_is_said_and_the_file_and_the_session_are_as_before(tmp_path: Path) -> None:
    path = tmp_path / "trips"
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"(?s)the checkpoint '{path}' cannot be written: File too large\nHint: .*\nc\n", done.stdout)
    assert [each.name for each in tmp_path.iterdir()] == ["trips"]
    assert sd.source("trips").restore(path).stats()["source:trips"]["events"] == 1


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    session = counts().open()
    with pytest.raises(
        CheckpointError, match=r"(?s)cannot be written: No such file or directory\nHint: its folder must be there"
    ):
        session.checkpoint(tmp_path / "nowhere" / "trips")
    for place in (tmp_path, Path("/dev/null")):
        with pytest.raises(CheckpointError, match="that is no file"):
            session.checkpoint(place)
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        counts().restore(tmp_path)


class Keeping(UDSO[Any, Any, Any]):
    """Keeps what cannot be saved."""

    def create_state(self) -> Any:
        return None

    def process(self, state: Any, payload: Any, le: int) -> tuple[Any, list[Any]]:
        return (n for n in [1]), []

    def copy_state(self, state: Any) -> Any:
        return state


def failing(path: Path) -> None:
    session = sd.source("trips").scan(Keeping()).open()
    session.push(TRIPS)
    session.checkpoint(path)


def test_what_cannot_be_saved_is_named_with_its_operator(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"(?s)scan_1 cannot be saved, at Line\.\w+: it holds a builtins:generator.*Hint: "):
        failing(tmp_path / "trips")


@pytest.mark.parametrize("place", [0, 25, 40, 100, -1])
def test_a_damaged_file_is_refused(tmp_path: Path, place: int) -> None:
    path = saved(counts(), tmp_path / "trips")
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"no checkpoint|has format|damaged"):
        counts().restore(path)


@pytest.mark.parametrize("size", [0, 10, 29, 60, 61, 300])
def test_a_truncated_file_is_refused(tmp_path: Path, size: int) -> None:
    path = saved(counts(), tmp_path / "trips")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match=r"(?s)(no checkpoint|damaged).*Hint: "):
        counts().restore(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"(?s)there is no checkpoint at .*trips.*Hint: "):
        counts().restore(tmp_path / "trips")


def test_another_format_and_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(counts(), tmp_path / "trips")
    monkeypatch.setattr("streamdsl.engine.state.checkpoint.own_version", lambda: "99.0")
    with pytest.raises(CheckpointError, match=r"(?s)is of streamdsl .*, this is 99\.0.*Hint: "):
        counts().restore(path)


@pytest.mark.parametrize("format", [1, 2, 3])
def test_a_file_of_a_format_before_is_refused_with_the_remedy(format: int) -> None:
    """The files were written by the versions that had these formats, of the same query."""
    with pytest.raises(
        CheckpointError,
        match=rf"(?s)has format {format}, this streamdsl reads format 8\nHint: let the version .* or begin anew",
    ):
        counts().restore(Path(__file__).with_name(f"format_{format}.checkpoint"))


def limit(n: int) -> Callable[[Any], bool]:
    return lambda e: e.fare > n and True


@dataclass
class Scaled(sd.UDA[float, float]):
    by: float

    def compute_result(self, payloads: Any) -> float:
        return float(sum(payloads) * self.by)


CHANGED: list[tuple[Callable[[Query], Query], Callable[[Query], Query], str]] = [
    (lambda s: s.where(lambda e: e.fare > 5), lambda s: s.where(lambda e: e.fare > 6), "where_1.*Constant.*5.*6"),
    (lambda s: s.shift(5), lambda s: s.shift(6), "in shift_1"),
    (lambda s: s.shift(5), lambda s: s.extend(5), "it has shift_1, this one has extend_1"),
    (lambda s: s.where(limit(5)), lambda s: s.where(limit(6)), "in where_1"),
    (lambda s: s.where(lambda e: e.fare in (1, 2)), lambda s: s.where(lambda e: e.fare in (1, 3)), "in where_1"),
    (
        lambda s: s.tumbling_window(5).aggregate(Scaled(2.0), lambda e: e.fare),
        lambda s: s.tumbling_window(5).aggregate(Scaled(3.0), lambda e: e.fare),
        "in window_aggregate_1.*by=2.0.*by=3.0",
    ),
    (
        lambda s: s.group_by("fare").apply(lambda g: g.shift(1)),
        lambda s: s.group_by("fare").apply(lambda g: g.shift(2)),
        "in shift_1",
    ),
]


@pytest.mark.parametrize(("then", "now", "text"), CHANGED, ids=range(len(CHANGED)))
def test_a_changed_query_is_refused_and_the_change_is_named(
    tmp_path: Path, then: Callable[[Query], Query], now: Callable[[Query], Query], text: str
) -> None:
    s = sd.source("trips")
    path = saved(then(s), tmp_path / "trips")
    with pytest.raises(CheckpointError, match=rf"(?s)is of another query: .*{text}.*Hint: "):
        now(s).restore(path)
    then(s).restore(path)


def test_an_equal_query_that_is_written_elsewhere_is_the_same(tmp_path: Path) -> None:
    path = saved(sd.source("trips").where(lambda e: str(e.fare) == "7"), tmp_path / "trips")
    elsewhere = [lambda e: str(e.fare) == "7"]
    sd.source("trips").where(elsewhere[0]).restore(path)


@pytest.mark.parametrize("emit", ["speculative", "watermark", "final", sd.emit.Emit(hold=3), sd.emit.Emit(every=2, max_delay=30)])
def test_the_way_to_emit_and_the_options_come_from_the_file(tmp_path: Path, emit: Any) -> None:
    options = {"attach": "on", "rewrite": ["fuse_selects"]}
    path = saved(counts(), tmp_path / "trips", emit=emit, engine_options=options)
    again = counts().restore(path)
    assert (again.emit, again.options) == (emit, options)
    with pytest.raises(CheckpointError, match=r"of a session with emit="):
        Checkpoint(path.read_bytes()).lay_over(counts().open(emit="final" if emit != "final" else "speculative"))


def test_a_hold_in_time_comes_from_the_file(tmp_path: Path) -> None:
    query = sd.source("trips", unit="s")
    session = query.open(emit=sd.emit.Emit(hold="5s"))
    session.push(TRIPS)
    session.checkpoint(tmp_path / "trips")
    assert query.restore(tmp_path / "trips").close() == session.close()


class Dice(sd.IncrementalUDA[int, random.Random, int]):
    def create_state(self) -> random.Random:
        return random.Random(3)

    def add_event_to_state(self, state: random.Random, payload: int) -> random.Random:
        state.random()
        return state

    def compute_result(self, state: random.Random) -> int:
        return random.Random(repr(state.getstate())).randint(0, 10**6)


def test_pickled_values_are_loaded_only_where_that_is_trusted(tmp_path: Path) -> None:
    query = sd.source("trips").tumbling_window(10).aggregate(Dice(), lambda e: e.fare)
    path = saved(query, tmp_path / "trips")
    with pytest.raises(
        CheckpointError, match=r"(?s)pickled values, of random:Random: .*any code.*Hint: restore\(path, trust=True\)"
    ):
        query.restore(path)
    assert len(query.restore(path, trust=True).push([sd.point("c", 16, {"fare": 1})])) == 2


def test_a_failed_session_and_a_closed_one_cannot_be_saved(tmp_path: Path) -> None:
    closed = counts().open()
    closed.close()
    with pytest.raises(SessionError, match="closed"):
        closed.checkpoint(tmp_path / "trips")
    failed = sd.source("trips").select(lambda e: 1 // e.fare).open()
    with pytest.raises(UserCodeError):
        failed.push([sd.point("a", 1, {"fare": 0})])
    with pytest.raises(SessionError, match="has failed"):
        failed.checkpoint(tmp_path / "trips")
    assert list(tmp_path.iterdir()) == []


def test_attached_queries_are_named(tmp_path: Path) -> None:
    session = counts().open(engine_options={"attach": "on"})
    attached = session.attach(counts().where(lambda e: e.n > 1))
    with pytest.raises(SessionError, match=r"(?s)not saved: where_2.*Hint: detach"):
        session.checkpoint(tmp_path / "trips")
    session.detach(attached)
    session.checkpoint(tmp_path / "trips")


def test_reference_data_is_in_the_checkpoint(tmp_path: Path) -> None:
    zones = sd.sources.from_table([{"zone": "A", "name": "Harlem"}])
    query = sd.source("trips").join(zones, on="zone", select=lambda t, z: z.name)
    session = query.open()
    session.checkpoint(tmp_path / "trips")
    out = query.restore(tmp_path / "trips").push([sd.point("a", 1, {"zone": "A"})])
    assert out == session.push([sd.point("a", 1, {"zone": "A"})])
    assert any(isinstance(event, sd.Insert) for event in out)


def test_output_that_waits_for_the_first_push_is_in_the_checkpoint(tmp_path: Path) -> None:
    query = sd.source("trips").union(sd.sources.from_table([{"zone": "A"}]))
    session = query.open()
    session.checkpoint(tmp_path / "trips")
    out = query.restore(tmp_path / "trips").push([sd.Cti(3)])
    assert out == session.push([sd.Cti(3)])
    assert any(isinstance(event, sd.Insert) for event in out)


def test_a_query_can_be_attached_to_a_restored_session(tmp_path: Path) -> None:
    path = saved(counts(), tmp_path / "trips", engine_options={"attach": "on"})
    whole, again = counts().open(engine_options={"attach": "on"}), counts().restore(path)
    whole.push(TRIPS)
    dear = sd.source("trips").where(lambda e: e.fare > 8)
    assert again.attach(dear).pull() == whole.attach(dear).pull() != []


def test_the_clock_goes_on_as_it_stands(tmp_path: Path) -> None:
    clock = VirtualClock()
    query = sd.source("trips", unit="s", progress=sd.Progress.wall_clock("1s", clock=clock))
    session = query.open()
    session.push([sd.interval("a", 1, 100, {"fare": 1})])
    session.checkpoint(tmp_path / "trips")
    clock.advance("60s")
    again = query.restore(tmp_path / "trips")
    assert again.push([]) == session.push([]) == [sd.Cti(60)]


def test_rows_of_frames_are_numbered_on(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"le": [1, 2], "fare": [7, 8]})
    query = sd.source("trips")
    session = query.open()
    session.push(frame)
    session.checkpoint(tmp_path / "trips")
    ids = [event.id for event in query.restore(tmp_path / "trips").push(frame) if isinstance(event, sd.Insert)]
    assert ids == [2, 3]


def test_an_operator_that_has_not_changed_has_the_same_bytes() -> None:
    s, t = sd.source("s"), sd.source("t")
    query = s.tumbling_window(5).aggregate(n=sd.count()).union(t.tumbling_window(7).aggregate(n=sd.count()))
    session = query.open()
    session.push([sd.point("a", 1, 1)], source="s")
    before = Checkpoint(session.snapshot()).sections
    session.push([sd.point("b", 1, 1)], source="t")
    after = Checkpoint(session.snapshot()).sections
    changed = {name for name in before if before[name] != after[name]}
    assert {name for name in changed if name.startswith("operator:")} == {"operator:3:window_aggregate_2", "operator:4:union_1"}


def test_a_small_session_is_small() -> None:
    session = counts().open()
    session.push(TRIPS)
    assert len(session.snapshot()) < 32_000


def test_a_module_may_change_while_it_runs(tmp_path: Path) -> None:
    query = sd.source("trips").tumbling_window(10).aggregate(Counting(), lambda e: e.fare)
    path = saved(query, tmp_path / "trips")
    sd.source("trips").tumbling_window(10).aggregate(Counting(), lambda e: e.fare).restore(path)


class Counting(sd.UDA[int, int]):
    def __init__(self) -> None:
        self.calls = 0

    def compute_result(self, payloads: Any) -> int:
        self.calls += 1
        return len(payloads)


def test_a_snapshot_is_restored_in_memory() -> None:
    session = counts().open()
    session.push(TRIPS)
    again = restored(counts().plan(), None, session.snapshot())
    assert again.close() == session.close()
