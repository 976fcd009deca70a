"""The public contract, section 5: runs, sessions, their output and their figures."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamdsl as sd
from streamdsl import CHT, INFINITY, MIN_TIME, Cti, Insert, Output, Progress, Retract
from streamdsl.errors import QueryError, SessionError, UnboundedOutputError
from tests.unit.contract.common import EMITS, X, Y, cht_of, refused, rows


class LastEnd(sd.TimeSensitiveUDA[Any, int]):
    def compute_result(self, events: Any, window: Any) -> int:
        return max(int(event.end_time) for event in events)


def test_a_window_over_a_snapshot_that_ends_at_until_has_its_result() -> None:
    ends = sd.source("s").snapshot_window(clip=sd.Clip.FULL).aggregate(last=LastEnd().of(lambda e: e))
    query = ends.tumbling_window(5).aggregate(n=sd.count())
    rows = {"s": [(2, 8, 1)]}
    for until in range(5, 10):
        assert query.run(rows, until=until).cht() == query.run(rows, engine="reference", until=until).cht()
    assert [(row.le, row.re) for row in query.run(rows, until=8)] == [(0, 5)]


def test_until_ends_the_input_there_and_cuts_nothing_else() -> None:
    forever = sd.from_events([Insert("a", 1, INFINITY, 1), Insert("b", 25, 27, 2)])
    assert forever.run(until=20).events() == [Insert("a", 1, INFINITY, 1), Insert("b", 25, 27, 2), Cti(20)]
    counted = forever.tumbling_window(10).aggregate(n=sd.count())
    assert cht_of(counted, until=25) == CHT.from_rows([(0, 10, {"n": 1}), (10, 20, {"n": 1})])
    assert len(cht_of(forever.snapshot_window().aggregate(n=sd.count()), until=25)) == 1


@pytest.mark.parametrize("aggregate", [sd.count(), sd.median(lambda e: e)])
def test_windows_that_an_unending_event_would_fill_raise_with_the_event_and_a_hint(aggregate: Any) -> None:
    query = X.tumbling_window(10).aggregate(n=aggregate)
    with refused(UnboundedOutputError, "'forever'", "Hint:", "until"):
        query.run({"x": [sd.edge_start("forever", 1, 1)]})
    with refused(UnboundedOutputError, "event 0", "until"):
        query.run({"x": [(1, INFINITY, 1)]})
    for emit in EMITS:
        session = query.open(emit)
        session.push([sd.edge_start("forever", 1, 1), Cti(25)])
        with refused(UnboundedOutputError, "'forever'"):
            session.close()
        assert session.stats()


def test_each_piece_of_a_push_comes_before_the_cti_that_ends_it() -> None:
    out = X.open().push(
        [
            Insert("b", 3, 9, "b"),
            Insert("a", 3, 9, "a"),
            Cti(3),
            Retract("b", 3, 9, 4),
            Insert("c", 3, 4, "c"),
            Insert("d", 3, 9, "d"),
            Retract("d", 3, 9, 3),
        ]
    )
    assert out == [Insert("a", 3, 9, "a"), Insert("b", 3, 9, "b"), Cti(3), Retract("b", 3, 9, 4, "b"), Insert("c", 3, 4, "c")]


FINAL: list[tuple[sd.Stream[Any], int]] = [
    (X, -1),
    (X.where(lambda e, life: life.re > 6), -1),
    (X.to_points(), 0),
    (X.to_points_at_end(), 0),
    (X.alter_duration(5), 4),
    (X.alter_duration(5).where(lambda e: True).shift(2).select(lambda e: e), 6),
    (X.extend(3), 2),
    (X.clip_duration(5), -1),
    (X.tumbling_window(4).aggregate(n=sd.count()), 0),
    (X.group_by("value").hopping_window(8, 4).aggregate(n=sd.count()), 0),
    (X.hopping_window(8, 4).aggregate(n=sd.max(lambda e: e)).shift(3), 3),
    (X.count_window(2).aggregate(n=sd.count()), 0),
    (X.session_window(2).aggregate(n=sd.count()), 0),
    (X.snapshot_window().aggregate(n=sd.count()), -1),
    (X.snapshot_window(output=Output.POINT_AT_END).aggregate(n=sd.count()), 0),
    (X.to_points().union(X.alter_duration(3)), 0),
    (X.to_points().union(X), -1),
    (X.join(X), -1),
]
"""Queries, and how far after the CTI the last RE is with which a row is final."""


@pytest.mark.parametrize(("query", "beyond"), FINAL)
def test_final_sends_a_row_once_it_cannot_change(query: sd.Stream[Any], beyond: int) -> None:
    final, speculative = query.open("final"), query.open()
    events = [Insert("a", 0, 6, 1), Insert("b", 2, 9, 2), Insert("c", 3, 30, 3)]
    assert final.push(events) == []
    sent, shown = [], speculative.push(events)
    for c in range(1, 40):
        out = final.push([Cti(c)])
        sent += out
        shown += speculative.push([Cti(c)])
        table = max((event.time for event in shown if isinstance(event, Cti)), default=MIN_TIME)
        rows_now = CHT.from_events(event for event in shown if not isinstance(event, Cti)).rows
        held = [row for row in rows_now if row.re > c + beyond]
        assert len(CHT.from_events(event for event in sent if not isinstance(event, Cti))) == len(rows_now) - len(held)
        reached = max((event.time for event in sent if isinstance(event, Cti)), default=MIN_TIME)
        assert reached == min([table, *(row.le for row in held)])
    sent += final.close()
    assert not any(isinstance(event, Retract) for event in sent)
    assert sent[-1] == Cti(INFINITY)
    assert CHT.from_events(sent) == CHT.from_events(shown + speculative.close())


def test_output_ids_come_from_what_a_row_is() -> None:
    left = [Insert("a", 1, 5, {"k": 1, "v": 1}), Insert("b", 3, 12, {"k": 2, "v": 2}), Insert("c", 11, 13, {"k": 1, "v": 3})]
    right = [Insert("p", 2, 6, {"k": 1, "w": 1}), Insert("q", 0, 20, {"k": 2, "w": 2})]
    queries: list[tuple[sd.Stream[Any], set[Any]]] = [
        (X.where(lambda e: e.v > 1), {"b", "c"}),
        (X.select(lambda e: e.v), {"a", "b", "c"}),
        (X.union(Y), {(0, "a"), (0, "b"), (0, "c"), (1, "p"), (1, "q")}),
        (X.join(Y, on="k"), {("a", "p"), ("b", "q")}),
        (X.anti_join(Y, on="k"), {("a", 1), ("c", 11)}),
        (X.tumbling_window(10).aggregate(n=sd.count()), {("window_aggregate_1", 0, 0), ("window_aggregate_1", 10, 0)}),
    ]
    for query, expected in queries:
        for order, first in itertools.product(itertools.permutations(left), "xy"):
            session = query.open("final")
            pushes = {"x": list(order), "y": right}
            for source in sorted(session.sources, key=lambda name: name != first):
                session.push(pushes[source], source=source)
            assert {event.id for event in session.close() if isinstance(event, Insert)} == expected


def test_stats_are_by_the_labels_of_explain() -> None:
    query = X.where(lambda e: e > 0).group_by("value").tumbling_window(10).aggregate(n=sd.median(lambda e: e))
    session = query.open()
    session.push([Insert("a", 1, 5, 1), Insert("b", 3, 12, -2), Cti(4)])
    stats = session.stats()
    assert set(stats) == set(re.findall(r"\w+_\d+(?= )|source:\w+", query.explain())) | {"(output)"}
    keys = {"windows", "events", "state_bytes", "in", "out", "input_cti", "output_cti", "udm_calls"}
    assert all(set(figures) == keys for figures in stats.values())
    assert [stats["source:x"][key] for key in ("in", "out", "events", "output_cti")] == [2, 2, 2, 4]
    assert [stats["where_1"][key] for key in ("in", "out")] == [2, 1]
    assert [stats["group_apply_1"][key] for key in ("in", "out", "input_cti", "output_cti")] == [1, 1, 4, 0]
    assert stats["window_aggregate_1"]["udm_calls"] == 1
    assert set(X.open().stats()) == {"source:x", "(output)"}


def test_why_no_output_names_the_input_that_holds_it_back() -> None:
    session = X.join(Y).open()
    session.push([Insert("a", 1, 10, 1), Cti(5)], source="x")
    assert "'y' has sent no CTI" in (session.why_no_output() or "")
    session.push([Cti(3)], source="y")
    assert "'y' has only reached the CTI 3" in (session.why_no_output() or "")
    session.push([Cti(5)], source="y")
    assert session.why_no_output() is None


def test_physical_frames_are_pushed_and_frames_of_results_hold_timestamps() -> None:
    frame = pd.DataFrame(
        [("insert", "a", 1, None, None, 7), ("cti", None, 4, None, None, None), ("retract", "a", 1, None, 5, 7)],
        columns=["kind", "id", "le", "re", "re_new", "v"],
    )
    expected = [Insert("a", 1, INFINITY, {"v": 7}), Cti(4), Retract("a", 1, INFINITY, 5, {"v": 7})]
    assert X.open().push(frame) == expected
    assert X.open().push(pl.from_pandas(frame)) == expected
    assert X.open().push(pa.Table.from_pandas(frame)) == expected
    dated = sd.from_rows([("2013-01-01", INFINITY, {"v": 7})], unit="ms").run()
    assert dated.to_pandas()["le"].tolist() == [pd.Timestamp("2013-01-01", tz="UTC")]
    assert dated.to_pandas()["re"].isna().tolist() == [True]
    assert dated.to_arrow()["le"].type == pa.timestamp("ms", tz="UTC")
    assert dated.to_polars()["re"].to_list() == [None]
    assert rows(1).to_pandas()["le"].dtype == np.int64


def test_stream_yields_what_each_event_of_an_asynchronous_source_causes_before_it_takes_the_next() -> None:
    log: list[Any] = []

    async def source() -> AsyncIterator[Any]:
        for event in (Insert("a", 1, 5, 1), Cti(10), Insert("b", 11, 12, 2)):
            log.append(f"in {event.time if isinstance(event, Cti) else event.id}")
            yield event

    async def collect() -> None:
        async for event in X.tumbling_window(10).aggregate(n=sd.count()).stream(source(), emit="final"):
            log.append((event.le, event.re) if isinstance(event, Insert) else event)

    asyncio.run(collect())
    assert log == ["in a", "in 10", (0, 10), Cti(10), "in b", (10, 20), Cti(INFINITY)]


MISUSED: list[tuple[Callable[[], Any], tuple[str, ...]]] = [
    (lambda: X.run({"x": []}, engine="flink"), ("'flink'", "local, reference, spark")),  # type: ignore[arg-type]
    (lambda: X.explain("flink"), ("'flink'", "local, reference, spark")),  # type: ignore[arg-type]
    (lambda: X.open("sometimes"), ("'speculative'", "'sometimes'")),  # type: ignore[arg-type]
    (lambda: X.open().push([], source="z"), ("'z'", "x")),
    (lambda: X.union(Y).open().push([]), ("for which source", "x, y", "source=")),
    (lambda: X.open().push(Insert("a", 1, 2, 3)), ("not a Insert", "push([event])")),
    (lambda: X.run(), ("'x' is not bound", "run({'x'")),
    (lambda: X.run({"x": [], "z": []}), ("'z'", "x")),
    (lambda: X.run([Insert("a", 1, 2, 3)]), ("not a list", "run({'x'")),  # type: ignore[arg-type]
    (lambda: X.run({"x": 5}), ("cannot be bound to a int", "a list of events")),
    (lambda: X.open(engine_options={"most_rows": 5}), ("'most_rows'", "most_windows")),
    (lambda: rows({"fare": 1}).where(lambda e: e.faer > 1), ("'faer'", "fare", "did you mean 'fare'")),
    (lambda: sd.source("x", progress=Progress.slack), ("not a progress policy", "slack")),  # type: ignore[arg-type]
    (lambda: sd.source("x", on_violation="ignore"), ("'ignore'", "error, drop, adjust")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("misuse", "texts"), MISUSED)
def test_errors_say_what_there_is_instead(misuse: Callable[[], Any], texts: tuple[str, ...]) -> None:
    with refused(QueryError, *texts):
        misuse()


def test_a_bare_source_can_be_run_and_opened_and_open_reads_nothing() -> None:
    bounded = rows("a", "b")
    assert len(bounded.run().cht()) == 2
    session = bounded.open()
    assert session.push([Insert("own", 1, 2, "c")]) == [Insert("own", 1, 2, "c")]
    assert session.close() == [Cti(INFINITY)]
    with refused(SessionError, "closed"):
        session.push([])
