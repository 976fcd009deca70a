"""The types of result columns: kept where they can be known, else VARIANT, with a warning that names what gives the values."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import SchemaError, UntypedColumnWarning, UserCodeError
from streamdsl.spark import translated
from tests.spark.helpers import PYTHON, physical_plan

pytestmark = [pytest.mark.spark]

ROWS = [
    {
        "k": k,
        "v": v,
        "f": f,
        "d": Decimal(f"{v}.00"),
        "day": date(2020, 1, 31),
        "at": datetime(2020, 1, 31, 1, 2, 3, tzinfo=UTC),
        "vs": [v],
    }
    for k, v, f in (("a", 1, 1.5), ("b", 2, 2.5), ("a", 4, 0.5))
]
COLUMNS = "le long, re long, k string, v long, f double, d decimal(10,2), day date, at timestamp, vs array<long>"
LIVES = [(1, 5), (2, 9), (4, 6)]


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame([(*life, *row.values()) for life, row in zip(LIVES, ROWS, strict=True)], COLUMNS)


@sd.udf
def half(x: int) -> float:
    return x / 2


@sd.udf
def same(x: Any) -> Any:
    return x


def shown(a: Any, b: Any) -> str:
    return f"{a.k} {None if b is None else b.v}"


def times(e: Any) -> list[int]:
    return [e.v] * int(e.v)


@dataclass
class Share:
    key: str
    part: float


class Shares(sd.UDO[Any, Share]):
    def compute_result(self, payloads: Sequence[Any]) -> Iterable[Share]:
        return [Share(payload["k"], 1 / len(payloads)) for payload in payloads]


class Unknown(sd.UDA[Any, Any]):
    def compute_result(self, payloads: Sequence[Any]) -> Any:
        return [len(payloads), "x"]


def own(values: Sequence[Any]) -> Any:
    return len(values)


S: Any = sd.source("s", unit="tick")
T: Any = S.where(lambda e: e.v > 0)
WINDOWS = S.tumbling_window(9)
SHARES = WINDOWS.apply(Shares())
DATES: dict[str, Any] = {
    "y": lambda e: e.day.year,
    "h": lambda e: e.at.hour,
    "d": lambda e: e.at.date(),
    "w": lambda e: e.day.isoweekday(),
    "i": lambda e: e.at.isoformat(),
    "hour": lambda e: sd.functions.truncate(e.at, "1h"),
    "there": lambda e: sd.functions.local_time(e.v, "Europe/Vienna", "s").day,
}
BY_PYTHON: Any = S.group_by(lambda e: same(e.k))
AT_HALF: Any = S.group_by(lambda e: half(e.v))
IN_GROUPS: dict[str, tuple[Any, str]] = {
    "aggregates": (
        AT_HALF.tumbling_window(9)
        .aggregate(n=sd.count(), total=sd.sum(lambda e: e.v), mean=sd.avg(lambda e: e.f))
        .select(n=lambda e: e.n, total=lambda e: e.total, mean=lambda e: e.mean),
        "n bigint, total bigint, mean double",
    ),
    "the key": (AT_HALF.snapshot_window().aggregate(last=sd.last(lambda e: e.day)), "key double, last date"),
    "a pair as the key": (
        S.group_by(lambda e: (half(e.v), e.k)).tumbling_window(9).aggregate(n=sd.count()).select(lambda e: e.n),
        "value bigint",
    ),
    "rows": (
        BY_PYTHON.apply(lambda g: g.clip_duration(2)).select(lambda e: e[1]),
        COLUMNS.partition("re long, ")[2].replace("long", "bigint"),
    ),
    "a module": (BY_PYTHON.tumbling_window(9).apply(Shares()).select(a=lambda e: e[1].part), "a double"),
    "groups in groups": (
        BY_PYTHON.apply(lambda g: g.group_by(lambda e: half(e.v)).session_window(3).aggregate(n=sd.count())).select(
            lambda e: e[1].n
        ),
        "value bigint",
    ),
    "a join": (
        BY_PYTHON.apply(lambda g: g.join(g.where(lambda e: e.v > 1), select=lambda a, b: {"v": a.v, "f": b.f})).select(
            lambda e: e[1]
        ),
        "v bigint, f double",
    ),
    "medians": (AT_HALF.tumbling_window(9).aggregate(m=sd.median(lambda e: e.v)).select(lambda e: e.m), "value double"),
}
"""Groups whose key Python computes."""
KNOWN: dict[str, tuple[Any, str]] = {
    "dates": (S.select(**DATES), "y bigint, h bigint, d date, w bigint, i string, hour timestamp, there bigint"),
    "powers": (S.select(a=lambda e: e.v**3, b=lambda e: e.f**2), "a bigint, b double"),
    "a function": (S.select(a=lambda e: half(e.v) + 1, b=lambda e: half(e.v) > 1), "a double, b boolean"),
    "a choice": (S.select(a=lambda e: sd.when(e.v > 1).then(e.k.upper()).otherwise("x")), "a string"),
    "the first that is some": (S.select(a=lambda e: sd.functions.coalesce(e.d, e.d)), "a decimal(10,2)"),
    "items": (S.select(a=lambda e: e.vs[0], b=lambda e: half(e.vs[0])), "a bigint, b double"),
    "parts": (S.select(a=lambda e: e.k.split("x")), "a array<string>"),
    "lists of a function": (S.select_many(times), "value bigint"),
    "no row beside": (S.left_join(T, on="k", select=lambda a, b: {"v": b.v, "w": b.v * 2}), "v bigint, w bigint"),
    "no row near": (S.asof_join(T, on="k", how="left", select=lambda a, b: {"v": b.v}), "v bigint"),
    "a function of pairs": (S.left_join(T.where(lambda e: e.v > 1), on="k", select=shown), "value string"),
    "runs": (
        S.select(v=lambda e: e.v).match(lambda p: p.a.many().then(p.b).within(9)),
        "a array<struct<v:bigint>>, b struct<v:bigint>",
    ),
    "objects": (SHARES.select(a=lambda e: e.key, b=lambda e: e.part * 2), "a string, b double"),
    "most of objects": (SHARES.tumbling_window(9).aggregate(a=sd.max(lambda e: e.part)), "a double"),
    "truths": (WINDOWS.aggregate(a=sd.sum(lambda e: e.v > 1), b=sd.max(lambda e: half(e.v))), "a bigint, b double"),
    "decimals": (
        WINDOWS.aggregate(a=sd.sum(lambda e: e.d), b=sd.median(lambda e: e.d), c=sd.stddev(lambda e: e.d)),
        "a decimal(20,2), b decimal(10,2), c double",
    ),
    **{f"groups: {name}": case for name, case in IN_GROUPS.items()},
    "medians": (WINDOWS.aggregate(a=sd.median(lambda e: e.at), b=sd.median(lambda e: e.k)), "a timestamp, b string"),
}


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Mapping):
        return [plain(item) for item in value.values()]
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", KNOWN)
def test_types_that_can_be_known_are_kept(spark: Any, frame: Any, name: str) -> None:
    query, types = KNOWN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UntypedColumnWarning)
        found = query.on_spark(spark).batch(frame)
    assert ", ".join(f"{column} {kind}" for column, kind in found.dtypes[2:]) == types
    events = [sd.Insert(n, *life, row) for n, (life, row) in enumerate(zip(LIVES, ROWS, strict=True))]
    expected = [(row.le, row.re, row.payload) for row in query.run({"s": events}, engine="reference").cht()]
    values = [[*life, *(payload.values() if isinstance(payload, Mapping) else [payload])] for *life, payload in expected]
    assert sorted(map(plain, found.collect()), key=repr) == sorted(map(plain, values), key=repr)


@pytest.mark.parametrize("join", ["left_join", "asof_join"])
def test_a_field_of_a_row_that_is_missing_raises_as_in_python(spark: Any, frame: Any, join: str) -> None:
    how = {"how": "left"} if join == "asof_join" else {}
    query = getattr(S, join)(T.where(lambda e: e.v > 2), on="k", select=lambda a, b: (a.v, b.v), **how)
    found = query.on_spark(spark).batch(frame)
    assert PYTHON.search(physical_plan(found)) is None
    with (
        pytest.raises(UserCodeError, match=r"no attribute 'v'\n  at .*lambda in test_types.py"),
        translated(),
    ):
        found.collect()


UNKNOWN: dict[str, tuple[Any, str]] = {
    "a lambda": (
        S.select(a=lambda e: e.v, b=lambda e: f"{e.k}"),
        r"'b', of operator select_1, lambda in test_types.py, line",
    ),
    "a function": (S.select(b=lambda e: same(e.v)), r"'b', of operator select_1, the function same, in test_types.py, line"),
    "a pair": (
        S.join(T, on="k", select=lambda a, b: f"{a}{b}"),
        r"'value', of operator join_1, lambda in test_types.py, line",
    ),
    "a module": (WINDOWS.aggregate(a=Unknown().of(lambda e: e.v), n=sd.count()), r"'a', of the module Unknown$"),
    "a module that is a function": (
        WINDOWS.aggregate(sd.uda(own), lambda e: e.v),
        r"'value', of the module own in test_types.py, line",
    ),
    "a mean of decimals": (WINDOWS.aggregate(a=sd.avg(lambda e: e.d)), "'a', of a mean of decimals$"),
    "a choice": (
        S.select(x=lambda e: sd.when(e.v > 1).then(1).otherwise(0.5)),
        "'x', of operator select_1, lambda",
    ),
    "several types": (S.select(x=lambda e: e.v).union(T.select(x=lambda e: e.f)), "'x', of several types that come together$"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_column_of_unknown_type_is_warned_of_once(spark: Any, frame: Any, name: str) -> None:
    query, said = UNKNOWN[name]
    with pytest.warns(UntypedColumnWarning) as warned:
        found = query.on_spark(spark).batch(frame)
    assert "variant" in [kind for _, kind in found.dtypes]
    (once,) = [each for each in warned if each.category is UntypedColumnWarning]
    assert re.search(said, str(once.message), re.MULTILINE)
    assert once.filename == __file__


def test_a_stream_warns_too(streaming: Any, tmp_path: Any) -> None:
    frame = streaming.readStream.schema("le long, v long").parquet(str(tmp_path))
    with pytest.warns(UntypedColumnWarning, match=r"select_1, lambda in test_types.py") as warned:
        S.select(lambda e: f"{e.v}").on_spark(streaming).stream(frame)
    assert [each.filename for each in warned if each.category is UntypedColumnWarning] == [__file__]


def test_medians_of_integers_are_floats_in_a_frame(spark: Any) -> None:
    large = 2**53 + 1
    frame = spark.createDataFrame([(1, 5), (2, 7), (3, 8), (11, 2), (12, 3), (21, None), (31, 2**53)], "le long, v long")
    query = S.tumbling_window(10).aggregate(m=sd.median(lambda e: e.v), n=sd.collect(lambda e: e.v)).on_spark(spark)
    found = query.batch(frame)
    assert found.dtypes[2:] == [("m", "double"), ("n", "array<bigint>")]
    assert PYTHON.search(physical_plan(found)) is None
    assert [row.m for row in found.orderBy("le").collect()] == [7.0, 2.5, None, float(2**53)]
    with pytest.raises(SchemaError, match="beyond 2"), translated():
        query.batch(spark.createDataFrame([(1, large)], "le long, v long")).collect()


def test_medians_of_integers_are_floats_in_a_stream(streaming: Any, tmp_path: Any) -> None:
    rows = [(1, 5), (2, 8), (3, 7), (11, 2), (12, 3), (21, None)]
    streaming.createDataFrame(rows, "le long, v long").write.parquet(str(tmp_path / "in"))
    frame = streaming.readStream.schema("le long, v long").parquet(str(tmp_path / "in"))
    found: list[Any] = []
    query = S.tumbling_window(10).aggregate(m=sd.median(lambda e: e.v)).on_spark(streaming)
    sink = lambda batch, number: found.extend(batch.where("kind = 'insert'").collect())  # noqa: E731
    query.write(frame, sink, tmp_path / "state", trigger="available-now").awaitTermination()
    assert sorted((row.le, row.m) for row in found) == [(0, 7.0), (10, 2.5), (20, None)]
