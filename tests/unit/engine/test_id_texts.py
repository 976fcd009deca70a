"""Ids as texts: in columns as one by one, and no two ids with one text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.engine.id_texts import id_text, id_texts
from streamdsl.engine.ids import PairIds, VersionedIds
from streamdsl.engine.versions import RowVersion
from streamdsl.expr.table import object_column

SCALARS = st.one_of(
    st.integers(),
    st.text(max_size=6),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
    st.sampled_from(["5", "a#1", "None", "(1, 2)"]),
)
IDS = st.recursive(SCALARS, lambda ids: st.tuples(ids, ids) | st.builds(RowVersion, ids, st.integers(1, 3)), max_leaves=4)


@given(IDS, IDS)
def test_no_two_ids_have_one_text(one: Any, other: Any) -> None:
    assert (id_text(one) == id_text(other)) == (repr(one) == repr(other))


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
