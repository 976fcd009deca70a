"""Rows as JSON that is made by columns are what `json.dumps` makes of each row, for each type of column."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from streamdsl.connect.kafka_messages import plain_text
from streamdsl.io.json_columns import json_rows, json_values

pa: Any = pytest.importorskip("pyarrow")

COLUMNS: dict[str, Any] = {
    "integer": pa.array([1, -(2**63), None]),
    "unsigned": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "float": pa.array([0.1, float("nan"), None]),
    "large": pa.array([float("inf"), float("-inf"), -0.0]),
    "single": pa.array([0.1, None, 1e30], pa.float32()),
    "text": pa.array(['a "b" \\ \n\t\x00\x1f', "é\u2028\U0001f600", None]),
    "large text": pa.array(["a", None, ""], pa.large_string()),
    "boolean": pa.array([True, None, False]),
    "nothing": pa.nulls(3),
    "bytes": pa.array([b"a\xff", b"", None]),
    "date": pa.array([date(2026, 1, 2), None, date(1, 1, 1)]),
    "instant": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None, datetime(1970, 1, 1, tzinfo=UTC)]),
    "moment": pa.array([datetime(2026, 1, 2), None, datetime(2026, 1, 2, 3, 4, 5, 6)]),
    "time": pa.array([time(1, 2, 3), None, time(0)]),
    "duration": pa.array([timedelta(days=-1), None, timedelta(0)]),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-0.01")]),
    "list": pa.array([[1, None], None, []]),
    "record": pa.array([{"a": 1.5, "b": date(2026, 1, 2)}, None, {"a": None, "b": None}]),
    "codes": pa.array(["x", None, "x"]).dictionary_encode(),
    'odd "name" %s 100% é': pa.array([1, 2, 3]),
}


@pytest.mark.parametrize("plain", [str, plain_text])
def test_rows_are_what_json_dumps_makes_of_them(plain: Any) -> None:
    table = pa.table(COLUMNS)
    assert json_rows(table, plain) == [json.dumps(row, default=plain, ensure_ascii=False) for row in table.to_pylist()]
    assert json_rows(table.slice(1, 1), plain) == json_rows(table, plain)[1:2]
    assert json_rows(table.slice(0, 0), plain) == []


def test_escaped_values_are_what_json_dumps_makes_of_them() -> None:
    for column in COLUMNS.values():
        assert json_values(column, is_ascii=True) == [json.dumps(value, default=str) for value in column.to_pylist()]
