"""`drop_duplicates`: all that tests and pages know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.nodes import Field, Whole
from streamdsl.plan import node as algebra
from streamdsl.temporal import CHT, CHTRow
from streamdsl.temporal.payload import payload_key, payload_order
from streamdsl.udm.throttle import OnlyFirst, Unrepeated
from tests.operators.entry import Meaning, Operator, Stream
from tests.unit.denote.reading import histories, meaning
from tests.unit.facade.trips import TRIP, TRIPS, Trip, trips

DROP_DUPLICATES = """
title: the first of a key is kept; when it goes, or an earlier one comes, those after it are decided anew
query: s.drop_duplicates("k", within=5)
in: k v
out: k v

> insert a 3 9 - x 1
> insert b 6 7 - x 2
> insert c 8 9 - x 3
insert a 3 9 - x 1
insert c 8 9 - x 3

> insert d 4 20 - y 4
insert d 4 20 - y 4

> retract a 3 9 3 x 1
retract a 3 9 3 x 1
retract c 8 9 8 x 3
insert b 6 7 - x 2

> insert e 2 4 - x 5
retract b 6 7 6 x 2
insert e 2 4 - x 5
insert c 8 9 - x 3

> cti - 9
cti - 9

close>
cti - inf
"""

OPERATORS = [
    Operator(
        "drop_duplicates",
        page="order",
        variants=[
            lambda s: s.drop_duplicates("k"),
            lambda s: s.drop_duplicates("k", within=4),
            lambda s: s.drop_duplicates(within=6),
            lambda s: s.drop_duplicates("k", within=4, order=lambda e: -e.v),
            lambda s: s.drop_duplicates(lambda e: (e.k, e.v % 2), within=2),
            lambda s: s.group_by("k").apply(lambda g: g.drop_duplicates(lambda e: e.v % 2)),
        ],
        spark={
            "`drop_duplicates` by key": lambda s: s.drop_duplicates("k", within=5).where(lambda e: e.n > 0),
            "`drop_duplicates` for ever": lambda s: s.drop_duplicates("k"),
            "`drop_duplicates` with an order": lambda s: s.drop_duplicates("k", within=5, order="n"),
        },
        meaning=[
            Meaning(
                "`drop_duplicates(key, within, order)`",
                "of each key the rows whose LE is at least `within` after that of the last one kept, without `within` only the "
                "first, taken in order of (LE, payload, RE) [choice], or of (LE, order, payload, RE), never in that of arrival, "
                "which is no part of a CHT; lifetimes stay",
                "c",
            ),
        ],
        transcripts={"drop_duplicates": DROP_DUPLICATES},
        plans=[
            (
                trips.drop_duplicates("zone", within="1m"),
                algebra.GroupApply(TRIPS, Field("zone"), algebra.Scan(algebra.Group(TRIP, "s", 0), Unrepeated(60)), Whole()),
            ),
            (
                trips.drop_duplicates(),
                algebra.GroupApply(TRIPS, Whole(), algebra.Scan(algebra.Group(TRIP, "s", 0), OnlyFirst()), Whole()),
            ),
        ],
        refused=[
            (lambda: trips.drop_duplicates("zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
            (
                lambda: trips.drop_duplicates("zone", within=0),
                QueryError,
                ("drop_duplicates takes a positive period, not 0", 'drop_duplicates("id", within="5s")'),
            ),
            (lambda: trips.drop_duplicates("zone", order="fair"), FieldNotFound, ("'fair'", "zone, fare")),
            (lambda: trips.drop_duplicates(5), QueryError, ("5 is not a key",)),  # type: ignore[arg-type]
        ],
    ),
]


@given(rows=histories, within=st.none() | st.integers(1, 9), by_key=st.booleans())
def test_each_key_has_its_first_row_and_none_too_near_the_last_that_was_kept(
    rows: CHT[Any], within: int | None, by_key: bool
) -> None:
    query: Stream = sd.source("left").drop_duplicates("k" if by_key else None, within=within)
    found, last, expected = meaning(query.plan(), rows), dict[Any, int](), list[CHTRow[Any]]()
    for row in sorted(rows, key=lambda row: (row.le, payload_order(row.payload), row.re)):
        key = row.payload.k if by_key else payload_key(row.payload)
        if key not in last or (within is not None and row.le - last[key] >= within):
            last[key] = row.le
            expected.append(row)
    assert found == CHT(expected)


@given(rows=histories, within=st.none() | st.integers(1, 9))
def test_an_order_says_which_of_those_that_start_together_is_first(rows: CHT[Any], within: int | None) -> None:
    query: Stream = sd.source("left").drop_duplicates("k", within=within, order=lambda e: -e.v)
    found, last, expected = meaning(query.plan(), rows), dict[Any, int](), list[CHTRow[Any]]()
    for row in sorted(rows, key=lambda row: (row.le, -row.payload.v, payload_order(row.payload), row.re)):
        key = row.payload.k
        if key not in last or (within is not None and row.le - last[key] >= within):
            last[key] = row.le
            expected.append(row)
    assert found == CHT(expected)


def test_a_sequence_number_orders_what_came_at_once_whatever_the_order_of_arrival() -> None:
    events = [sd.point(n, 3, Sent("x", seq, text)) for n, (seq, text) in enumerate([(2, "a"), (1, "z"), (3, "b")])]
    query = sd.source("sent", Sent).drop_duplicates("id", within=5, order="seq")
    for order in (events, events[::-1]):
        assert CHT.from_events(query.open().push(order)) == CHT.from_rows([(3, 4, Sent("x", 1, "z"))])
    assert query.plan().schema == sd.source("sent", Sent).plan().schema


@dataclass(frozen=True)
class Sent:
    id: str
    seq: int
    text: str


def test_lifetimes_that_adjoin_are_not_joined() -> None:
    rows = sd.from_rows([(1, 2, "x"), (2, 3, "x"), (3, 4, "y")])
    assert rows.drop_duplicates().run().cht() == CHT.from_rows([(1, 2, "x"), (3, 4, "y")])
    assert rows.distinct().run().cht() == CHT.from_rows([(1, 3, "x"), (3, 4, "y")])


def test_payloads_are_of_the_same_type() -> None:
    assert_type(trips.drop_duplicates("zone", within="5s"), sd.Stream[Trip])
    assert trips.drop_duplicates(lambda e: e.zone).plan().schema == TRIP


def test_keys_that_are_kept_for_ever_are_noted() -> None:
    s: Stream = sd.source("s")
    (found,) = kept_for_ever(s.drop_duplicates("k"))
    assert (found.level, found.operator) == ("note", "scan_1")
    assert found.what == "keeps the state of drop_duplicates() of every group for ever"
    assert "drop_duplicates(key, within=...)" in found.remedy
    assert kept_for_ever(s.drop_duplicates("k", within=5)) == []


def kept_for_ever(query: Stream) -> list[sd.checks.Finding]:
    return [found for found in sd.checks.check(query) if "for ever" in found.what]


@pytest.mark.parametrize(("within", "most"), [(1, 0), (25, 2)])
def test_a_key_is_remembered_for_as_long_as_it_counts(within: int, most: int, tmp_path: Any) -> None:
    s: Stream = sd.source("s")
    query = s.drop_duplicates("k", within=within)
    session, kept = query.open(), list[int]()
    for time in range(0, 1000, 10):
        session.push([sd.point(time, time, {"k": time}), sd.Cti(time + 5)])
        (scan,) = [each for each in session._graph.operators if each.kind.startswith("scan")]
        kept.append(len(list(scan.held_groups())))
    assert max(kept) == most
    session.checkpoint(tmp_path / "state")
    again = query.restore(tmp_path / "state").push([sd.point("b", 995, {"k": 990})])
    assert len(again) == (within == 1)
