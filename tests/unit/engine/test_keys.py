"""What is remembered of keys: as long as an operator holds a row or a window of their group, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.engine.keys import KeyTable

Stream = sd.Stream[Any]
BODIES: list[Callable[[Stream], Stream]] = [
    lambda s: s.tumbling_window(10).aggregate(n=sd.count()),
    lambda s: s.tumbling_window(10).aggregate(most=sd.max(lambda e: e.v)),
    lambda s: s.join(s, on="v"),
    lambda s: s.distinct(),
    lambda s: s.group_by("v").tumbling_window(10).aggregate(n=sd.count()),
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("key", [str, float, lambda n: -n, lambda n: (n, str(n))])
def test_groups_that_nothing_holds_are_forgotten(
    body: Callable[[Stream], Stream], key: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyTable, "least", 40)
    session = sd.source("s").group_by("k").apply(body).open()
    tables = session._graph.key_tables
    out = 0
    for start in range(0, 1000, 10):
        rows = [sd.point(start + i, start + i, {"k": key(start + i), "v": i % 2}) for i in range(10)]
        out += sum(isinstance(event, sd.Insert) for event in session.push([*rows, sd.Cti(start + 10)]))
        assert all(table.remembered <= 100 for table in tables)
    assert out >= 1000
