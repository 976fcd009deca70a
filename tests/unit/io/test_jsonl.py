"""JSON lines: exact values, dates as text, and lines that do not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamdsl.errors import SchemaError
from streamdsl.expr.schema import Schema
from streamdsl.io.binding import Bound
from streamdsl.temporal import INFINITY
from tests.unit.io.written import lifetimes, payloads, read_jsonl, written


def jsonl(tmp_path: Path, *lines: str, **options: Any) -> Bound:
    return read_jsonl(written(tmp_path / "in.jsonl", "\n".join(lines)), **options)


def test_json_values_are_exact(tmp_path: Path, piece_rows: int) -> None:
    rows: list[dict[str, Any]] = [
        {"le": 1, "re": None, "n": 2**70, "s": None, "o": {"a": [1]}},
        {"le": 2, "re": 5, "n": 0.5, "s": "é", "o": {}},
        {"le": 3, "re": 9, "n": True, "s": "", "o": {}},
    ]
    bound = jsonl(tmp_path, *map(json.dumps, rows), end="re")
    expected = [{name: value for name, value in row.items() if name not in ("le", "re")} for row in rows]
    assert payloads(bound) == payloads(bound) == expected
    assert lifetimes(bound) == [(1, INFINITY), (2, 5), (3, 9)]
    assert (bound.unit, bound.schema) == ("tick", Schema.record(["n", "s", "o"]))
    assert [event.id for event in bound.events()] == [0, 1, 2]  # type: ignore[union-attr]


def test_json_dates_are_text(tmp_path: Path) -> None:
    bound = jsonl(
        tmp_path, '{"t": "2013-02-08T00:00:00Z", "v": 1}', "", '{"t": "2013-02-08T00:00:01Z", "v": 2}', start="t", unit="s"
    )
    assert lifetimes(bound) == [(1360281600, 1360281601), (1360281601, 1360281602)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"le": 2}', "line 2 lacks 'v'"),
        ('{"le": 2, "v": 1, "w": 1}', "line 2 has also 'w'"),
        ('{"le": 2,', "line 2 is no JSON"),
        ("[1]", r"line 2 holds no JSON object: \[1\]\n"),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    bound = jsonl(tmp_path, '{"le": 1, "v": 1}', line)
    with pytest.raises(SchemaError, match=message):
        list(bound.events())


def test_json_is_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes('\ufeff{"le": 1, "v": "é"}'.encode())
    assert payloads(read_jsonl(tmp_path / "in.jsonl")) == [{"v": "é"}]
    (tmp_path / "in.jsonl").write_bytes('{"le": 1, "v": "é"}'.encode("latin-1"))
    with pytest.raises(SchemaError, match=r"line 1 is no JSON.*utf-8"):
        read_jsonl(tmp_path / "in.jsonl")


def test_json_extras_are_dropped_with_a_payload(tmp_path: Path) -> None:
    @dataclass
    class Only:
        v: int

    bound = jsonl(tmp_path, '{"le": 1, "v": 1, "w": 2}', '{"le": 2, "v": 3}', payload=Only)
    assert payloads(bound) == [Only(1), Only(3)]
