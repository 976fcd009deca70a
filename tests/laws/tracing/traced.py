"""Lambdas that must be traced: what it is all for."""

# The lambdas are written as people may write them, not as a linter likes them.
# ruff: noqa: RUF005, SIM300

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import streamdsl as sd
from streamdsl.expr.expression_functions import cast, coalesce, contains, is_none, lit, local_time, not_, truncate, when
from streamdsl.temporal import Record
from tests.laws.tracing.names import (
    BIG,
    EXPRESSION,
    FLAG,
    HALF,
    LIMIT,
    NAME,
    NAN,
    NOTHING,
    PREFIXES,
    RATE,
    TENTH,
    Lambda,
    Named,
    Out,
    Pair,
    clamp,
    fields_seen,
    held,
)
from tests.laws.tracing.payloads import HOUR, WHEN

FIELDS_AND_CONSTANTS: list[Lambda] = [
    lambda e: e.i,
    lambda e: e,
    lambda e: 5,
    lambda e: None,
    lambda e: "text",
]

INTEGERS: list[Lambda] = [
    lambda e: e.i + 1,
    lambda e: 1 + e.i,
    lambda e: e.i - 1,
    lambda e: e.i - e.j,
    lambda e: 10 - e.i,
    lambda e: e.i * e.j,
    lambda e: e.i * 3,
    lambda e: 2 * e.i,
    lambda e: e.i * e.i * e.i,
    lambda e: e.i / e.j,
    lambda e: 1 / e.j,
    lambda e: e.i // e.j,
    lambda e: e.i // -1,
    lambda e: 7 // e.j,
    lambda e: e.i % e.j,
    lambda e: e.i % -1,
    lambda e: e.i % -3,
    lambda e: -7 % e.j,
    lambda e: e.i**2,
    lambda e: e.j**3,
    lambda e: (-e.j) ** 3,
    lambda e: 2**e.j,
    lambda e: e.j**e.j,
    lambda e: e.i**-1,
    lambda e: -e.i,
    lambda e: +e.i,
    lambda e: abs(e.i),
    lambda e: e.i & 6,
    lambda e: e.i | e.j,
    lambda e: 12 ^ e.j,
    lambda e: ~e.i,
    lambda e: ~e.i + e.j,
    lambda e: e.i + BIG,
    lambda e: BIG // e.j,
    lambda e: e.i & BIG,
]

FLOATS: list[Lambda] = [
    lambda e: e.f + e.g,
    lambda e: e.f - 0.1,
    lambda e: e.f * e.g,
    lambda e: e.f / e.g,
    lambda e: e.f // e.g,
    lambda e: e.f % e.g,
    lambda e: e.f % 3,
    lambda e: e.f**2,
    lambda e: e.f**0.5,
    lambda e: e.i + e.f,
    lambda e: e.i * e.f,
    lambda e: e.i / e.f,
    lambda e: e.f // e.j,
    lambda e: BIG * e.f,
    lambda e: -e.f,
    lambda e: abs(e.f),
    lambda e: e.f & 1,
    lambda e: (e.i + 1) * (e.i + 1),
    lambda e: ((e.i * 3 + e.j) // 2 - e.f) / 7 > -1,
]

BOOLEANS: list[Lambda] = [
    lambda e: e.b + e.b,
    lambda e: e.b - e.b,
    lambda e: e.b * e.i,
    lambda e: e.b / e.j,
    lambda e: e.b // e.j,
    lambda e: e.b**e.j,
    lambda e: True + e.i,
    lambda e: -e.b,
    lambda e: +e.b,
    lambda e: abs(e.b),
    lambda e: e.b & e.b,
    lambda e: e.b & e.i,
    lambda e: e.b | e.i,
    lambda e: e.b ^ True,
    lambda e: e.b == 1,
    lambda e: e.b == e.f,
    lambda e: e.b < e.i,
    lambda e: e.b > 0.5,
    lambda e: e.i == True,  # noqa: E712
]

COMPARISONS: list[Lambda] = [
    lambda e: e.i > e.j,
    lambda e: e.i >= 3,
    lambda e: 3 <= e.i,
    lambda e: e.i == e.f,
    lambda e: e.i < e.f,
    lambda e: e.f != e.f,
    lambda e: e.f == e.g,
    lambda e: e.f > 0,
    lambda e: e.f <= 2**53 + 1,
    lambda e: e.i == 2**53 + 1,
    lambda e: e.i < 9007199254740993.0,
    lambda e: e.i == 9007199254740992.0,
    lambda e: e.i > 9007199254740992.0,
    lambda e: e.i == BIG,
    lambda e: e.i < BIG,
    lambda e: e.f < BIG,
    lambda e: e.i == "x",
    lambda e: e.i < "x",
    lambda e: (e.i, 1) == e.o,
    lambda e: e.o == (1, e.j),
    lambda e: e.o == "ab",
    lambda e: e.o < "ab",
]

LOGIC: list[Lambda] = [
    lambda e: (e.i > 1) & (e.f < 3),
    lambda e: (e.i > 1) | (e.s == "ab") | e.b,
    lambda e: (e.i > LIMIT) ^ (e.j > LIMIT),
    lambda e: not_(e.i > 1),
    lambda e: not_(e.m),
    lambda e: not_(e.f),
    lambda e: is_none(e.o),
    lambda e: is_none(e.i),
    lambda e: sd.is_none(e),
    lambda e: sd.not_(sd.is_none(e.o)) & (e.i > 0),
]

VALUES_OF_ANY_TYPE: list[Lambda] = [
    lambda e: e.m == None,  # noqa: E711
    lambda e: e.m == 1,
    lambda e: e.m != e.i,
    lambda e: e.m + 1,
    lambda e: e.m * 2,
    lambda e: e.m / e.j,
    lambda e: e.m**e.j,
    lambda e: e.m > 0,
    lambda e: -e.m,
    lambda e: e.m.real,
    lambda e: e.o.upper(),
    lambda e: e.o + (1,),
    lambda e: (1,) + e.o,
    lambda e: e.p,
    lambda e: e.p.x,
    lambda e: e.p.y,
    lambda e: e.p.x * e.p.y,
    lambda e: e.o.missing,
    lambda e: e.o.node,
    lambda e: ((y := e.o).node == 1, y),
]

FREE_NAMES: list[Lambda] = [
    lambda e: e.i > LIMIT,
    lambda e: e.f * RATE + LIMIT,
    lambda e: e.s == NAME,
    lambda e: e.f == NAN,
    lambda e: e.i * HALF,
    lambda e: e.j**HALF,
    lambda e: e.i + TENTH,
    lambda e: e.f + TENTH,
    lambda e: FLAG,
    lambda e: e.o == NOTHING,
    lambda e: EXPRESSION + e.j,
    lambda e: lit(3) + e.i,
]

TIMES: list[Lambda] = [
    lambda e: e.t > WHEN,
    lambda e: e.t - WHEN,
    lambda e: WHEN + e.d,
    lambda e: e.t + e.d,
    lambda e: e.t > datetime(2021, 1, 1, tzinfo=UTC),
    lambda e: e.t == e.d,
    lambda e: e.d > timedelta(minutes=5),
    lambda e: e.d / HOUR,
    lambda e: HOUR % e.d,
    lambda e: e.d * e.j,
    lambda e: e.d // e.j,
    lambda e: abs(e.d),
    lambda e: e.t.year,
    lambda e: e.t.tzinfo,
    lambda e: e.t.hour * 60 + e.t.minute,
    lambda e: e.t.weekday() == 5,
    lambda e: e.t.date(),
    lambda e: e.t.isoformat(),
    lambda e: e.t.isoformat("T", "minutes"),
    lambda e: e.d.total_seconds() / 60,
    lambda e: e.i.real,
    lambda e: e.i.bit_length(),
    lambda e: e.f.is_integer(),
]

TEXT: list[Lambda] = [
    lambda e: e.s.upper(),
    lambda e: e.s.strip().lower() == "ab",
    lambda e: e.s.startswith("a"),
    lambda e: e.s.startswith(PREFIXES),
    lambda e: e.s.startswith(e.o),
    lambda e: e.s.endswith(("b", "c")),
    lambda e: e.s.replace("a", "b"),
    lambda e: e.s.replace("a", e.s),
    lambda e: e.s.zfill(e.j),
    lambda e: e.s.isdigit(),
    lambda e: e.s.find("b"),
    lambda e: e.s.split("a"),
    lambda e: e.s.split("a")[-1],
    lambda e: e.s.join,
    lambda e: e.s + "x",
    lambda e: "x" + e.s,
    lambda e: e.s * 2,
    lambda e: e.s * e.j,
    lambda e: e.s + e.i,
    lambda e: e.s < "b",
    lambda e: e.s >= e.s,
    lambda e: e.s != "ab",
    lambda e: e.s % 3,
]

ITEMS_OF_VALUES: list[Lambda] = [
    lambda e: e.s[0],
    lambda e: e.s[-1],
    lambda e: e.s[e.j],
    lambda e: e.s[:1],
    lambda e: e.s[1:],
    lambda e: e.s[-1:],
    lambda e: e.s[: e.j],
    lambda e: e.s[e.i :],
    lambda e: e.s[e.j : -1],
    lambda e: e.s[::-1],
    lambda e: e.s[:: e.j],
    lambda e: e.s[: e.f],
    lambda e: e.o[0],
    lambda e: e.o[:1],
    lambda e: e.o[e.o],
    lambda e: e.o["a"],
    lambda e: e.m[0],
    lambda e: e.i[0],
]

NONES: list[Lambda] = [
    lambda e: sd.functions.coalesce(e.m, 0),
    lambda e: sd.functions.coalesce(e.o, e.m, e.s),
    lambda e: sd.functions.coalesce(e.i, e.j),
    lambda e: sd.functions.coalesce(e.f, 1 / e.j),
    lambda e: sd.functions.coalesce(None, e.m),
    lambda e: sd.functions.coalesce(e.o),
    lambda e: sd.functions.coalesce(e.o, None) == 1,
    lambda e: coalesce(e.m, e.o, 1) * 2,
]

CASTS: list[Lambda] = [
    lambda e: sd.functions.cast(e.i, int),
    lambda e: sd.functions.cast(e.f, int),
    lambda e: cast(e.b, int),
    lambda e: sd.functions.cast(e.s, int),
    lambda e: sd.functions.cast(e.m, int),
    lambda e: sd.functions.cast(e.o, int),
    lambda e: sd.functions.cast(e.i, float),
    lambda e: sd.functions.cast(e.f, float),
    lambda e: sd.functions.cast(e.b, float),
    lambda e: sd.functions.cast(e.s, float),
    lambda e: sd.functions.cast(e.m, float),
    lambda e: sd.functions.cast(e.i, bool),
    lambda e: sd.functions.cast(e.f, bool),
    lambda e: sd.functions.cast(e.s, bool),
    lambda e: sd.functions.cast(e.m, bool),
    lambda e: sd.functions.cast(e.o, bool),
    lambda e: sd.functions.cast(e.i, str),
    lambda e: sd.functions.cast(e.f, str),
    lambda e: sd.functions.cast(e.b, str),
    lambda e: sd.functions.cast(e.s, str),
    lambda e: sd.functions.cast(e.m, str),
    lambda e: sd.functions.cast(e.t, str)[:4],
    lambda e: sd.functions.cast(e.d, str),
    lambda e: sd.functions.cast(e.f // 1, int) % 7,
]

LENGTHS_AND_CONTENTS: list[Lambda] = [
    lambda e: sd.functions.length(e.s),
    lambda e: sd.functions.length(e.o) > 1,
    lambda e: sd.functions.length(e.m),
    lambda e: sd.functions.length("text") + e.i,
    lambda e: sd.functions.contains(e.s, "a"),
    lambda e: sd.functions.contains(e.s, e.s),
    lambda e: sd.functions.contains("abc", e.o),
    lambda e: sd.functions.contains(e.o, e.i),
    lambda e: sd.functions.contains(PREFIXES, e.s),
    lambda e: sd.functions.contains((1, 2, NAN, None), e.m),
    lambda e: sd.functions.contains((e.i, e.f), e.j),
    lambda e: contains((e.f, NAN), e.f) | sd.functions.contains((), e.i),
]

CLOCKS: list[Lambda] = [
    lambda e: sd.functions.local_time(e.t, "America/New_York").hour,
    lambda e: local_time(e.t, zone="Europe/Vienna").weekday(),
    lambda e: sd.functions.local_time(e.t, "Australia/Lord_Howe").date(),
    lambda e: sd.functions.local_time(e.t + e.d, "Europe/Vienna").isoformat(),
    lambda e: sd.functions.local_time(e.j, "Asia/Kathmandu", unit="s").minute,
    lambda e: sd.functions.local_time(e.i, "UTC", "ns").isoformat(),
    lambda e: sd.functions.local_time(e.i, "Europe/Vienna"),
    lambda e: sd.functions.local_time(e.o, "Europe/Vienna"),
    lambda e: sd.functions.truncate(e.t, "6h", "1h"),
    lambda e: truncate(e.i, 60),
    lambda e: sd.functions.truncate(e.j, "1m", offset="30s", unit="s") + sd.functions.truncate(e.i, 7, -9),
    lambda e: sd.functions.truncate(sd.functions.local_time(e.t, "Europe/Vienna"), "1d").isoformat(),
    lambda e: sd.functions.truncate(e.o, "1d"),
]

PAYLOADS: list[Lambda] = [
    lambda e: Out(e.i, e.f),
    lambda e: Out(e.i),
    lambda e: Out(a=e.i / e.j, b=None),
    lambda e: Out(b=e.i, a=e.s),
    lambda e: Out(Out(e.i, 1), (e.f, e.s)),
    lambda e: Out(e, e.i),
    lambda e: Named(one=e.i),
    lambda e: Named(two=e.i, one=1),
    lambda e: Pair(e.i),
    lambda e: Pair(e.i, right=e.f),
    lambda e: {"a": e.i},
    lambda e: {"a": e.i, "b": e.f + 1, "c": "x"},
    lambda e: {},
    lambda e: Record(a=e.i, b=2),
    lambda e: (e.i, e.f),
    lambda e: (e.i,),
    lambda e: (e.i, 1) * 2,
    lambda e: (),
    lambda e: (e, e.i),
    lambda e: ((e.i, 1), (e.f, "x")),
    lambda e: (1, 2),
    lambda e: PREFIXES,
    lambda e: (sd.col("i"), e.j),
]

CHOICES: list[Lambda] = [
    lambda e: when(e.i > 3).then(e.j).otherwise(-e.j),
    lambda e: when(e.m).then("yes").otherwise(None),
    lambda e: when(e.i > 3).then("big").when(e.i > 0).then(e.f).otherwise(e.i),
    lambda e: when(e.b).then(e.p).otherwise((e.i, 1)),
    lambda e: when(FLAG).then(e.i).otherwise(0),
    lambda e: when(e.i > 3).then(e).otherwise(None),
    lambda e: when(e.i > 3).then({"a": e.i}).otherwise({"a": 0}),
    lambda e: when(e.i > 3).then(Out(e.i)).otherwise(None),
    lambda e: not_(when(e.i > 3).then(e).otherwise(None)),
    lambda e: when(e.i > 3).then(when(e.j > 0).then(1).otherwise(2)).otherwise(3) + 1,
]

FUNCTIONS: list[Lambda] = [
    lambda e: clamp(e.m),
    lambda e: clamp(e.i, 3) + 1,
    lambda e: clamp(e.i, low=e.j),
    lambda e: clamp(5),
    lambda e: fields_seen(e),
    lambda e: held((e.i, Out(e.j))),
    lambda e: held(when(e.b).then(Out(e.j)).otherwise(None)),
]


def with_locals(e: Any) -> Any:
    x = e.i + e.j
    y = x * x
    return y - x


def with_pair_assignment(e: Any) -> Any:
    a, b = e.i, e.j
    return b * a


def shadowing(e: Any) -> Any:
    e = e.p
    return e.x


def shadowed_abs(abs: Any) -> Any:
    return abs.i


def make_over(limit: int) -> Lambda:
    return lambda e: e.i > limit


PARAMETERS_AND_VARIABLES: list[Lambda] = [
    lambda e, k=2: e.i * k,
    lambda e, k=3: e.i % k,
    lambda e, *, k=2: e.i * k,
    lambda e, k=LIMIT: e.i > k,
    lambda e, *more: (e.i, more),
    lambda *rows: rows[0].i,
    lambda e: (y := e.i + 1) * y,
    with_locals,
    with_pair_assignment,
    shadowing,
    shadowed_abs,
    make_over(3),
]

TRACED: list[Lambda] = [
    *FIELDS_AND_CONSTANTS,
    *INTEGERS,
    *FLOATS,
    *BOOLEANS,
    *COMPARISONS,
    *LOGIC,
    *VALUES_OF_ANY_TYPE,
    *FREE_NAMES,
    *TIMES,
    *TEXT,
    *ITEMS_OF_VALUES,
    *NONES,
    *CASTS,
    *LENGTHS_AND_CONTENTS,
    *CLOCKS,
    *PAYLOADS,
    *CHOICES,
    *FUNCTIONS,
    *PARAMETERS_AND_VARIABLES,
]

# Of records only: the items of dataclasses are fields in traced lambdas, and in no others.
ITEMS: list[Lambda] = [
    lambda e: e["i"],
    lambda e: e["i"] + e["j"] * 2,
    lambda e: e["i"] % 2,
    lambda e: e["i"] % e["j"],
    lambda e: e["s"] == "ab",
    lambda e: {"a": e["i"], "b": e.j},
    lambda e: (e["i"] % 3 == 0) & (e["j"] > 2),
    lambda e, k=3: e["i"] % k,
]
