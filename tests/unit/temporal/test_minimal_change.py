"""The minimal change between two tables: it leads from one to the other, and touches no time before they differ."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from streamdsl.temporal import INFINITY
from streamdsl.temporal.change import Change, minimal_change

Rows: TypeAlias = list[tuple[int, int, object]]

ends = st.sampled_from([1, 2, 3, 6, INFINITY])
rows: st.SearchStrategy[Rows] = st.lists(
    st.tuples(st.integers(0, 4), ends, st.sampled_from(["x", "y"])).map(lambda r: (r[0], min(r[0] + r[1], INFINITY), r[2])),
    max_size=7,
)


def applied(old: Rows, changes: list[Change]) -> Counter[tuple[int, int, object]]:
    table = Counter(old)
    for le, re_old, re_new, payload in changes:
        if re_old > le:
            table[le, re_old, payload] -= 1
            assert table[le, re_old, payload] >= 0
        if re_new > le:
            table[le, re_new, payload] += 1
    return +table


@given(rows, rows)
def test_it_leads_from_the_old_table_to_the_new(old: Rows, new: Rows) -> None:
    assert applied(old, minimal_change(old, new)) == Counter(new)


@given(rows)
def test_equal_tables_need_no_change(table: Rows) -> None:
    assert minimal_change(table, table[::-1]) == []


@given(rows, rows)
def test_retractions_come_first_each_part_in_order(old: Rows, new: Rows) -> None:
    changes = minimal_change(old, new)
    is_new = [change.re_old == change.le for change in changes]
    assert is_new == sorted(is_new)
    inserted = [(c.le, c.re_new, c.payload) for c in changes if c.re_old == c.le]
    retracted = [(c.le, c.re_old, c.payload) for c in changes if c.re_old != c.le]
    assert inserted == sorted(inserted, key=repr_order)
    assert retracted == sorted(retracted, key=repr_order)


def repr_order(row: tuple[int, int, object]) -> tuple[int, int, str]:
    return (row[0], row[1], str(row[2]))


@given(rows, rows, st.integers(0, 8))
def test_it_touches_no_time_before_the_tables_differ(old: Rows, new: Rows, c: int) -> None:
    """Where all rows with a LE and payload are as many as before, the earliest end that differs is the earliest time touched."""
    for change in minimal_change(old, new):
        ends_old = sorted(re for le, re, p in old if (le, p) == (change.le, change.payload))
        ends_new = sorted(re for le, re, p in new if (le, p) == (change.le, change.payload))
        if len(ends_old) == len(ends_new):
            assert change.sync >= min(min(a, b) for a, b in zip(ends_old, ends_new, strict=True) if a != b)
        else:
            assert change.sync >= change.le


def test_rows_are_paired_in_order_of_their_ends() -> None:
    found = minimal_change([(0, 5, "x"), (0, 9, "x")], [(0, 7, "x"), (0, 12, "x"), (0, 20, "x")])
    assert found == [Change(0, 5, 7, "x"), Change(0, 9, 12, "x"), Change(0, 0, 20, "x")]


def test_equal_payloads_pair_whatever_their_form() -> None:
    assert minimal_change([(0, 5, float("nan"))], [(0, 5, float("nan"))]) == []
    assert minimal_change([(0, 5, {"n": 1})], [(0, 6, {"n": 1.0})]) == [Change(0, 5, 6, {"n": 1})]


def test_a_new_payload_is_a_full_retraction_and_an_insertion() -> None:
    changes = minimal_change([(0, 10, "n=1")], [(0, 10, "n=2")])
    assert changes == [Change(0, 10, 0, "n=1"), Change(0, 0, 10, "n=2")]
    assert [change.sync for change in changes] == [0, 0]


def test_empty_lifetimes_are_not_there() -> None:
    assert minimal_change([(5, 5, "x")], []) == minimal_change([], [(5, 5, "x")]) == []
