"""Changes at the very CTI, and keys that come and go: state that is freed a tick early, or never, shows here.

Rows and boundaries are drawn by hypothesis itself, so that what fails is shown with the fewest rows.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.keys import KeyTable
from streamdsl.temporal import CHT
from streamdsl.udm import UDSO
from tests.laws.choices import SHRINKING
from tests.laws.compositions import STEPS, Step
from tests.laws.expected import sources_of
from tests.laws.harness import EMITS, run_law
from tests.laws.profiles import examples
from tests.laws.scenarios import Scenario

LIGHT = settings(examples(24), phases=SHRINKING)
SOURCES = ("s", "t")


class Row(NamedTuple):
    """A row, and what becomes of its end at the CTI: `later` ticks after the CTI, None: it stays."""

    le: int
    length: int
    key: str
    value: int
    later: int | None


LATER = st.sampled_from([None, None, 0, 1, 3])
ROWS = st.lists(
    st.builds(
        Row,
        st.integers(0, 9),
        st.integers(1, 6),
        st.sampled_from("ab"),
        st.integers(-1, 2),
        LATER,
    ),
    min_size=1,
    max_size=4,
)
NEW = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("ab"), st.integers(-1, 2)), max_size=2)


def queries() -> dict[str, sd.Stream[Any]]:
    s: Any = sd.source("s")
    t: Any = sd.source("t")
    ending = [step for step in STEPS if not step.unbounds or step.name.startswith("to_edges")]
    return {step.name: step.apply(*(s, t)[: step.inputs]) for step in ending}


QUERIES = queries()


def payload(key: str, value: int) -> sd.Record:
    return sd.Record(k=key, v=value)


def events(rows: Sequence[Row], new: Sequence[Any], cti: int) -> Iterator[list[sd.Event[Any]]]:
    """Yield the rows that begin before the CTI, the CTI, and the tightest changes that it allows."""
    known = [(f"r{number}", row) for number, row in enumerate(rows) if row.le < cti]
    yield [sd.Insert(id, row.le, row.le + row.length, payload(row.key, row.value)) for id, row in known]
    yield [sd.Cti(cti)]
    moved = [(id, row, cti + row.later) for id, row in known if row.later is not None and row.le + row.length >= cti]
    yield [sd.Retract(id, row.le, row.le + row.length, re) for id, row, re in moved if re != row.le + row.length]
    yield [sd.Insert(f"n{number}", cti + le, cti + le + length, payload(*rest)) for number, (le, length, *rest) in enumerate(new)]


@pytest.mark.parametrize("name", QUERIES)
@LIGHT
@given(st.data(), st.sampled_from(["speculative", "watermark", "final"]))
def test_a_change_at_the_cti_finds_all_that_it_changes(name: str, data: st.DataObject, emit: Any) -> None:
    query = QUERIES[name]
    used = [source for source in SOURCES if source in query.open().sources]
    given_rows = {source: (data.draw(ROWS), data.draw(NEW)) for source in used}
    bounds = sorted({at for rows, _ in given_rows.values() for row in rows for at in (row.le, row.le + row.length)})
    cti = data.draw(st.sampled_from(bounds)) + data.draw(st.integers(-1, 1))
    session = query.open(emit=emit)
    sent: list[Any] = []
    pieces = {source: list(events(*given_rows[source], cti)) for source in used}
    for step in range(4):
        for source in used:
            sent += session.push(pieces[source][step], source)
    came = {source: CHT.from_events([event for piece in pieces[source] for event in piece]) for source in used}
    sent += session.close()
    assert_equal(CHT.from_events(sent), denote(query.plan(), came))


def assert_equal(found: CHT[Any], expected: CHT[Any]) -> None:
    assert sorted(map(repr, found.rows)) == sorted(map(repr, expected.rows))


def grouped(step: Step) -> sd.Stream[Any]:
    """Return a step for each key by itself; joins have keys of their own."""
    s: Any = sd.source("s")
    t: Any = sd.source("t")
    if step.inputs == 2:
        return step.apply(s, t)
    each: sd.Stream[Any] = s.group_by("k").apply(lambda g: step.apply(g)).select(lambda e: e._1)
    return each


def keeps_keys(query: sd.Stream[Any]) -> bool:
    """Say whether a check says that something stays of each key, or of all rows."""
    found = [found for found in sd.checks.check(query) if not found.operator.startswith("source:")]
    return any(word in each.what for each in found for word in ("keep", "waits", "no CTI passes"))


class Forgets(UDSO[Any, int, Any]):
    """The rows of a key so far; of no key that has had all its rows is the state needed again."""

    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: Any, le: int) -> tuple[int, list[Any]]:
        return state + 1, [{"n": state + 1}]

    def is_empty(self, state: int) -> bool:
        return True


class Turn(NamedTuple):
    """Rows that come, by key, `after` ticks after the last CTI; the next CTI, and which rows have another end before it."""

    rows: list[tuple[int, int, str, int]]
    step: int
    moved: list[tuple[int, int]]


TURNS = st.lists(
    st.builds(
        Turn,
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12), st.sampled_from("abcdefgh"), st.integers(-1, 2)), max_size=4),
        st.integers(0, 6),
        st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=2),
    ),
    min_size=2,
    max_size=6,
)
KEYED = {step.name: grouped(step) for step in STEPS if step.name != "fill" and (not step.unbounds or step.inputs == 1)}


def turns_of(turns: Sequence[Turn], prefix: str) -> Iterator[tuple[sd.Event[Any], ...]]:
    """Yield the changes of each turn and then its CTI; most keys come in some turns, and are gone in others."""
    cti, live = 0, dict[str, tuple[int, int, sd.Record]]()
    for number, turn in enumerate(turns):
        events: list[sd.Event[Any]] = []
        for n, (after, length, key, v) in enumerate(turn.rows):
            live[id := f"{prefix}{number}.{n}"] = row = (cti + after, cti + after + length, payload(key, v))
            events.append(sd.Insert(id, *row))
        for at, later in turn.moved:
            open_rows = [id for id, (_, re, _) in live.items() if re >= cti]
            if at < len(open_rows):
                le, re, value = live[id := open_rows[at]]
                live[id] = (le, end := max(le + 1, cti + later), value)
                events += [sd.Retract(id, le, re, end, value)] if end != re else []
        cti += turn.step
        live = {id: (le, re, value) for id, (le, re, value) in live.items() if re >= cti}
        yield (*events, sd.Cti(cti))


@contextmanager
def sweeping(rows: int, windows: int) -> Iterator[None]:
    """Let numbers be forgotten as soon as they may be, and rows and windows once there are so many more than are needed."""
    engine = "streamdsl.engine"
    with (
        patch.object(KeyTable, "is_due", True),
        patch(f"{engine}.frames.arrangement._SPARE", rows),
        patch(f"{engine}.frames.frame._SPARE", windows),
        patch(f"{engine}.data_driven.timeline._SPARE", windows),
    ):
        yield


@pytest.mark.parametrize("name", KEYED)
@settings(LIGHT, max_examples=examples(16).max_examples)
@given(st.lists(TURNS, min_size=2, max_size=2), st.sampled_from(EMITS), st.sampled_from([0, 1024]), st.sampled_from([0, 1024]))
def test_keys_that_come_back_are_those_of_the_rows_that_are_held(
    name: str, drawn: list[list[Turn]], emit: Any, rows: int, windows: int
) -> None:
    query = KEYED[name]
    pieces = [list(turns_of(turns, source)) for source, turns in zip(SOURCES, drawn, strict=True)]
    used = sources_of(query.plan())
    turns = [zip(SOURCES, each, strict=True) for each in itertools.zip_longest(*pieces, fillvalue=())]
    pushes = tuple((source, piece) for turn in turns for source, piece in turn if piece and source in used)
    with sweeping(rows, windows):
        run_law(query, Scenario(pushes), emit)


# The module of the scan keeps the last rows of each key for ever; of a `fill` a calendar goes on.
CHURNED = {step.name: query for step in STEPS if step.name not in ("fill", "scan") and not keeps_keys(query := grouped(step))}
CHURNED["scan, empty"] = sd.source("s").group_by("k").apply(lambda g: g.scan(Forgets()))


def test_most_operators_keep_no_keys() -> None:
    assert len(CHURNED) > 40


@pytest.mark.parametrize("name", CHURNED)
def test_keys_that_are_gone_leave_nothing(name: str) -> None:
    session = CHURNED[name].open()
    sizes = []
    for turn in range(30):
        base = 1_000 * turn
        for source in session.sources:
            rows = [(f"{turn}-{n}", base + n % 7, base + n % 7 + 3, payload(f"key {turn} {n}", n % 3)) for n in range(80)]
            session.push([sd.Insert(*row) for row in rows], source)
        for source in session.sources:
            session.push([sd.Cti(base + 900)], source)
        figures = session.stats().values()
        assert {(each["windows"], each["events"]) for each in figures} == {(0, 0)}
        sizes.append(sum(each["state_bytes"] for each in figures))
    # Keys are forgotten some hundreds at a time: once at least among the first half.
    assert max(sizes[15:]) < 1.25 * max(sizes[:15])


class Held:
    """A state of `Counting`, which can be found as long as somebody holds it."""

    alive: ClassVar[weakref.WeakSet[Held]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.n = 0
        Held.alive.add(self)


class Counting(sd.IncrementalUDA[Any, Held, int]):
    """The number of payloads."""

    def create_state(self) -> Held:
        return Held()

    def add_event_to_state(self, state: Held, payload: Any) -> Held:
        state.n += 1
        return state

    def remove_event_from_state(self, state: Held, payload: Any) -> Held:
        state.n -= 1
        return state

    def compute_result(self, state: Held) -> int:
        return state.n


@pytest.mark.parametrize("step", [1, 20])
@pytest.mark.parametrize(
    "windowed",
    [
        lambda g: g.tumbling_window(5),
        lambda g: g.hopping_window(6, 3),
        lambda g: g.session_window(2),
        lambda g: g.snapshot_window(),
        lambda g: g.count_window(2),
    ],
    ids=["tumbling", "hopping", "session", "snapshot", "count"],
)
def test_states_of_windows_that_are_gone_are_let_go(windowed: Any, step: int) -> None:
    query = windowed(sd.source("s").group_by("k")).aggregate(Counting(), lambda e: e.v)
    session = query.open()
    given_rows: list[Any] = []
    sent, left = [], []
    for turn in range(16):
        rows = [sd.Insert((turn, n), 99 * turn + n, 99 * turn + n + 2, payload(f"key {n % 30}", n)) for n in range(60)]
        for first in range(0, len(rows), step):
            sent += session.push(rows[first : first + step])
        sent += session.push([sd.Cti(99 * turn + 90)])
        given_rows += rows
        left.append(len(Held.alive))
    assert any(later < earlier for earlier, later in itertools.pairwise(left)), "windows are dropped some hundreds at a time"
    assert max(left[8:]) <= 1.25 * max(left[:8])
    assert_equal(CHT.from_events([*sent, *session.close()]), denote(query.plan(), {"s": CHT.from_events(given_rows)}))
