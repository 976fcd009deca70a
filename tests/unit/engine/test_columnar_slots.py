"""Where the columnar window operator keeps what: pairs of window and group, codes of keys, slots, groups that can be copied."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.engine.columnar.combine import distinct_pairs
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.keys import KeyTable, factorise
from streamdsl.expr.table import column_of, object_column
from streamdsl.temporal import INFINITY, MIN_TIME, payload_key

pairs = st.lists(st.tuples(st.integers(0, 3), st.one_of(st.integers(-3, 3), st.integers(MIN_TIME, INFINITY))), max_size=20)


@given(pairs)
def test_distinct_pairs_are_found_however_far_apart(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    found = distinct_pairs(first, second)
    listed = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert listed == sorted(set(rows))
    assert [listed[i] for i in found.index.tolist()] == rows


keys = st.one_of(
    st.integers(-2, 2), st.sampled_from([2**62, -(2**62), 2**70, None, True, 1.0, -0.0, math.nan, "a", "", ("a", 1)])
)


@given(st.lists(keys, max_size=12))
def test_codes_are_equal_where_keys_are(values: list[Any]) -> None:
    codes = factorise(column_of(values)).tolist()
    hashed = list(map(payload_key, values))
    assert all((codes[i] == codes[j]) == (hashed[i] == hashed[j]) for i in range(len(values)) for j in range(len(values)))
    assert set(codes) == set(range(len(set(codes))))


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.booleans()), max_size=30))
def test_slots_stay_with_their_window_and_group(steps: list[tuple[int, str, bool]]) -> None:
    table, model = SlotTable(), dict[tuple[int, str], int]()
    for number, group, drops in steps:
        slot = int(table.find(np.array([number]), object_column([group]))[0])
        assert model.setdefault((number, group), slot) == slot
        if drops:
            table.drop(np.array([model.pop((number, group))]))
        assert len(set(model.values())) == len(model) == len(table)
        assert table.first() == min((number for number, _ in model), default=None)
    assert sorted(table.slots().tolist()) == sorted(model.values())


def test_many_slots_are_found_at_once_in_any_order() -> None:
    table, rng = SlotTable(), np.random.default_rng(0)
    number, group = rng.permutation(400) // 100, object_column(list(range(400)))
    slots = table.find(number, group)
    order = rng.permutation(400)
    assert table.find(number[order], group[order]).tolist() == slots[order].tolist()
    assert len(set(slots.tolist())) == len(table) == 400
    assert set(table.group[table.pop_until(0)].tolist()) == set(group[number == 0].tolist())


def test_the_known_groups_can_be_copied() -> None:
    table = KeyTable()
    outer = table.intern("a", "a", None)
    inner = table.intern(1, 1.0, outer)
    table, outer, inner = pickle.loads(pickle.dumps((table, outer, inner)))
    assert (table.intern("a", "a", None), table.intern(1, 1, outer)) == (outer, inner)
