"""Columns that a query does not read: whatever their types, nothing is refused for their sake, and answers are the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, SchemaError, UnsupportedOnSpark
from tests.spark.helpers import PYTHON, physical_plan

pytestmark = [pytest.mark.spark]

S: Any = sd.source("s")
T: Any = sd.source("t")
READING_FIELDS: dict[str, Any] = {
    "a projection": S.select(k=lambda e: e.k, v=lambda e: e.v + 1),
    "a filter, pieces": S.where(lambda e: e.v > 1).chop(2).select(k=lambda e: e.k),
    "windows by key": S.group_by("k").tumbling_window(3).aggregate(n=sd.count(), v=sd.sum(lambda e: e.v)),
    "snapshots": S.snapshot_window().aggregate(most=sd.max(lambda e: e.v)),
    "windows in Python": S.group_by("k").snapshot_window().aggregate(v=sd.median(lambda e: e.v)),
    "a join": S.join(T, on="k", select=lambda a, b: {"k": a.k, "v": a.v + b.v}),
    "a left join": S.left_join(T, on="k", select=lambda a, b: {"k": a.k, "v": a.v}),
    "an as-of join": S.asof_join(T, on="k", select=lambda a, b: {"k": a.k, "v": b.v}),
    "an anti join": S.anti_join(T.where(lambda e: e.v > 1), on="k").select(k=lambda e: e.k),
    "a semi join": S.semi_join(T, on="k").select(v=lambda e: e.v),
    "a cut": S.clip_by(T, on="k").select(v=lambda e: e.v),
    "both": S.union(T).select(k=lambda e: e.k),
    "rows that are read twice": S.select(k=lambda e: e.k).union(S.where(lambda e: e.v > 1).select(k=lambda e: e.k)),
}
READING_PAYLOADS: dict[str, Any] = {
    "the output": S.anti_join(T, on="k"),
    "equal payloads": S.distinct().select(k=lambda e: e.k),
    "code of the user": S.where(lambda e: str(e.k) == "a").select(k=lambda e: e.k),
    "an order of payloads": S.tumbling_window(3).aggregate(v=sd.first(lambda e: str(e.v))),
}
UNREAD = (
    "map('x', 1) as a_map",
    "parse_json('{\"x\": 1}') as a_variant",
    "interval 1 day as days",
    "interval 1 month as months",
    "array(map('x', 1)) as maps",
    "named_struct('inner', parse_json('1')) as a_struct",
    "X'01' as bytes",
    "cast(1.5 as decimal(5,2)) as money",
    "le as K",
)


@pytest.fixture(scope="module")
def plain(spark: Any) -> Any:
    """Rows some of which are equal but for what is not read."""
    return spark.sql(
        "select * from values (1L, 5L, 'a', 1L), (1L, 5L, 'a', 1L), (2L, 9L, 'b', 2L), (4L, 6L, 'a', 3L) as t(le, re, k, v)"
    )


@pytest.fixture(scope="module")
def wide(plain: Any) -> Any:
    return plain.selectExpr("le", "monotonically_increasing_id() as number", "re", "v", "k", *UNREAD)


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def frames(query: sd.Stream[Any], frame: Any) -> dict[str, Any]:
    return {node.source: frame for node in query.plan().walk() if hasattr(node, "source")}


@pytest.mark.parametrize("name", READING_FIELDS)
def test_the_law_columns_that_are_not_read_make_no_difference(spark: Any, plain: Any, wide: Any, name: str) -> None:
    query = READING_FIELDS[name]
    alone, beside = (query.on_spark(spark).batch(frames(query, frame)) for frame in (plain, wide))
    assert (beside.dtypes, rows(beside)) == (alone.dtypes, rows(alone))
    assert bool(PYTHON.search(physical_plan(beside))) == bool(PYTHON.search(physical_plan(alone)))


@pytest.mark.parametrize("name", READING_PAYLOADS)
def test_where_payloads_are_read_as_a_whole_all_columns_are_read(spark: Any, wide: Any, name: str) -> None:
    query = READING_PAYLOADS[name]
    with pytest.raises(UnsupportedOnSpark, match=r"(?s)map<string,int>.*Hint: drop"):
        query.on_spark(spark).batch(frames(query, wide))


@dataclass(frozen=True)
class Trip:
    k: str
    v: int
    a_map: dict[str, int]


def test_declared_fields_that_are_not_read_are_columns_all_the_same(spark: Any, wide: Any) -> None:
    query = sd.source("s", Trip).anti_join(T.where(lambda e: e.v > 2), on="k").select(k=lambda e: e.k).on_spark(spark)
    assert rows(query.batch({"s": wide, "t": wide})) == [(1, 4, "a"), (1, 4, "a"), (2, 9, "b")]
    with pytest.raises(SchemaError, match="no column for 'a_map'"):
        query.batch({"s": wide.drop("a_map"), "t": wide})


@pytest.mark.parametrize("kind", ["named_struct('x', 1L, 'y', parse_json('1'))", "array(named_struct('x', parse_json('1')))"])
def test_a_struct_with_a_variant_inside_is_refused_only_if_it_is_read(spark: Any, plain: Any, kind: str) -> None:
    frame = plain.selectExpr("*", f"{kind} as held")
    assert len(S.select(v=lambda e: e.v).on_spark(spark).batch(frame).collect()) == 4
    for query in (S.where(lambda e: e.v > 1), S.select(held=lambda e: e.held)):
        with pytest.raises(UnsupportedOnSpark, match=r"the column 'held' of Spark's type .*variant(.|\n)*Hint: drop the column"):
            query.on_spark(spark).batch(frame)


MISSPELT: dict[str, Any] = {
    "a projection": S.select(k=lambda e: e.k, money=lambda e: e.mony),
    "a filter of whole payloads": S.where(lambda e: e.mony > 1),
    "a key": S.group_by("mony").tumbling_window(3).aggregate(n=sd.count()),
    "a group": S.group_by("k").apply(lambda g: g.group_by("v").apply(lambda h: h.where(lambda e: e.mony > 1))),
    "an aggregate": S.tumbling_window(3).aggregate(most=sd.max(lambda e: e.mony)),
    "one side": S.left_join(T, on="k", select=lambda a, b: (a, b.mony)),
    "another key": S.anti_join(T, on=("k", "mony")),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_field_that_a_frame_lacks_is_found_before_anything_runs(spark: Any, plain: Any, name: str) -> None:
    query, frame = MISSPELT[name], plain.selectExpr("*", "1.5D as money")
    with pytest.raises(FieldNotFound, match=r"there is no field 'mony'; the fields are: (.|\n)*did you mean 'money'\?"):
        query.on_spark(spark).batch(frames(query, frame))


def test_explain_shows_what_is_read(spark: Any, wide: Any) -> None:
    query = S.where(lambda e: e.v > 1).select(k=lambda e: e.k).on_spark(spark)
    assert "source:s  (v, k)  <native>" in query.explain(wide)


@pytest.mark.parametrize("engine", ["shards", "driver"])
def test_streams_leave_out_what_is_not_read(streaming: Any, engine: Any, tmp_path: Path) -> None:
    streaming.sql("select 1L as le, 5L as re, 'a' as k, map('x', 1) as a_map").write.parquet(str(tmp_path / "in"))
    frame = streaming.readStream.schema("le long, re long, k string, a_map map<string,int>").parquet(str(tmp_path / "in"))
    found: list[Any] = []
    query = S.group_by("k").tumbling_window(5).aggregate(n=sd.count()).on_spark(streaming)
    sink = lambda batch, number: found.extend(batch.where("kind = 'insert'").collect())  # noqa: E731
    query.write(frame, sink, tmp_path / "state", trigger="available-now", engine=engine).awaitTermination()
    assert [(row.le, row.re, row.k, row.n) for row in found] == [(0, 5, "a", 1)]
    with pytest.raises(UnsupportedOnSpark, match="map<string,int>"):
        S.on_spark(streaming).write(frame, sink, tmp_path / "other", engine=engine)
