"""Values are written and read again as they were: their types, their order, and which of them are one."""

from __future__ import annotations

import itertools
import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedDict, SortedList, SortedSet

import streamdsl as sd
from streamdsl.errors import CheckpointError
from tests.unit.engine.state.codec import again

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(st.characters(exclude_categories=[])),
    st.binary(),
    st.complex_numbers(),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
)
KEYS = st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text(max_size=2)), st.frozensets(st.integers()))
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner),
        st.sets(KEYS),
        st.dictionaries(st.text(max_size=3), inner).map(sd.Record),
        st.lists(inner, min_size=20, max_size=40),
    ),
)


@given(VALUES)
def test_any_value_comes_back(value: Any) -> None:
    found = again(value)
    assert shown(found) == shown(value)


def shown(value: Any) -> Any:
    """Return a value with its types, all the way down; the order of a set is not its own."""
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(map(repr, map(shown, value)))
    if isinstance(value, (list, tuple)):
        return type(value), list(map(shown, value))
    if isinstance(value, (dict, sd.Record)):
        return type(value), [(shown(key), shown(item)) for key, item in value.items()]
    return type(value), repr(value)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.none(), st.text(max_size=1)), max_size=60))
def test_mixed_columns_come_back(values: list[Any]) -> None:
    assert again(values) == values


def test_what_is_one_stays_one() -> None:
    shared: list[Any] = [1]
    circle: dict[str, Any] = {"a": shared, "b": (shared, "x")}
    circle["self"] = circle
    found = again([circle, shared])
    assert found[0]["a"] is found[0]["b"][0] is found[1]
    assert found[0]["self"] is found[0]
    found[1].append(2)
    assert found[0]["a"] == [1, 2]


@dataclass
class Link:
    n: int
    after: Any = None


def test_a_long_chain_is_no_deep_one() -> None:
    first = Link(0)
    link = first
    for n in range(1, 5000):
        link.after = Link(n)
        link = link.after
    found, size = again(first, known=(Link,)), 0
    while found is not None:
        assert found.n == size
        found, size = found.after, size + 1
    assert size == 5000


@pytest.mark.parametrize(
    "value",
    [
        deque([1, 2], maxlen=3),
        Counter("abca"),
        OrderedDict(b=1, a=2),
        SortedDict({3: "x", 1: "y"}),
        SortedSet([3, 1]),
        SortedList([3, 1, 2]),
        defaultdict(list, {"a": [1]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_collections_come_back(value: Any) -> None:
    found = again(value)
    assert (type(found), found) == (type(value), value)
    assert getattr(found, "maxlen", None) == getattr(value, "maxlen", None)
    assert getattr(found, "default_factory", None) is getattr(value, "default_factory", None)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5),
        np.array([], dtype=np.float64),
        np.array([[1.5, math.nan], [math.inf, -0.0]]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[us]"),
        np.array([True, False]),
        np.array(["ab", "c"]),
        np.arange(20)[::2],
        np.array(3, dtype=np.int8),
        np.arange(6, dtype=np.int32).reshape(2, 3).T,
    ],
    ids=repr,
)
def test_arrays_come_back_as_their_own(array: Any) -> None:
    found = again(array)
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable


def test_arrays_of_objects_come_back() -> None:
    array = np.empty((2, 2), dtype=object)
    array[:] = [[None, [1]], [(2, "x"), 10**30]]
    found = again([array, array[0, 1]])
    assert found[0].tolist() == array.tolist()
    assert found[0][0, 1] is found[1]


def test_a_counter_goes_on_where_it_was() -> None:
    count = itertools.count(5)
    next(count)
    assert next(again(count)) == next(count) == 6


@dataclass(frozen=True, slots=True)
class Fact:
    k: str
    held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        raise AssertionError("no code of the class runs")


class Pack(NamedTuple):
    k: str
    v: Any


def test_dataclasses_and_named_tuples_are_made_without_their_code() -> None:
    fact = object.__new__(Fact)
    object.__setattr__(fact, "k", "a")
    object.__setattr__(fact, "held", [1])
    found = again([fact, Pack("b", fact), fact], known=(Fact, Pack))
    assert type(found[0]) is Fact
    assert found[0].held == [1]
    assert found[1] == Pack("b", found[0])
    assert found[1].v is found[0] is found[2]


def test_scalars_of_numpy_and_classes_come_back() -> None:
    values = [np.int64(3), np.float32(0.5), np.datetime64("2020-01-01"), np.dtype("int8"), int, Fact, type(None)]
    found = again(values, known=(Fact,))
    assert (found, list(map(type, found))) == (values, list(map(type, values)))


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


def test_other_objects_are_pickled_and_loaded_only_where_that_is_trusted() -> None:
    shared = Plain(3)
    with pytest.raises(CheckpointError, match=r"pickled values, of tests.unit.engine.state.test_codec:Plain"):
        again([shared, shared])
    found = again([shared, shared], trust=True)
    assert found[0].n == 3
    assert found[0] is found[1]


def test_what_cannot_be_saved_is_named() -> None:
    class Local(NamedTuple):
        n: int

    with pytest.raises(CheckpointError, match=r"(?s)Local, which the query does not declare.*Hint: sd\.source\(name, Local\)"):
        again(Local(1))
    assert again(Local(1), known=(Local,)) == Local(1)
    with pytest.raises(CheckpointError, match="holds a builtins:generator, which cannot be saved"):
        again(n for n in range(3))
    with pytest.raises(CheckpointError, match="a frozenset of objects"):
        again(frozenset([Hashed(1)]), known=(Hashed,))
    with pytest.raises(CheckpointError, match="a defaultdict of"):
        again(defaultdict(lambda: 1))


@dataclass(frozen=True)
class Hashed:
    n: int


def test_keys_that_are_objects_are_found_again() -> None:
    found = again({Hashed(1): "a", (Hashed(2),): "b"}, known=(Hashed,))
    assert (found[Hashed(1)], found[(Hashed(2),)]) == ("a", "b")
    assert again({Hashed(3)}, known=(Hashed,)) == {Hashed(3)}
