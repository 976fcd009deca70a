"""Lists that are held as one column of items are the lists that they stand for: in slots, beside others, in Arrow, and sent."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.columnar.results import Results
from streamdsl.expr.deferred import DeferredColumn, with_parts
from streamdsl.expr.lists import ListSource, items_of
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, object_column
from streamdsl.io.arrow_values import arrow_array
from streamdsl.io.readers import read_frame
from streamdsl.temporal import CHT, Event, Record, payload_key
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts, physical_streams
from tests.laws.fold import Fold
from tests.laws.harness import EMITS
from tests.laws.profiles import examples
from tests.unit.engine.test_outgoing import texts

N_SLOTS = 5
ITEMS = st.lists(st.sampled_from([1, 2, 3]) | st.just(7), max_size=4)
FLOATS = st.lists(st.sampled_from([1.0, 2.0, 0.0, -0.0, float("nan")]), max_size=4)
TRUTHS = st.lists(st.booleans(), max_size=3)
COLUMNS: Any = st.sampled_from([ITEMS, FLOATS, TRUTHS])


@st.composite
def held_lists(draw: st.DrawFn, size: int | None = None) -> tuple[DeferredColumn, list[list[Any]]]:
    """Lists as a held column, of which the items may lie in any order, with gaps; and the lists."""
    kind: Any = draw(COLUMNS)
    lists: list[list[Any]] = draw(st.lists(kind, min_size=size or 0, max_size=4 if size is None else size))
    items: list[Any] = draw(kind)
    lo, hi = np.zeros(len(lists), dtype=np.intp), np.zeros(len(lists), dtype=np.intp)
    for at in draw(st.permutations(range(len(lists)))):
        lo[at], hi[at] = len(items), len(items) + len(lists[at])
        items += [*lists[at], *draw(st.just([]) | kind)]
    dtype = {ITEMS: np.int64, FLOATS: np.float64, TRUTHS: np.bool_}[kind]
    return DeferredColumn(ListSource(np.array(items, dtype=dtype), lo, hi)), lists


def table_of(column: DeferredColumn) -> Table:
    return Table(Schema.record(["n", "all"]), with_parts({"n": np.zeros(len(column)), "all": column}), len(column))


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@examples(200)
@given(st.data())
def test_taken_and_put_together_they_are_the_lists(data: st.DataObject) -> None:
    parts = data.draw(st.lists(held_lists(), min_size=1, max_size=3))
    expected = [each for _, lists in parts for each in lists]
    table = Table.concat([table_of(held) for held, _ in parts])
    rows = np.array(data.draw(st.lists(st.integers(0, len(expected) - 1))) if expected else [], dtype=np.intp)
    for found, at in ((table, range(len(expected))), (table.take(rows), rows.tolist()), (table.take(slice(1, 3)), range(1, 3))):
        chosen = [expected[row] for row in at if row < len(expected)]
        assert same(found.columns["all"].tolist() if found.size else [], chosen)
    for held, lists in parts:
        items, sizes = items_of(held)
        assert same(items.tolist(), [item for each in lists for item in each])
        assert sizes.tolist() == list(map(len, lists))
        only = DeferredColumn(held.source.only(held.rows))
        assert same(only.tolist(), lists)


@examples(200)
@given(st.data())
def test_results_are_the_lists_that_were_put_last(data: st.DataObject) -> None:
    with patch("streamdsl.engine.columnar.list_slots._SPARE", data.draw(st.sampled_from([0, 64]))):
        put_in_slots(data)


def put_in_slots(data: st.DataObject) -> None:
    """Put lists into slots, and compare what is there after each step."""
    results, known, size, taken = Results(), dict[int, Any](), N_SLOTS, list[tuple[Table, list[Any]]]()
    results.grow(size)
    for _ in range(data.draw(st.integers(1, 8))):
        slots = np.array(data.draw(st.lists(st.integers(0, size - 1), unique=True)), dtype=np.intp)
        match data.draw(st.sampled_from(["put", "put", "put", "clear", "grow", "made"])):
            case "put":
                held, lists = data.draw(held_lists(len(slots)))
                before = [known.get(slot) for slot in slots.tolist()]
                are = [
                    each is not None and payload_key(each) == payload_key(now) for each, now in zip(before, lists, strict=True)
                ]
                assert results.are(slots, table_of(held)).tolist() == are
                results.put(slots, table_of(held))
                known |= dict(zip(slots.tolist(), lists, strict=True))
            case "clear":
                results.clear(slots)
                known = {slot: each for slot, each in known.items() if slot not in slots.tolist()}
            case "grow":
                size += 2
                results.grow(size)
            case _:
                if results.schema is not None:
                    results.takes(results.schema)
        out = np.array(sorted(known), dtype=np.intp)
        found = results.payloads(out)
        assert same(found.columns["all"].tolist() if known else [], [known[slot] for slot in out.tolist()])
        if known:
            taken.append((results.payloads(out), [known[slot] for slot in out.tolist()]))
    for table, lists in taken:  # what has been sent stays as it was
        assert same(table.columns["all"].tolist(), lists)


def of_lists(*lists: list[int]) -> Table:
    hi = np.cumsum(list(map(len, lists)))
    items = np.array([item for each in lists for item in each], dtype=np.int64)
    return table_of(DeferredColumn(ListSource(items, hi - list(map(len, lists)), hi)))


def test_results_are_the_lists_that_were_put_last_also_where_others_are_cleared_or_items_become_less() -> None:
    results = Results()
    results.grow(3)
    results.put(np.arange(3), of_lists([1, 2], [3], [7, 7, 2]))
    assert results.are(np.arange(3), of_lists([1, 1], [3], [7, 8, 2])).tolist() == [False, True, False]
    results.clear(np.array([1]))
    with patch("streamdsl.engine.columnar.list_slots._SPARE", 0):
        for n in range(60):  # until there is no room for more
            results.put(np.array([1]), of_lists([n, 1, 2]))
            assert results.payloads(np.arange(3)).columns["all"].tolist() == [[1, 2], [n, 1, 2], [7, 7, 2]]


@examples(200)
@given(held_lists())
def test_in_arrow_they_are_what_lists_of_python_are(given: tuple[DeferredColumn, list[list[Any]]]) -> None:
    held, lists = given
    array, expected = arrow_array("all", held), arrow_array("all", object_column(lists))
    assert array.type == expected.type
    assert same(array.to_pylist(), expected.to_pylist())
    assert isinstance(array, (pa.ListArray, pa.NullArray))


WINDOWS: list[Any] = [
    lambda s: s.tumbling_window(5),
    lambda s: s.hopping_window(6, 2),
    lambda s: s.snapshot_window(),
    lambda s: s.session_window(2),
    lambda s: s.count_window(2),
]
RESULTS: list[Any] = [
    lambda w: w.aggregate(all=sd.collect(lambda e: e.v)),
    lambda w: w.aggregate(n=sd.count(), all=sd.collect(lambda e: e.v, where=lambda e: e.v > 1), keys=sd.collect(lambda e: e.k)),
    lambda w: w.aggregate(all=sd.collect(lambda e: e.v)).where(lambda e: e.all != [2]),
]
MIXED = st.sampled_from([1, 2.5, None])
VALUES = [st.integers(0, 3), st.sampled_from([1.0, 2.5, float("nan")]), st.booleans(), MIXED]


@examples(60)
@given(st.data())
def test_every_form_has_the_events_of_a_push(data: st.DataObject) -> None:
    window, result = data.draw(st.sampled_from(WINDOWS)), data.draw(st.sampled_from(RESULTS))
    values = data.draw(st.sampled_from(VALUES[:2] if result is not RESULTS[0] else VALUES))
    query = result(window(sd.source("s").group_by("k")))
    emit = data.draw(st.sampled_from(["speculative", "watermark", "final"]))
    pushed, fed, sure = query.open(emit=emit), query.open(emit=emit), list[Any]()
    for push in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 1), values), max_size=9))
        events: list[Any] = [
            sd.Insert(f"{push}-{n}", le, le + length, {"k": k, "v": v}) for n, (le, length, k, v) in enumerate(rows)
        ]
        for event in data.draw(st.lists(st.sampled_from(sure), max_size=2, unique_by=lambda each: each.id)) if sure else []:
            events.append(sd.Retract(event.id, event.le, event.re, event.le, event.payload))
            sure.remove(event)
        sure += [event for event in events if isinstance(event, sd.Insert)]
        sent, out = pushed.push(events), fed.feed(events)
        assert same(out.events(), sent)
        received = read_frame(out.to_arrow())
        assert isinstance(received, list)
        assert received == texts(sent) if values is MIXED else same(received, texts(sent))
    assert same(pushed.close(), fed.close())


@examples(120)
@given(st.data())
def test_in_columns_they_mean_what_their_events_mean(data: st.DataObject) -> None:
    window, result = data.draw(st.sampled_from(WINDOWS)), data.draw(st.sampled_from(RESULTS[:2]))
    kinds = [st.integers(0, 3), st.sampled_from([1.0, 2.5, 0.0, -0.0]), st.one_of(st.integers(0, 3), st.none())]
    values: Any = data.draw(st.sampled_from(kinds))
    keys = st.sampled_from(["a", "b", None])
    rows = st.builds(lambda k, v: Record(k=k, v=v), keys, values)
    query = result(window(sd.source("s").group_by("k")))
    if result is RESULTS[1] and values is kinds[2]:
        query = window(sd.source("s").group_by("k")).aggregate(all=sd.collect(lambda e: e.v, where=lambda e: e.k != "b"))
    unending = window not in WINDOWS[:2]
    stream: list[Event[Any]] = data.draw(physical_streams(chts(rows, 10, -3, 12, unending=unending)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=3)))
    session, output = query.open(emit=data.draw(st.sampled_from(EMITS))), Fold()
    with patch("streamdsl.engine.ingress._FEW", 0):  # no push goes row by row
        for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            sent = session.feed(stream[start:stop])
            sent.to_arrow()
            output.take(sent.events())
    output.take(session.close())
    assert_cht_equal(output.cht(), denote(query.plan(), {"s": CHT.from_events(stream)}))
