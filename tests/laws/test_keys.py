"""Keys of every kind, by every door: held columns and codes mean what the events of their rows mean, in Python's own types."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from unittest.mock import patch
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, note

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.keys import KeyTable
from streamdsl.engine.starting import restored
from streamdsl.errors import SchemaError
from streamdsl.expr import encoding, kernel
from streamdsl.io import arrow_held
from streamdsl.io.libraries import columns_of
from streamdsl.temporal import CHT, Cti, Event, Insert
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.harness import EMITS
from tests.laws.key_limits import row_by_row, small_limits
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS


class Kind(NamedTuple):
    """A kind of key: how one is drawn, the type of the column, and whether a column may have nulls."""

    draw: Callable[[Random], Any]
    type: Any
    nulls: bool = True


FLOATS = (0.0, -0.0, 1.0, 2.5, -3.0, float("nan"), float("inf"), 1e300)
TEXTS = ("", "a", "A", "ä", "z\u0301", "日本", "a\x00b", "x" * 40, "None", "nan", "1")
KINDS: dict[str, Kind] = {
    "small integers": Kind(lambda rng: rng.randint(0, 9), pa.int64(), nulls=False),
    "integers": Kind(lambda rng: rng.randint(-5, 5), pa.int64()),
    "wide integers": Kind(lambda rng: rng.choice([1, -1]) * rng.randint(2**61 - 3, 2**61 + 3), pa.int64()),
    "ids": Kind(lambda rng: rng.choice([2**40, 2**50]) * rng.randint(1, 9), pa.int64(), nulls=False),
    "bytes of integers": Kind(lambda rng: rng.randint(0, 255), pa.uint8()),
    "unsigned integers": Kind(lambda rng: rng.choice([2**64 - 1, 2**63, 7]), pa.uint64()),
    "floats": Kind(lambda rng: rng.choice(FLOATS), pa.float64()),
    "short floats": Kind(lambda rng: rng.choice(FLOATS[:-1]), pa.float32()),
    "texts": Kind(lambda rng: rng.choice(TEXTS), pa.string()),
    "long texts": Kind(lambda rng: "customer-" * rng.choice([1, 1, 40]) + rng.choice(TEXTS) * rng.randint(0, 3), pa.string()),
    "large texts": Kind(lambda rng: rng.choice(TEXTS), pa.large_string()),
    "bools": Kind(lambda rng: rng.random() < 0.5, pa.bool_()),
    "dates": Kind(lambda rng: date(2024, rng.choice([1, 2, 10, 12]), rng.randint(1, 12)), pa.date32()),
    "moments": Kind(
        lambda rng: datetime(2024, 1, rng.randint(1, 3), rng.choice([0, 10]), 0, rng.choice([0, 5])), pa.timestamp("us")
    ),
    "moments with seconds": Kind(
        lambda rng: datetime(2024, 1, 1, 10, 5, tzinfo=UTC) + timedelta(microseconds=rng.choice([0, 5, 10, 10**6, 7 * 10**7])),
        pa.timestamp("us", "UTC"),
    ),
    "moments in UTC": Kind(lambda rng: datetime(2024, 1, rng.randint(1, 11), tzinfo=UTC), pa.timestamp("ms", "UTC")),
    "moments in Paris": Kind(lambda rng: datetime(2024, 7, rng.randint(1, 11), tzinfo=UTC), pa.timestamp("s", "Europe/Paris")),
    "nanoseconds": Kind(lambda rng: rng.choice([0, 1, 1_000, 10**15]), pa.timestamp("ns")),
    "times": Kind(lambda rng: time(rng.randint(0, 12), rng.choice([0, 30])), pa.time64("us")),
    "durations": Kind(lambda rng: timedelta(hours=rng.randint(-5, 12)), pa.duration("us")),
    "decimals": Kind(lambda rng: Decimal(rng.randint(-20, 20)) / 4, pa.decimal128(9, 2)),
    "bytes": Kind(lambda rng: rng.choice([b"", b"a", b"\xff\x00"]), pa.binary()),
    "two bytes": Kind(lambda rng: rng.choice([b"ab", b"\xff\x00"]), pa.binary(2)),
    "uuids": Kind(lambda rng: UUID(int=rng.randint(0, 5)).bytes, pa.uuid()),
    "lists": Kind(lambda rng: [rng.randint(0, 2)], pa.list_(pa.int64())),
    "structs": Kind(lambda rng: {"a": rng.randint(0, 2), "b": rng.choice("xy")}, pa.struct({"a": pa.int64(), "b": pa.string()})),
    "nothing": Kind(lambda rng: None, pa.null()),
}
IN_DICTIONARIES = ("integers", "texts", "dates", "decimals", "moments in UTC", "floats")
KEYS: dict[str, Callable[[sd.Stream[Any]], sd.Stream[Any]]] = {
    "k": lambda s: s.group_by("k").tumbling_window(10).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)),
    "pair": lambda s: s.group_by(["k", "l"]).tumbling_window(10).aggregate(n=sd.count()),
    "three": lambda s: s.group_by(["k", "v", "l"]).tumbling_window(20).aggregate(n=sd.count()),
    "nested": lambda s: s.group_by("l").apply(lambda g: g.group_by("k").tumbling_window(10).aggregate(n=sd.count())),
    "filtered": lambda s: (
        s.where(lambda e: e.v > 0)
        .select(key=lambda e: e.k, v=lambda e: e.v)
        .group_by("key")
        .tumbling_window(10)
        .aggregate(n=sd.count())
    ),
    "hopping": lambda s: s.group_by("k").hopping_window(20, 5).aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v)),
    "most": lambda s: s.group_by("k").tumbling_window(10).aggregate(most=sd.max(lambda e: e.v)),
    "sessions": lambda s: s.group_by("k").session_window(3).aggregate(n=sd.count()),
    "ungrouped": lambda s: s.where(lambda e: e.v != 1),
    "then by the key": lambda s: s.group_by("k").tumbling_window(10).aggregate(n=sd.count()).where(lambda e: e.n > 1),
    "union": lambda s: (
        s.where(lambda e: e.v > 0).union(s.where(lambda e: e.v < 0)).group_by("k").tumbling_window(10).aggregate(n=sd.count())
    ),
    "join": lambda s: s.join(s, on="k", select=lambda left, right: {"k": left.k, "v": left.v + right.v}),
}


def array_of(rng: Random, kind: Kind, rows: int) -> pa.Array:
    values: list[Any] = [kind.draw(rng) for _ in range(rng.randint(1, 12))]
    share = rng.choice([0, 0.1, 0.5]) if kind.nulls else 0
    return pa.array([None if rng.random() < share else rng.choice(values) for _ in range(rows)], kind.type)


def in_dictionary(rng: Random, array: pa.Array) -> pa.Array:
    """Return an array with a dictionary of its own: in any order, with values twice, nulls, and some that no row has."""
    listed = [*array.to_pylist(), *array.to_pylist()[:3], None]
    rng.shuffle(listed)
    known = pa.array(listed, array.type)
    places: dict[Any, list[int]] = {}
    for place, value in enumerate(listed):
        places.setdefault(repr(value), []).append(place)
    indices = [None if value is None and rng.random() < 0.5 else rng.choice(places[repr(value)]) for value in array.to_pylist()]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int16()), known)


def column_of(rng: Random, name: str, rows: int) -> Any:
    """Return a column of a kind: in chunks, perhaps each with a dictionary."""
    kind, coded = KINDS[name], name in IN_DICTIONARIES and rng.random() < 0.5
    cuts = sorted(rng.randint(0, rows) for _ in range(rng.choice([0, 0, 2])))
    sizes = [stop - start for start, stop in zip([0, *cuts], [*cuts, rows], strict=True)]
    chunks = [array_of(rng, kind, size) for size in sizes]
    return pa.chunked_array([in_dictionary(rng, chunk) for chunk in chunks] if coded else chunks)


def table_of(rng: Random, key: str, other: str, start: int) -> pa.Table:
    rows = rng.choice([1, 5, 20, 70, 130])
    starts = sorted(start + rng.randint(0, 12) for _ in range(rows))
    values = pa.array([rng.randint(-3, 3) for _ in range(rows)])
    return pa.table({"le": starts, "k": column_of(rng, key, rows), "l": column_of(rng, other, rows), "v": values})


def _to_polars(table: pa.Table) -> Any:
    return pl.from_arrow(table)


DOORS: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas of arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, nullable": lambda table: table.to_pandas().convert_dtypes(),
    "polars": _to_polars,
}


def frame_of(table: pa.Table, door: str) -> Any:
    """Return a table by a door, the table itself where there is no way by that one."""
    try:
        return DOORS[door](table)
    except Exception:  # libraries raise errors of many types for types that they do not have
        return table


def events_of(frame: Any, first: int) -> list[Event[Any]]:
    """Return the events that a frame stands for, each value read for itself."""
    columns = columns_of(frame)
    assert columns is not None
    names = [name for name in columns.names if name != "le"]
    starts = columns.values("le").tolist()
    rows = zip(*(columns.values(name).tolist() for name in names), strict=True)
    return [
        Insert(first + row, le, le + 1, dict(zip(names, values, strict=True)))
        for row, (le, values) in enumerate(zip(starts, rows, strict=True))
    ]


def chosen(rng: Random) -> tuple[str, str, str]:
    """Return a kind of key, another one, and a query."""
    key, other, query = rng.choice(list(KINDS)), rng.choice(list(KINDS)), rng.choice(list(KEYS))
    note(f"{key}, {other}, {query}")
    return key, other, query


@example(179)  # zeros of both signs, which few others have
@examples(150)
@given(SEEDS)
def test_a_run_over_keys_of_any_kind_means_what_its_events_mean(seed: int) -> None:
    rng = Random(seed)
    key, other, name = chosen(rng)
    door = rng.choice(list(DOORS))
    query = KEYS[name](sd.source("s"))
    frame = frame_of(table_of(rng, key, other, 0), door)
    events = events_of(frame, 0)
    note(door)
    with small_limits(rng):
        result = query.run({"s": frame})
        found, frames = result.cht(), to_arrow(result)
    with row_by_row():
        expected = query.run({"s": events})
        assert repr(found.rows) == repr(expected.cht().rows)
        assert frames == to_arrow(expected)
    assert_cht_equal(found, denote(query.plan(), {"s": sd.CHT.from_events(events)}))


@examples(60)
@given(SEEDS)
def test_a_frame_that_is_bound_once_gives_the_same_in_each_run(seed: int) -> None:
    rng = Random(seed)
    key, other, name = chosen(rng)
    frame = table_of(rng, key, other, 0)
    with small_limits(rng):
        source = sd.from_arrow(frame)
        queries = [KEYS[name](source), KEYS[rng.choice(list(KEYS))](source), KEYS[name](source)]
        first, _, again = [repr(query.run().cht().rows) for query in queries]
    assert first == again


def to_arrow(result: Any) -> Any:
    """Return a table with its types, or what is wrong with making one."""
    try:
        table = result.to_arrow()
    except SchemaError as error:
        return str(error).split(":")[0]  # which value it names depends on the order in which it looks
    return repr(table.to_pylist()), table.schema.types


@examples(120)
@given(SEEDS)
def test_a_session_fed_keys_of_any_kind_sends_what_their_events_cause(seed: int) -> None:
    rng = Random(seed)
    key, other, name = chosen(rng)
    query, emit = KEYS[name](sd.source("s")), rng.choice(EMITS)
    pushes = list(pushed(rng, key, other))
    least = rng.choice([0, 20, 1000])
    with patch.object(KeyTable, "least", least), row_by_row():
        session = query.open(emit=emit)
        expected = [shown(session.feed(events)) for _, events in pushes]
        expected.append(shown(session.feed([Cti(sd.INFINITY)])))
    with patch.object(KeyTable, "least", least), small_limits(rng):
        session = query.open(emit=emit)
        found = []
        for frame, _ in pushes:
            found.append(shown(session.feed(frame)))
            if rng.random() < 0.3:
                session = restored(query.plan(), None, session.snapshot(trust=True), True, ())
        found.append(shown(session.feed([Cti(sd.INFINITY)])))
    assert found == expected


COMING: dict[str, Callable[[int], Any]] = {
    "texts": lambda n: f"customer-{n:04d}",
    "dates": lambda n: date(2026, 1, 1) + timedelta(n),
    "decimals": lambda n: Decimal(n) / 100,
    "ids": lambda n: n * 10**12,
}
"""Keys that wait as Arrow's values until somebody reads them, and integers that lie far apart."""


@examples(60)
@given(SEEDS)
def test_keys_that_come_and_go_are_known_again_while_somebody_holds_them(seed: int) -> None:
    rng = Random(seed)
    key, emit, name = COMING[rng.choice(list(COMING))], rng.choice(EMITS), rng.choice(["k", "hopping", "union", "join"])
    query, pushes, since, first = KEYS[name](sd.source("s")), list[Any](), 0, 0
    for at in range(rng.randint(3, 9)):
        rows = rng.choice([90, 90, 200, 3 if at else 90])
        numbers = [rng.randint(0, 80) + 20 * at if rng.random() < 0.95 else rng.randint(0, 300) for _ in range(rows)]
        starts = sorted(since + rng.randint(0, 12) for _ in range(rows))
        table = pa.table({"le": starts, "k": list(map(key, numbers)), "v": [rng.randint(-3, 3) for _ in range(rows)]})
        pushes.append((table, events_of(table, first)))
        first += rows
        if rng.random() < 0.7:
            since += rng.randint(5, 25)
            pushes.append(([Cti(since)], [Cti(since)]))
    pushes.append(([Cti(sd.INFINITY)],) * 2)
    with patch.object(KeyTable, "is_due", property(lambda table: table.remembered > 0)):  # asked for after each push
        with row_by_row():
            session = query.open(emit=emit)
            expected = [shown(session.feed(events)) for _, events in pushes]
        with small_limits(rng):
            session, sent, reads_at_once = query.open(emit=emit), list[Any](), rng.random() < 0.3
            for frame, events in pushes:
                one_by_one = rng.random() < 0.1 and name != "join"  # whose rows have the ids that frames give
                sent.append(session.feed(events if one_by_one else frame))
                sent[-1] = shown(sent[-1]) if reads_at_once else sent[-1]
                if rng.random() < 0.05:
                    session = restored(query.plan(), None, session.snapshot(trust=True), True, ())
            found = sent if reads_at_once else list(map(shown, sent))
    assert found == expected


def pushed(rng: Random, key: str, other: str) -> Iterator[tuple[Any, list[Event[Any]]]]:
    """Yield frames by all doors, some of which are parts of one table, and their events; CTIs stand between."""
    start, first = 0, 0
    for _ in range(rng.randint(1, 4)):
        table, door = table_of(rng, key, other, start), rng.choice(list(DOORS))
        if door == "pandas" and any(pa.types.is_integer(column.type) and column.null_count for column in table.columns):
            door = "arrow"  # floats would come beside integers: which of equal keys is shown depends on what comes together
        cuts = sorted(rng.sample(range(len(table)), min(len(table), rng.choice([0, 1, 2]) if door == "arrow" else 0)))
        for since, until in zip([0, *cuts], [*cuts, len(table)], strict=True):
            frame = frame_of(table.slice(since, until - since), door)
            events = events_of(frame, first)
            first += len(events)
            yield frame, events
        if rng.random() < 0.6:
            start += rng.randint(0, 15)
            yield [Cti(start)], [Cti(start)]


def shown(out: Any) -> Any:
    """Return what is sent as events and as a table, with all types."""
    return repr(out.events()), to_arrow(out)


MIXED: Sequence[Any] = (
    1,
    1.0,
    True,
    Decimal(1),
    0,
    -0.0,
    False,
    None,
    "1",
    "",
    float("nan"),
    2**61,
    2.0**61,
    2**70,
    date(2024, 1, 1),
    b"1",
)

JOINS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "join": lambda s, t, on: s.join(t, on=on, select=lambda a, b: {"k": a.k, "v": a.v, "w": b.v}),
    "semi_join": lambda s, t, on: s.semi_join(t, on=on),
    "anti_join": lambda s, t, on: s.anti_join(t, on=on),
    "left_join": lambda s, t, on: s.left_join(
        t, on=on, select=lambda a, b: {"v": a.v, "w": sd.when(sd.is_none(b)).then(0).otherwise(1)}
    ),
    "asof_join": lambda s, t, on: s.asof_join(t, on=on, select=lambda a, b: {"v": a.v, "w": b.v}),
}
MATCHED: list[Any] = [
    "k",
    ["k", "l"],
    ["k"],
    (lambda a: (a.k, a.l), lambda b: (b.k, b.l)),
    (lambda a: (a.k, a.l), lambda b: b.k),
    (lambda a: a.k, lambda b: (b.k,)),
]


@examples(150)
@given(SEEDS)
def test_rows_are_matched_by_keys_of_any_kind_and_of_several_parts(seed: int) -> None:
    rng = Random(seed)
    kinds = rng.choice(list(KINDS)), rng.choice(list(KINDS))
    name, on, door = rng.choice(list(JOINS)), rng.choice(MATCHED), rng.choice(list(DOORS))
    note(f"{name}, {kinds}, {MATCHED.index(on)}, {door}")
    with small_limits(rng):
        frames = {source: frame_of(table_of(rng, *kinds, 0), door) for source in "st"}
        query = JOINS[name](sd.source("s").extend(5), sd.source("t").extend(5), on)
        given = {source: CHT.from_events(events_of(frame, 0)) for source, frame in frames.items()}
        assert_cht_equal(query.run(frames).cht(), denote(query.plan(), given))


@examples(150)
@given(SEEDS)
def test_keys_of_mixed_types_are_the_same_groups_many_at_once_as_one_by_one(seed: int) -> None:
    rng = Random(seed)
    some = rng.sample(MIXED, rng.randint(1, len(MIXED)))
    rows = [(le, le + 1, {"k": rng.choice(some), "v": 1}) for le in range(rng.choice([3, 80, 200]))]
    cut = rng.randint(0, len(rows))
    found = []
    for context in (row_by_row(), small_limits(rng)):
        with context:
            session = KEYS["k"](sd.source("s")).open()
            events = [Insert(number, *row) for number, row in enumerate(rows)]
            found.append([repr(session.push(part)) for part in (events[:cut], events[cut:])] + [repr(session.close())])
    assert found[0] == found[1]


@pytest.mark.parametrize("many", [1, 2**14])
@pytest.mark.parametrize("compiled", [True, False])
def test_codes_of_integers_are_equal_where_they_are(many: int, compiled: bool) -> None:
    rng = np.random.default_rng(3)
    with patch.object(kernel, "COMPILE_FROM", many), patch.object(kernel, "CALL_FROM", many), ExitStack() as stack:
        encoding.INTEGER_ENCODER.load()
        if not compiled:
            stack.enter_context(patch.object(encoding.INTEGER_ENCODER, "over", lambda _: None))
        for known in (
            np.arange(50),
            np.arange(50) << 40,
            rng.integers(-(2**63), 2**63 - 1, 500),
            np.array([-(2**63), 2**63 - 1, 0]),
        ):
            values = known[rng.integers(0, len(known), 3000)]
            codes, found = encoding.integer_codes(values)
            assert (found[codes] == values).all()
            assert len(np.unique(found)) == len(found) == codes.max() + 1


def test_a_column_that_no_expression_reads_is_not_made() -> None:
    texts = pa.chunked_array([[string.ascii_letters[n % 50] * 5 for n in range(500)]])
    table = pa.table({"le": list(range(500)), "name": texts, "v": [1] * 500})
    with patch.object(arrow_held.ArrowSource, "values", side_effect=AssertionError("it is made")):
        found = sd.source("s").where(lambda e: e.v > 0).run({"s": table}).to_arrow()
    assert found.column("name").to_pylist() == texts.to_pylist()
