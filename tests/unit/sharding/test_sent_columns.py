"""What one process sends another is what it gets: values, their types, and which of them are one object."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.batch import Batch
from streamdsl.engine.ids import PairIds
from streamdsl.expr.deferred import DeferredColumn, object_column, parts_of, with_parts
from streamdsl.expr.nested import nested, rows_in
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table
from streamdsl.io.arrow_held import ArrowSource
from streamdsl.sharding.sent_columns import alone, encoded_objects
from tests.laws.profiles import examples

pytest.importorskip("cloudpickle")

from streamdsl.sharding.worker_pipe import Ending


class Color(enum.StrEnum):
    RED = "red"


VALUES: dict[str, Callable[[int], Any]] = {
    "texts": lambda n: f"text {n}",
    "texts that are no Unicode": lambda n: f"\ud800{n}",
    "texts and None": lambda n: None if n % 3 == 0 else "é" * (n % 5),
    "texts and others": lambda n: (f"{n}", n, Color.RED, None, float(n))[n % 5],
    "texts of a type of their own": lambda n: Color.RED if n % 2 else f"{n}",
    "numbers": lambda n: (2**70 + n, True, 1.0, 1)[n % 4],
    "dates": lambda n: date.fromordinal(n + 1),
    "decimals": lambda n: Decimal(n) / 100,
    "records": lambda n: sd.Record(a=n, b=f"{n}"),
    "tuples": lambda n: (n, None),
    "lists": lambda n: [n],
}


def passed(message: Any) -> Any:
    """Return what comes out of a pipe."""
    pipe = BytesIO()
    Ending(pipe).write(message)
    pipe.seek(0)
    return Ending(pipe).read()


def same(found: Any, given: Any) -> None:
    assert found == given
    assert list(map(type, found)) == list(map(type, given))


@pytest.mark.parametrize("kind", VALUES)
@examples(20)
@given(st.integers(0, 2**32), st.integers(0, 300), st.integers(1, 300), st.booleans())
def test_objects_pass_as_they_are(kind: str, seed: int, size: int, n_objects: int, is_strided: bool) -> None:
    objects = [VALUES[kind](n) for n in range(n_objects)]
    values = Random(seed).choices(objects, k=size)
    column = np.repeat(object_column(values), 2)[::2] if is_strided else object_column(values)
    numbers = np.arange(size)
    table = Table(Schema.record(["k"]), {"k": column}, size)
    found = passed(alone(Batch(PairIds(column, numbers), numbers, numbers, numbers + 1, table)))
    if size:
        same(found.table.columns["k"].tolist(), values)
        same(found.ids.columns[0].tolist(), values)
    same(passed(column).tolist(), values)


def test_equal_objects_that_are_several_stay_several() -> None:
    lists = [[7], [7]]
    found = passed(object_column([lists[n % 2] for n in range(400)])).tolist()
    assert found == [[7]] * 400
    assert len(set(map(id, found))) == 2


def test_few_objects_are_sent_once_and_other_texts_as_arrow_has_them() -> None:
    texts = object_column([f"a text of number {n}" for n in range(10_000)])
    few, many = encoded_objects(texts[np.arange(10_000) % 20]), encoded_objects(texts)
    assert few is not None
    assert many is not None
    assert few.source.n_codes == 20
    assert isinstance(many.source, ArrowSource)
    assert many.source.array.type == pa.string()


def test_texts_inside_of_payloads_wait_as_others_do() -> None:
    texts, numbers = object_column([f"{n}" for n in range(200)]), np.arange(200)
    outer = Table(Schema.record(["pair"]), with_parts({"pair": nested(Table(Schema.tuple(1), {"_0": texts}, 200))}), 200)
    found = passed(alone(Batch(numbers, numbers, numbers, numbers + 1, outer))).table
    inner = rows_in(parts_of(found.columns)["pair"])
    assert isinstance(parts_of(inner.columns)["_0"], DeferredColumn)
    assert found.payloads() == [sd.Record(pair=(f"{n}",)) for n in range(200)]
