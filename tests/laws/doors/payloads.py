"""Payloads of every type: values, what a query asks of them in lambdas, and how columns hold them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

import streamdsl as sd


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Named(NamedTuple):
    k: str
    v: int


@dataclass(frozen=True)
class Plain:
    k: str
    v: int


@dataclass(frozen=True)
class Inner:
    k: str
    f: float


@dataclass(frozen=True)
class Nested:
    inner: Inner
    v: int


@dataclass(frozen=True)
class Optional:
    k: str | None
    v: float | None


@dataclass(frozen=True)
class Kind:
    """A type of payloads. `key` and `number` are lambdas over one; `count` gives a small int of it, in Python."""

    name: str
    values: st.SearchStrategy[Any]
    key: Callable[[Any], Any]
    number: Callable[[Any], Any]
    count: Callable[[Any], int]
    declared: type | None = None
    columns: Mapping[str, Any] | None = None
    """The types of the columns that hold it, None where none do."""

    def fields(self, payload: Any) -> dict[str, Any]:
        """Return what the columns hold of a payload."""
        assert self.columns is not None
        if isinstance(payload, Mapping):
            return dict(payload)
        return {name: getattr(payload, name, payload) for name in self.columns}


KEYS = st.sampled_from(["a", "b"])
INTS = st.integers(-2, 3)
FLOATS = st.sampled_from([0.5, 1.0, -1.5, 2.25, 1e16, 0.1])
DECIMALS = st.sampled_from(list(map(Decimal, ["0.5", "1.50", "-2", "7", "0.12345678901234567890"])))
TIMES = st.sampled_from([datetime(2024, 1, day, 7, tzinfo=UTC) + timedelta(microseconds=day) for day in (1, 2, 5)])
HOSTILE = [
    "items",
    "keys",
    "values",
    "get",
    "shard",
    "v",
    "V",
    "a b",
    "q\"uo'te",
    "class",
    "ä.b",
    "count",
    "_items",
    "_0",
    "payload_le",
]
"""Names of fields that methods, columns of the engine and of sinks, SQL, or Python have too."""
RESERVED = ["le", "re", "id", "kind", "re_new"]
"""Names that columns of frames have that come in, for something else."""


def records(first: str, second: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return mappings with these two fields, in this order."""
    return st.tuples(KEYS, INTS).map(lambda values: dict(zip((first, second), values, strict=True)))


def kinds() -> list[Kind]:
    """Return all types of payloads."""
    return [
        Kind("int", INTS, lambda e: e % 2, lambda e: e + 1, lambda p: p, int, {"value": pa.int64()}),
        Kind("float", FLOATS, lambda e: e > 1, lambda e: e / 2, lambda p: int(min(p, 3)), float, {"value": pa.float64()}),
        Kind(
            "str",
            st.sampled_from(["a", "b", "it's"]),
            lambda e: e,
            lambda e: sd.when(e == "a").then(1).otherwise(2),
            len,
            str,
            {"value": pa.string()},
        ),
        Kind("None", st.none(), lambda e: sd.is_none(e), lambda e: 1, lambda p: 1),
        Kind("bool", st.booleans(), lambda e: e, lambda e: sd.when(e).then(1).otherwise(0), int, bool, {"value": pa.bool_()}),
        Kind("Enum", st.sampled_from(Colour), lambda e: e, lambda e: e.value, lambda p: p.value, Colour),
        Kind("Decimal", DECIMALS, lambda e: e > 1, lambda e: e + 1, int, Decimal, {"value": pa.decimal128(38, 20)}),
        Kind("datetime", TIMES, lambda e: e, lambda e: e.day, lambda p: p.day, datetime, {"value": pa.timestamp("us", "UTC")}),
        Kind("tuple", st.tuples(KEYS, INTS), lambda e: e[0], lambda e: e[1], lambda p: p[1]),
        Kind(
            "named tuple",
            st.builds(Named, KEYS, INTS),
            lambda e: e.k,
            lambda e: e.v,
            lambda p: p.v,
            Named,
            {"k": pa.string(), "v": pa.int64()},
        ),
        Kind(
            "record",
            records("k", "v"),
            lambda e: e.k,
            lambda e: e["v"],
            lambda p: p["v"],
            None,
            {"k": pa.string(), "v": pa.int64()},
        ),
        Kind(
            "dataclass",
            st.builds(Plain, KEYS, INTS),
            lambda e: e.k,
            lambda e: e.v,
            lambda p: p.v,
            Plain,
            {"k": pa.string(), "v": pa.int64()},
        ),
        Kind(
            "nested",
            st.builds(Nested, st.builds(Inner, KEYS, FLOATS), INTS),
            lambda e: e.inner.k,
            lambda e: e.v,
            lambda p: p.v,
            Nested,
        ),
        Kind(
            "optional",
            st.builds(Optional, st.none() | KEYS, st.none() | FLOATS),
            lambda e: e.k,
            lambda e: sd.when(sd.is_none(e.v)).then(0.0).otherwise(e.v),
            lambda p: 1 if p.k is None else 2,
            Optional,
            {"k": pa.string(), "v": pa.float64()},
        ),
        Kind("list", st.lists(INTS, max_size=2), lambda e: len(e), lambda e: sum(e), len, list, {"value": pa.list_(pa.int64())}),
    ]


def hostile(first: str, second: str) -> Kind:
    """Return records with fields of these names."""
    return Kind(
        "hostile",
        records(first, second),
        lambda e: e[first],
        lambda e: e[second],
        lambda p: p[second],
        None,
        {first: pa.string(), second: pa.int64()},
    )


def _is_bare() -> bool:
    try:
        sd.from_rows([(0, 1, 1)]).select(lambda e: e + 1).run()
    except sd.errors.StreamDslError:
        return False
    return True


BARE = _is_bare()
VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "int": (lambda e: e.value % 2, lambda e: e.value + 1),
    "float": (lambda e: e.value > 1, lambda e: e.value / 2),
    "str": (lambda e: e.value, lambda e: sd.when(e.value == "a").then(1).otherwise(2)),
    "None": (lambda e: sd.is_none(e.value), lambda e: 1),
    "bool": (lambda e: e.value, lambda e: sd.when(e.value).then(1).otherwise(0)),
    "Enum": (lambda e: e.value, lambda e: 2 if e.value.name == "RED" else 1),
    "Decimal": (lambda e: e.value > 1, lambda e: e.value + 1),
    "datetime": (lambda e: e.value, lambda e: 1 if e.value.day > 1 else 2),
    "list": (lambda e: len(e.value), lambda e: sum(e.value)),
}
"""Keys and numbers by the name that the one field of a bare payload has had, where it was declared."""
KINDS = {kind.name: kind for kind in kinds()}
NAMES = [*KINDS, "hostile"]


def drawn(draw: Callable[[Any], Any], name: str, in_columns: bool) -> Kind:
    """Return the kind of payloads of this name; with hostile names the two that are drawn."""
    kind = KINDS.get(name)
    if kind is not None and name in VALUES and (not BARE or (name in ("int", "float", "str") and draw(st.integers(0, 3)) == 3)):
        key, number = VALUES[name]
        return replace(kind, key=key, number=number)
    if kind is not None:
        return kind
    names = HOSTILE if in_columns else HOSTILE + RESERVED
    return hostile(*draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)))
