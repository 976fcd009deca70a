"""The public contract, section 2: sources, bindings and progress."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl import CHT, INFINITY, MIN_TIME, Cti, Insert, Progress, Retract
from streamdsl.errors import CtiViolation, EventError, QueryError, SchemaError, SessionError, UnitError
from streamdsl.testing import VirtualClock
from tests.unit.contract.common import EMITS, ENGINES, Trip, X, Y, cht_of, payloads_of, refused, rows


def test_all_sources_read_the_same_rows(tmp_path: Any) -> None:
    frame = pd.DataFrame({"le": [1, 3], "re": [5, None], "k": ["a", None]})
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("le,re,k\n1,5,a\n3,,\n")
    (tmp_path / "rows.jsonl").write_text('{"le":1,"re":5,"k":"a"}\n{"le":3,"re":null,"k":null}\n')
    expected = CHT.from_rows([(1, 5, {"k": "a"}), (3, INFINITY, {"k": None})])
    for stream in (
        sd.from_rows([(1, 5, {"k": "a"}), (3, INFINITY, {"k": None})]),
        sd.from_events([Insert("a", 1, 5, {"k": "a"}), sd.edge_start("b", 3, {"k": None})]),
        sd.from_pandas(frame, end="re"),
        sd.from_arrow(pa.table({"le": [1, 3], "re": [5, None], "k": ["a", None]}), end="re"),
        sd.from_polars(pl.DataFrame({"le": [1, 3], "re": [5, None], "k": ["a", None]}), end="re"),
        sd.from_parquet(tmp_path / "rows.parquet", end="re"),
        sd.from_csv(tmp_path / "rows.csv", end="re"),
        sd.from_jsonl(tmp_path / "rows.jsonl", end="re"),
    ):
        assert cht_of(stream) == expected
        assert stream.run().events()[-1] == Cti(INFINITY)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_holds_for_ever(engine: Any) -> None:
    named = [{"k": "a", "name": "Airport"}, {"k": "b", "name": "Bay"}]
    frame = pd.DataFrame(named)
    expected = CHT.from_rows([(MIN_TIME, INFINITY, row) for row in named])
    for rows_ in (named, frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert sd.sources.from_table(rows_).run(engine=engine).cht() == expected
    trips: sd.Stream[Any] = sd.from_rows([(1, 5, {"k": "b"}), (3, 4, {"k": "c"})])
    zones: sd.Stream[Any] = sd.sources.from_table(frame)
    found = trips.left_join(zones, on="k", select=lambda a, b: a.k if b is None else b.name)
    assert found.run(engine=engine).cht() == CHT.from_rows([(1, 5, "Bay"), (3, 4, "c")])


def test_a_slow_source_takes_the_ctis_of_another() -> None:
    trips = sd.source("trips")
    rates = sd.source("rates", progress=Progress.imported_from(trips, delay=2))
    session = trips.join(rates, on="k", select=lambda a, b: (a.v, b.v)).open(emit="final")
    session.push([Insert("r", 0, INFINITY, {"k": "a", "v": 5})], source="rates")
    out = session.push([Insert("t", 3, 6, {"k": "a", "v": 1}), Cti(10)], source="trips")
    assert out == [Insert(("t", "r"), 3, 6, (1, 5)), Cti(8)]
    assert session.push([Insert("r2", 9, 12, {"k": "a", "v": 6})], source="rates") == []
    with refused(CtiViolation, "r3", "8"):
        session.push([Insert("r3", 7, 12, {"k": "a", "v": 6})], source="rates")
    assert session.push([Cti(INFINITY)], source="trips")[-1] == Cti(INFINITY)


def test_ctis_of_a_clock_come_with_every_push() -> None:
    clock = VirtualClock("2013-01-01T00:00:00Z")
    start = clock() // 10**9
    policy = Progress.wall_clock("10s", delay="2s", clock=clock)
    session = sd.source("s", unit="s", progress=policy).tumbling_window("10s").aggregate(n=sd.count()).open(emit="final")
    assert session.push([sd.point("a", start + 1, 7)]) == [Cti(start - 10)]
    clock.advance("15s")
    assert session.push([]) == [Cti(start)]
    assert session.stats()["source:s"]["input_cti"] == start + 8
    clock.advance("5s")
    assert [event.le for event in session.push([]) if isinstance(event, Insert)] == [start]
    with refused(CtiViolation, "late"):
        session.push([sd.point("late", start + 17, 7)])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bounded_run_looks_at_no_clock(engine: Any) -> None:
    old = sd.from_rows([("1970-01-02", "1970-01-03", 1)], progress=Progress.wall_clock("1s"))
    assert len(old.run(engine=engine).cht()) == 1


def test_a_clock_tells_no_ticks() -> None:
    session = sd.source("s", unit="tick", progress=Progress.wall_clock(1)).open()
    with refused(UnitError, "plain ticks", "calendar"):
        session.push([])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bounded_run_imports_no_ctis(engine: Any) -> None:
    late = sd.source("late", progress=Progress.imported_from("first"))
    query = sd.source("first").union(late)
    bindings = {"first": [Insert("a", 5, 6, 1), Cti(9)], "late": [Insert("b", 1, 2, 2)]}
    assert query.run(bindings, engine=engine).cht() == CHT.from_rows([(5, 6, 1), (1, 2, 2)])


def test_ctis_come_from_a_source_of_the_query() -> None:
    with refused(QueryError, "'x' imports its CTIs from 'y'", "x"):
        sd.source("x", progress=Progress.imported_from("y")).open()
    with refused(QueryError, "not from 5"):
        Progress.imported_from(5)


def test_a_session_reads_its_tables_when_it_is_opened() -> None:
    zones = sd.sources.from_table([{"k": "a", "n": 1}])
    session = sd.source("trips").join(zones, on="k", select=lambda a, b: b.n).open(emit="final")
    assert session.push([Insert("x", 1, 4, {"k": "a"}), Cti(6)]) == [Insert(("x", 0), 1, 4, 1), Cti(6)]
    alone = zones.select(lambda e: e.n).open()
    assert alone.close() == [Insert(0, MIN_TIME, INFINITY, 1), Cti(INFINITY)]
    (table,) = set(session.sources) - {"trips"}
    with refused(CtiViolation, table):
        session.push([Insert("y", 1, 2, {"k": "a", "n": 1})], source=table)


def test_no_end_means_point_events_and_naive_times_are_utc() -> None:
    frame = pd.DataFrame({"le": pd.to_datetime(["2013-01-01"]), "v": [1]})
    expected = CHT.from_rows([("2013-01-01T00:00:00Z", "2013-01-01T00:00:01Z", {"v": 1})], "s")
    assert cht_of(sd.from_pandas(frame, unit="s")) == expected


@pytest.mark.parametrize("kind", ["rows", "events", "pandas", "arrow", "polars"])
def test_an_empty_input_gives_an_empty_output_everywhere(kind: str) -> None:
    columns: dict[str, list[Any]] = {"le": [], "v": []}
    empty: sd.Stream[Any] = {
        "rows": lambda: sd.from_rows([]),
        "events": lambda: sd.from_events([]),
        "pandas": lambda: sd.from_pandas(pd.DataFrame(columns)),
        "arrow": lambda: sd.from_arrow(pa.table({"le": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})),
        "polars": lambda: sd.from_polars(pl.DataFrame(columns)),
    }[kind]()
    queries: list[sd.Stream[Any]] = [
        empty.where(lambda e: e.v > 1),
        empty.select_many(lambda e: [e.v]),
        empty.alter_lifetime(lambda e, life: life.re, lambda e: e.v),
        empty.to_edges("v").clip_interval(1, 5),
        empty.union(empty).join(empty, on="v").select(lambda p: p[0]),
        empty.anti_join(empty).clip_by(empty),
        empty.tumbling_window(5).aggregate(n=sd.count(), top=sd.max(lambda e: e.v)),
        empty.count_window(2).apply(sd.udo(lambda payloads: payloads)),
        empty.group_by("v").snapshot_window().aggregate(lambda w: (w.key, w.count())),
    ]
    for query in queries:
        assert cht_of(query).rows == []
        assert query.run().events() == [Cti(INFINITY)]
        assert [query.open(emit).close() for emit in EMITS] == [[Cti(INFINITY)]] * 3
        assert len(query.to_pandas()) == query.to_arrow().num_rows == query.to_polars().height == 0


def test_the_frames_of_an_empty_result_have_the_columns_that_the_query_names() -> None:
    none = rows(1).where(lambda e: e > 5).tumbling_window(5).aggregate(n=sd.count(), top=sd.max(lambda e: e))
    for engine in ENGINES:
        result = none.run(engine=engine)
        assert list(result.to_pandas().columns) == result.to_arrow().column_names == result.to_polars().columns
        assert list(result.to_pandas().columns) == ["le", "re", "n", "top"]


LATE = [Insert(f"{n}", le, le + 3, le) for n, le in enumerate([10, 12, 11, 20, 13, 15, 9, 30, 25])]
POLICIES = [
    (Progress.ordered(), {"2", "4", "5", "6", "8"}),
    (Progress.slack(5), {"4", "6"}),
    (Progress.every(3), {"6"}),
    (Progress.every(3, delay=5), {"6"}),
]


@pytest.mark.parametrize(("policy", "late"), POLICIES)
def test_lateness_is_judged_event_by_event_and_a_push_sends_one_cti(policy: Progress, late: set[str]) -> None:
    source = sd.source("x", progress=policy, on_violation="drop")
    for size in (1, 2, 4, len(LATE)):
        session = source.open()
        pushes = [session.push(LATE[i : i + size]) for i in range(0, len(LATE), size)]
        assert {rejection.event.id for rejection in session.rejected()} == late
        assert all(sum(isinstance(event, Cti) for event in out) <= 1 for out in pushes)
        assert all(not isinstance(event, Cti) for out in pushes for event in out[:-1])
    bounded = sd.from_rows([(event.le, event.re, event.payload) for event in LATE], progress=policy, on_violation="drop")
    assert len(cht_of(bounded)) == len(LATE) - len(late)


def test_the_same_query_object_runs_on_any_binding_and_in_any_number_of_sessions() -> None:
    query = X.tumbling_window(10).aggregate(m=sd.median(lambda e: e.v))
    first, second = query.open(), query.open()
    assert first.push([Insert("a", 1, 2, {"v": 1})])[0].payload == {"m": 1}  # type: ignore[union-attr]
    assert second.push([Insert("a", 1, 2, {"v": 9})])[0].payload == {"m": 9}  # type: ignore[union-attr]
    for binding in (
        [(1, 2, {"v": 5})],
        [Insert("a", 1, 2, {"v": 5})],
        CHT.from_rows([(1, 2, {"v": 5})]),
        sd.from_rows([(1, 2, {"v": 5})]).run(),
        sd.from_rows([(1, 2, {"v": 5})]),
        pd.DataFrame({"le": [1], "v": [5]}),
    ):
        assert payloads_of(query, bindings={"x": binding}) == [{"m": 5}]


def test_bounded_streams_keep_their_inputs_when_combined() -> None:
    left, right = sd.from_rows([(1, 5, "a")]), sd.from_rows([(3, 9, "b")])
    assert cht_of(left.union(right).union(left)) == CHT.from_rows([(1, 5, "a"), (1, 5, "a"), (3, 9, "b")])
    named = left.union(sd.source("more", str))
    assert cht_of(named, bindings={"more": [(2, 3, "c")]}) == CHT.from_rows([(1, 5, "a"), (2, 3, "c")])


def test_a_source_decides_what_is_done_with_its_input() -> None:
    late = [(9, 12, "a"), (3, 5, "b")]
    given = sd.from_rows(late, progress=Progress.ordered(), on_violation="drop")
    assert len(cht_of(given)) == 1
    assert len(cht_of(sd.source("x", progress=Progress.ordered(), on_violation="drop"), bindings={"x": given})) == 1
    assert len(cht_of(sd.source("x", on_violation="drop"), bindings={"x": sd.from_rows(late)})) == 2
    with refused(QueryError, "'x' asks for progress=", "decides", "sd.source('x', ..., progress=...)"):
        X.run({"x": given})
    with refused(QueryError, "'x' asks for on_violation='drop'"):
        X.run({"x": sd.from_rows(late, on_violation="drop")})


def test_run_is_one_push_per_source_in_binding_order(tmp_path: Any) -> None:
    frame = pd.DataFrame({"le": np.arange(200_000) % 100, "v": 1})
    frame.to_csv(tmp_path / "many.csv", index=False)
    counted = sd.from_csv(tmp_path / "many.csv").tumbling_window(10).aggregate(n=sd.count())
    events = counted.run().events()
    assert [event.payload for event in events if isinstance(event, Insert)] == [{"n": 20_000}] * 10
    assert not any(isinstance(event, Retract) for event in events)
    both = X.union(Y)
    for order in ("xy", "yx"):
        found = both.run({name: [(1, 2, name)] for name in order}).events()
        assert [event.payload for event in found if isinstance(event, Insert)] == list(order)


TIMES = pd.DataFrame({"at": [1, 4], "until": [3, None], "le": [7, 8], "n": [10, 20]})
NAMED = CHT.from_rows([(1, 3, {"le": 7, "n": 10}), (4, INFINITY, {"le": 8, "n": 20})])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_names_the_columns_of_the_times_for_every_way_in(engine: Any, tmp_path: Any) -> None:
    trips = sd.source("trips", start="at", end="until")
    TIMES.to_parquet(tmp_path / "rows.parquet")
    for frame in (TIMES, pl.from_pandas(TIMES), pa.Table.from_pandas(TIMES), sd.from_parquet(tmp_path, start="at", end="until")):
        assert trips.run({"trips": frame}, engine=engine).cht() == trips.bind(trips=frame).run(engine=engine).cht() == NAMED
    session = trips.open()
    assert CHT.from_events([*session.push(TIMES), *session.close()]) == NAMED


def test_a_push_names_the_columns_of_its_frame() -> None:
    for source in (sd.source("trips"), sd.source("trips", start="le")):
        session = source.open()
        assert CHT.from_events([*session.push(TIMES, start="at", end="until"), *session.close()]) == NAMED
    session = sd.source("trips", start="at").open()
    assert CHT.from_events(session.feed(TIMES, end="until").events()) == NAMED
    with refused(QueryError, "start= and end= name columns of a frame, and a list has none"):
        session.push([sd.point("a", 1, {"le": 1, "n": 2})], start="at")
    with refused(SchemaError, "no column 'ts'"):
        session.push(TIMES, start="ts")


def test_without_an_end_the_rows_of_such_a_source_are_points() -> None:
    points = sd.source("trips", start="le").run({"trips": TIMES[["le", "n"]]}).cht()
    assert points == CHT.from_rows([(7, 8, {"n": 10}), (8, 9, {"n": 20})])
    with_re = TIMES.rename(columns={"until": "re"})
    assert next(iter(sd.source("trips", start="at").run({"trips": with_re}).cht())).re == 2


def test_the_names_of_columns_are_refused_where_they_are_given() -> None:
    with refused(QueryError, "'at' is both start and end", "no end makes point events"):
        sd.source("trips", start="at", end="at")
    with refused(QueryError, "start= is the name of a column, not a int"):
        sd.source("trips", start=5)  # type: ignore[call-overload, unused-ignore, arg-type]
    with refused(SchemaError, "no column 'le'", "sd.source(name, start=, end=)"):
        sd.source("trips").run({"trips": pd.DataFrame({"at": [1]})})


def test_a_plan_as_json_and_a_checkpoint_know_the_names(tmp_path: Any) -> None:
    query = sd.source("trips", start="at").tumbling_window(10).aggregate(n=sd.count())
    assert sd.composing.plan_from_json(query.plan().to_json()) == query.plan()
    session = query.open()
    session.push(TIMES[["at", "n"]])
    session.checkpoint(tmp_path / "state")
    other = sd.source("trips", start="le").tumbling_window(10).aggregate(n=sd.count()).restore(tmp_path / "state")
    assert [event.payload.n for event in other.push(TIMES[["le", "n"]]) if isinstance(event, Insert)] == [4]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_what_is_bound_to_a_source_is_read_in_its_unit_and_class(unit: Any) -> None:
    dates = pd.DataFrame({"at": pd.to_datetime(["2013-01-01"]), "zone": ["a"], "fare": [1.0]})
    point = ("2013-01-01T00:00:00Z", "2013-01-01T00:00:01Z")
    trips = sd.source("trips", Trip, unit=unit)
    for source in (
        sd.from_pandas(dates, start="at"),
        sd.from_rows([(*point, Trip("a", 1.0))]),
        sd.from_events([Insert("a", *point, Trip("a", 1.0)), Cti(INFINITY)]),
    ):
        found = trips.run({"trips": source}).cht()
        assert (found.unit, [row.payload for row in found]) == (unit, [Trip("a", 1.0)])


def test_a_late_event_says_where_its_cti_came_from() -> None:
    trips = sd.source("trips", progress=Progress.slack(5), on_violation="drop")
    rates = sd.source("rates", progress=Progress.imported_from(trips, delay=1), on_violation="adjust")
    session = trips.union(rates).open()
    session.push([sd.point("a", 10, 1)], source="trips")
    session.push([sd.point("b", 4, 1), sd.point("c", 20, 1), sd.point("d", 14, 1)], source="trips")
    session.push([Cti(30), sd.point("e", 29, 1)], source="trips")
    session.push([Insert("f", 3, 40, 1)], source="rates")
    found = [(late.event.id, late.cti, late.origin) for late in session.rejected()]
    assert found == [
        ("b", 5, ("trips", "Progress.slack(5)", 1)),
        ("d", 15, ("trips", "Progress.slack(5)", 2)),
        ("e", 30, ("trips", "a Cti", 3)),
        ("f", 29, ("trips", "a Cti, by Progress.imported_from('trips', 1)", 3)),
    ]


@pytest.mark.parametrize("as_frame", [False, True])
@settings(deadline=None)
@given(les=st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=6))
def test_late_events_are_handed_over_once_with_the_push_that_made_their_cti(as_frame: bool, les: list[list[int]]) -> None:
    source = sd.source("s", unit="tick", progress=Progress.slack(3), on_violation="drop")
    session, late, expected = source.open(), list[Any](), list[tuple[int, int, int]]()
    session.on_late(late.extend)
    largest, push_of = MIN_TIME, 0
    for push, times in enumerate(les, 1):
        frame = pd.DataFrame({"le": pd.Series(times, dtype="int64"), "n": pd.Series(times, dtype="int64")})
        session.push(frame if as_frame else [sd.point((push, n), le, {"n": le}) for n, le in enumerate(times)])
        for le in times:
            if largest > MIN_TIME and le < largest - 3:
                expected.append((le, largest - 3, push_of))
            if le > largest:
                largest, push_of = le, push
    assert [(each.event.le, each.cti, each.origin.push) for each in late] == expected
    assert list(session.rejected()) == late


def test_no_late_event_is_lost_and_none_is_kept(tmp_path: Any) -> None:
    query = sd.source("s", unit="tick", on_violation="drop").where(lambda e: e.n >= 0)
    session, late = query.open(), list[Any]()
    session.on_late(late.extend)
    session.push([Cti(10)])
    session.push(pd.DataFrame({"le": np.zeros(12_000, dtype=np.int64), "n": np.arange(12_000)}))
    assert [each.event.payload.n for each in late] == list(range(12_000))
    assert (len(session.rejected()), len(list(session.rejected()))) == (12_000, 10_000)
    session.checkpoint(tmp_path / "state")
    again, later = query.restore(tmp_path / "state"), list[Any]()
    assert again.rejected() == session.rejected()
    again.on_late(later.extend)
    again.push([sd.point("x", 3, {"n": 1})])
    assert [(each.event.id, each.cti, each.origin) for each in later] == [("x", 10, ("s", "a Cti", 1))]


def test_a_push_that_is_refused_hands_nothing_over() -> None:
    session, late = sd.source("s", unit="tick", on_violation="drop").open(), list[Any]()
    session.on_late(late.extend)
    session.push([Cti(10)])
    with refused(EventError, "'b'"):
        session.push([sd.point("a", 3, 1), Insert("b", 20, 15, 1)])
    assert late == []
    session.push([sd.point("a", 3, 1)])
    assert [each.event.id for each in late] == ["a"]


def test_what_takes_late_events_is_a_function_and_its_failure_is_the_session_s() -> None:
    def fail(late: list[Any]) -> None:
        raise ValueError("the disk is full")

    session = sd.source("s", on_violation="drop").open()
    with refused(QueryError, "not to 5", "session.on_late"):
        session.on_late(5)  # type: ignore[arg-type]
    session.on_late(fail)
    session.push([Cti(10)])
    with pytest.raises(ValueError, match="the disk is full"):
        session.push([sd.point("a", 3, 1)])
    with refused(SessionError):
        session.push([])


JUMPS = st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=6)


@pytest.mark.parametrize("on_violation", ["drop", "adjust"])
@pytest.mark.parametrize("policy", [Progress.slack(3, max_jump=8), Progress.every(2, 1, max_jump=8)])
@settings(deadline=None)
@given(les=JUMPS)
def test_what_starts_too_far_ahead_is_in_quarantine_and_moves_nothing(
    policy: Progress, on_violation: Any, les: list[list[int]]
) -> None:
    source = sd.source("s", unit="tick", progress=policy, on_violation=on_violation)
    events = [[Insert((push, n), le, le + 5, {"n": n}) for n, le in enumerate(times)] for push, times in enumerate(les)]
    largest, jumped = MIN_TIME, list[Any]()
    for event in (event for pushed in events for event in pushed):
        if largest > MIN_TIME and event.le > largest + 8:
            jumped.append(event.id)
        else:
            largest = max(largest, event.le)
    sessions = together, alone, frames = source.open(), source.open(), source.open()
    sent: list[list[Any]] = [[], [], []]
    for pushed in events:
        sent[0] += together.push(pushed)
        for event in pushed:
            sent[1] += alone.push([event])
        columns = {"le": [event.le for event in pushed], "re": [event.re for event in pushed], "n": [*range(len(pushed))]}
        sent[2] += frames.push(pd.DataFrame(columns, dtype="int64"))
    run = source.run({"s": [event for pushed in events for event in pushed]}, engine="reference")
    for rejected in (together.rejected(), alone.rejected(), run.rejected()):
        assert [each.event.id for each in rejected if each.reason.startswith("quarantined")] == jumped
    assert [tuple(each[1:3]) for each in frames.rejected()] == [tuple(each[1:3]) for each in together.rejected()]
    assert list(together.rejected()) == list(alone.rejected()) == list(run.rejected())
    assert [CHT.from_events(each) for each in sent] == [run.cht()] * 3
    assert len(run.cht()) + len(jumped) + sum(each.reason.startswith("dropped") for each in run.rejected()) == sum(map(len, les))
    assert len({session.stats()["source:s"]["input_cti"] for session in sessions}) == 1


def test_a_jump_is_dropped_under_error_too_with_its_corrections_until_a_cti_has_come() -> None:
    trips = sd.source("trips", unit="s", progress=Progress.ordered(max_jump="1h")).select(lambda e: e.n)
    session = trips.open()
    session.push([Insert("a", 100, 200, {"n": 1, "more": "x"}), Insert("b", 10**6, INFINITY, {"n": 2, "more": "y"})])
    session.push([Retract("b", 10**6, INFINITY, 10**6 + 5)])
    (jump, correction) = session.rejected()
    assert (jump.event.payload, jump.cti) == ({"n": 2, "more": "y"}, 100)
    assert correction.reason == "dropped: an event that it corrects was dropped"
    assert session.push([Insert("c", 3700, 3800, {"n": 3, "more": "z"})])[-1] == Cti(3700)
    session.push([Cti(10**6), Insert("d", 10**6 + 5, 10**6 + 6, {"n": 4, "more": "w"})])
    assert len(session.rejected()) == 2


def test_a_bounded_run_reads_the_whole_rows_that_it_may_reject() -> None:
    frame = pd.DataFrame({"le": [1, 50, 2], "n": [1, 2, 3], "more": ["x", "y", "z"]})
    result = sd.from_pandas(frame, progress=Progress.slack(5, max_jump=10)).select(lambda e: e.n).run()
    assert [row.payload for row in result.cht()] == [1, 3]
    assert [each.event.payload for each in result.rejected()] == [{"n": 2, "more": "y"}]


@settings(deadline=None)
@given(pushes=st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 99), min_size=1, max_size=3)), max_size=12))
def test_an_idle_source_follows_the_furthest_of_the_others(pushes: list[tuple[str, list[int]]]) -> None:
    policies = {"a": Progress.slack(2), "b": Progress.slack(2).idle_after(10), "c": Progress.ordered().idle_after(30)}
    a, b, c = (sd.source(name, unit="tick", progress=policy, on_violation="drop") for name, policy in policies.items())
    session = a.union(b, c).open("final")
    cti, largest = dict.fromkeys("abc", MIN_TIME), dict.fromkeys("abc", MIN_TIME)
    late: list[tuple[int, int]] = []
    for push, (name, les) in enumerate(pushes):
        session.push([sd.point((push, n), le, 1) for n, le in enumerate(les)], source=name)
        for le in les:
            late += [(le, cti[name])] if le < cti[name] else []
            largest[name] = max(largest[name], le)
            cti[name] = max(cti[name], largest[name] - (0 if name == "c" else 2))
        for other, idle in (("b", 10), ("c", 30)):
            furthest = max(cti[each] for each in "abc" if each != other)
            if other != name and furthest > MIN_TIME:
                cti[other] = max(cti[other], furthest - idle)
        assert {each: session.stats()[f"source:{each}"]["input_cti"] for each in "abc"} == cti
    assert sorted((each.event.le, each.cti) for each in session.rejected()) == sorted(late)


def test_an_idle_source_holds_nothing_back_and_says_why_its_rows_are_late() -> None:
    trips = sd.source("trips", progress=Progress.ordered())
    rates = sd.source("rates", progress=Progress.ordered().idle_after(5), on_violation="drop")
    session = trips.union(rates).tumbling_window(10).aggregate(n=sd.count()).open("final")
    assert session.push([sd.point("a", 3, 1)], source="trips") == [Cti(-10)]
    assert session.push([sd.point("b", 16, 1)], source="trips")[-1] == Cti(10)
    session.push([sd.point("c", 10, 1)], source="rates")
    assert str(session.rejected()[0].origin) == "Progress.ordered(), by idle_after of 'rates' of 'trips', push 2"
    session.push([Cti(INFINITY)], source="trips")
    assert session.stats()["source:rates"]["input_cti"] == 11


def test_durations_of_policies_are_positive() -> None:
    for policy in (Progress.slack(5, max_jump=0), Progress.slack(5).idle_after(0)):
        with refused(QueryError, "is a duration > 0, not 0"):
            sd.source("s", progress=policy).open()


def test_the_error_of_a_late_event_says_where_the_cti_came_from() -> None:
    session = sd.source("{trips}", unit="s", progress=Progress.slack("5s")).open()
    session.push([sd.point("a", 60, 1)])
    with refused(CtiViolation, "before the CTI 1970-01-01T00:00:55Z, by Progress.slack('5s') of '{trips}', push 1") as caught:
        session.push([sd.point("b", 3, 1)])
    assert caught.value.origin == ("{trips}", "Progress.slack('5s')", 1)
