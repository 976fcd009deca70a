"""What `check` finds is so: the state stays, or the CTI does, however far the input's CTI goes; after the remedy it does not.

And where it finds nothing, nothing stays: over sources whose rows end every operator is empty in the end, and its CTI follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from random import Random
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.operators.framed_windows import FramedWindowOperator
from streamdsl.plan.node import Node, WindowAggregate
from streamdsl.udm import UDSO
from tests.laws.compositions import STEPS, composition
from tests.laws.modules import Ends, EndsInside, Since
from tests.laws.scenarios import history

Stream: TypeAlias = "sd.Stream[Any]"
Rows: TypeAlias = Callable[[int], list[tuple[int, int]]]

S: Stream = sd.source("s")
T: Stream = sd.source("t")
FAR = 1000
POINT = sd.Output.POINT_AT_END


def once(until: int) -> list[tuple[int, int]]:
    return [(0, 5), (2, 7)]


def edge(until: int) -> list[tuple[int, int]]:
    return [(0, sd.INFINITY)]


def steadily(until: int) -> list[tuple[int, int]]:
    return [(time, time + 2) for time in range(0, until, 2)]


@dataclass(frozen=True)
class Case:
    """A query, the label of the operator at which something is found, rows that show it, and the query after the remedy."""

    name: str
    query: Stream
    label: str
    rows: Rows
    remedied: Stream
    level: str = "warning"
    then: str = ""

    def __repr__(self) -> str:
        return self.name


def kept(name: str, of: Callable[[Stream], Stream], label: str, rows: Rows = once) -> list[Case]:
    """Return the cases of an operator over rows that the query leaves open, and over those that the data leave open."""
    return [
        Case(f"{name} of edges", of(S.to_edges()), label, rows, of(S.to_edges().clip_duration(9))),
        Case(f"{name} of points", of(S.to_edges()), label, rows, of(S.to_edges().to_points())),
    ]


KEPT = [
    *kept("join, left", lambda s: s.join(T.to_points(), on="k"), "join_1"),
    *kept("join, right", lambda s: T.to_points().join(s, on="k"), "join_1"),
    *kept("semi_join", lambda s: s.semi_join(T.to_points(), on="k"), "semi_join_1"),
    *kept("anti_join", lambda s: s.anti_join(T.to_points(), on="k"), "anti_join_1"),
    *kept("left_join", lambda s: s.left_join(T.to_points(), on="k"), "join_1"),
    *kept("clip_by", lambda s: s.clip_by(T.where(lambda e: e.v > 99)), "clip_by_1"),
    *kept("distinct", lambda s: s.distinct(), "distinct_1"),
    *kept("stitch", lambda s: s.stitch(), "stitch_1"),
    *kept("chop", lambda s: s.chop(10), "chop_1"),
    *kept("tumbling, columnar", lambda s: s.tumbling_window(10).aggregate(n=sd.count()), "window_aggregate_1"),
    *kept("tumbling", lambda s: s.tumbling_window(10).aggregate(n=sd.median(lambda e: e.v)), "window_aggregate_1"),
    *kept("snapshot", lambda s: s.snapshot_window().aggregate(n=sd.count()), "window_aggregate_1"),
    *kept("session", lambda s: s.session_window(4, 8).aggregate(n=sd.count()), "window_aggregate_1"),
    *kept("count by end", lambda s: s.count_window(1, by="end").aggregate(n=sd.count()), "window_aggregate_1"),
    *kept("top_k", lambda s: s.tumbling_window(10).top_k(1, by="v"), "window_apply_1"),
    *kept("in a group", lambda s: s.group_by("k").apply(lambda g: g.distinct()), "distinct_1"),
    *kept("asof_join", lambda s: s.asof_join(T.where(lambda e: e.v > 99), on="k", tolerance=9), "asof_join_1"),
    Case("a constant without end", S.alter_duration(sd.INFINITY).distinct(), "distinct_1", once, S.alter_duration(9).distinct()),
    Case("extended for ever", S.extend(sd.INFINITY).distinct(), "distinct_1", once, S.extend(9).distinct()),
]

HELD = [
    Case(
        "session without a bound",
        S.session_window(4).aggregate(n=sd.count()),
        "window_aggregate_1",
        steadily,
        S.session_window(4, max_duration=20).aggregate(n=sd.count()),
    ),
    Case(
        "session without a bound, in groups",
        S.group_by("k").session_window(4).aggregate(n=sd.count()),
        "window_aggregate_1",
        steadily,
        S.group_by("k").session_window(4, max_duration=20).aggregate(n=sd.count()),
    ),
    Case(
        "an idle group's count windows",
        S.group_by("k").count_window(3).aggregate(n=sd.count()),
        "window_aggregate_1",
        once,
        S.group_by("k").count_window(3, output=POINT).aggregate(n=sd.count()),
    ),
    Case(
        "count windows after the last row",
        S.count_window(3, by="end").aggregate(n=sd.count()),
        "window_aggregate_1",
        once,
        S.count_window(3, by="end", output=POINT).aggregate(n=sd.count()),
        level="note",
    ),
    Case(
        "snapshots of a module that sees lifetimes, after the last row",
        S.snapshot_window(clip=sd.Clip.FULL).aggregate(Ends(), lambda e: e.v),
        "window_aggregate_1",
        once,
        S.snapshot_window(clip=sd.Clip.FULL, output=POINT).aggregate(Ends(), lambda e: e.v),
        level="note",
    ),
    Case(
        "a module that sees ends, of edges that the query makes",
        S.to_edges().tumbling_window(10).aggregate(Ends(), lambda e: e.v),
        "window_aggregate_1",
        once,
        S.to_edges().tumbling_window(10, clip=sd.Clip.RIGHT).aggregate(Ends(), lambda e: e.v),
    ),
    Case(
        "a module that sees ends, of edges that the query makes, until it promises to ignore those beyond the window",
        S.to_edges().tumbling_window(10).aggregate(Ends(), lambda e: e.v),
        "window_aggregate_1",
        once,
        S.to_edges().tumbling_window(10).aggregate(EndsInside(), lambda e: e.v),
    ),
    Case(
        "a module that sees ends, clipped on the left, of edges of a source",
        S.tumbling_window(10, clip=sd.Clip.LEFT).aggregate(Ends(), lambda e: e.v),
        "window_aggregate_1",
        edge,
        S.tumbling_window(10, clip=sd.Clip.FULL).aggregate(Ends(), lambda e: e.v),
        level="note",
    ),
    Case(
        "a module that sees ends, with rows that are ended",
        S.tumbling_window(10).aggregate(Ends(), lambda e: e.v),
        "window_aggregate_1",
        edge,
        S.clip_duration(9).tumbling_window(10).aggregate(Ends(), lambda e: e.v),
        level="note",
    ),
    Case(
        "computed starts", S.alter_lifetime(lambda e, life: life.le + 1, 5), "alter_lifetime_1", once, S.shift(1), then="shift_1"
    ),
    Case(
        "asof_join forward",
        S.asof_join(T.where(lambda e: e.v > 99), direction="forward"),
        "asof_join_1",
        once,
        S.asof_join(T.where(lambda e: e.v > 99), direction="forward", tolerance=9),
    ),
    Case(
        "a filter that reads RE",
        S.where(lambda e, life: life.re > 3),
        "where_1",
        once,
        S.to_points_at_end().where(lambda e, life: life.le > 3),
    ),
    Case(
        "a projection that reads RE",
        S.select(end=lambda e, life: life.re),
        "select_1",
        once,
        S.to_points_at_end().select(end=lambda e, life: life.le),
    ),
    Case(
        "durations that read RE",
        S.alter_duration(lambda e, life: life.re - life.le + 1),
        "alter_lifetime_1",
        once,
        S.extend(1),
        then="extend_1",
    ),
]


def figures(query: Stream, rows: Rows, until: int) -> dict[str, dict[str, int]]:
    """Return what a session holds when all inputs have come so far."""
    session = query.open()
    for source in session.sources:
        lives = [(le, re) for le, re in rows(until) if le < until]
        session.push([*(sd.Insert(i, le, re, {"k": "a", "v": i % 3}) for i, (le, re) in enumerate(lives))], source=source)
    for source in session.sources:
        session.push([sd.Cti(until)], source=source)
    return session.stats()


def held(query: Stream, label: str, rows: Rows) -> bool:
    """Say whether the CTI of an operator stays where it is."""
    return len({figures(query, rows, until)[label]["output_cti"] for until in (FAR, 2 * FAR)}) == 1


def size(query: Stream, label: str, rows: Rows) -> int:
    """Return how many rows and windows an operator keeps in the end."""
    here = figures(query, rows, FAR)[label]
    return here["events"] + here["windows"]


def found_at(query: Stream, label: str, word: str) -> list[str]:
    """Return the levels of what is found at an operator and says a word."""
    return [found.level for found in sd.checks.check(query) if found.operator == label and word in f"{found.what} {found.remedy}"]


@pytest.mark.parametrize("case", KEPT, ids=repr)
def test_rows_that_never_end_stay_in_the_state_until_the_remedy(case: Case) -> None:
    assert found_at(case.query, case.label, "until the input is closed") == ["warning"]
    assert size(case.query, case.label, case.rows) > 0
    assert found_at(case.remedied, case.label, "until the input is closed") == []
    assert size(case.remedied, case.label, case.rows) == 0


@pytest.mark.parametrize("case", HELD, ids=repr)
def test_ctis_that_are_held_back_stay_until_the_remedy(case: Case) -> None:
    assert case.level in found_at(case.query, case.label, "CTI")
    assert held(case.query, case.label, case.rows)
    assert found_at(case.remedied, case.label, "CTI") == []
    assert not held(case.remedied, case.then or case.label, case.rows)


def test_a_group_without_rows_left_is_forgotten_and_holds_back_nothing() -> None:
    query = S.group_by("k").snapshot_window(clip=sd.Clip.FULL).aggregate(Ends(), lambda e: e.v)
    assert found_at(query, "window_aggregate_1", "by a later row") == []
    assert not held(query, "window_aggregate_1", once)


def test_the_rows_of_a_session_without_a_bound_stay_with_its_cti() -> None:
    bounded = S.session_window(4, max_duration=20).aggregate(n=sd.count())
    assert size(S.session_window(4).aggregate(n=sd.count()), "window_aggregate_1", steadily) >= FAR / 2
    assert size(bounded, "window_aggregate_1", steadily) < 30


def test_edges_of_a_source_stay_where_the_note_says() -> None:
    query = S.join(T.clip_duration(5), on="k").distinct(lambda e: e[0].k)
    (note,) = sd.checks.check(query)
    assert (note.operator, note.level) == ("source:s", "note")
    assert "join_1 keeps each until its end comes" in note.what
    # A row of the join ends with the shorter of its two rows, so `distinct` keeps none.
    kept = {label: here["events"] for label, here in figures(query, edge, FAR).items() if label[:6] != "source"}
    assert kept == {
        "(output)": 0,
        "clip_duration_1": 0,
        "join_1": 1,
        "select_1": 0,
        "distinct_1": 0,
    }
    remedied = S.clip_duration(5).join(T.clip_duration(5), on="k").distinct(lambda e: e[0].k)
    assert sd.checks.check(remedied) == []
    assert all(not here["events"] for label, here in figures(remedied, edge, FAR).items() if label[:6] != "source")


def test_the_last_sample_of_a_key_stays_until_rows_end_otherwise() -> None:
    assert found_at(S.to_edges("k"), "to_edges_1", "last row of every key") == ["note"]
    assert size(S.to_edges("k"), "to_edges_1", once) == 1
    remedied = S.alter_duration(9)
    assert sd.checks.check(remedied) == []
    assert size(remedied, "alter_lifetime_1", once) == 0


def test_an_as_of_join_without_a_tolerance_keeps_rows_or_waits() -> None:
    any_row = S.asof_join(T, where=lambda a, b: a.v > b.v)
    forward = S.asof_join(T, on="k", direction="forward")
    assert found_at(any_row, "asof_join_1", "keeps every right row for ever") == ["warning"]
    assert found_at(forward, "asof_join_1", "holds its CTI back") == ["warning"]
    assert found_at(S.asof_join(T, on="k"), "asof_join_1", "last right row of every key") == ["note"]
    assert size(any_row, "asof_join_1", steadily) >= FAR / 2
    assert figures(S.asof_join(T.where(lambda e: e.v > 99), direction="forward"), once, FAR)["asof_join_1"]["output_cti"] < FAR
    for remedied in (
        S.asof_join(T, tolerance=9, where=lambda a, b: a.v > b.v),
        S.asof_join(T, on="k", tolerance=9, direction="forward"),
        S.asof_join(T.where(lambda e: e.v > 99), tolerance=9, direction="forward"),
    ):
        assert not [found for found in sd.checks.check(remedied) if found.operator == "asof_join_1"]
        here = figures(remedied, once, FAR)["asof_join_1"]
        assert here["events"] == 0
        assert here["output_cti"] >= FAR - 10


def test_the_states_of_groups_stay_unless_they_say_that_they_are_empty() -> None:
    class Rarely(Since):
        def is_empty(self, state: list[Any]) -> bool:
            return True

    class Never(UDSO[Any, int, int]):
        def create_state(self) -> int:
            return 0

        def process(self, state: int, payload: Any, le: int) -> tuple[int, list[int]]:
            return state + 1, [state]

    def scanned(module: Any) -> Stream:
        return S.group_by("k").apply(lambda g: g.scan(module))

    assert found_at(scanned(Never), "scan_1", "the state of Never of every group") == ["note"]
    kept = figures(scanned(Never), once, FAR)["scan_1"]["state_bytes"]
    assert not [found for found in sd.checks.check(scanned(Rarely)) if found.operator == "scan_1"]
    assert figures(scanned(Rarely), once, FAR)["scan_1"]["state_bytes"] < kept


def test_window_sequences_that_look_back_keep_every_row() -> None:
    of_all, of_some = (S.windows(ws).aggregate(n=sd.count()) for ws in (sd.astral.landmark(), sd.astral.rows_slide(3, 1)))
    assert found_at(of_all, "window_aggregate_1", "keeps more and more rows") == ["warning"]
    assert size(of_all, "window_aggregate_1", steadily) >= FAR / 2
    assert sd.checks.check(of_some) == []
    assert size(of_some, "window_aggregate_1", steadily) <= 4


def test_window_sequences_in_groups_keep_where_each_starts() -> None:
    by_time, by_position = sd.astral.range_slide(6, 3), sd.astral.rows_slide(3, 1)
    groups = S.group_by("k")
    for windowed in (groups.windows(by_time), groups.windows(by_position, start=0)):
        query = windowed.aggregate(n=sd.count())
        assert found_at(query, "window_aggregate_1", "of every key") == ["note"]
        assert groups_kept(query) == 600
    remedied = groups.windows(by_time, start=0).aggregate(n=sd.count())
    assert sd.checks.check(remedied) == []
    assert groups_kept(remedied) == 0


def groups_kept(query: Stream) -> int:
    """Return how many of 600 groups a window operator knows, long after the last row of each."""
    session = query.open()
    session.push([*(sd.Insert(k, 1, 2, {"k": k, "v": 1}) for k in range(600)), sd.Cti(FAR)])
    (operator,) = (each for each in session._graph.operators if isinstance(each, FramedWindowOperator))
    return len(list(operator.held_groups()))


def test_a_cross_join_is_noted_where_more_than_one_row_may_be_met() -> None:
    assert found_at(S.join(T), "join_1", "every left row with every right row") == ["note"]
    assert "join_1 cross join" in S.join(T).explain()
    mean = T.tumbling_window(5).aggregate(v=sd.avg(lambda e: e.v)).shift(5)
    for query in (S.join(T, on="k"), S.join(T, where=lambda a, b: a.v < b.v), S.join(mean)):
        assert not [found for found in sd.checks.check(query) if "every right row" in found.what]


@pytest.mark.parametrize(("size", "hop"), [(3, 7), (1, 2), (7, 7), (8, 3)])
@pytest.mark.filterwarnings("ignore::streamdsl.errors.WindowGapsWarning")
def test_rows_between_windows_are_left_out_where_that_is_found(size: int, hop: int) -> None:
    query = S.hopping_window(size, hop, offset=2).aggregate(n=sd.count())
    numbers = query.run({"s": [sd.point(time, time, {"k": 0, "v": 0}) for time in range(10 * hop)]}).cht()
    counted = sum(row.payload.n for row in numbers if row.le >= 2 + hop and row.re <= 2 + 8 * hop)
    found = [each.level for each in sd.checks.check(query) if "leaves out the rows" in each.what]
    assert found == (["warning"] if size < hop else [])
    assert bool(found) == (counted < 7 * hop)


def test_rows_that_are_said_to_live_one_at_a_time_do() -> None:
    queries = {step.name: step.apply(S).chop(4).where(lambda e: e.v > 0) for step in STEPS if step.inputs == 1}
    apart = {name: query for name, query in queries.items() if query.plan().one_at_a_time}
    assert {"tumbling", "hopping with gaps", "snapshot", "session", "point at end"} <= set(apart)
    for query, seed in product(apart.values(), range(10)):
        rows = denote(query.plan(), {"s": history(Random(seed), unending=False, max_size=12)}).rows
        assert all(a.re <= b.le for a, b in pairwise(rows))


def findings_that_hold(query: Stream) -> Sequence[sd.checks.Finding]:
    texts = ("row by row", "stays above the module", "every left row", "leaves out the rows")
    return [found for found in sd.checks.check(query) if not any(text in found.what for text in texts)]


def last_windows(query: Stream) -> list[str]:
    """Return the labels of window sequences by position: their last window stays the last one until more rows come."""
    return re.findall(r"(\w+_\d+) sequence\(.* by position", query.explain("reference"))


@pytest.mark.parametrize("seed", range(150))
def test_of_rows_that_end_nothing_stays_where_nothing_is_found(seed: int) -> None:
    _, query = composition(Random(seed))
    held_back = {found.operator for found in findings_that_hold(query) if not found.operator.startswith("source:")}
    if held_back:
        return
    here = figures(query, once, FAR)
    # to_edges keeps one row of all, without keys too, a sequence by position its last window; those above are then warned about.
    keeping = ("to_edges", "asof", *last_windows(query))
    left = {label: each["events"] + each["windows"] for label, each in here.items() if not label.startswith(keeping)}
    assert not any(left.values()), left
    assert here[list(here)[-1]]["output_cti"] >= FAR - 50


@pytest.mark.parametrize("seed", range(150))
def test_what_keeps_rows_without_end_is_named(seed: int) -> None:
    _, query = composition(Random(seed))
    told = set(re.findall(r"\w+_\d+", " ".join(f"{found.operator} {found.what}" for found in sd.checks.check(query))))
    if any(label.startswith(("window", "chop")) for label in told):
        return  # They give new rows for ever, of which those above keep the latest.
    # Above an operator that no CTI passes, which is told, everything waits.
    here = {label: each for label, each in figures(query, edge, FAR).items() if each["input_cti"] > FAR - 50}
    known = ("source", "to_edges", "asof", *last_windows(query))
    keeping = {label for label, each in here.items() if each["events"] and not label.startswith(known)}
    assert keeping <= told


def test_what_a_check_asks_of_a_plan_grows_with_the_plan() -> None:
    s: sd.Stream[Any] = sd.source("s")
    for _ in range(20):
        s = s.union(s.shift(1)).tumbling_window(10).aggregate(n=sd.count())
    asked: list[Node] = []

    def counted(node: Node, inputs: Sequence[Any], answer: Any = WindowAggregate.open_rows) -> Any:
        asked.append(node)
        return answer(node, inputs)

    with patch.object(WindowAggregate, "open_rows", counted):
        sd.checks.check(s)
    assert len(asked) <= 20


def test_results_of_a_window_sequence_live_one_at_a_time() -> None:
    results = S.windows(sd.astral.range_slide(7, 3)).aggregate(n=sd.count())
    assert not [found for found in sd.checks.check(results.join(T)) if "every right row" in found.what]


def test_windows_of_one_tick_give_points() -> None:
    assert "[points]" in S.tumbling_window(1).aggregate(n=sd.count()).explain()
