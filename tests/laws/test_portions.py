"""The law of portions of windows, which Spark's Python workers compute: one portion, and all portions of all groups."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

import pyarrow as pa

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.expr.nodes import Field, Key, Make, Whole
from streamdsl.expr.schema import Schema
from streamdsl.plan.node import Group, GroupApply, Node, Source, Windowed
from streamdsl.spark.codec import decode, encode
from streamdsl.spark.column_types import INT, STR, PickledType, RecordType
from streamdsl.spark.portion import WindowPortion
from streamdsl.spark.portion_stage import PortionSession, PortionStage
from streamdsl.spark.row_stage import PayloadColumn
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts
from tests.laws.modules import Through
from tests.laws.profiles import examples
from tests.laws.test_framed_windows import CLIPS, RESULTS, STAMPING, TIMED

Query = Callable[[Any], sd.Stream[Any]]


def applied(module: Any, windows: Any) -> sd.Stream[Any]:
    found: sd.Stream[Any] = windows.apply(module, lambda e: e.v)
    return found


MODULES: list[tuple[Query, sd.Output]] = [
    *itertools.product([*RESULTS, *TIMED], (sd.Output.ALIGN, sd.Output.POINT_AT_END)),
    *((partial(applied, module), output) for module, output in STAMPING),
]
SIZES = st.integers(1, 9)
HISTORIES = chts(
    st.builds(lambda k, v: sd.Record(k=k, v=v), st.sampled_from(["a", "\u00e9"]), st.integers(-3, 3)), 12, -9, 25, unending=True
)
UNTIL = st.integers(0, 60) | st.just(sd.INFINITY)


@examples(200)
@given(
    st.builds(lambda size, hop, offset, first, count: ((size, hop, offset), first, count), SIZES, SIZES, SIZES, SIZES, SIZES),
    st.sampled_from(MODULES),
    HISTORIES,
    st.sampled_from(CLIPS),
    UNTIL,
)
def test_a_portion_gives_what_its_windows_mean(
    of: Any, module: tuple[Query, sd.Output], rows: sd.CHT[Any], clip: sd.Clip, until: int
) -> None:
    (hopping, first, count), (result, output) = of, module
    query = result(sd.source("s", unit="tick").hopping_window(*hopping, clip=clip, output=output))
    plan = query.plan()
    assert isinstance(plan, Windowed)
    windows = WindowPortion(plan.windows, first - 4, count)  # type: ignore[arg-type]
    ending = ending_rows(rows, until)
    portion = query._over(dataclasses.replace(plan, windows=windows))
    assert_cht_equal(portion.run({"s": ending}, until=until).cht(), denote(portion.plan(), {"s": ending}, until))


RECORD = RecordType(Schema.record(("k", "v")), (STR, INT))


@examples(200)
@given(
    st.tuples(SIZES, SIZES, SIZES),
    SIZES,
    SIZES,
    st.sampled_from(MODULES),
    HISTORIES,
    st.sampled_from(CLIPS),
    UNTIL,
    st.booleans(),
)
def test_portions_of_groups_give_what_all_windows_mean(
    of: Any, size: int, step: int, module: tuple[Query, sd.Output], rows: sd.CHT[Any], clip: sd.Clip, until: int, grouped: bool
) -> None:
    """The portions of two groups, or of all rows, are those of two partitions, which come in batches of `step` rows."""
    result, output = module
    node = result(sd.source("in", unit="tick").hopping_window(*of, clip=clip, output=output)).plan()
    assert isinstance(node, Windowed)
    keys = (PayloadColumn("k0", STR),) if grouped else ()
    payload = PayloadColumn("p", RECORD, RECORD.schema)
    stage = PortionStage(node, size, payload, keys, PickledType(), until)
    ending = ending_rows(rows, until)
    copies = [(j, row) for row in ending for j in portions(node.windows, row, until, size)]
    copies.sort(key=lambda copy: (copy[0], copy[1].le))
    found: list[tuple[int, int, Any]] = []
    for partition in range(2):
        mine = [(j, row) for j, row in copies if (j + grouped * (row.payload["k"] == "a")) % 2 == partition]
        for batch in stage.run(batch_of(mine[first : first + step]) for first in range(0, len(mine), step)):
            found += rows_of(batch, grouped)
    plan: Node = node
    if grouped:
        body = dataclasses.replace(node, input=Group(None, "tick"))
        plan = GroupApply(Source("in", None, "tick"), Field("k"), body, Make(Schema.tuple(2), (Key(), Whole())))
    assert_cht_equal(sd.CHT.from_rows(found), denote(plan, {"in": ending}, until))


@pytest.mark.parametrize("output", [sd.Output.UNCHANGED, sd.Output.ALIGN, sd.Output.POINT_AT_END])
def test_rows_that_live_beyond_the_end_of_a_portion_are_final(output: sd.Output) -> None:
    plan = sd.source("in", unit="tick").tumbling_window(5, output=output).apply(Through(), lambda e: e.v).plan()
    rows = [(1, 25, sd.Record(v=1)), (6, 30, sd.Record(v=2))]
    session = PortionSession(plan, until=12, emit="final")
    events = [*session.push([sd.Insert(i, *row) for i, row in enumerate(rows)]), *session.end(12)]
    found = [(event.le, event.re, event.payload) for event in events if isinstance(event, sd.Insert)]
    assert len(found) == 3
    assert_cht_equal(found, denote(plan, {"in": sd.CHT.from_rows(rows)}, 12))


def ending_rows(rows: sd.CHT[Any], until: int) -> sd.CHT[Any]:
    return sd.CHT(row for row in rows if until < sd.INFINITY or row.re < sd.INFINITY)


def portions(windows: Any, row: Any, until: int, size: int) -> set[int]:
    """Return the numbers of the portions with windows of a row that end by `until`."""
    last = windows.last_starting_before(min(row.re, until))
    return {k // size for k in range(windows.first_ending_after(row.le), last + 1) if windows.end(k) <= until}


def batch_of(copies: list[tuple[int, Any]]) -> Any:
    times = {name: pa.array([getattr(row, name) for _, row in copies], pa.int64()) for name in ("le", "re")}
    payloads = [row.payload for _, row in copies]
    keys, numbers = [payload["k"] for payload in payloads], pa.array([j for j, _ in copies], pa.int64())
    return pa.RecordBatch.from_pydict({**times, "p": encode(payloads, RECORD), "k0": pa.array(keys, pa.string()), "j": numbers})


def rows_of(batch: Any, grouped: bool) -> list[tuple[int, int, Any]]:
    """Return the rows of a batch, with their keys if they are grouped; a row that has no lifetime is none."""
    payloads = decode(batch.column("p"), PickledType())
    shown = list(zip(batch.column("k0").to_pylist(), payloads, strict=True)) if grouped else payloads
    times = (batch.column(name).to_pylist() for name in ("le", "re"))
    return [row for row in zip(*times, shown, strict=True) if row[0] < row[1]]
