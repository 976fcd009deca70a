"""Aggregates and functions of dates, decimals, texts and lists over physical events give what the definition says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.plan.node import Source
from streamdsl.spark import canonical
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.source_frames import source_of_frame
from streamdsl.testing import arrival_order
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.spark.helpers import check_noted, stream
from tests.spark.streams import row_of
from tests.spark.test_streaming import written_by

pytestmark = [pytest.mark.spark]

EVENTS = "kind string, id string, le long, re long, re_new long"
PAYLOAD = "case long, v long, d decimal(12,3), day date, at timestamp, k string, vs array<long>"
NAMES = [part.split(" ")[0] for part in PAYLOAD.split(", ")]
FIRST = datetime(2020, 1, 30, 23, tzinfo=UTC)
TEXTS = ("", " ", "ab", "a", "bab", " \t", "é", "\u2003")


def history(rng: Random) -> sd.CHT[Any]:
    """Return histories of a few rows, many of which start or end together, or are equal; `case` is of which history a row is."""
    rows = []
    for case in range(36):
        low, high = rng.choice([(0, 3), (-8, 12)])
        payloads = [payload(rng, case) for _ in range(rng.randint(1, 6))]
        for _ in range(rng.randint(1, 8)):
            start = rng.randint(low, high)
            rows.append((start, start + rng.choice([1, 2, 5, 9]), rng.choice(payloads)))
    return sd.CHT.from_rows(rows)


def payload(rng: Random, case: int) -> dict[str, Any]:
    at = rng.choice([None, FIRST + rng.randint(-2, 2) * timedelta(hours=7)])
    values = [None, *(rng.randint(-3, 3) for _ in range(3)), 2**53 + rng.randint(0, 3)]
    return {
        "case": case,
        "v": rng.choice(values),
        "d": rng.choice([None, Decimal(rng.randint(-3, 3)) / 8]),
        "day": at and date(at.year, at.month, at.day),
        "at": at,
        "k": rng.choice(TEXTS),
        "vs": [rng.choice(values) for _ in range(rng.randint(1, 3))],
    }


def frame_of(spark: Any, rows: sd.CHT[Any], rng: Random) -> Any:
    """Return a frame of physical events, in any order, that mean these rows: with retractions, CTIs and ids used again."""
    told = list(map(row_of, [*arrival_order(rows, rng), sd.Cti(sd.INFINITY)]))
    rng.shuffle(told)
    columns = [*(part.split(" ")[0] for part in EVENTS.split(", ")), *NAMES]
    return spark.createDataFrame([tuple(map(event.get, columns)) for event in told], f"{EVENTS}, {PAYLOAD}")


VALUES: dict[str, Any] = {
    "q1": sd.quantile(lambda e: e.v, 0.3),
    "q2": sd.quantile(lambda e: e.v, 0.75),
    "median": sd.median(lambda e: e.v),
    **{f"low_{name}": sd.min(sd.col(name)) for name in ("d", "day", "at")},
    **{f"high_{name}": sd.max(sd.col(name)) for name in ("d", "day", "at")},
    **{f"some_{name}": sd.quantile(sd.col(name), 0.4, "inverted_cdf") for name in ("d", "day", "at")},
}
IN_ORDER: dict[str, Any] = {
    f"{how.__name__}_{name}": how(sd.col(name)) for how in (sd.first, sd.last, sd.collect) for name in ("d", "day", "at")
}


def ordered() -> sd.Stream[Any]:
    """Rows without lists, which Spark does not order as Python does."""
    return stream().select(**{name: sd.col(name) for name in NAMES if name != "vs"})


def functions() -> sd.Stream[Any]:
    return stream().select(
        a=lambda e: e.k.removeprefix("a"),
        b=lambda e: e.k.removesuffix("b"),
        c=lambda e: e.k.isspace(),
        n=lambda e: sd.functions.length(e.vs),
        first=lambda e: e.vs[0],
        last=lambda e: e.vs[-1],
        there=lambda e: sd.functions.contains(e.vs, 2),
        own=lambda e: sd.functions.contains(e.vs, e.v),
    )


QUERIES: dict[str, Callable[[], sd.Stream[Any]]] = {
    "tumbling": lambda: ordered().group_by("case").tumbling_window(5).aggregate(**VALUES, **IN_ORDER),
    "hopping": lambda: ordered().group_by("case").hopping_window(6, 3).aggregate(**VALUES, **IN_ORDER),
    "snapshot": lambda: ordered().group_by("case").snapshot_window().aggregate(**VALUES, **IN_ORDER),
    "count": lambda: ordered().group_by("case").count_window(2).aggregate(**VALUES, **IN_ORDER),
    "session": lambda: ordered().group_by("case").session_window(2).aggregate(**VALUES, **IN_ORDER),
    "largest": lambda: ordered().group_by("case").tumbling_window(5).top_k(2, by="d", rank=True),
    "latest": lambda: ordered().group_by("case").snapshot_window().top_k(2, by="at"),
    "functions": functions,
    "edges of functions": lambda: functions().to_edges(lambda e: e.a),
}


@pytest.mark.parametrize("name", QUERIES)
def test_physical_events_mean_what_the_definition_says(name: str, spark: Any) -> None:
    query = QUERIES[name]()

    @examples(5)
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        rows = history(rng)
        flows = {"s": source_of_frame(Source("s", None, "tick"), SourceFrame(frame_of(spark, rows, rng)))}
        expected = denote(query.plan(), {"s": rows})
        assert len(expected) > 0
        assert check_noted(query, {"s": rows}, expected, flows=flows)

    law()


def test_a_stream_of_physical_events_means_it_too(streaming: Any, tmp_path: Path) -> None:
    rng = Random(5)
    rows = history(rng)
    kept = {name: of for name, of in VALUES.items() if name[0] != "q" and name != "median"}  # which may be beyond 2**53
    query = ordered().group_by("case").tumbling_window(5).aggregate(**kept, **IN_ORDER)
    frame_of(streaming, rows, rng).repartition(2).write.parquet(str(tmp_path / "in"))
    frame = streaming.readStream.schema(f"{EVENTS}, {PAYLOAD}").parquet(str(tmp_path / "in"))
    found = canonical(written_by(streaming, query.on_spark(streaming).stream(frame), tmp_path, []))
    expected = [(row.le, row.re, *row.payload.values()) for row in denote(query.plan(), {"s": rows})]
    shown = [tuple(map(comparable, row)) for row in found.collect()]
    assert sorted(shown, key=repr) == sorted((tuple(map(comparable, row)) for row in expected), key=repr)


def comparable(value: Any) -> Any:
    """Return a value as tables show it: decimals with all their digits, times in UTC, numbers as floats."""
    if isinstance(value, list):
        return list(map(comparable, value))
    if isinstance(value, Decimal):
        return value.quantize(Decimal("0.001"))
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return float(value) if isinstance(value, (int, float)) else value
