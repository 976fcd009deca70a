"""Lambdas that must be opaque: something in them could make a trace mean something else."""

# The lambdas are written as people may write them, not as a linter likes them.
# ruff: noqa: C416, F507, F841, UP030, UP031, UP032

from __future__ import annotations

import functools
import math
import operator
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

import streamdsl as sd
from streamdsl.expr.expression_functions import lit, not_, when
from tests.laws.tracing.names import (
    DICT,
    HALF,
    LIST,
    NAME,
    NUMPY,
    ODD,
    Built,
    Checked,
    Colour,
    Custom,
    Lambda,
    Out,
    Tree,
    WithList,
    clamp,
    helper,
    kind,
)
from tests.laws.tracing.payloads import WHEN


def branching(e: Any) -> Any:
    if e.i > 3:
        return e.j
    return -e.j


def looping(e: Any) -> Any:
    return sum(n for n in range(3)) + e.i


def catching(e: Any) -> Any:
    try:
        return e.i / e.j
    except ZeroDivisionError:
        return None


def generating(e: Any) -> Any:
    return [x for x in (e.i, e.j)]


JUMPS: list[Lambda] = [
    lambda e: e.i > 1 and e.b,
    lambda e: e.i or e.j,
    lambda e: e.i or 3,
    lambda e: e.p.x and e.p.y,
    lambda e: not e.b,
    lambda e: e.i if e.b else e.j,
    lambda e: 1 < e.i < 5,
    lambda e: e.i == e.j == e.f,
    lambda e: (y := e.i) + y if e.b else 0,
    lambda e: e.i + lit(2) if e.b else e.i,
    lambda e: clamp(e.m) if e.b else None,
    lambda e: e if e.b else None,
    lambda e: (e, 1) if e.b else (None, 1),
    lambda e: {"a": e.i} if e.b else {"a": 0},
    lambda e: Out(e.i) if e.b else e,
    lambda e: when(e.b and True).then(1).otherwise(e.i),
    lambda e: not_(e.b) and lit(2),
    branching,
    looping,
    catching,
    generating,
]

IDENTITY_AND_MEMBERSHIP: list[Lambda] = [
    lambda e: e.o is None,
    lambda e: e.o is not None,
    lambda e: e.i in (1, 2, 3),
    lambda e: e.s not in ("ab", "c"),
    lambda e: "a" in e.s,
    lambda e: e.i in LIST,
    lambda e: e == e,
    lambda e: (e.i, e.j) == (e.j, e.i),
    lambda e: (e.i, 1) < (e.j, 2),
    lambda e: (e.f,) == (e.f,),
    lambda e: ().count(e.i),
]

CALLS: list[Lambda] = [
    lambda e: len(e.s),
    lambda e: str(e.i),
    lambda e: int(e.f),
    lambda e: float(e.i),
    lambda e: round(e.f, 2),
    lambda e: math.sqrt(abs(e.j)),
    lambda e: helper(e.i),
    lambda e: helper(e),
    lambda e: max(e.i, e.j),
    lambda e: min(e.f, 1.0),
    lambda e: sum((e.i, e.j)),
    lambda e: divmod(e.i, e.j),
    lambda e: isinstance(e.m, int),
    lambda e: getattr(e, "i"),  # noqa: B009
    lambda e: type(e.i),
    lambda e: print,
    lambda e: (lambda x: x + 1)(e.i),
    lambda e: datetime.fromtimestamp(e.j, UTC),
    lambda e: timedelta(seconds=e.j),
    lambda e: complex(e.j, 1),
    lambda e: np.float64(e.i) / 2,
    operator.attrgetter("i"),
    functools.partial(lambda k, e: e.i * k, 3),
]

TEXT: list[Lambda] = [
    lambda e: f"{e.s}-{e.i}",
    lambda e: f"{e.i!r}",
    lambda e: "%s" % e.i,
    lambda e: "%d" % e.i,
    lambda e: "%s %s" % (e.i, e.j),
    lambda e: "%(i)s" % e,
    lambda e: "abc" % e.i,
    lambda e: "abc" % e,
    lambda e: b"abc" % e.i,
    lambda e: NAME % e,
    lambda e: WHEN.isoformat() % e,
    lambda e: (WHEN.isoformat() % e, e.i % 2),
    lambda e: "{}".format(e.i),
    lambda e: "{0.i}".format(e),
    lambda e: "{i}".format_map(e),
    lambda e: NAME.translate(e),
    lambda e: "-".join(e.s),
    lambda e: e.t.strftime("%Y"),
    lambda e: e.t.replace(year=2000),
]

ITEMS: list[Lambda] = [
    lambda e: LIST[0] + e.i,
    lambda e: DICT["a"] + e.i,
    lambda e: (e.i // e.j, 1)[1],
    lambda e: (e.i // e.j, 1)[1:],
    lambda e: "abc"[e.i],
    lambda e: "abc"[: e.i],
    lambda e: (1, 2)[e.i],
    lambda e: "abc" % e.o["a"],
    lambda e: "%(a)s" % e.o,
]

# What a proxy has for itself is not what a row or a value has.
NAMES_OF_PROXIES: list[Lambda] = [
    lambda e: e.scale,
    lambda e: e.__class__.__name__ == "Row",
    lambda e: e.i.__class__.__name__ == "int",
    lambda e: e.i.__add__(1),
    lambda e: (5).__eq__(e.i),
    lambda e: ((y := e.p)._node == 1, y),
    lambda e: ((y := e.p)._binary == 1, y),
    lambda e: ((y := e.s), y.upper._name),
    lambda e: Tree(5).node == 5,
    lambda e: Tree(e.i).node == 5,
    lambda e: e.t.date,
    lambda e: kind._function(e.i),
]

COLLECTIONS: list[Lambda] = [
    lambda e: [e.i, e.j],
    lambda e: {e.i},
    lambda e: {e.s: 1},
    lambda e: {1: e.i},
    lambda e: {"a": {"b": e.i}},
    lambda e: {"a": e.i, "b": [1]},
    lambda e: [x for x in LIST],
    lambda e: Out(*(e.i, e.j)),
    lambda e: {**DICT, "b": e.i},
]

OBJECTS: list[Lambda] = [
    lambda e: sd.functions.cast(e, str),
    lambda e: sd.functions.length(e),  # a row that has no length, or has one
    lambda e: sd.functions.length((e.i, e)),
    lambda e: sd.functions.coalesce(e, 1),
    lambda e: sd.functions.coalesce({"a": e.i}, 1),
    lambda e: sd.functions.contains([e.i], e.j),
    lambda e: sd.functions.local_time(e.t, e.s),
    lambda e: (int, e.i),
    lambda e: e.m == int,  # noqa: E721
    lambda e: int == e.m,  # noqa: E721
    lambda e: kind(int),
    lambda e: Out(int),
    lambda e: {"a": int},
    lambda e: LIST,
    lambda e, seen=LIST: e.i,
    lambda e: e.i + ODD,
    lambda e: ODD + e.i,
    lambda e: e.i == Colour.RED,
    lambda e: e.f * NUMPY,
    lambda e: NUMPY / e.j,
    lambda e: e.j + 1j,
    lambda e: ...,
    lambda e: undefined_name + e.i,  # type: ignore[name-defined]  # noqa: F821
    lambda e: e.i << 1,
    lambda e: e.i @ e.j,
]

CLASSES: list[Lambda] = [
    lambda e: Checked(e.i),
    lambda e: Built(e.i),
    lambda e: Custom(e.i),
    lambda e: WithList(e.i),
    lambda e: Out(e.i).a,
    lambda e: Out(e.i) == Out(e.j),
    lambda e: Out(),  # type: ignore[call-arg]
    lambda e: Out(e.i, c=1),  # type: ignore[call-arg]
]

# A row, or a dict, is no payload before it is a result.
UNFINISHED_PAYLOADS: list[Lambda] = [
    lambda e: kind(when(e.i > 3).then({"a": e.i}).otherwise({"a": 0})),
    lambda e: when(e.i > 3).then({"a": e.i}).otherwise({"a": 0}).a,
    lambda e: when(e.i > 3).then(e).otherwise(None) == 3,
    lambda e: kind((e, 1)),
    lambda e: sd.col(e.s),
    lambda e: {"a": sd.col("i"), "b": e.j or 1},
    lambda e: [Out(sd.col("i") + e.j)],
    lambda e: when(e.i > 3).then(e.j),
]


def unused(e: Any) -> Any:
    ignored = e.i // e.j
    return e.i


def augmented(e: Any) -> Any:
    x = e.i
    x += e.j
    return x


def backwards(e: Any) -> Any:
    x = e.s + 1
    y = 1 / e.j
    return y + x


# The first error in Python's order is the error.
ORDER_OF_ERRORS: list[Lambda] = [
    lambda e: Out(b=1 / e.j, a=e.s + 1),
    lambda e: clamp(low=1 / e.j, x=e.s + 1),
    lambda e: ((x := e.s + 1), (y := 1 / e.j), y, x)[2:],
    unused,
    augmented,
    backwards,
]

# Before Python 3.13 a Fraction loses its exactness before the trace sees it.
FRACTION_POWERS: list[Lambda] = [lambda e: HALF**e.j]
TOO_DEEP: list[Lambda] = [eval("lambda e: " + " + ".join(["e.i"] * 800))]

OPAQUE: list[Lambda] = [
    *JUMPS,
    *IDENTITY_AND_MEMBERSHIP,
    *CALLS,
    *TEXT,
    *ITEMS,
    *NAMES_OF_PROXIES,
    *COLLECTIONS,
    *OBJECTS,
    *CLASSES,
    *UNFINISHED_PAYLOADS,
    *ORDER_OF_ERRORS,
    *TOO_DEEP,
    *(FRACTION_POWERS if sys.version_info < (3, 13) else []),
]

# Opaque where the class is known, and right where it is not.
OF_CLASSES: list[Lambda] = [lambda e: e.double, lambda e: e.total(), lambda e: e.double + e.i]

OF_RECORDS: list[Lambda] = [
    lambda e: "abc" % e["i"],
    lambda e: "%(i)s" % e,
    lambda e: e.keys(),
    lambda e: list(e.items()),
    lambda e: e.get("i"),
    lambda e: {**e, "i": 0},
    lambda e: len(e),
    lambda e: "i" in e,
]
