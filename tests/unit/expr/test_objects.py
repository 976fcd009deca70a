"""Payloads whose class runs code of its own when they are made: lambdas over them are opaque, named fields are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.temporal import CHT, Record


@dataclass
class Plain:
    zone: str
    fare: float
    n: int


@dataclass
class Initialized(Plain):
    def __post_init__(self) -> None:
        self.cents = round(self.fare * 100)


@dataclass
class Allocated(Plain):
    def __new__(cls, *values: Any, **named: Any) -> Allocated:
        return super().__new__(cls)


class Base(NamedTuple):
    zone: str
    fare: float
    n: int


class Tuple(Base):
    def __new__(cls, zone: str, fare: float, n: int) -> Tuple:
        return super().__new__(cls, zone, fare, n)


@dataclass
class Doubled:
    n: int
    zone: Any = None

    def __post_init__(self) -> None:
        self.n *= 2


@dataclass
class Negated:
    n: int
    sign: ClassVar[int] = 1

    def __new__(cls, *values: Any, **named: Any) -> Negated:
        made = super().__new__(cls)
        vars(made)["sign"] = -1
        return made


CLASSES: list[Any] = [Initialized, Allocated, Tuple]
ROWS = [(0, 5, ("a", 1.5, 1)), (2, 9, ("b", 4.0, 2)), (3, 4, ("a", 0.5, 3)), (8, 12, ("c", 2.0, 4))]
Query = Callable[[sd.Stream[Any]], sd.Stream[Any]]


def stream(cls: Any) -> sd.Stream[Any]:
    return sd.from_rows([(le, re, cls(*values)) for le, re, values in ROWS])


def answer(query: sd.Stream[Any]) -> list[Any]:
    """What a query gives, the same on every engine, without the classes of the payloads."""
    found: list[CHT[Any]] = [query.run(engine=engine).cht() for engine in ("local", "reference")]
    assert found[0] == found[1]
    return [(row.le, row.re, fields_of(row.payload)) for row in found[0]]


def fields_of(payload: Any) -> Any:
    if isinstance(payload, Plain):
        return {name: value for name, value in asdict(payload).items() if name != "cents"}
    if isinstance(payload, Base):
        return payload._asdict()
    return tuple(map(fields_of, payload)) if isinstance(payload, tuple) else payload


@sd.udf
def seen(row: Any) -> Any:
    return (row.zone, row.fare)


OF_LAMBDAS: list[Query] = [
    lambda s: s.where(lambda e: e.fare > 1),
    lambda s: s.where(lambda e, life: e.n < life.re - life.le),
    lambda s: s.select(lambda e: e.fare * 2),
    lambda s: s.select(lambda e: {"zone": e.zone, "half": e.fare / 2}),
    lambda s: s.select(lambda e: e),
    lambda s: s.select(double=lambda e: e.n * 2),
    lambda s: s.alter_duration(lambda e: e.n),
    lambda s: s.join(s, on="zone", select=lambda a, b: (a.n, b.fare)),
    lambda s: s.join(s, on=(lambda a: a.zone, lambda b: b.zone)),
    lambda s: s.join(s, on="zone", where=lambda a, b: a.n < b.n),
    lambda s: s.group_by(lambda e: e.zone).tumbling_window(4).aggregate(n=sd.count()),
    lambda s: s.group_by(lambda e: {"zone": e.zone, "odd": e.n % 2}).tumbling_window(4).aggregate(n=sd.count()),
    lambda s: s.group_by(lambda e: Base(e.zone, 0.0, e.n)).tumbling_window(4).aggregate(rows=sd.count()),
    lambda s: s.tumbling_window(4).aggregate(mean=sd.avg(lambda e: e.fare, where=lambda e: e.n > 1)),
    lambda s: s.tumbling_window(4).aggregate(lambda w: w.max(lambda e: e.fare)),
]
OF_NAMES: list[Query] = [
    lambda s: s.where(sd.col("fare") > 1),
    lambda s: s.select(double=sd.col("n") * 2),
    lambda s: s.join(s, on="zone"),
    lambda s: s.join(s, on=["zone", "n"]),
    lambda s: s.anti_join(s.where(sd.col("n") == 2), on="zone"),
    lambda s: s.to_edges(key="zone"),
    lambda s: s.group_by("zone").tumbling_window(4).aggregate(n=sd.count()),
    lambda s: s.group_by(["zone", "n"]).snapshot_window().aggregate(total=sd.sum(sd.col("fare"))),
    lambda s: s.tumbling_window(4).aggregate(mean=sd.avg(sd.col("fare"))),
    lambda s: s.select(seen),
]


@pytest.mark.parametrize("cls", CLASSES)
def test_lambdas_are_opaque_and_give_the_answers_that_they_give_on_a_plain_class(cls: Any) -> None:
    for query in OF_LAMBDAS:
        assert "[opaque]" in query(stream(cls)).explain()
        assert "[opaque]" not in query(stream(Plain)).explain()
        assert answer(query(stream(cls))) == answer(query(stream(Plain))) != []


@pytest.mark.parametrize("cls", CLASSES)
def test_named_fields_are_read_as_ever(cls: Any) -> None:
    for query in OF_NAMES:
        assert "[opaque]" not in query(stream(cls)).explain()
        assert answer(query(stream(cls))) == answer(query(stream(Plain))) != []


def test_what_a_class_computes_is_there() -> None:
    assert [row.payload for row in stream(Initialized).select(lambda e: e.cents).run().cht()] == [150, 400, 50, 200]
    declared = sd.source("trips", Initialized).where(lambda e: e.cents > 100)
    assert "[opaque]" in declared.explain()
    assert len(declared.run({"trips": stream(Initialized).run()}).cht()) == 3


def test_invert_of_a_boolean_is_refused_all_the_same() -> None:
    with pytest.raises(QueryError, match=r"sd\.not_"):
        stream(Initialized).where(lambda e: ~(e.fare > 1))


def doubled(*numbers: int) -> list[Any]:
    return [Doubled(n) for n in numbers]


PROJECTIONS: list[tuple[Query, list[Any]]] = [
    (lambda s: s.select(lambda e: Doubled(e.n)), doubled(1, 2, 3, 4)),
    (lambda s: s.select(lambda e: Doubled(e.n)).where(lambda d: d.n > 5).union(s.where(lambda e: e.n > 9)), doubled(3, 4)),
    (lambda s: s.select(lambda e: {"it": Doubled(e.n)}).where(lambda r: r.it.n == 2), [Record(it=Doubled(1))]),
    (lambda s: s.join(s, on="n", select=lambda a, b: Doubled(a.n)), doubled(1, 2, 3, 4)),
    (lambda s: s.group_by("n").apply(lambda g: g.select(lambda e: Doubled(e.n))).select(lambda e: e[1]), doubled(1, 2, 3, 4)),
    (lambda s: s.tumbling_window(100).aggregate(lambda w: Doubled(w.count())), doubled(4)),
    (lambda s: s.tumbling_window(100).aggregate_as(Doubled, n=sd.count(), zone=sd.max(lambda e: e.zone)), [Doubled(4, "c")]),
    (lambda s: s.where(lambda e: e.n == 1).select(lambda e: Negated(e.n)).select(lambda v: v.sign * v.n), [-1]),
]


@pytest.mark.parametrize("cls", [Plain, *CLASSES])
def test_a_projection_to_a_class_that_runs_code_of_its_own_runs_it_once(cls: Any) -> None:
    for query, payloads in PROJECTIONS:
        found = [query(stream(cls)).run(engine=engine).cht() for engine in ("local", "reference")]
        assert found[0] == found[1]
        assert sorted(map(repr, (row.payload for row in found[0]))) == sorted(map(repr, payloads))
