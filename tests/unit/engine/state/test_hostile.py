"""Checkpoints that somebody has made up to do harm: they are refused, and nothing that they name is called."""

from __future__ import annotations

import enum
import functools
import json
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine.starting import restored
from streamdsl.errors import CheckpointError
from tests.unit.engine.state.crafted import Apart, changed, content_of, dumped, framed, with_content

CASES = int(os.environ.get("HOSTILE_CASES", "20"))

QUERY = sd.source("trips").where(lambda e: e.fare > 5).tumbling_window(10).aggregate(n=sd.count())


def saved() -> bytes:
    session = QUERY.open()
    session.push([sd.point("a", 3, {"fare": 7}), sd.point("b", 14, {"fare": 9}), sd.Cti(12)])
    return session.snapshot()


def test_no_command_runs_for_a_sort_key_that_the_file_names(tmp_path: Path) -> None:
    made = tmp_path / "made"

    def names_popen(apart: Apart) -> None:
        command = ["tuple", 1, [["str", ["touch"]], ["str", [str(made)]]]]
        text = apart.texts["session"]
        text["chunks"].append(["sorted key list", 1, [[1], command, ["class", ["subprocess:Popen"]]]])
        text["root"]["_now"] = ["refs", "sorted key list", [0, 1]]

    with pytest.raises(CheckpointError):
        restored(QUERY.plan(), None, changed(saved(), names_popen))
    assert not made.exists()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Trip:
    zone: str
    fare: float
    held: Any = None
    colour: Colour | None = None

    def __hash__(self) -> int:
        return hash((self.zone, self.fare))


@dataclass
class Total:
    values: list[Any]
    n: int = 0


class Totals(sd.IncrementalUDA[Any, Total, int]):
    def create_state(self) -> Total:
        return Total([])

    def add_event_to_state(self, state: Total, payload: Any) -> Total:
        state.values.append(payload)
        return Total(state.values, state.n + 1)

    def compute_result(self, state: Total) -> int:
        return state.n


def queries() -> dict[str, tuple[sd.Stream[Any], Any]]:
    """Return queries whose states are of all kinds, and how they emit."""
    s = sd.source("s", Trip, unit="s", on_violation="drop")
    t = sd.source("s", Trip, unit="s", on_violation="drop")
    zones = s.group_by("zone")
    return {
        "columns": (zones.hopping_window(10, 5).aggregate(n=sd.count(), f=sd.sum(lambda e: e.fare)), "speculative"),
        "module": (zones.snapshot_window().aggregate(n=Totals().of(lambda e: e.fare)), "watermark"),
        "holistic": (zones.hopping_window(10, 5).aggregate(n=Totals().of(lambda e: e.fare), m=sd.max(lambda e: e.fare)), "final"),
        "join": (s.join(t.shift(2), on="zone"), sd.emit.Emit(hold=3)),
        "keys": (s.group_by(lambda e: (e.zone, e.colour)).session_window(3).aggregate(all=sd.collect(lambda e: e)), "final"),
        "match": (s.match(lambda p: p.a.then(p.b.many()).then(p.c).within(7), overlapping=True), "speculative"),
        "count": (s.count_window(2).aggregate(all=sd.collect(lambda e: e)), "speculative"),
        "edges": (s.to_edges(key="zone").stitch(), sd.emit.Emit(every=2, max_delay=30)),
    }


QUERIES = queries()


@functools.cache
def state_of(name: str) -> bytes:
    rng = Random(5)
    query, emit = QUERIES[name]
    session = query.open(emit=emit)
    for n in range(40):
        le = n // 2 + rng.randint(0, 6)
        held = rng.choice([None, [1, {"x": (None, b"y")}], frozenset([n]), sd.Record(a=n), {n}, 10**30, Fraction(1, 3), "ä" * 20])
        trip = Trip(rng.choice(["A", "B", "Ä"]), rng.random(), held, rng.choice([None, *Colour]))
        session.push([sd.interval(f"{n}", le, le + rng.randint(1, 9), trip), *([sd.Cti(n // 3)] if n % 5 == 0 else [])])
    return session.snapshot()


NAMES = [
    "subprocess:Popen",
    "os:system",
    "builtins:exec",
    "builtins:type",
    "builtins:memoryview",
    "builtins:bytearray",
    "numpy:ndarray",
]
NAMES += [
    f"{kind} {name}"
    for kind in ("object", "dict", "pickled")
    for name in ("subprocess:Popen", "streamdsl.engine.query_session:Session")
]
NAMES += [
    "sorted key list",
    "sorted set",
    "set",
    "deque",
    "count",
    "array",
    "list",
    f"object {__name__}:Trip",
    f"{__name__}:Colour",
]
NAMES += ["|O", "<U999999999", "_failure", "__class__", "__dict__", "\ud800", "egress"]
FORMS: list[Any] = [["none"], ["int", [7]], ["str", ["x"]], ["few floats", [0.5]], ["tuple", []], ["class", ["subprocess:Popen"]]]
FORMS += [
    ["method", ["outside", ["egress"]], ["send"]],
    ["outside", [0]],
    ["outside", [["node"]]],
    ["enum", f"{__name__}:Colour", ["RED"]],
]
FORMS += [
    ["bytes", [3], [0, 3]],
    ["frozenset", [1], ["none"]],
    ["constant", "Decimal", ["1e999999999"]],
    ["big", ["0x" + "f" * 40]],
]
NUMBERS = [-1, 0, 1, 2, 3, 7, 8, 255, 2**31, 2**62, 2**63, -(2**63), 2**70, 0.5, None, True, float("nan")]


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return all places in a text: what holds something, and where."""
    found: list[tuple[Any, Any]] = []
    open_ = [value]
    while open_:
        held = open_.pop()
        keys: Any = range(len(held)) if isinstance(held, list) else held.keys() if isinstance(held, dict) else ()
        for key in keys:
            found.append((held, key))
            open_.append(held[key])
    return found


def mutated(data: bytes, rng: Random) -> bytes:
    """Return a checkpoint in which something is wrong, under a right checksum."""
    if rng.random() < 0.3:
        content = bytearray(content_of(data))
        for _ in range(rng.randint(1, 4)):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        return with_content(data, bytes(content[: rng.randint(0, len(content))] if rng.random() < 0.1 else content))
    apart = Apart(data)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(["head", *apart.texts])
        text = apart.head if name == "head" else apart.texts[name]
        places = places_in(text)
        held, key = rng.choice(places)
        if (chosen := rng.randrange(8)) == 0 and name != "head":
            arrays = bytearray(apart.arrays[name])
            for _ in range(min(len(arrays), 3)):
                arrays[rng.randrange(len(arrays))] = rng.randrange(256)
            apart.arrays[name] = bytes(arrays)
        elif chosen == 1:
            del held[key]
        elif chosen == 2 and isinstance(held, list):
            held.insert(key, held[rng.randrange(len(held))])
        elif chosen == 3:
            other, at = rng.choice(places)
            held[key] = json.loads(dumped(other[at]))
        else:
            held[key] = json.loads(dumped(rng.choice([rng.choice(NAMES), rng.choice(NUMBERS), rng.choice(FORMS), [], {}, ""])))
    return apart.whole()


WATCHED = ("import", "open", "subprocess.Popen", "os.", "shutil.", "pickle.", "ctypes.", "socket.", "exec", "compile")


class Watch:
    """What Python reports to have done of its own accord between `begin` and `end`."""

    def __init__(self) -> None:
        self.found: list[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: Any) -> None:
        if self.found is not None and event.startswith(WATCHED):
            self.found.append(f"{event} {arguments!r:.100}")


WATCH = Watch()


def outcome(query: sd.Stream[Any], data: bytes) -> Any:
    """Return the session that a file gives, None where it is refused; nothing has run, and it has not taken long."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(20)
    try:
        return restored(query.plan(), None, data)
    except CheckpointError:
        return None
    finally:
        signal.alarm(0)


def _is_called(*_: Any, **__: Any) -> None:
    raise AssertionError("code of a class has run")


def _too_long(*_: Any) -> None:
    raise AssertionError("a hostile file takes long to read")


@pytest.mark.parametrize("name", QUERIES)
def test_whatever_is_wrong_with_a_file_it_is_refused_or_a_session(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that comes of it can be saved, and what is saved gives it again; no code of a class has run."""
    data, (query, _) = state_of(name), QUERIES[name]
    assert restored(query.plan(), None, data).snapshot() == data
    monkeypatch.setattr(Total, "__init__", _is_called)
    monkeypatch.setattr(Total, "__setattr__", _is_called)
    n_restored = 0
    for seed in range(CASES):
        found = mutated(data, Random(f"{name} {seed}"))
        WATCH.found = []
        session = outcome(query, found)
        done, WATCH.found = WATCH.found, None
        assert not [each for each in done if "lambda" not in each and "<string>" not in each], f"seed {seed}: {done}"
        if session is not None:
            n_restored += 1
            try:
                saved = session.snapshot()
                again = restored(query.plan(), None, saved)
            except CheckpointError:
                continue
            assert again.snapshot() == saved, f"seed {seed}"
    assert n_restored < CASES / 2


def in_session(*chunks: Any, value: Any) -> Callable[[Apart], object]:
    """Return a change after which the session holds a value, with these objects."""

    def change(apart: Apart) -> None:
        apart.texts["session"]["chunks"] += chunks
        apart.texts["session"]["root"]["_early"] = value

    return change


def doubled(kind: str, each: Callable[[Any], Any], n: int = 60) -> list[Any]:
    """Return objects, each of which holds the one before it twice."""
    return [[kind, 1, each(["refs", kind, k - 1] if k else ["none"])] for k in range(n)]


def twice(form: Any) -> Any:
    return ["mixed", [0, 1], [form, form]]


LISTS = doubled("list", lambda inner: [[2], twice(inner)])
TRIP = f"object {__name__}:Trip"
TRIPS = doubled(TRIP, lambda inner: [[0], [[["zone", "fare"], [inner, inner]]]])
BIG = 10**12
NONE: Any = ["none"]
BOMBS: dict[str, Callable[[Apart], object]] = {
    "a list of many Nones": in_session(["list", 1, [[BIG], ["none"]]], value=["refs", "list", 0]),
    "many lists": in_session(["list", BIG, [["@", "|i1", 0, 0], ["none"]]], value=["refs", "list", 0]),
    "many empty tuples": in_session(["list", 1, [[10**9], ["tuple", []]]], value=["refs", "list", 0]),
    "a large array of objects": in_session(["array", 1, [[[[BIG], None]], ["none"]]], value=["refs", "array", 0]),
    "a large array of numbers": in_session(["array", 1, [[[[BIG], ["<i8", 0, 8 * BIG]]], ["none"]]], value=["refs", "array", 0]),
    "wide text": in_session(value=["scalar", ["<U999999999", 0, 0]]),
    "the same objects again and again": in_session(
        ["list", 1000, [["@", "|i1", 0, 0], ["none"]]], value=["tuple", [["refs", "list", 0]] * 1000]
    ),
    "keys that hold one another": in_session(
        *TRIPS, [f"dict {'builtins:dict'}", 1, [[1], ["refs", TRIP, 59], ["none"], None]], value=["refs", "dict builtins:dict", 0]
    ),
    "lists in an order that hold one another": in_session(
        *LISTS, *LISTS, ["sorted list", 1, [[2], ["ref", "list", [59, 119]]]], value=["refs", "sorted list", 0]
    ),
    "a circle in an order": in_session(
        ["list", 2, [[1, 1], ["refs", "list", 0]]],
        ["sorted list", 1, [[2], ["refs", "list", 0]]],
        value=["refs", "sorted list", 0],
    ),
    "deep tuples": in_session(value=functools.reduce(lambda inner, _: ["tuple", [inner]], range(400), NONE)),
    "a fraction of a large power": in_session(value=["constant", "Fraction", ["1e999999999"]]),
    "an order by a decimal of a large power": in_session(
        ["sorted list", 1, [[2], ["mixed", [0, 1], [["constant", "Decimal", ["1e999999999"]], ["int", [3]]]]]],
        value=["refs", "sorted list", 0],
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_costs_little(name: str) -> None:
    data = changed(state_of("columns"), BOMBS[name])
    tracemalloc.start()
    try:
        assert outcome(QUERIES["columns"][0], data) is None
        assert tracemalloc.get_traced_memory()[1] < 60 * len(data) + 10_000_000
    finally:
        tracemalloc.stop()


def test_very_deep_json_is_refused() -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    assert outcome(QUERY, with_content(saved(), framed(deep, b""))) is None


def test_what_takes_no_bytes_is_saved_and_restored() -> None:
    """The writer adds the bytes that the reader asks for."""
    held = sd.Record(nones=[None] * 300_000, empty=[()] * 1000, one=[[1]] * 1000)
    query = sd.source("s").count_window(2).aggregate(all=sd.collect(lambda e: e.held))
    session = query.open()
    session.push([sd.point("a", 1, {"held": held})])
    assert restored(query.plan(), None, session.snapshot()).close() == session.close()


def test_a_class_that_the_query_does_not_declare_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    query = sd.source("s").count_window(2).aggregate(all=sd.collect(lambda e: e.fare))
    session = query.open()
    session.push([sd.point("a", 1, Trip("A", 7.0, colour=Colour.RED))])
    with pytest.raises(
        CheckpointError,
        match=r"(?s)cannot be saved.*the class .*:Trip, which the query does not declare.*Hint: sd.source\(name, Trip\)",
    ):
        session.checkpoint(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    session.checkpoint(tmp_path / "s", types=[Trip])
    with pytest.raises(
        CheckpointError, match=r"(?s)values of .*:Trip, which the query does not declare.*Hint: .*restore\(path, types=\[Trip\]\)"
    ):
        query.restore(tmp_path / "s")
    again = query.restore(tmp_path / "s", types=[Trip])
    more = [sd.point("b", 2, Trip("B", 8.0))]
    assert again.push(more) == session.push(more)


class Undeclared(sd.IncrementalUDA[Any, Any, int]):
    def create_state(self):  # type: ignore[no-untyped-def]
        return Total([])

    def add_event_to_state(self, state: Any, payload: Any) -> Any:
        return Total(state.values, state.n + 1)

    def compute_result(self, state: Any) -> int:
        return int(state.n)


class Declared(Undeclared):
    state_types = (Total,)


def test_a_modules_state_is_declared_by_an_annotation_or_by_state_types(tmp_path: Path) -> None:
    for module in (Undeclared, Declared, Totals):
        query = sd.source("s").snapshot_window().aggregate(n=module().of(lambda e: e.v))
        session = query.open()
        session.push([sd.interval("a", 1, 9, {"v": 7})])
        if module is Undeclared:
            with pytest.raises(CheckpointError, match=r"(?s)the class .*:Total.*Hint: .*state_types = \(Total,\)"):
                session.checkpoint(tmp_path / "s")
        else:
            session.checkpoint(tmp_path / "s")
            assert query.restore(tmp_path / "s").close() == session.close()
