"""The law of tracing: a traced lambda never means something else than the same lambda called on a row.

Each lambda below is called directly on the rows, evaluated row by row, and evaluated over columns: the same values of the same
types, or the same exception in the same row. Traced ones must be traced (that is the use of it), opaque ones must not be.
"""

# The lambdas are written as people may write them, not as a linter likes them.
# ruff: noqa: C416, F507, F841, SIM300, UP030, UP031, UP032

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streamdsl.expr as sd
from streamdsl.expr import Inputs, RowError, evaluate, evaluate_row, project, project_row, trace, truth
from streamdsl.expr.facade import E
from streamdsl.expr.functions import is_none, lit, not_, udf, when
from streamdsl.expr.nodes import Expr, is_opaque
from streamdsl.expr.rows import settle
from streamdsl.expr.schema import Schema, as_payload, row_view
from streamdsl.expr.table import Table
from streamdsl.temporal import Record

Lambda = Callable[..., Any]


@dataclass
class Point:
    x: float
    y: int


@dataclass
class Row:
    i: int
    j: int
    f: float
    g: float
    m: Any
    b: bool
    s: str
    o: Any
    t: datetime
    d: timedelta
    p: Point

    scale = 3

    @property
    def double(self) -> int:
        return self.i * 2

    def total(self) -> float:
        return self.f + self.g


@dataclass
class Out:
    a: Any
    b: Any = 7


@dataclass(frozen=True, kw_only=True)
class Named:
    one: Any
    two: Any = None


class Pair(NamedTuple):
    left: Any
    right: Any = "r"


@dataclass
class Checked:
    a: Any

    def __post_init__(self) -> None:
        self.a = str(self.a)


@dataclass
class Custom:
    a: Any

    def __init__(self, a: Any) -> None:
        self.a = (a, a)


@dataclass
class WithList:
    a: Any
    items: list[int] = field(default_factory=list)


class Colour(enum.IntEnum):
    RED = 1


class Odd(int):
    """An int that adds wrongly."""

    def __add__(self, other: object) -> int:
        return 99


LIMIT = 5
RATE = 0.5
NAME = "ab"
FLAG = True
NOTHING = None
BIG = 2**70
NAN = math.nan
WHEN = datetime(2020, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HALF = Fraction(1, 2)
TENTH = Decimal("0.1")
PREFIXES = ("a", "b")
LIST = [1, 2, 3]
DICT = {"a": 1}
ODD = Odd(3)
NUMPY = np.float64(0.5)
EXPRESSION = sd.col("i") * 2


def helper(x: Any) -> Any:
    return x


@udf
def clamp(x: Any, low: int = 0) -> Any:
    return low if x is None or x < low else x


@udf
def fields_seen(row: Any) -> Any:
    return (row.i, row.j)


@udf
def held(x: Any) -> Any:
    return {"held": x}


def make_over(limit: int) -> Lambda:
    return lambda e: e.i > limit


def with_locals(e: Any) -> Any:
    x = e.i + e.j
    y = x * x
    return y - x


def with_pair_assignment(e: Any) -> Any:
    a, b = e.i, e.j
    return a * b


def shadowing(e: Any) -> Any:
    e = e.p
    return e.x


def shadowed_abs(abs: Any) -> Any:
    return abs.i


def branching(e: Any) -> Any:
    if e.i > 3:
        return e.j
    return -e.j


def unused(e: Any) -> Any:
    ignored = e.i // e.j
    return e.i


def looping(e: Any) -> Any:
    return sum(n for n in range(3)) + e.i


def augmented(e: Any) -> Any:
    x = e.i
    x += e.j
    return x


def catching(e: Any) -> Any:
    try:
        return e.i / e.j
    except ZeroDivisionError:
        return None


def generating(e: Any) -> Any:
    return [x for x in (e.i, e.j)]


TRACED: list[Lambda] = [
    lambda e: e.i,
    lambda e: e,
    lambda e: 5,
    lambda e: None,
    lambda e: "text",
    lambda e: e.i + 1,
    lambda e: 1 + e.i,
    lambda e: e.i - e.j,
    lambda e: 10 - e.i,
    lambda e: e.i * e.j,
    lambda e: e.i * e.i * e.i,
    lambda e: 2 * e.i,
    lambda e: e.i / e.j,
    lambda e: 1 / e.j,
    lambda e: e.i // e.j,
    lambda e: 7 // e.j,
    lambda e: e.i % e.j,
    lambda e: e.i % -3,
    lambda e: -7 % e.j,
    lambda e: e.i**2,
    lambda e: e.j**3,
    lambda e: 2**e.j,
    lambda e: e.j**e.j,
    lambda e: e.f + e.g,
    lambda e: e.f - 0.1,
    lambda e: e.f * e.g,
    lambda e: e.f / e.g,
    lambda e: e.f // e.g,
    lambda e: e.f % e.g,
    lambda e: e.f**2,
    lambda e: e.f**0.5,
    lambda e: e.i + e.f,
    lambda e: e.i * e.f,
    lambda e: e.i / e.f,
    lambda e: e.f // e.j,
    lambda e: e.f % 3,
    lambda e: e.b + e.b,
    lambda e: e.b * e.i,
    lambda e: e.b / e.j,
    lambda e: -e.b,
    lambda e: +e.b,
    lambda e: abs(e.b),
    lambda e: True + e.i,
    lambda e: e.b & e.b,
    lambda e: e.b | e.i,
    lambda e: e.b ^ True,
    lambda e: e.i & 6,
    lambda e: e.i | e.j,
    lambda e: 12 ^ e.j,
    lambda e: e.f & 1,
    lambda e: -e.i,
    lambda e: +e.i,
    lambda e: abs(e.i),
    lambda e: abs(e.f),
    lambda e: -e.f,
    lambda e: ~e.i,
    lambda e: ~e.i + e.j,
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
    lambda e: e.i // -1,
    lambda e: e.i % -1,
    lambda e: e.i - 1,
    lambda e: e.i * 3,
    lambda e: e.i == BIG,
    lambda e: e.i < BIG,
    lambda e: e.i + BIG,
    lambda e: e.f < BIG,
    lambda e: e.b == 1,
    lambda e: e.b < e.i,
    lambda e: e.b > 0.5,
    lambda e: e.i == True,  # noqa: E712
    lambda e: e.i == "x",
    lambda e: e.i < "x",
    lambda e: e.m == None,  # noqa: E711
    lambda e: e.m == 1,
    lambda e: e.m != e.i,
    lambda e: e.m + 1,
    lambda e: e.m * 2,
    lambda e: e.m / e.j,
    lambda e: e.m > 0,
    lambda e: -e.m,
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
    lambda e: e.i > LIMIT,
    lambda e: e.f * RATE + LIMIT,
    lambda e: e.s == NAME,
    lambda e: e.f == NAN,
    lambda e: e.i * HALF,
    lambda e: e.i + TENTH,
    lambda e: e.f + TENTH,
    lambda e: FLAG,
    lambda e: e.o == NOTHING,
    lambda e: e.t > WHEN,
    lambda e: e.t - WHEN,
    lambda e: WHEN + e.d,
    lambda e: e.t > datetime(2021, 1, 1, tzinfo=UTC),
    lambda e: e.d > timedelta(minutes=5),
    lambda e: e.d / HOUR,
    lambda e: e.d * e.j,
    lambda e: e.d // e.j,
    lambda e: e.t.year,
    lambda e: e.t.hour * 60 + e.t.minute,
    lambda e: e.t.weekday() == 5,
    lambda e: e.t.date(),
    lambda e: e.t.isoformat(),
    lambda e: e.d.total_seconds() / 60,
    lambda e: e.i.real,
    lambda e: e.i.bit_length(),
    lambda e: e.f.is_integer(),
    lambda e: e.m.real,
    lambda e: e.s.upper(),
    lambda e: e.s.strip().lower() == "ab",
    lambda e: e.s.startswith("a"),
    lambda e: e.s.startswith(PREFIXES),
    lambda e: e.s.endswith(("b", "c")),
    lambda e: e.s.replace("a", "b"),
    lambda e: e.s.replace("a", e.s),
    lambda e: e.s.isdigit(),
    lambda e: e.s.find("b"),
    lambda e: e.o.upper(),
    lambda e: e.s + "x",
    lambda e: "x" + e.s,
    lambda e: e.s * 2,
    lambda e: e.s * e.j,
    lambda e: e.s + e.i,
    lambda e: e.s < "b",
    lambda e: e.s >= e.s,
    lambda e: e.s != "ab",
    lambda e: e.o == "ab",
    lambda e: e.o < "ab",
    lambda e: e.s % 3,
    lambda e: e.p.x,
    lambda e: e.p.x * e.p.y,
    lambda e: e.p,
    lambda e: e.p.missing,
    lambda e: e.p.y,
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
    lambda e: (),
    lambda e: (e, e.i),
    lambda e: ((e.i, 1), (e.f, "x")),
    lambda e: (1, 2),
    lambda e: PREFIXES,
    lambda e: (e.i, 1) == e.o,
    lambda e: e.o == (1, e.j),
    lambda e: when(e.i > 3).then(e.j).otherwise(-e.j),
    lambda e: when(e.m).then("yes").otherwise(None),
    lambda e: when(e.i > 3).then("big").when(e.i > 0).then(e.f).otherwise(e.i),
    lambda e: when(e.b).then(e.p).otherwise((e.i, 1)),
    lambda e: when(FLAG).then(e.i).otherwise(0),
    lambda e: when(e.i > 3).then(e).otherwise(None),
    lambda e: when(e.i > 3).then({"a": e.i}).otherwise({"a": 0}),
    lambda e: when(e.i > 3).then(when(e.j > 0).then(1).otherwise(2)).otherwise(3) + 1,
    lambda e: lit(3) + e.i,
    lambda e: EXPRESSION + e.j,
    lambda e: clamp(e.m),
    lambda e: clamp(e.i, 3) + 1,
    lambda e: clamp(e.i, low=e.j),
    lambda e: clamp(5),
    lambda e: fields_seen(e),
    lambda e, k=2: e.i * k,
    lambda e, *, k=2: e.i * k,
    lambda e, k=LIMIT: e.i > k,
    lambda e: (e.i + 1) * (e.i + 1),
    lambda e: (y := e.i + 1) * y,
    lambda e: held((e.i, Out(e.j))),
    lambda e: ((e.i * 3 + e.j) // 2 - e.f) / 7 > -1,
    with_locals,
    with_pair_assignment,
    shadowing,
    shadowed_abs,
    make_over(3),
]

OPAQUE: list[Lambda] = [
    lambda e: e.i > 1 and e.b,
    lambda e: e.i or e.j,
    lambda e: not e.b,
    lambda e: e.i if e.b else e.j,
    lambda e: 1 < e.i < 5,
    lambda e: e.o is None,
    lambda e: e.o is not None,
    lambda e: e.i in (1, 2, 3),
    lambda e: e.s not in ("ab", "c"),
    lambda e: "a" in e.s,
    lambda e: len(e.s),
    lambda e: str(e.i),
    lambda e: int(e.f),
    lambda e: float(e.i),
    lambda e: round(e.f, 2),
    lambda e: f"{e.s}-{e.i}",
    lambda e: f"{e.i!r}",
    lambda e: "%s" % e.i,
    lambda e: "%d" % e.i,
    lambda e: "%s %s" % (e.i, e.j),
    lambda e: "abc" % e.i,
    lambda e: "abc" % e,
    lambda e: NAME % e,
    lambda e: "%(i)s" % e,
    lambda e: b"abc" % e.i,
    lambda e: "{}".format(e.i),
    lambda e: "{0.i}".format(e),
    lambda e: "-".join(e.s),
    lambda e: e.s.split("a"),
    lambda e: e.s[0],
    lambda e: e.s[-1:],
    lambda e: e.o[0],
    lambda e: e.t.replace(year=2000),
    lambda e: e.t.strftime("%Y"),
    lambda e: e.scale,
    lambda e: e.__class__.__name__ == "Row",
    lambda e: e.i.__class__.__name__ == "int",
    lambda e: e.i.__add__(1),
    lambda e: (5).__eq__(e.i),
    lambda e: [e.i, e.j],
    lambda e: {e.i},
    lambda e: {e.s: 1},
    lambda e: {1: e.i},
    lambda e: {"a": {"b": e.i}},
    lambda e: {"a": e.i, "b": [1]},
    lambda e: [x for x in LIST],
    lambda e: LIST,
    lambda e: LIST[0] + e.i,
    lambda e: DICT["a"] + e.i,
    lambda e: e.i in LIST,
    lambda e: e.i + ODD,
    lambda e: ODD + e.i,
    lambda e: e.i == Colour.RED,
    lambda e: e.f * NUMPY,
    lambda e: NUMPY / e.j,
    lambda e: np.float64(e.i) / 2,
    lambda e: math.sqrt(abs(e.j)),
    lambda e: helper(e.i),
    lambda e: helper(e),
    lambda e: max(e.i, e.j),
    lambda e: min(e.f, 1.0),
    lambda e: sum((e.i, e.j)),
    lambda e: isinstance(e.m, int),
    lambda e: getattr(e, "i"),  # noqa: B009
    lambda e: (lambda x: x + 1)(e.i),
    lambda e: (y := e.i) + y if e.b else 0,
    lambda e: (e.i, e.j) == (e.j, e.i),
    lambda e: (e.i, 1) < (e.j, 2),
    lambda e: (e.f,) == (e.f,),
    lambda e: (e.i // e.j, 1)[1],
    lambda e: e == e,
    lambda e: e.p.x and e.p.y,
    lambda e: Checked(e.i),
    lambda e: Custom(e.i),
    lambda e: WithList(e.i),
    lambda e: Out(e.i).a,
    lambda e: Out(e.i) == Out(e.j),
    lambda e: Out(),  # type: ignore[call-arg]
    lambda e: Out(e.i, c=1),  # type: ignore[call-arg]
    lambda e: Out(*(e.i, e.j)),
    lambda e: datetime.fromtimestamp(e.j, UTC),
    lambda e: timedelta(seconds=e.j),
    lambda e: complex(e.j, 1),
    lambda e: e.j + 1j,
    lambda e: ...,
    lambda e: undefined_name + e.i,  # type: ignore[name-defined]  # noqa: F821
    lambda e, seen=LIST: e.i,
    lambda e: e.i << 1,
    lambda e: e.i @ e.j,
    lambda e: divmod(e.i, e.j),
    lambda e: when(e.b and True).then(1).otherwise(e.i),
    lambda e: not_(e.b) and lit(2),
    lambda e: e.i + lit(2) if e.b else e.i,
    lambda e: clamp(e.m) if e.b else None,
    lambda e: e if e.b else None,
    lambda e: (e, 1) if e.b else (None, 1),
    lambda e: {"a": e.i} if e.b else {"a": 0},
    lambda e: Out(e.i) if e.b else e,
    lambda e: print,
    lambda e: type(e.i),
    branching,
    unused,
    looping,
    augmented,
    catching,
    generating,
    operator.attrgetter("i"),
]

CLASS_ONLY: list[Lambda] = [lambda e: e.double, lambda e: e.total(), lambda e: e.double + e.i]
ITEMS: list[Lambda] = [
    lambda e: e["i"],
    lambda e: e["i"] + e["j"] * 2,
    lambda e: e["i"] % 2,
    lambda e: e["s"] == "ab",
    lambda e: {"a": e["i"], "b": e.j},
    lambda e: (e["i"] % 3 == 0) & (e["j"] > 2),
]
OPAQUE_ITEMS: list[Lambda] = [
    lambda e: "abc" % e["i"],
    lambda e: "%(i)s" % e,
    lambda e: e.keys(),
    lambda e: list(e.items()),
    lambda e: e.get("i"),
    lambda e: {**e, "i": 0},
    lambda e: len(e),
    lambda e: "i" in e,
]

small = st.integers(-4, 9)
edge = st.sampled_from([0, 1, -1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 3])
big = st.one_of(edge, st.integers(-(2**70), 2**70))
wild = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 3.0, math.nan, math.inf, -math.inf, 9007199254740992.0, 1e308, 5e-324]),
    st.floats(-100, 100),
    st.floats(),
)
tame = st.sampled_from([1.0, 2.5, -3.75, 0.1, 1e-3, 7.0])
mixed = st.one_of(st.none(), st.booleans(), small, wild, st.just("ab"))
text = st.sampled_from(["", "a", "ab", " AB ", "bc", "12", "%s", "%d", "ß"])
other = st.one_of(st.none(), text, st.tuples(small, small))
times = st.datetimes(datetime(2019, 1, 1), datetime(2022, 1, 1), timezones=st.just(UTC))
durations = st.timedeltas(timedelta(hours=-30), timedelta(hours=30))
points = st.builds(Point, wild, small)


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    i, j, f = (
        draw(st.sampled_from([small, edge, big])),
        draw(st.sampled_from([small, st.integers(1, 5)])),
        draw(st.sampled_from([wild, tame])),
    )
    row = st.builds(Row, i, j, f, f, mixed, st.booleans(), text, other, times, durations, points)
    return draw(st.lists(row, max_size=5))


def fixed(i: int, j: int, f: float, g: float, m: Any, o: Any = None) -> Row:
    return Row(i, j, f, g, m, i % 2 == 0, "ab", o, WHEN, HOUR, Point(f, j))


MIN, MAX, EXACT = -(2**63), 2**63 - 1, 2**53
CORNERS: list[list[Row]] = [
    [],
    [fixed(MIN, -1, -0.0, 0.5, None), fixed(MAX, 1, 0.0, 0.5, True)],
    [fixed(MIN + 1, -1, math.nan, math.inf, 1), fixed(MAX - 1, 2, -math.inf, -0.5, 0.5)],
    [fixed(EXACT + 1, 3, float(EXACT), 3.0, "ab"), fixed(-EXACT - 1, -3, -float(EXACT), 5e-324, EXACT + 1)],
    [fixed(EXACT, 0, 1.0, 0.0, 0), fixed(1, 1, 1.0, 1.0, 0)],
    [fixed(3, 2, -7.5, 2.0, -1, (1, 2)), fixed(3, 2, 7.5, -2.0, None, "ab"), fixed(0, 0, 0.0, 1.0, 0, (3, 1))],
    [fixed(2**70, 1, 1e308, 1e308, 2**70), fixed(-(2**70), 1, 0.1, 0.2, -(2**70))],
    [fixed(3037000500, 3, 0.1, 0.3, False), fixed(-3037000500, -2, 1e16, 0.1, 1.5)],
]


def as_record(row: Row) -> Record:
    return Record({f.name: getattr(row, f.name) for f in fields(Row)})


CLASS_SCHEMA = Schema.of_type(Row)
RECORD_SCHEMA = Schema.record([f.name for f in fields(Row)])


@cache
def traced(function: Lambda, schema: Schema | None) -> Expr:
    return trace(function, (schema,))


def canon(value: Any) -> Any:
    """What must be the same of two values: the type too, and the sign of zero; NaN is NaN."""
    if isinstance(value, Mapping):
        return ("record", [(name, canon(item)) for name, item in value.items()])
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, [canon(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, [canon(getattr(value, f.name)) for f in fields(value)])
    return (type(value).__name__, repr(value))


def outcome(compute: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return ("value", canon(compute(*arguments)))
    except Exception as error:
        return ("error", type(error).__name__)


def called(function: Lambda, payload: Any) -> Any:
    found = as_payload(settle(function(row_view(payload))))
    return evaluate_row(found.node, (payload,)) if isinstance(found, E) else found


def over_columns(compute: Callable[[], list[Any]]) -> Any:
    try:
        return [("value", canon(as_payload(value))) for value in compute()]
    except RowError as error:
        return (error.row, type(error.cause).__name__)


def expected_columns(outcomes: list[Any]) -> Any:
    for row, (kind, what) in enumerate(outcomes):
        if kind == "error":
            return (row, what)
    return outcomes


def check(function: Lambda, schema: Schema | None, payloads: list[Any]) -> None:
    expr = traced(function, schema)
    direct = [outcome(called, function, p) for p in payloads]
    by_row = [outcome(evaluate_row, expr, (p,)) for p in payloads]
    assert by_row == direct, sd.describe(expr)
    assert [outcome(project_row, expr, (p,)) for p in payloads] == direct, sd.describe(expr)
    table = Table.from_payloads(payloads)
    inputs = Inputs((table,), len(payloads))
    wanted = expected_columns(direct)
    assert over_columns(lambda: evaluate(expr, inputs).tolist()) == wanted, sd.describe(expr)
    assert over_columns(lambda: project(expr, inputs).payloads()) == wanted, sd.describe(expr)


TRUTHS: list[Lambda] = [
    lambda e: e,
    lambda e: e.m,
    lambda e: e.f,
    lambda e: e.i,
    lambda e: e.s,
    lambda e: (e.i,),
    lambda e: {},
    lambda e: e.m or e.s,
]
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
SETTINGS = settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("rows", CORNERS, ids=range(len(CORNERS)))
def test_all_lambdas_mean_what_they_mean_in_the_corners(rows: list[Row]) -> None:
    for function in [*TRACED, *OPAQUE, *CLASS_ONLY]:
        check(function, CLASS_SCHEMA, rows)


SCALARS: list[Lambda] = [
    lambda e: e,
    lambda e: e.value,
    lambda e: e["value"],
    lambda e: e.value + 1,
    lambda e: (e, e.value),
    lambda e: {"v": e},
    lambda e: Out(e),
    lambda e: e if e.value else None,
    lambda e: (e, 1) if e.value else [e],
    lambda e: {"v": e} if e.value else Out(e),
    lambda e: when(e.value).then(e).otherwise(-1),
    lambda e: is_none(e),
    lambda e: not_(e),
    lambda e: helper(e),
]
TUPLES: list[Lambda] = [
    lambda e: e,
    lambda e: e[0],
    lambda e: e[-1],
    lambda e: e[2],
    lambda e: e._0 + e[1],
    lambda e: e["_1"],
    lambda e: (e, e[0]),
    lambda e: e if e[0] else (e, e),
    lambda e: e.count(1),
    lambda e: e.index(1),
    lambda e: e[0:1],
    lambda e: len(e),
]


@pytest.mark.parametrize("schema", [Schema.scalar(), None], ids=["scalar", "unknown"])
@pytest.mark.parametrize("payloads", [[1, 0], [1.5, math.nan], [None, 2, "x"], ["a", "b"], [True]], ids=str)
def test_lambdas_over_scalars(payloads: list[Any], schema: Schema | None) -> None:
    for function in SCALARS:
        check(function, schema, payloads)


@pytest.mark.parametrize("schema", [Schema.tuple(2), None], ids=["tuple", "unknown"])
@pytest.mark.parametrize("payloads", [[(1, 2), (0, 5)], [(1, "a"), (2, None)], [(1.0, 0.5)]], ids=str)
def test_lambdas_over_tuples(payloads: list[Any], schema: Schema | None) -> None:
    for function in TUPLES:
        check(function, schema, payloads)


@SETTINGS
@given(batches())
def test_traced_lambdas_mean_what_they_mean_on_dataclasses(rows: list[Row]) -> None:
    for function in TRACED:
        check(function, CLASS_SCHEMA, rows)


@SETTINGS
@given(batches())
def test_lambdas_mean_what_they_mean_on_records(rows: list[Row]) -> None:
    payloads = list(map(as_record, rows))
    for function in [*TRACED, *ITEMS, *OPAQUE_ITEMS]:
        check(function, RECORD_SCHEMA, payloads)


@settings(SETTINGS, max_examples=50)
@given(batches())
def test_lambdas_mean_what_they_mean_where_the_schema_is_unknown(rows: list[Row]) -> None:
    for function in [*TRACED, *CLASS_ONLY]:
        check(function, None, rows)


@settings(SETTINGS, max_examples=50)
@given(batches())
def test_opaque_lambdas_mean_what_they_mean(rows: list[Row]) -> None:
    for function in [*OPAQUE, *CLASS_ONLY]:
        check(function, CLASS_SCHEMA, rows)


@settings(SETTINGS, max_examples=30)
@given(batches())
def test_truth_is_python_truth(rows: list[Row]) -> None:
    inputs = Inputs((Table.from_payloads(rows),), len(rows))
    for function in TRUTHS:
        expected = [bool(function(row)) for row in rows]
        assert truth(evaluate(traced(function, CLASS_SCHEMA), inputs)).tolist() == expected


def test_there_are_enough_lambdas() -> None:
    assert len(TRACED) + len(OPAQUE) + len(ITEMS) + len(OPAQUE_ITEMS) + len(CLASS_ONLY) >= 200


@pytest.mark.parametrize("schema", [CLASS_SCHEMA, RECORD_SCHEMA, None], ids=["class", "record", "unknown"])
def test_what_should_be_traced_is_traced(schema: Schema | None) -> None:
    opaque = [sd.describe(traced(f, schema)) + f" #{n}" for n, f in enumerate(TRACED) if is_opaque(traced(f, schema))]
    assert opaque == []
    assert len(TRACED) >= 60


def test_items_are_traced_on_records() -> None:
    assert not any(is_opaque(traced(f, RECORD_SCHEMA)) for f in ITEMS)


def test_what_must_be_opaque_is_opaque() -> None:
    seen = [sd.describe(traced(f, CLASS_SCHEMA)) for f in [*OPAQUE, *CLASS_ONLY] if not is_opaque(traced(f, CLASS_SCHEMA))]
    seen += [sd.describe(traced(f, RECORD_SCHEMA)) for f in OPAQUE_ITEMS if not is_opaque(traced(f, RECORD_SCHEMA))]
    assert seen == []
