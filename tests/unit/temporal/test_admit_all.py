"""Insertions that are admitted at once are admitted as they would be one by one, or not at all."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdsl.errors import CtiViolation, EventError
from streamdsl.temporal import INFINITY, EventTable, Insert, Retract


def table(rng: Random) -> EventTable:
    """Return a table that knows some ids, has forgotten others, and stands at a CTI."""
    made = EventTable()
    for id in rng.sample("abcdef", 3):
        made.admit(Insert(id, 0, rng.randint(0, 8), "old"))
    if rng.random() < 0.5:
        made.advance(rng.randint(0, 9))
    made.commit()
    return made


@given(st.integers(0, 2**24))
def test_all_are_admitted_at_once_only_if_each_would_be(seed: int) -> None:
    rng = Random(seed)
    inserts = [
        Insert(rng.choice("abcdefghijklmnop"), le, le + rng.randint(-1, 9), le)
        for le in (rng.choice([rng.randint(0, 12)] * 9 + [INFINITY]) for _ in range(rng.randint(1, 4)))
    ]
    at_once, one_by_one = table(Random(seed)), table(Random(seed))
    before = (dict(at_once._known), at_once.high_water)
    le, re = (np.array([getattr(event, end) for event in inserts]) for end in ("le", "re"))
    admitted = at_once.admit_all([event.id for event in inserts], le, re, [event.payload for event in inserts])
    try:
        for event in inserts:
            one_by_one.admit(event)
    except (EventError, CtiViolation):
        assert not admitted
    if not admitted:
        assert (at_once._known, at_once.high_water) == before
        return
    assert at_once._known == one_by_one._known
    assert at_once.high_water == one_by_one.high_water
    at_once.rollback()
    assert (at_once._known, at_once.high_water) == before


def test_ids_that_were_admitted_at_once_are_forgotten_one_by_one() -> None:
    made = EventTable()
    assert made.admit_all(["a", "b"], np.array([1, 2]), np.array([5, INFINITY]), ["x", "y"])
    made.advance(6)
    assert len(made) == 1
    made.admit(Retract("b", 2, INFINITY, 7))
    assert not made.admit_all([1.5], np.array([8]), np.array([9]), ["z"])


@pytest.mark.parametrize("ids", [["a", "a"], [("a", 1)], [[]]])
def test_ids_that_need_a_closer_look_get_it(ids: list[object]) -> None:
    ends = np.arange(1, len(ids) + 1)
    assert not EventTable().admit_all(ids, ends, ends + 1, ids)
