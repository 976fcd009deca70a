"""When lambdas are read, what they may capture, and how many parameters they have."""

from __future__ import annotations

import functools
import operator
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.expr.closures import freeze_variables
from streamdsl.expr.expression_functions import col, udf
from streamdsl.expr.nodes import Binary, Call, Constant, Expr, Field, Life, Opaque, Whole, is_opaque, schema_of
from streamdsl.expr.row_evaluator import evaluate_row, project_row
from streamdsl.expr.schema import Schema
from streamdsl.expr.sides import without_row
from streamdsl.expr.tracing import trace
from streamdsl.temporal import Lifetime

LIMIT = 5
CALLS = 0


@dataclass
class Quote:
    symbol: str
    price: float


@udf
def shout(text: str) -> str:
    return text.upper() + "!"


def counted(e: Any) -> bool:
    global CALLS
    CALLS += 1
    return bool(e.x)


def value(expr: Expr, payload: Any, **rest: Any) -> Any:
    return evaluate_row(expr, (payload,), **rest)


def test_globals_are_read_when_the_lambda_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = trace(lambda e: e.x > LIMIT, (None,))
    opaque = trace(lambda e: e.x > LIMIT and True, (None,))
    monkeypatch.setattr(f"{__name__}.LIMIT", 50)
    assert not is_opaque(traced)
    assert is_opaque(opaque)
    assert value(traced, {"x": 10}) is value(opaque, {"x": 10}) is True
    assert value(trace(lambda e: e.x > LIMIT, (None,)), {"x": 10}) is False


def test_outer_variables_are_read_when_the_lambda_is_traced() -> None:
    expressions = []
    for limit in (1, 20):
        expressions.append(trace(lambda e: e.x > limit, (None,)))  # noqa: B023 - that it is read here is the point
        expressions.append(trace(lambda e: e.x > limit or False, (None,)))  # noqa: B023
    limit = 1000
    assert [value(expr, {"x": 10}) for expr in expressions] == [True, True, False, False]


def test_names_inside_inner_functions_are_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    expr = trace(lambda e: [n for n in range(9) if n > LIMIT], (None,))
    monkeypatch.setattr(f"{__name__}.LIMIT", 0)
    assert value(expr, {}) == [6, 7, 8]


def test_names_of_a_function_in_a_partial_are_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    expr = trace(functools.partial(lambda k, e: e.x > LIMIT + k, 1), (None,))
    monkeypatch.setattr(f"{__name__}.LIMIT", 50)
    assert value(expr, {"x": 10}) is True


def test_mutable_objects_make_a_lambda_opaque_and_stay_what_they_are() -> None:
    limits = [5]
    expr = trace(lambda e: e.x > limits[0], (None,))
    limits[0] = 50
    assert is_opaque(expr)
    assert value(expr, {"x": 10}) is False


def test_functions_that_assign_globals_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.CALLS", 0)
    expr = trace(counted, (None,))
    assert [value(expr, {"x": 1}) for _ in range(3)] == [True] * 3
    assert CALLS == 3


def test_functions_that_assign_outer_variables_are_kept() -> None:
    calls = 0

    def count(e: Any) -> bool:
        nonlocal calls
        calls += 1
        return True

    value(trace(count, (None,)), {})
    assert calls == 1


def test_a_lambda_is_not_called_more_than_to_trace_it() -> None:
    seen: list[Any] = []
    expr = trace(lambda e: seen.append(e) or True, (None,))  # type: ignore[func-returns-value]
    assert seen == []
    value(expr, {"x": 1})
    assert len(seen) == 1


def test_unset_names_fail_where_the_lambda_runs() -> None:
    if LIMIT < 0:
        unset = 1
    expr = trace(lambda e: e.x + unset, (None,))
    with pytest.raises(NameError):
        value(expr, {"x": 1})


def test_snapshots_keep_what_a_function_is() -> None:
    def scaled(e: Any, k: int = 2, *, more: int = 3) -> Any:
        """Scale."""
        return e.x * k * more

    scaled.mark = "m"  # type: ignore[attr-defined]
    copy: Any = freeze_variables(scaled)
    assert (copy.__name__, copy.__doc__, copy.mark, copy.__module__) == ("scaled", "Scale.", "m", __name__)
    assert copy.__kwdefaults__ == {"more": 3}
    assert copy.__defaults__ == (2,)
    assert freeze_variables(len) is len


@pytest.mark.parametrize(
    "function",
    [operator.attrgetter("x"), functools.partial(max, 1), functools.lru_cache(lambda e: e.x), str],
    ids=["attrgetter", "partial", "lru_cache", "class"],
)
def test_other_callables_are_opaque(function: Callable[..., Any]) -> None:
    expr = trace(function, (None,))
    assert isinstance(expr, Opaque)
    assert expr.function is function or isinstance(function, functools.partial)


def test_the_lifetime_goes_to_lambdas_with_one_parameter_more() -> None:
    assert trace(lambda e, life: life.re - life.le, (None,), life=True) == Binary("-", Life("re"), Life("le"))
    opaque = trace(lambda e, life: life.re - life.le if e.x else 0, (None,), life=True)
    assert isinstance(opaque, Opaque)
    assert opaque.life
    assert value(opaque, {"x": 1}, life=Lifetime(3, 10)) == 7
    whole = trace(lambda e, life: life.overlaps(Lifetime(0, 4)), (None,), life=True)
    assert value(whole, {"x": 1}, life=Lifetime(3, 10)) is True
    assert trace(lambda e, k=2: e.x * k, (None,), life=True) == Binary("*", Field("x"), Constant(2))


@pytest.mark.parametrize(
    ("function", "rows", "life"),
    [
        (lambda: 1, 1, False),
        (lambda e, life: 1, 1, False),
        (lambda e, life, more: 1, 1, True),
        (lambda e: 1, 2, False),
        (lambda *, e: 1, 1, False),
    ],
)
def test_a_wrong_number_of_parameters_is_refused(function: Callable[..., Any], rows: int, life: bool) -> None:
    with pytest.raises(QueryError, match=r"<lambda>.* cannot be called with .*row"):
        trace(function, (None,) * rows, life=life)


def test_lambdas_over_pairs() -> None:
    schemas = (Schema.record(["x"]), Schema.of_type(Quote))
    expr = trace(lambda a, b: a.x > b.price, schemas)
    assert expr == Binary(">", Field("x"), Field("price", 1))
    assert evaluate_row(expr, ({"x": 2}, Quote("A", 1.0))) is True
    assert project_row(trace(lambda a, b: (a, b) if a.x else None, schemas), ({"x": 2}, Quote("A", 1.0))) == (
        {"x": 2},
        Quote("A", 1.0),
    )


def test_constants_and_expressions_are_taken_as_they_are() -> None:
    assert trace(5, (None,)) == Constant(5)
    assert trace(col("x") > 1, (None,)) == Binary(">", Field("x"), Constant(1))
    assert trace((1, 2), (None,)).schema.names == ("_0", "_1")  # type: ignore[attr-defined]
    assert trace(shout, (None,)) == Call(shout, (Whole(),), "shout")


def test_registered_functions_are_part_of_the_expression() -> None:
    expr = trace(lambda e: shout(e.name) == "ADA!", (None,))
    assert not is_opaque(expr)
    assert value(expr, {"name": "ada"}) is True
    assert shout("x") == "X!"
    with pytest.raises(QueryError, match="takes a function"):
        udf(shout)


def test_what_a_function_has_for_itself_is_not_reached_through_the_registered_one() -> None:
    def looks(x: int) -> tuple[Any, str]:
        return x, type(x).__name__

    def plain(x: int) -> int:
        return x

    plain.looks = looks  # type: ignore[attr-defined]
    registered: Any = udf(plain)
    with pytest.raises(AttributeError):
        value(trace(lambda e: registered.looks(e.x), (None,)), {"x": 1})
    assert registered.__wrapped__.looks(1) == (1, "int")


def test_a_registered_function_is_called_once_for_a_shared_value() -> None:
    calls: list[int] = []

    @udf
    def noted(x: int) -> int:
        calls.append(x)
        return len(calls)

    def twice(e: Any) -> Any:
        y = noted(e.x)
        return (y, y)

    expr = trace(twice, (None,))
    assert not is_opaque(expr)
    assert project_row(expr, ({"x": 1},)) == (1, 1)
    assert calls == [1]


def test_shared_values_do_not_blow_up() -> None:
    def doubling(e: Any) -> Any:
        x = e.x
        a = x + x
        b = a + a
        c = b + b
        d = c + c
        f = d + d
        g = f + f
        h = g + g
        i = h + h
        j = i + i
        k = j + j
        m = k + k
        n = m + m
        o = n + n
        p = o + o
        q = p + p
        r = q + q
        s = r + r
        t = s + s
        u = t + t
        return u + u

    expr = trace(doubling, (None,))
    assert not is_opaque(expr)
    assert len(list(expr.walk())) == 21
    assert value(expr, {"x": 1}) == 2**20


def test_opaque_lambdas_travel_to_workers() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    limit = 5
    expr = trace(lambda e: e.x > limit and shout(e.name) == "ADA!" and isinstance(e.x, int) and LIMIT > 1, (None,))
    arrived = pickle.loads(cloudpickle.dumps(expr))
    assert is_opaque(arrived)
    assert value(arrived, {"x": 10, "name": "ada"}) is True
    assert pickle.loads(pickle.dumps(shout)) is shout
    assert pickle.loads(pickle.dumps(trace(lambda e: shout(e.name), (None,)))) == Call(shout, (Field("name"),), "shout")
    local = udf(lambda x: x + limit)
    assert pickle.loads(cloudpickle.dumps(local))(1) == 6


def test_expressions_that_an_opaque_lambda_gives_are_evaluated() -> None:
    expr = trace(lambda e: e.x + sd.lit(1) if e.x else sd.col("y"), (None,))
    assert is_opaque(expr)
    assert value(expr, {"x": 3, "y": "y"}) == 4
    assert value(expr, {"x": 0, "y": "y"}) == "y"
    for function in (lambda e: (sd.col("x"), [sd.col("y")]), lambda e: (sd.col("x"), [sd.col("y")]) if e.x else None):
        assert value(trace(function, (None,)), {"x": 3, "y": "y"}) == (3, ["y"])


def test_an_expression_that_a_registered_function_gives_is_refused() -> None:
    confused = udf(lambda x: (x, sd.col("x")))
    with pytest.raises(QueryError, match="gave an expression where only values are known"):
        value(trace(lambda e: confused(e.x), (None,)), {"x": 3})


def test_schemas_of_projections_are_those_that_are_certain() -> None:
    def schema(function: Callable[[Any], Any]) -> Schema | None:
        return schema_of(trace(function, (None,)), (Schema.of_type(Quote),))

    assert schema(lambda e: e) == schema(lambda e: Quote(e.symbol, 1.0)) == Schema.of_type(Quote)
    assert schema(lambda e: e.price > 1) == schema(lambda e: 5) == Schema.scalar()
    assert schema(lambda e: e.symbol + e.price) is schema(lambda e: -e.price) is schema(lambda e: e.price or 0) is None
    assert schema_of(trace(sd.lit(Quote("A", 1.0)), (None,)), ()) is None


def test_the_missing_side_of_an_outer_join_is_none() -> None:
    traced = trace(lambda a, b: sd.when(sd.is_none(b)).then(a.x).otherwise(b.y), (None, None))
    opaque = trace(lambda a, b: a.x if b is None else b.y, (None, None))
    for expr in (traced, opaque):
        assert evaluate_row(without_row(expr, 1), ({"x": 1},)) == 1
        assert evaluate_row(expr, ({"x": 1}, {"y": 2})) == 2
    bare = trace(lambda a, b: b.y, (None, None))
    with pytest.raises(AttributeError, match="NoneType"):
        evaluate_row(without_row(bare, 1), ({"x": 1},))
    assert evaluate_row(without_row(bare, 0), ({"y": 2},)) == 2
