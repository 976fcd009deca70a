"""Expressions outside lambdas: what they build, how they are shown, what they refuse and with which advice."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from streamdsl.building import record, row_expression
from streamdsl.errors import FieldNotFound, QueryError
from streamdsl.expr.describe import describe
from streamdsl.expr.expression_functions import col, lit, not_, when
from streamdsl.expr.facade import E, node_of
from streamdsl.expr.nodes import Field, is_opaque
from streamdsl.expr.proxies import RowProxy
from streamdsl.expr.recording import NotTraceable
from streamdsl.expr.row_evaluator import evaluate_row
from streamdsl.expr.schema import Schema, is_plain_class
from streamdsl.expr.tracing import trace


@dataclass
class Trip:
    zone: str
    fare: float
    done: bool = False

    rate = 2

    @property
    def tax(self) -> float:
        return self.fare / 10


class Pair(NamedTuple):
    a: int
    b: int


@dataclass
class Priced:
    fare: float

    def __post_init__(self) -> None:
        self.cents = round(self.fare * 100)


@dataclass
class Indexed:
    x: int

    def __getitem__(self, name: str) -> str:
        return name


TRIP = Schema.of_type(Trip)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("a") + 1, "e.a + 1"),
        (1 - col("a"), "1 - e.a"),
        ((col("a") > 1) & (col("b") == "x"), "(e.a > 1) & (e.b == 'x')"),
        (1 < col("a"), "e.a > 1"),  # noqa: SIM300
        (-(col("a") ** 2), "-(e.a ** 2)"),
        (abs(col("a")) / 2, "abs(e.a) / 2"),
        (col("s").upper().startswith("A"), "e.s.upper().startswith('A')"),
        (col("t").hour, "e.t.hour"),
        (not_(col("a")), "not_(e.a)"),
        (when(col("a") > 1).then(2).otherwise(None), "when(e.a > 1).then(2).otherwise(None)"),
        (col("two words"), "e['two words']"),
        (np.float64(2) * col("a"), "2.0 * e.a"),
        (col("p") == (1, col("b")), "e.p == (1, e.b)"),
    ],
)
def test_operators_build_what_they_say(expression: E, text: str) -> None:
    assert repr(expression) == describe(node_of(expression)) == text


def test_descriptions_of_traced_lambdas() -> None:
    pair = (TRIP, TRIP)
    assert describe(trace(lambda a, b: (a.fare, b.fare), pair)) == "(l.fare, r.fare)"
    assert describe(trace(lambda e: Pair(1, e.fare), (TRIP,))) == "Pair(a=1, b=e.fare)"
    assert describe(trace(lambda e: {"n": e.fare, "e": e}, (TRIP,))) == "{n: e.fare, e: e}"
    assert describe(trace(lambda e, life: life.re - life.le, (TRIP,), life=True)) == "life.re - life.le"
    assert describe(trace(lambda e: len(e.zone), (TRIP,))) == "opaque <lambda>"


@pytest.mark.parametrize(
    ("misuse", "advice"),
    [
        (lambda e: bool(e), "write & and |"),
        (lambda e: e and 1, "sd.not_"),
        (lambda e: len(e), "sd.functions.length"),
        (lambda e: list(e), "sd.col"),
        (lambda e: 1 in e, "sd.functions.contains"),
        (lambda e: {e: 1}, "dictionary key"),
        (lambda e: str(e), "sd.functions.cast"),
        (lambda e: f"{e}", "@sd.udf"),
        (lambda e: int(e), "sd.functions.cast"),
        (lambda e: float(e), "sd.functions.cast"),
        (lambda e: e(1), "@sd.udf"),
        (lambda e: e.rsplit(","), "the methods of expressions are"),
        (lambda e: e + [1], "not a constant"),  # noqa: RUF005
        (lambda e: e.replace(hour=1).upper(hour=1), "cannot be|no names"),
        (lambda e: range(e), "sd.col"),
    ],
)
def test_misuse_outside_lambdas_says_what_to_write(misuse: Callable[[Any], Any], advice: str) -> None:
    with pytest.raises(NotTraceable, match=advice):
        misuse(col("x"))


def test_invert_of_a_boolean_is_refused_with_a_hint() -> None:
    boolean: list[Callable[[Any], Any]] = [
        lambda e: ~(e.fare > 1),
        lambda e: ~((e.fare > 1) & (e.zone == "x")),
        lambda e: ~not_(e.fare),
        lambda e: ~e.zone.startswith("x"),
        lambda e: ~e.done,
        lambda e: ~when(e.done).then(e.fare > 1).otherwise(True),
    ]
    for function in boolean:
        with pytest.raises(QueryError, match=r"Hint: write sd\.not_\("):
            trace(function, (TRIP,))
    with pytest.raises(QueryError, match=r"sd\.not_\(e\.a == 1\)"):
        ~(col("a") == 1)


def test_invert_of_an_integer_is_kept() -> None:
    assert describe(trace(lambda e: ~e.fare, (TRIP,))) == "~(e.fare)"


def test_a_choice_of_rows_or_records_is_no_operand() -> None:
    chosen = when(col("x") > 1).then({"a": col("x")}).otherwise(None)
    assert describe(node_of(chosen)) == "when(e.x > 1).then({a: e.x}).otherwise(None)"
    for misuse in (lambda: chosen + 1, lambda: chosen.a, lambda: chosen == 1):
        with pytest.raises(NotTraceable, match="a result and no operand"):
            misuse()
    assert evaluate_row(node_of(when(col("x") > 1).then((1, 2)).otherwise(()) == (1, 2)), ({"x": 3},)) is True


def test_a_choice_that_is_not_written_to_its_end_says_how() -> None:
    for unfinished in (when(col("x") > 1), when(col("x") > 1).then(2)):
        with pytest.raises(QueryError, match=r"has no value yet\nHint: write sd\.when\(condition\)"):
            bool(unfinished)
        with pytest.raises(QueryError, match=r"sd\.when\(.*is not an expression.*\nHint: end it: sd\.when"):
            row_expression(unfinished, None)
        with pytest.raises(QueryError, match=r"the field a=sd\.when\(.*is not an expression\nHint: end it: sd\.when"):
            record({"a": unfinished}, None)
    expr = trace(lambda e: {"a": when(e.x > 1).then(2)}, (None,))
    with pytest.raises(QueryError, match=r"sd\.when\(\.\.\.\)\.then\(\.\.\.\) has no value yet"):
        evaluate_row(expr, ({"x": 3},))


def test_the_power_of_a_fraction_stays_exact() -> None:
    assert evaluate_row(node_of(lit(Fraction(1, 2)) ** col("x")), ({"x": 2},)) == Fraction(1, 4)
    if sys.version_info < (3, 13):
        with pytest.raises(NotTraceable, match=r"sd\.lit\(fraction\)"):
            Fraction(1, 2) ** col("x")
    else:
        assert evaluate_row(node_of(Fraction(1, 2) ** col("x")), ({"x": 2},)) == Fraction(1, 4)


def test_a_field_that_is_not_there_names_the_others() -> None:
    for function in (lambda e: e.fair > 1, lambda e: e["fair"], col("fair")):
        with pytest.raises(FieldNotFound, match="the fields are: zone, fare, done\nHint: did you mean 'fare'"):
            trace(function, (TRIP,))
    with pytest.raises(FieldNotFound):
        trace(lambda e: e.price, (Schema.scalar(int),))
    with pytest.raises(FieldNotFound):
        trace(lambda e: e._2, (Schema.tuple(2),))
    with pytest.raises(FieldNotFound):
        trace(lambda a, b: a.fare + b.fair, (TRIP, TRIP))
    with pytest.raises(QueryError, match="reads row 2 of 1"):
        trace(E(Field("x", 1)), (None,))


def test_attributes_that_are_no_fields_are_opaque() -> None:
    functions: list[Callable[[Any], Any]] = [lambda e: e.tax, lambda e: e.rate, lambda e: e.tax > e.fare]
    assert all(is_opaque(trace(f, (TRIP,))) for f in functions)


def test_methods_of_mappings_hide_fields_as_attributes_only() -> None:
    schema = Schema.record(["keys", "x"])
    for known in (schema, None):
        assert is_opaque(trace(lambda e: e.keys(), (known,)))
        assert trace(lambda e: e["keys"], (known,)) == Field("keys")
    for function in (lambda e: e.keys, lambda e: e.keys == 3, lambda e: (e.x, e.keys), lambda e: e.x + e.keys):
        with pytest.raises(QueryError, match=r"keys is a method of records\nHint: write e\['keys'\] for the field"):
            trace(function, (schema,))


def test_items_of_a_class_with_items_of_its_own_are_no_fields() -> None:
    assert is_opaque(trace(lambda e: e["x"], (Schema.of_type(Indexed),)))
    assert evaluate_row(trace(lambda e: e["y"], (Schema.of_type(Indexed),)), (Indexed(1),)) == "y"


def test_items_of_tuples_are_fields() -> None:
    assert trace(lambda e: e[1], (Schema.tuple(2),)) == Field("_1")
    assert trace(lambda e: e[-1], (Schema.of_type(Pair),)) == Field("b")
    assert is_opaque(trace(lambda e: e[2], (Schema.tuple(2),)))
    assert is_opaque(trace(lambda e: e[0], (Schema.record(["a"]),)))


def test_fields_named_like_our_own_attributes() -> None:
    names = ["node", "_node", "schema", "_schema", "side", "value", "count", "index", "le"]
    row: Any = RowProxy(Schema.record(names))
    assert [node_of(row[name]) for name in names] == list(map(Field, names))
    assert node_of(row.node) == Field("node")
    assert describe(trace(lambda e: e.p.node, (None,))) == describe(node_of(col("p").node)) == "e.p.node"
    private = trace(lambda e: e._node, (Schema.record(names),))
    assert is_opaque(private)
    assert evaluate_row(private, ({name: n for n, name in enumerate(names)},)) == 1


def test_expressions_travel() -> None:
    expression = (col("a") > 1) & (col("s").upper() == "X")
    assert node_of(pickle.loads(pickle.dumps(expression))) == node_of(expression)


def test_constants_of_different_types_differ() -> None:
    assert node_of(lit(1)) != node_of(lit(True))
    assert node_of(lit(1)) != node_of(lit(1.0))
    assert node_of(lit(float("nan"))) == node_of(lit(float("nan")))
    with pytest.raises(NotTraceable, match="list is not a constant"):
        lit([1])


def test_plain_classes_are_those_that_run_no_code_of_their_own() -> None:
    @dataclass
    class Shadowed:
        x: int

        def __init__(self, x: int) -> None:
            self.x = x * 2

    class Sub(Pair):
        def __new__(cls, a: int, b: int) -> Any:
            return super().__new__(cls, b, a)

    class Counting(type):
        def __call__(cls, *args: Any) -> Any:
            return super().__call__(*args)

    @dataclass
    class Counted(metaclass=Counting):
        x: int

    @dataclass
    class Stored:
        x: int

        @property
        def y(self) -> int:
            return self.x

    typed: dict[str, Any] = {"dataclass": dataclass}
    exec("@dataclass\nclass Typed:\n    x: int\n    def __init__(self, x): self.x = x * 2", typed)  # as `python -c` runs it

    assert not is_plain_class(typed["Typed"])
    assert is_plain_class(Trip)
    assert is_plain_class(Pair)
    assert is_plain_class(Stored)
    assert not any(map(is_plain_class, (Shadowed, Sub, Counted, Priced, int, dict)))
