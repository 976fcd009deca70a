"""Where the columnar window operator keeps what: pairs of window and group, codes of keys, slots, groups that can be copied."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.engine.codes import factorise
from streamdsl.engine.columnar.slots import SlotTable
from streamdsl.engine.keys import KeyTable, PartNumbers
from streamdsl.engine.pairs import distinct_pairs
from streamdsl.expr import kernel
from streamdsl.expr.deferred import DeferredColumn
from streamdsl.expr.encoding import dictionary_encode
from streamdsl.expr.nodes import Field, Make
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import column_of
from streamdsl.io.arrow_held import ArrowSource
from streamdsl.temporal import INFINITY, MIN_TIME, payload_key
from tests.laws.profiles import examples

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


def test_floats_of_which_each_has_a_code_are_those_that_were_coded_bit_by_bit() -> None:
    values = np.array([0.0, -0.0, 1.5, math.nan, -0.0, math.inf, 0.0])
    source = dictionary_encode(values)
    assert list(map(repr, source.decoded(source.codes()).tolist())) == list(map(repr, values.tolist()))
    assert source.n_codes == 5


@given(st.lists(st.lists(keys, min_size=1, max_size=4), max_size=6), st.sampled_from([7, 62]), st.booleans())
def test_numbers_are_equal_where_keys_are_and_stand_for_them(batches: list[list[Any]], bits: int, forgets: bool) -> None:
    part = PartNumbers(bits)
    known: list[tuple[Any, int]] = []
    for values in batches:
        numbers = part.of(column_of(values))
        known = [*([] if forgets else known), *zip(values, numbers.tolist(), strict=True)]
        assert all((payload_key(a) == payload_key(b)) == (n == m) for a, n in known for b, m in known)
        shown = part.values(np.array([number for _, number in known])).tolist()
        assert list(map(payload_key, shown)) == [payload_key(value) for value, _ in known]
        if forgets:
            part.keep(numbers)
            assert len(part) == len({n for n in numbers.tolist() if n >= part.limit})
            assert list(map(payload_key, part.values(numbers).tolist())) == list(map(payload_key, values))


wanted = st.lists(st.integers(0, 40), min_size=1, max_size=30)
steps = st.lists(st.tuples(wanted, st.sets(st.integers(0, 40)), st.sampled_from([False] * 5 + [True])), min_size=2)


@examples(150)
@given(steps, st.sampled_from([False, False, True]), st.data())
def test_keys_that_wait_are_forgotten_alone_and_known_again_till_then(
    pushes: list[tuple[list[int], set[int], bool]], is_mixed: bool, data: st.DataObject
) -> None:
    part, known = PartNumbers(62), dict[str, int]()
    with patch("streamdsl.engine.keys._MANY", 1):
        for row, (wanted, kept, looks) in enumerate(pushes):
            texts = [f"customer-{number}" for number in wanted]
            is_held = not is_mixed or data.draw(st.booleans())
            numbers = part.of(DeferredColumn(ArrowSource(pa.chunked_array([texts]))) if is_held else column_of(texts)).tolist()
            for text, number in zip(texts, numbers, strict=True):
                assert known.setdefault(text, number) == number
            assert len(set(known.values())) == len(known) == len(part)
            if looks or row == len(pushes) - 1:
                listed = np.array(list(known.values()))
                held = part.held(listed)
                assert part.value(listed.item(-1)) == list(known)[-1]
                shown = held if looks else part.values(listed)
                assert shown.tolist() == list(known)
            known = {text: number for text, number in known.items() if int(text[9:]) in kept}
            part.keep(np.array(list(known.values()), dtype=np.int64))
            assert len(part) == len(known)


def test_integers_that_lie_far_apart_have_one_number_however_they_come() -> None:
    part, ids = PartNumbers(62), np.arange(2_000) * 10**12 - 10**14
    numbers = part.of(ids)
    assert numbers.max() - numbers.min() < len(ids) == len(set(numbers.tolist())) == len(part)
    for row in (0, 100, 101, 1_999):
        number, whole = numbers.item(row), ids.item(row)
        assert part.of_one(whole) == part.of_one(float(whole)) == part.of(np.array([whole])).item() == number
        assert part.value(number) == whole
    assert part.of_one(7) == part.of(np.array([7])).item() not in numbers
    assert part.values(numbers).tolist() == ids.tolist()


def test_keys_of_two_columns_that_take_turns_are_the_same() -> None:
    part = PartNumbers(62)
    one, other = (DeferredColumn(ArrowSource(pa.chunked_array([list(texts)]))) for texts in ("abcd", "cdef"))
    with patch("streamdsl.engine.keys._MANY", 1):
        numbers = [*part.of(one[:2]), *part.of(other), *part.of(one[2:])]
    known = dict(zip("abcdef", numbers, strict=False))
    assert numbers == [known[text] for text in "abcdefcd"]


@pytest.mark.parametrize("many", [1, 10_000])
@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (lambda n: date(2026, 1, 1) + timedelta(n), pa.date32()),
        (lambda n: n * 10**9, pa.int64()),
        (lambda n: Decimal(n) / 4, pa.decimal128(9, 2)),
        (lambda n: float(n), pa.float64()),
        (lambda n: f"customer-{n}", pa.string()),
    ],
    ids=["dates", "integers", "decimals", "floats", "texts"],
)
def test_values_that_waited_keep_their_numbers_though_others_come_in_another_order(
    key: Callable[[int], Any], kind: Any, many: int
) -> None:
    part, missing = PartNumbers(62), [] if pa.types.is_floating(kind) else [None]  # which do not wait with a null
    first, then = [5, *missing, 3, 9, 5], [3, 5, *missing, 9, 7]
    with (
        patch("streamdsl.engine.keys._MANY", 1),
        patch.object(kernel, "COMPILE_FROM", many),
        patch.object(kernel, "CALL_FROM", many),
    ):
        numbers, again = (part.of(_held(key, kind, wanted)).tolist() for wanted in (first, then))
    known = dict(zip(first, numbers, strict=True))
    assert again[:-1] == [known[each] for each in then[:-1]]
    assert again[-1] not in numbers
    assert part.values(np.array(again)).tolist() == [None if each is None else key(each) for each in then]


def _held(key: Callable[[int], Any], kind: Any, wanted: list[int | None]) -> DeferredColumn:
    return DeferredColumn(ArrowSource(pa.chunked_array([[None if each is None else key(each) for each in wanted]], kind)))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.booleans()), max_size=30))
def test_slots_stay_with_their_window_and_group(steps: list[tuple[int, int, bool]]) -> None:
    table, model = SlotTable(), dict[tuple[int, int], int]()
    for number, group, drops in steps:
        slot = int(table.find(np.array([number]), np.array([group]))[0])
        assert model.setdefault((number, group), slot) == slot
        if drops:
            table.drop(np.array([model.pop((number, group))]))
        assert len(set(model.values())) == len(model) == len(table)
        assert table.first() == min((number for number, _ in model), default=None)
    assert sorted(table.slots().tolist()) == sorted(model.values())


near, far = st.integers(0, 12), st.one_of(st.integers(0, 3), st.integers(MIN_TIME, INFINITY))
near_or_far = st.one_of(*(st.lists(st.tuples(each, each), max_size=200) for each in (near, far)))


@given(st.lists(st.tuples(near_or_far, st.integers(-2, 14)), max_size=8))
def test_equal_pairs_have_one_slot_however_many_are_asked_for_at_once(batches: list[tuple[list[tuple[int, int]], int]]) -> None:
    table, model = SlotTable(), dict[tuple[int, int], int]()
    for rows, passed in batches:
        numbers, groups = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
        assert np.maximum(table.seek(numbers, groups), -1).tolist() == [model.get(row, -1) for row in rows]
        slots = table.find(numbers, groups)
        assert table.each_once([slots, slots[::2]]).tolist() == [slot for slot in table.slots().tolist() if slot in slots]
        assert list(zip(table.number[slots].tolist(), table.group[slots].tolist(), strict=True)) == rows
        for row, slot in zip(rows, slots.tolist(), strict=True):
            assert model.setdefault(row, slot) == slot
        until = table.until(passed)
        assert list(zip(table.number[until].tolist(), table.group[until].tolist(), strict=True)) == sorted(
            pair for pair in model if pair[0] <= passed
        )
        gone = table.pop_until(passed)
        assert sorted(gone.tolist()) == sorted(slot for (number, _), slot in model.items() if number <= passed)
        table.release(gone)
        model = {pair: slot for pair, slot in model.items() if pair[0] > passed}
        assert sorted(table.slots().tolist()) == sorted(model.values())


def test_many_slots_are_found_at_once_in_any_order() -> None:
    table, rng = SlotTable(), np.random.default_rng(0)
    number, group = rng.permutation(400) // 100, np.arange(400)
    slots = table.find(number, group)
    order = rng.permutation(400)
    assert table.find(number[order], group[order]).tolist() == slots[order].tolist()
    assert len(set(slots.tolist())) == len(table) == 400
    assert set(table.group[table.pop_until(0)].tolist()) == set(group[number == 0].tolist())


def test_the_known_groups_can_be_copied() -> None:
    key = Make(Schema.record(["a", "b", "c"]), (Field("a"), Field("b"), Field("c")))
    columns = [column_of(["x", "y"]), column_of([2**40, 2]), column_of([None, 1.5])]
    table, outer = KeyTable(key, around := KeyTable(Field("k"))), around.numbers([column_of([True, "k"])], None)
    numbers = table.numbers(columns, outer)
    table, around = pickle.loads(pickle.dumps((table, around)))
    assert table.around is around
    assert table.numbers(columns, outer).tolist() == numbers.tolist()
    assert [table.path(number) for number in numbers.tolist()] == [(True, ("x", 2**40, None)), ("k", ("y", 2, 1.5))]
    assert [key.a for key in table.shown(numbers).payloads()] == ["x", "y"]
    assert table.outer(numbers) is not None
