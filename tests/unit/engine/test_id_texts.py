"""Ids as texts: in columns as one by one, and no two ids with one text."""

from __future__ import annotations

import enum
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.id_texts import id_text, id_texts
from streamdsl.engine.ids import PairIds, VersionedIds
from streamdsl.engine.versions import RowVersion
from streamdsl.errors import SchemaError
from streamdsl.expr.table import object_column
from streamdsl.io.arrow_held import ArrowSource

SCALARS = st.one_of(
    st.integers(),
    st.text(max_size=6),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.sampled_from(["5", "a#1", "None", "(1, 2)"]),
)
EXACT = st.one_of(SCALARS, st.decimals(allow_nan=False), st.fractions(), st.complex_numbers(allow_nan=False))
IDS = st.recursive(EXACT, lambda ids: st.tuples(ids, ids) | st.builds(RowVersion, ids, st.integers(1, 3)), max_leaves=4)


@given(IDS, IDS)
def test_no_two_ids_have_one_text(one: Any, other: Any) -> None:
    assert (id_text(one) == id_text(other)) == (one == other)


class Color(enum.Enum):
    RED = "a"


class Letter(enum.StrEnum):
    A = "a"


class Point(NamedTuple):
    x: int
    y: object


@dataclass(frozen=True)
class Place:
    x: float


ALIKE: list[list[Any]] = [
    [1, 1.0, True, Decimal("1.00"), Fraction(1), np.int64(1), np.bool_(True), complex(1)],
    [0, -0.0, False],
    [0.5, Decimal("0.5"), Fraction(1, 2)],
    [Fraction(1, 10), Decimal("0.1")],
    [0.1],
    [2**70, float(2**70)],
    [float("inf"), Decimal("Infinity")],
    ["a", Letter.A, np.str_("a")],
    ["1"],
    ["True"],
    ["a\0b"],
    ["\ud800"],
    [r"\ud800"],
    ["inf"],
    [None],
    ["None"],
    [("a", 1), Point("a", True), ("a", 1.0)],  # type: ignore[arg-type]
    ["('a', 1)"],
    [("a", "1")],
    [("a#1", 1)],
    [RowVersion(1, 1), RowVersion(True, 1)],
    ["a#1"],
    [(RowVersion("a", 1), 1)],
    [RowVersion("a", 1)],
    [(1,)],
    [()],
    [((),)],
    [frozenset("abcdefgh"), frozenset("hgfedcba")],
    [b"a"],
    [datetime(2020, 1, 1, 12, tzinfo=UTC), datetime(2020, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))],
    [datetime(2020, 1, 1, 12)],
    [date(2020, 1, 1)],
    [Place(1), Place(True)],
    ["Place(x=1)"],
    [Color.RED],
    [UUID(int=1)],
]


def test_ids_have_one_text_if_they_are_equal_and_only_then() -> None:
    for alike in ALIKE:
        assert len(set(alike)) == len(set(map(id_text, alike))) == 1
    assert len({id_text(alike[0]) for alike in ALIKE}) == len(ALIKE)


def test_an_object_that_is_known_by_its_place_in_memory_is_no_id_for_frames() -> None:
    with pytest.raises(SchemaError, match="has no text that tells it from others"):
        id_text(object())


def test_the_text_of_a_set_is_the_same_in_every_process() -> None:
    code = "from streamdsl.engine.id_texts import id_text; print(id_text(frozenset('abcdef')))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "123"
    }
    assert len(told) == 1


@pytest.mark.parametrize(
    "ids",
    [
        np.array([3, -4]),
        object_column(["a", "5"]),
        PairIds(np.array([1, 2]), np.array([5, 6])),
        PairIds(np.array([1, 2]), object_column(["a", "b"])),
        VersionedIds(PairIds(np.array([1, 2]), np.array([5, 6])), np.array([0, 12])),
        VersionedIds(object_column(["a", ("b", 1)]), np.array([2, 0])),
    ],
)
def test_in_columns_they_are_what_they_are_one_by_one(ids: Any) -> None:
    assert id_texts(ids).to_pylist() == [id_text(id) for id in ids.tolist()]


def integers(distinct: int, size: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    least, most = [(-(2**62), 2**62), (0, 2), (0, 90), (-9, 90)][rng.integers(4)]
    found = rng.integers(least, most, distinct)[rng.integers(0, distinct, size)]
    return np.sort(found) if rng.random() < 0.5 else found


NUMBERS = st.integers(1, 40)


@given(st.integers(1, 400), st.tuples(NUMBERS, NUMBERS, NUMBERS), st.sampled_from([1, 3, 9, 500]), st.integers(0, 99))
def test_few_numbers_among_many_rows_are_written_as_many_are(
    size: int, distinct: tuple[int, ...], versions: int, seed: int
) -> None:
    columns = [integers(each, size, seed + n) for n, each in enumerate(distinct)]
    pairs = PairIds(PairIds(columns[0], columns[1]), columns[2])
    ids = VersionedIds(pairs, np.random.default_rng(seed).integers(0, versions, size))
    assert id_texts(ids).to_pylist() == [id_text(id) for id in ids.tolist()]


@given(st.lists(st.text(max_size=9) | st.sampled_from(["'", '"', "\\", "~ ", "\x7f", "\n"]), max_size=9), st.integers(0, 2))
def test_arrows_texts_are_quoted_as_python_does_or_not_at_all(texts: list[str], first: int) -> None:
    found = ArrowSource(pa.chunked_array([texts], pa.string())).quoted(slice(first, None), "(", ", 7)")
    wanted = [f"({text!r}, 7)" for text in texts[first:]]
    assert found is None or found.to_pylist() == wanted
    assert found is not None or any(text and not (text.isascii() and text.isalnum()) for text in texts)


KEYS = {
    "one": lambda trips: trips.group_by("k"),
    "two": lambda trips: trips.group_by(lambda e: {"k": e.k, "v": e.v}),
    "none": lambda trips: trips,
}


def texts_of(events: list[Any]) -> list[str | None]:
    return [None if isinstance(event, sd.Cti) else id_text(event.id) for event in events]


@pytest.mark.parametrize("key", KEYS)
def test_windows_ids_are_written_as_events_have_them(key: str) -> None:
    session = KEYS[key](sd.source("trips")).tumbling_window(10).aggregate(n=sd.count()).open()
    pushes = [[sd.point((push, n), 7 * n, {"k": n % 3, "v": -n}) for n in range(40)] for push in range(3)]
    for push in pushes:
        out = session.feed(push)
        assert out.to_arrow()["id"].to_pylist() == texts_of(out.events())


def test_nested_groups_have_nested_paths() -> None:
    query = sd.source("trips").group_by("k").apply(lambda of_k: of_k.group_by("v").tumbling_window(10).aggregate(n=sd.count()))
    out = query.open().feed([sd.point(n, n, {"k": n % 3, "v": n % 2}) for n in range(40)])
    assert out.to_arrow()["id"].to_pylist() == texts_of(out.events())
