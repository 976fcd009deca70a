"""Values without the wrappers of numpy and pandas, and NaN of every kind."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from streamdsl.temporal import CHT, Record, payload_key, payload_order, plain
from streamdsl.temporal.payload import map_parts


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class Frozen:
    v: Any


@dataclass
class Checked:
    v: Any
    made: int = field(init=False)

    def __post_init__(self) -> None:
        self.made = 1
        if isinstance(self.v, int):
            raise ValueError("made again")


class Later:
    """Something with a date of its own making."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(3), 3),
        (np.uint64(2**63), 2**63),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2013-02-08"), dt.date(2013, 2, 8)),
        (np.datetime64("2013-02-08T01", "ns"), dt.datetime(2013, 2, 8, 1)),
        (np.datetime64(1, "ns"), pd.Timestamp(1, unit="ns")),
        (np.datetime64("20000-01-01", "s"), pd.Timestamp(np.datetime64("20000-01-01", "s"))),
        (np.datetime64("NaT"), None),
        (np.timedelta64(1000, "ns"), dt.timedelta(microseconds=1)),
        (np.timedelta64(1, "ns"), pd.Timedelta(1, unit="ns")),
        (np.timedelta64(1, "Y"), np.timedelta64(1, "Y")),
        (pd.Timestamp("2013-02-08", tz="UTC"), dt.datetime(2013, 2, 8, tzinfo=dt.UTC)),
        (pd.Timedelta("1s"), dt.timedelta(seconds=1)),
        (pd.NaT, None),
        (pd.NA, None),
        ([np.int64(1), [np.int64(2)]], [1, [2]]),
        ((np.int64(1), {"k": np.float64(2)}), (1, {"k": 2.0})),
        ({np.int64(1)}, {1}),
        (frozenset({np.int64(1)}), frozenset({1})),
        (Record(v=[np.int64(1)]), Record(v=[1])),
        (Pair(np.int64(1), None), Pair(1, None)),
        (Frozen((np.int64(1),)), Frozen((1,))),
    ],
)
def test_wrappers_are_taken_off_at_any_depth(value: Any, expected: Any) -> None:
    found = plain(value)
    assert (found, repr(found)) == (expected, repr(expected))
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "value",
    [1, "a", None, (1, (2, "a")), [1, [None]], {"k": {"v": 1.5}}, Record(v=1), Pair(1, 2), Frozen([1]), Later(), np.arange(3)],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_wrappers_is_itself(value: Any) -> None:
    assert plain(value) is value


def test_a_dataclass_is_rebuilt_without_running_its_code() -> None:
    wrapped = Checked("x")
    wrapped.v = np.int64(7)
    found = plain(wrapped)
    assert (found is wrapped, type(found), type(found.v), found.made) == (False, Checked, int, 1)
    assert type(wrapped.v) is np.int64


def test_a_field_that_was_never_set_is_no_obstacle() -> None:
    bare = object.__new__(Checked)
    bare.v = "x"
    assert plain(bare) is bare


def test_parts_are_mapped_one_level_deep() -> None:
    assert map_parts(repr, {"a": 1, "b": [2]}) == {"a": "1", "b": "[2]"}
    assert map_parts(repr, Frozen(1)) == Frozen("1")
    assert map_parts(repr, 5) == 5


def test_a_record_may_have_any_field() -> None:
    assert Record(self=1, args=2) == {"self": 1, "args": 2}


@pytest.mark.parametrize("nan", [float("nan"), Decimal("NaN"), Decimal("sNaN"), np.float64("nan")])
def test_every_nan_is_the_same_value_and_the_largest_number(nan: Any) -> None:
    assert payload_key((nan,)) == payload_key((float("nan"),))
    assert CHT.from_rows([(1, 5, {"v": nan})]) == CHT.from_rows([(1, 5, {"v": float("nan")})])
    assert payload_order(Decimal("Infinity")) < payload_order(nan) < payload_order("")
