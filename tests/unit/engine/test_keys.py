"""What is remembered of keys: as long as an operator holds a row or a window of their group, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.keys import BITS, KeyTable, PartNumbers
from streamdsl.expr import kernel
from streamdsl.expr.deferred import AnyColumn, DeferredColumn
from streamdsl.expr.encoding import NumericSource

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


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ([n / 2 for n in range(100)], range(100, 200)),
        ([2**63 + n for n in range(100)], range(100)),
        ([Decimal(n) / 1000 for n in range(100)], [Decimal(n + 1000) for n in range(100)]),
    ],
)
def test_keys_have_the_types_that_they_have_without_those_of_other_pushes(first: Sequence[Any], then: Sequence[Any]) -> None:
    def sent(pushes: Sequence[Sequence[Any]]) -> Any:
        session = sd.source("s").group_by("k").tumbling_window(10).aggregate(n=sd.count()).open()
        for number, keys in enumerate(pushes):
            out = session.feed([sd.point((number, i), 10 * number, {"k": key}) for i, key in enumerate(keys)])
        return out.to_arrow().column("k")

    found, expected = sent([first, first, then]), sent([[], [], then])
    assert (found.type, found.to_pylist()) == (expected.type, expected.to_pylist())


FAR = st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 3), min_size=1, max_size=12)


@given(st.lists(st.tuples(FAR, st.booleans(), st.integers(0, 12)), max_size=6), st.sampled_from([1, 2**14]))
def test_integers_that_are_looked_up_are_shown_as_they_came_whatever_has_been_forgotten(
    steps: list[tuple[list[int], bool, int]], many: int
) -> None:
    def doubled(column: AnyColumn) -> Any:
        return np.asarray(column) // 2

    part, held_before = PartNumbers(BITS), list[tuple[AnyColumn, list[int]]]()
    with patch.multiple("streamdsl.engine.keys", _SPREAD=1, _SPARSE=0), patch.object(kernel, "COMPILE_FROM", many):
        for values, is_held, n_kept in steps:
            column = np.array(values)
            numbers = part.of(DeferredColumn(NumericSource(column)) if is_held else column)
            assert len(set(numbers.tolist())) == len(set(values))
            shown = part.held(np.tile(numbers, 8))
            assert shown.tolist() == 8 * values
            if isinstance(shown, DeferredColumn):
                assert shown.mapped(doubled).tolist() == [value // 2 for value in 8 * values]
            held_before.append((shown, 8 * values))
            part.keep(numbers[:n_kept])
            assert all(column.tolist() == values for column, values in held_before)
