"""Payloads of every type: values, what a query asks of them in lambdas, and how columns hold them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
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
    """A type of payloads. `test`, `key` and `number` are lambdas over one; `count` gives a small int of it, in Python."""

    name: str
    values: st.SearchStrategy[Any]
    test: Callable[[Any], Any]
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
TEXT = st.sampled_from(["a", "b", "it's"])
COLOURS = st.sampled_from(Colour)
LISTS = st.lists(INTS, max_size=2)
EXACT = pa.decimal128(38, 20)
MOMENT = pa.timestamp("us", "UTC")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
TIMES = st.sampled_from([datetime(2024, 1, day, 7, tzinfo=UTC) + timedelta(microseconds=day) for day in (1, 2, 5)])
METHODS = ["items", "keys", "values", "get", "count", "_items"]
"""Names of fields that methods of a record have too."""
COLUMNS = ["shard", "v", "_0", "payload_le"]
"""Names that columns of the engine and of sinks have."""
ALIKE = ["v", "V"]
"""Names that are one to a database."""
RESERVED = ["le", "re", "id", "kind", "re_new"]
"""Names that columns of frames have that come in, for something else."""


class Name(enum.StrEnum):
    """Names that are texts, and more."""

    PRICE = "price"


TEXTS = ["q\"uo'te", "a b", "class", "ä.b"]
"""Names that are no names to SQL and to Python."""
INHERITING = [Name.PRICE, np.str_("size"), ""]
"""Names that are texts by inheritance, or empty, which no frame keeps."""
HOSTILE = {"names of methods": METHODS, "names of columns": COLUMNS, "names in two cases": ALIKE, "names that are texts": TEXTS}


def records(first: str, second: str) -> st.SearchStrategy[Mapping[str, Any]]:
    """Return mappings with these two fields, in this order: of each kind, in one stream."""
    made = st.tuples(st.sampled_from([dict, sd.Record]), KEYS, INTS)
    return made.map(lambda drawn: drawn[0](zip((first, second), drawn[1:], strict=True)))


KV = {"k": pa.string(), "v": pa.int64()}


def bare_kinds() -> list[Kind]:
    """Return the types of payloads that are one value."""
    return [
        Kind("int", INTS, lambda e: e > 0, lambda e: e % 2, lambda e: e + 1, int, int, {"value": pa.int64()}),
        Kind("float", FLOATS, lambda e: e > 1, lambda e: e > 1, lambda e: e / 2, low, float, {"value": pa.float64()}),
        Kind("str", TEXT, lambda e: e == "a", lambda e: e, of_text, len, str, {"value": pa.string()}),
        Kind("None", st.none(), lambda e: sd.is_none(e), lambda e: sd.is_none(e), lambda e: 1, lambda p: 1),
        Kind("bool", st.booleans(), lambda e: e, lambda e: e, of_truth, int, bool, {"value": pa.bool_()}),
        Kind("Enum", COLOURS, lambda e: e == Colour.RED, lambda e: e, lambda e: e.value, lambda p: int(p.value), Colour),
        Kind("Decimal", DECIMALS, lambda e: e > 1, lambda e: e > 1, lambda e: e + 1, int, Decimal, {"value": EXACT}),
        Kind("datetime", TIMES, lambda e: e > NOON, lambda e: e, lambda e: e.day, day, datetime, {"value": MOMENT}),
        Kind("list", LISTS, lambda e: len(e) > 0, lambda e: len(e), lambda e: sum(e), len, list, {"value": pa.list_(pa.int64())}),
    ]


def kinds() -> list[Kind]:
    """Return the types of payloads that have fields."""
    named, plain = st.builds(Named, KEYS, INTS), st.builds(Plain, KEYS, INTS)
    nested = st.builds(Nested, st.builds(Inner, KEYS, FLOATS), INTS)
    optional = st.builds(Optional, st.none() | KEYS, st.none() | FLOATS)
    columns = {"k": pa.string(), "v": pa.float64()}
    return [
        Kind("tuple", st.tuples(KEYS, INTS), lambda e: e[0] == "a", lambda e: e[0], lambda e: e[1], lambda p: int(p[1])),
        Kind("named tuple", named, lambda e: e.k == "a", lambda e: e.k, lambda e: e.v, of_v, Named, KV),
        Kind("record", records("k", "v"), lambda e: e["v"] > 0, lambda e: e.k, lambda e: e["v"], of_v, None, KV),
        Kind("dataclass", plain, lambda e: e.k == "a", lambda e: e.k, lambda e: e.v, of_v, Plain, KV),
        Kind("nested", nested, lambda e: e.v > 0, lambda e: e.inner.k, lambda e: e.v, of_v, Nested),
        Kind("optional", optional, lambda e: sd.is_none(e.k), lambda e: e.k, of_optional, of_k, Optional, columns),
    ]


def low(value: float) -> int:
    return int(min(value, 3))


def day(value: datetime) -> int:
    return value.day


def of_v(payload: Any) -> int:
    return int(payload["v"] if isinstance(payload, Mapping) else payload.v)


def of_k(payload: Any) -> int:
    return 1 if payload.k is None else 2


def of_text(e: Any) -> Any:
    return sd.when(e == "a").then(1).otherwise(2)


def of_truth(e: Any) -> Any:
    return sd.when(e).then(1).otherwise(0)


def of_optional(e: Any) -> Any:
    return sd.when(sd.is_none(e.v)).then(0.0).otherwise(e.v)


def hostile(name: str, first: str, second: str) -> Kind:
    """Return records with fields of these names."""
    return Kind(
        name,
        records(first, second),
        lambda e: e[first] == "a",
        lambda e: e[first],
        lambda e: e[second],
        lambda p: int(p[second]),
        None,
        {first: pa.string(), second: pa.int64()},
    )


KINDS = {kind.name: kind for kind in [*bare_kinds(), *kinds()]}
NAMES = [*KINDS, *HOSTILE]


def drawn(draw: Callable[[Any], Any], name: str, in_columns: bool) -> Kind:
    """Return the kind of payloads of this name; with hostile names two that are drawn."""
    if name not in HOSTILE:
        return KINDS[name]
    names = HOSTILE[name]
    if not in_columns and name == "names of columns":
        names = RESERVED + names
    if not in_columns and name == "names that are texts":
        names = INHERITING + names
    return hostile(name, *draw(st.permutations(names))[:2])
