"""Payloads inside of payloads mean the same as columns as they do as Python's values: in expressions, kept, and sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.engine.buffered.members import Members
from streamdsl.engine.buffered.ranked import _candidates, _largest
from streamdsl.engine.codes import factorise, payload_codes
from streamdsl.engine.growing import growing
from streamdsl.engine.order import payload_keys
from streamdsl.errors import SchemaError
from streamdsl.expr.deferred import AnyColumn, DeferredColumn, with_parts
from streamdsl.expr.evaluate import Inputs, RowError, evaluate, evaluate_nested
from streamdsl.expr.nested import is_nested, nested, rows_in
from streamdsl.expr.nodes import Attribute, Binary, Constant, Expr, Field, Function, Make, Whole
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table, column_of, concat_parts, object_column
from streamdsl.io.arrow_values import arrow_array
from streamdsl.temporal import CHT, Record, payload_key, payload_order
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts, physical_streams
from streamdsl.udm.top_k import TopK
from tests.laws.fold import Fold
from tests.laws.harness import EMITS
from tests.laws.profiles import examples


@dataclass(frozen=True)
class Plain:
    a: Any
    b: Any


class Named(NamedTuple):
    a: Any
    b: Any


VALUES = st.sampled_from([0, 1, 1.0, 2.5, -0.0, float("nan"), "x", "y", None, True, 2**70])
MAKERS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: Record(a=a, b=b),
    lambda a, b: (a, b),
    Plain,
    Named,
    lambda a, b: Record(items=a, b=b),
]


def rows_of(make: Callable[[Any, Any], Any], inner: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.builds(make, inner, inner), min_size=size, max_size=size)


def with_gaps(payloads: list[Any]) -> st.SearchStrategy[list[Any]]:
    """Return payloads of which some may be None."""
    gaps = st.lists(st.booleans(), min_size=len(payloads), max_size=len(payloads))
    some = gaps.map(lambda gaps: [None if gap else each for gap, each in zip(gaps, payloads, strict=True)])
    return st.one_of(st.just(payloads), some)


@st.composite
def alike(draw: st.DrawFn, size: int | None = None) -> list[Any]:
    """Payloads of one schema, or None, of which the first field may be others of one schema, or None."""
    size = draw(st.integers(1, 5)) if size is None else size
    inner = draw(rows_of(draw(st.sampled_from(MAKERS)), draw(st.sampled_from([VALUES, st.integers(0, 2)])), size))
    inner = draw(with_gaps(inner))
    if draw(st.booleans()):
        return inner
    make = draw(st.sampled_from(MAKERS))
    return draw(with_gaps([make(each, draw(VALUES)) for each in inner]))


def in_columns(payloads: list[Any]) -> AnyColumn:
    """Return payloads as nested columns, as deep as that goes."""
    if None in payloads:
        parts = [in_columns([each]) if each is not None else object_column([None]) for each in payloads]
        return concat_parts(parts)
    table = Table.from_payloads(payloads)
    columns = {name: table.columns[name] for name in table.schema.names}
    first = next(iter(columns))
    listed = columns[first].tolist()
    kinds = set(map(type, listed)) - {NoneType}
    if len(kinds) == 1 and kinds <= {Record, tuple, Plain, Named}:
        columns |= {first: in_columns(listed)}  # type: ignore[dict-item]
    return nested(Table(table.schema, with_parts(columns), table.size))


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


ITEMS = [0, 1, -1, 2, True, "a", "b", "items", 0.5]


@st.composite
def paths(draw: st.DrawFn) -> Expr:
    """What leads to a value inside of a payload, or to nothing."""
    expr: Expr = draw(st.sampled_from([Field("inside"), Whole()]))
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            expr = Attribute(expr, draw(st.sampled_from(["a", "b", "_0", "items"])))
        else:
            expr = Function("[]", (expr, Constant(draw(st.sampled_from(ITEMS)))))
    return draw(st.sampled_from([expr, Binary("==", expr, Constant(1)), Make(Schema.tuple(2), (Whole(), expr))]))


@examples(600)
@given(alike(), paths())
@example([(1, 2), (3, 4)], Function("[]", (Field("inside"), Constant(-1))))
@example([Record(items=1, b=2)], Attribute(Field("inside"), "items"))
def test_expressions_are_told_what_they_are_told_of_values(payloads: list[Any], expr: Expr) -> None:
    part = in_columns(payloads)
    inputs = Inputs((Table(Schema.record(["inside"]), with_parts({"inside": part}), len(payloads)),), len(payloads))
    expected, error = list[Any](), None
    for each in payloads:
        try:
            expected.append(evaluate_row(expr, (Record(inside=each),)))
        except Exception as failure:
            error = type(failure)
            break
    for evaluated in (evaluate, evaluate_nested):
        if error is None:
            assert same(evaluated(expr, inputs).tolist(), expected)
            continue
        with pytest.raises(RowError) as raised:
            evaluated(expr, inputs)
        assert (raised.value.row, type(raised.value.cause)) == (len(expected), error)


@examples(200)
@given(st.data())
def test_what_is_kept_is_what_was_put_in_and_what_was_taken_stays(data: st.DataObject) -> None:
    first = data.draw(alike())
    column, model = growing(in_columns(first)), list(first)
    taken: list[tuple[AnyColumn, list[Any]]] = []
    for what in data.draw(st.lists(st.sampled_from(["append", "append", "objects", "keep", "take"]), max_size=8)):
        rows = np.array(data.draw(st.lists(st.integers(0, len(model) - 1), max_size=4)) if model else [], dtype=np.intp)
        match what:
            case "append":
                more = data.draw(st.sampled_from([first, data.draw(alike())]))
                column.append(in_columns(more))
                model += more
            case "objects":
                column.append(object_column([None, 5]))
                model += [None, 5]
            case "keep":
                column.keep(rows)
                model = [model[row] for row in rows.tolist()]
            case _:
                taken.append((column.part(rows), [model[row] for row in rows.tolist()]))
        assert same(column.take(slice(None)).tolist(), model)
        assert same([column.one(row) for row in range(len(model))], model)
    for part, values in taken:
        assert same(part.tolist(), values)


@examples(300)
@given(st.lists(alike(), min_size=1, max_size=3), st.data())
def test_put_together_and_coded_they_are_the_values(parts: list[list[Any]], data: st.DataObject) -> None:
    payloads = [each for part in parts for each in part]
    whole = concat_parts([in_columns(part) for part in parts])
    assert same(whole.tolist(), payloads)
    rows = np.array(data.draw(st.lists(st.integers(0, len(payloads) - 1))), dtype=np.intp)
    chosen = whole[rows]
    assert same(chosen.tolist(), [payloads[row] for row in rows.tolist()])
    if is_nested(chosen):
        assert same(rows_in(chosen).payloads(), [payloads[row] for row in rows.tolist()])
    codes = payload_codes(whole).tolist()
    keys = list(map(payload_key, payloads))
    assert [[a == b for b in codes] for a in codes] == [[a == b for b in keys] for a in keys]
    assert same(factorise(object_column(payloads)).tolist(), list(map([*dict.fromkeys(keys)].index, keys)))


@examples(300)
@given(alike())
def test_they_have_the_order_of_values(payloads: list[Any]) -> None:
    inside = in_columns(payloads)
    keys = payload_keys(Table(Schema.record(["inside"]), with_parts({"inside": inside}), len(payloads)))
    assert np.lexsort(keys[::-1]).tolist() == sorted(range(len(payloads)), key=lambda row: payload_order(payloads[row]))


@examples(300)
@given(alike())
def test_in_arrow_they_are_what_values_are(payloads: list[Any]) -> None:
    found: list[Any] = []
    for values in (in_columns(payloads), object_column(payloads)):
        try:
            array = arrow_array("v", values)
            found.append((array.type, repr(array.to_pylist())))
        except SchemaError as error:
            found.append(str(error))
    assert found[0] == found[1]


@examples(300)
@given(st.data(), st.integers(1, 3), st.integers(1, 6))
def test_the_largest_rows_of_windows_are_those_that_each_has_by_itself(data: st.DataObject, k: int, n_windows: int) -> None:
    spans = st.tuples(st.integers(0, n_windows - 1), st.integers(1, n_windows)).map(
        lambda span: (span[0], max(span[0] + 1, span[1]))
    )
    rows = sorted(data.draw(st.lists(st.tuples(st.integers(0, 5), spans), max_size=40)), key=lambda row: row[0])
    ranks = np.array([rank for rank, _ in rows], dtype=np.intp)
    first, last = (np.array([span[end] for _, span in rows], dtype=np.intp) for end in (0, 1))
    members = Members(np.arange(len(rows)), first, last, n_windows)
    at, places, sizes = _largest(_candidates(members, ranks, k), ranks, k, n_windows)
    found = iter(zip(at.tolist(), places.tolist(), strict=True))
    for window, size in enumerate(sizes.tolist()):
        inside = [(-rows[row][0], row) for row in range(len(rows)) if first[row] <= window < last[row]]
        assert [next(found) for _ in range(size)] == [(row, place) for place, row in TopK(k, rank=True).compute_result(inside)]


Query = Callable[["sd.Stream[Any]", "sd.Stream[Any]"], "sd.Stream[Any]"]
QUERIES: dict[str, Query] = {
    "ranks": lambda s, t: (
        s.group_by("k")
        .snapshot_window()
        .top_k(2, by="v", rank=True)
        .select(lambda e: {"k": e[0], "rank": e[1][0], "v": e[1][1].v})
    ),
    "choice": lambda s, t: s.hopping_window(6, 3).top_k(2, by=lambda e: e.v).select(lambda e: (e.k, e.v)),
    "texts": lambda s, t: s.session_window(2).top_k(1, by="k", rank=True).where(lambda e: e[1].v > 0),
    "groups": lambda s, t: (
        s.group_by("k").count_window(2).top_k(1, by="v").group_by(lambda e: e[1].v).snapshot_window().aggregate(n=sd.count())
    ),
    "pairs": lambda s, t: (
        s.join(t, on="k").where(lambda e: e[0].v <= e[1].v).select(lambda e: {"left": e[0].v, "right": e[1]["v"]})
    ),
    "pairs in windows": lambda s, t: s.join(t, on="k").snapshot_window().top_k(2, by=lambda e: e[0].v, rank=True),
    "pairs of pairs": lambda s, t: s.join(t, on="k").join(s, on=(lambda p: p[1].v, lambda e: e.v)).select(lambda e: e[0][1].k),
    "pairs or one": lambda s, t: s.left_join(t, on="k"),
    "pairs or either": lambda s, t: s.full_join(t, on="k").where(lambda e: sd.is_none(e[0]) | sd.is_none(e[1])),
    "pairs or either, counted": lambda s, t: (
        s.full_join(t, on="k")
        .group_by(lambda e: e[1])
        .snapshot_window()
        .aggregate(n=sd.count_distinct(), m=sd.count(lambda e: e[0]))
    ),
    "made": lambda s, t: s.select(lambda e: {"in": {"v": e.v, "both": (e.k, e.v)}, "k": e.k}).where(
        lambda e: e["in"]["both"][1] != 1
    ),
    "kept": lambda s, t: (
        s.select(lambda e: {"in": (e.k, e.v), "v": e.v})
        .snapshot_window()
        .aggregate(all=sd.collect(lambda e: e["in"]), last=sd.max(lambda e: e["in"][1]))
    ),
    "distinct records": lambda s, t: s.select(lambda e: {"k": e.k, "odd": e.v % 2}).distinct(),
    "stitched tuples": lambda s, t: s.select(lambda e: (e.k, e.v % 2, e.v > 0)).stitch(),
    "stitched records in groups": lambda s, t: s.group_by("v").apply(lambda g: g.select(lambda e: {"k": e.k}).stitch()),
    "groups of records": lambda s, t: (
        s.select(lambda e: {"k": e.k, "v": (e.v, 1)}).group_by(lambda e: e).hopping_window(6, 3).aggregate(n=sd.count())
    ),
    "alike": lambda s, t: (
        s.select(lambda e: {"in": (e.k, e.v)}).distinct().group_by(lambda e: e["in"]).snapshot_window().aggregate(n=sd.count())
    ),
}
PAYLOADS = st.builds(Record, k=st.sampled_from(["a", "b", None]), v=st.integers(-1, 2))
STREAMS = physical_streams(chts(PAYLOADS, max_size=12))
BOUNDED = physical_streams(chts(PAYLOADS, max_size=12, unending=False))
"""Rows that never end would fill hopping windows for ever."""


@pytest.mark.parametrize("name", QUERIES)
def test_queries_mean_what_the_definition_says(name: str) -> None:
    query = QUERIES[name](sd.source("s"), sd.source("t"))
    streams = BOUNDED if name in ("choice", "groups of records") else STREAMS

    @examples(24)
    @given(streams, streams, st.sampled_from(EMITS), st.data())
    def law(s: list[Any], t: list[Any], emit: Any, data: st.DataObject) -> None:
        given_of = {"s": s, "t": t}
        inputs = {source: given_of[source] for source in query.open().sources}
        output = Fold()
        few = patch("streamdsl.engine.ingress._FEW", data.draw(st.sampled_from([0, 16])))
        with few:
            session = query.open(emit=emit)
            for source, events in inputs.items():
                step = data.draw(st.integers(1, 12))
                for start in range(0, len(events), step):
                    output.take(session.push(events[start : start + step], source))
            for source in inputs:
                output.take(session.push([sd.Cti(sd.INFINITY)], source))
        expected = denote(query.plan(), {source: CHT.from_events(events) for source, events in inputs.items()})
        assert_cht_equal(output.cht(), expected)

    law()


def test_payloads_of_other_types_keep_them_beside_nested_ones() -> None:
    parts = [nested(Table.from_payloads([(1, 2)])), object_column([(3, 4), Named(1, 2)]), object_column([None])]
    assert same(concat_parts(parts).tolist(), [(1, 2), (3, 4), Named(1, 2), None])


def test_values_without_fields_are_columns_as_they_are() -> None:
    numbers = nested(Table.from_payloads([1, 2]))
    assert not isinstance(numbers, DeferredColumn)
    assert column_of([1, 2]).tolist() == numbers.tolist()
