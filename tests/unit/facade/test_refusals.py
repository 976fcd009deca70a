"""Queries that are refused where they are written, with what there is instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import FieldNotFound, MethodNotFound, QueryError, SchemaError, SessionError, UnitError, UserCodeError
from streamdsl.udm import UDSO
from streamdsl.udm.bases import AnyUDO
from streamdsl.windows import Output
from tests.operators import entries
from tests.unit.contract.common import refused
from tests.unit.facade.trips import Fares, Stats, Top, Trip, trips, zones

REFUSED: list[Any] = [
    (lambda: trips.group_by("zoen"), FieldNotFound, ("'zoen'", "zone, fare")),
    (lambda: trips.group_by(["zone", "far"]), FieldNotFound, ("'far'", "zone, fare")),
    (lambda: sd.from_rows([(1, 2, 3)]).shift("5s"), UnitError, ("plain ticks", "'5s'")),
    (lambda: sd.from_rows([(1, 2, 3)]).calendar_window("month"), UnitError, ("plain ticks", "no months", "calendar unit")),
    (lambda: trips.calendar_window("day", tz="Europe/Berln"), QueryError, ("'Europe/Berln'", "did you mean 'Europe/Berlin'?")),
    (lambda: trips.calendar_window("day", tz=None), QueryError, ("tz=None", "Europe/Berlin")),  # type: ignore[arg-type]
    (lambda: trips.calendar_window("hour"), QueryError, ("'hour'", "day, week, month, quarter, year")),  # type: ignore[arg-type]
    (lambda: trips.calendar_window("day", 0), QueryError, ("every=0", "to a million")),
    (lambda: trips.group_by(5), QueryError, ("5 is not a key",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(), QueryError, ("at least one aggregate",)),
    (lambda: trips.tumbling_window(5).aggregate(sd.count(), n=sd.count()), QueryError, ("and the names n",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=5), QueryError, ("n=5 is not an aggregate", "n=sd.count()")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=Fares), QueryError, ("n=", "n=Fares().of(")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(Top), QueryError, ("not an aggregate",)),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).aggregate(sd.count), QueryError, ("sd.count is not called", "n=sd.count(...)")),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).aggregate(lambda w: (w.key, w.count())), QueryError, ("not grouped", "group_by")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).aggregate(lambda w: w.avg(lambda e: e.faer)), FieldNotFound, ("'faer'", "zone, fare")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).aggregate(5), QueryError, ("5 is not an aggregate",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).apply(Top, lambda e: e.fare), QueryError, ("without arguments", "Top(...)")),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).apply(Fares(), lambda e: e.fare), QueryError, ("aggregate(...)",)),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).apply(max), QueryError, ("sd.UDO",)),  # type: ignore[arg-type]
    (
        lambda: trips.tumbling_window(5, output=Output.UNCHANGED).aggregate(n=sd.count()),
        QueryError,
        ("no timestamps of its own", "Output.ALIGN"),
    ),
    (
        lambda: trips.tumbling_window(5, output=Output.CLIP).apply(Top(1), lambda e: e.fare),
        QueryError,
        ("Top is time-insensitive",),
    ),
    (lambda: trips.tumbling_window(5).aggregate_as(Stats, n=sd.count()), QueryError, ("Stats(zone, n)", "missing: zone")),
    (
        lambda: trips.tumbling_window(5).aggregate_as(Stats, n=sd.count(), zone=sd.count(), x=sd.count()),
        QueryError,
        ("unknown: x",),
    ),
    (lambda: trips.tumbling_window(5).aggregate_as(int, n=sd.count()), QueryError, ("dataclass",)),
    (lambda: trips.tumbling_window(5).aggregate_as(int, sd.count()), QueryError, ("dataclass",)),
    (
        lambda: trips.tumbling_window(5).aggregate_as(Stats, sd.count()),  # type: ignore[arg-type]
        QueryError,
        ("Stats has 2 fields (zone, n), and is given 1 in order", "by name: aggregate_as"),
    ),
    (
        lambda: trips.group_by("zone").tumbling_window(5).aggregate_as(Stats, sd.count(), n=sd.count()),  # type: ignore[call-overload]
        QueryError,
        ("and is given 1 of the key, 1 in order, 1 by name",),
    ),
    (
        lambda: trips.group_by("zone").tumbling_window(5).aggregate(zone=sd.count()),
        QueryError,
        ("'zone' has the name of the group's key",),
    ),
    (
        lambda: trips.group_by(lambda e: -e.zone).tumbling_window(5).aggregate_as(Stats, n=sd.count()),
        QueryError,
        ("unknown: key",),
    ),
    (lambda: trips.group_by("zone").apply(lambda g: zones), QueryError, ("the stream 'zones'", "lambda's own parameter")),
    (lambda: trips.group_by("zone").apply(lambda g: g.join(zones)), QueryError, ("the stream 'zones'",)),
    (
        lambda: trips.group_by("zone").apply(lambda g: g.group_by("fare").apply(lambda h: h.union(g))),
        QueryError,
        ("the rows of another group",),
    ),
    (lambda: trips.group_by("zone").apply(lambda g: g.tumbling_window(5)), QueryError, ("not a stream", "aggregate")),  # type: ignore[arg-type, return-value]
    (lambda: trips.tumbling_window(5).aggregate(sd.count(), sd.count()), QueryError, ("without names", "n=sd.count()")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=sd.sum("fare")), QueryError, ("'fare' is not", "sd.col('fare')")),  # type: ignore[arg-type]
    (lambda: trips.tumbling_window(5).aggregate(n=sd.count(where=True)), QueryError, ("True is not", "sd.lit(True)")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=Top(3)), QueryError, ("n=", "not an aggregate")),  # type: ignore[call-overload]
    (lambda: trips.tumbling_window(5).aggregate(n=Fares()), QueryError, ("n=", "n=Fares(...).of(lambda")),  # type: ignore[call-overload]
    (lambda: trips.filter(lambda e: e.fare > 5), MethodNotFound, ("a Stream has no 'filter'", "'where' here")),  # type: ignore[attr-defined]
    (lambda: trips.tumblin_window(5), MethodNotFound, ("'tumblin_window'", "did you mean 'tumbling_window'")),  # type: ignore[attr-defined]
    (lambda: trips.to_parquet("out"), MethodNotFound, ("'to_parquet'", "to_pandas().to_parquet(...)")),  # type: ignore[attr-defined]
    (lambda: trips.aggregate(n=sd.count()), MethodNotFound, ("'aggregate'", "in windows", ".snapshot_window()")),  # type: ignore[attr-defined]
    (lambda: trips.group_by("zone").mean(), MethodNotFound, ("a GroupedStream", "in windows")),  # type: ignore[attr-defined]
    (lambda: trips.group_by("zone").run(), MethodNotFound, ("each group", ".apply(lambda g: ...)")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).mean(), MethodNotFound, ("a WindowedStream", "n=sd.avg(...)")),  # type: ignore[attr-defined]
    (lambda: trips.tumbling_window(5).run(), MethodNotFound, ("aggregate it first", "before the window")),  # type: ignore[attr-defined]
    (lambda: sd.source(""), QueryError, ("a source has a name",)),
    (lambda: sd.source("x", unit="fortnight"), UnitError, ("'fortnight'",)),  # type: ignore[arg-type]
    (lambda: sd.uda(lambda a, b, c: 1), QueryError, ("3 parameters",)),  # type: ignore[arg-type, misc]
    (lambda: sd.udo(Top), QueryError, ("sd.UDO",)),  # type: ignore[arg-type]
    *(pytest.param(*each, id=f"{name} {i}") for name, entry in entries().items() for i, each in enumerate(entry.refused)),
]


@pytest.mark.parametrize(("query", "kind", "texts"), REFUSED)
def test_refused_when_written(query: Callable[[], object], kind: type[Exception], texts: tuple[str, ...]) -> None:
    with refused(kind, *texts):
        query()


def test_the_inside_of_a_group_runs_only_there() -> None:
    inside: list[sd.Stream[Trip]] = []
    trips.group_by("zone").apply(lambda g: inside.append(g) or g)  # type: ignore[func-returns-value]
    with refused(QueryError, "the inside of group_by", "return it"):
        inside[0].run()
    with refused(QueryError, "the inside of group_by"):
        inside[0].open()


def test_what_a_stream_has_no_method_for_is_no_attribute() -> None:
    assert not any(hasattr(trips, name) for name in ("filter", "nothing", "__nothing__"))
    with refused(AttributeError, "a Stream has no 'nothing_like_it'"):
        trips.nothing_like_it()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (lambda s: s.where(lambda e: e.v > 1), "sd.functions.coalesce"),
        (lambda s: s.select(x=lambda e: e.v + 1), "sd.is_none"),
        (lambda s: s.where(lambda e: e.w > 5 & e.k == "a"), "& and | bind closer"),
        (lambda s: s.where(lambda e: e.v), "sd.functions.coalesce(e.flag, False)"),
        (lambda s: s.where(lambda e: e.v if e.w else e), "sd.functions.coalesce(e.flag, False)"),
        (lambda s: s.where(lambda e: str), "is a call (), or an await, missing?"),
    ],
)
def test_mistakes_that_show_with_a_row_have_a_hint(query: Callable[[sd.Stream[object]], sd.Stream[object]], hint: str) -> None:
    with refused(UserCodeError, "Error in user code", hint):
        query(sd.from_rows([(1, 2, {"v": None, "w": 7, "k": "a"})])).run()


async def is_dear(e: Any) -> bool:
    return bool(e.fare > 3)


def fares(e: Any) -> Iterator[float]:
    yield e.fare


async def later(e: Any) -> AsyncIterator[float]:
    yield e.fare


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


class Several(sd.UDO[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> Iterator[float]:
        yield from payloads


class Checker:
    async def __call__(self, e: Any) -> bool:
        return True


QUERIES: dict[str, Callable[[Any], object]] = {
    "where": lambda f: trips.where(f),
    "select": lambda f: trips.select(f),
    "a field": lambda f: trips.select(n=f),
    "a key": lambda f: trips.group_by(f),
    "on": lambda f: trips.join(trips, on=(f, f)),
    "an aggregate": lambda f: trips.tumbling_window(5).aggregate(n=sd.count(where=f)),
    "an argument": lambda f: trips.tumbling_window(5).aggregate(n=sd.sum(f)),
    "a window": lambda f: trips.tumbling_window(5).aggregate(f),
    "a pattern": lambda f: trips.match(lambda p: p.a.where(f).within(5)),
    "a duration": lambda f: trips.alter_duration(f),
    "@sd.udf": lambda f: sd.udf(f),
    "@sd.uda": lambda f: sd.uda(f),
}


QUERIES |= {
    "a lifetime's start": lambda f: trips.alter_lifetime(f, 5),
    "a lifetime's duration": lambda f: trips.alter_lifetime(None, f),
    "edges": lambda f: trips.to_edges(f),
    "distinct": lambda f: trips.distinct(f),
    "a condition of a join": lambda f: trips.join(trips, where=f),
    "a select of a join": lambda f: trips.join(trips, select=f),
    "a left join": lambda f: trips.left_join(trips, where=f),
    "a full join": lambda f: trips.full_join(trips, select=f),
    "an anti join": lambda f: trips.anti_join(trips, where=f),
    "a semi join": lambda f: trips.semi_join(trips, where=f),
    "a band join": lambda f: trips.band_join(trips, before=1, after=1, where=f),
    "an asof join": lambda f: trips.asof_join(trips, where=f),
    "clip_by": lambda f: trips.clip_by(trips, where=f),
    "a pattern's rows by key": lambda f: trips.match(lambda p: p.a.within(5), by=f),
    "a pattern's result": lambda f: trips.match(lambda p: p.a.within(5), select=f),
    "a pattern itself": lambda f: trips.match(f),
    "the query of groups": lambda f: trips.group_by("zone").apply(f),
    "a multicast": lambda f: trips.multicast(f),
    "top_k": lambda f: trips.tumbling_window(5).top_k(2, f),
    "a module's argument": lambda f: trips.tumbling_window(5).aggregate(Spread, f),
    "an operator's argument": lambda f: trips.tumbling_window(5).apply(Several, f),
    "an aggregate of groups": lambda f: trips.group_by("zone").tumbling_window(5).aggregate(f),
    "a clock": lambda f: sd.source("t", progress=sd.Progress.wall_clock("1s", clock=f)),
}


KINDS_OF_FUNCTIONS = ["async", "async generator", "generator", "partial async", "partial generator", "async call"]


@pytest.mark.parametrize("where", QUERIES)
@pytest.mark.parametrize("function", [is_dear, later, fares, partial(is_dear), partial(fares), Checker()], ids=KINDS_OF_FUNCTIONS)
def test_functions_that_give_no_value_are_refused_when_the_query_is_made(where: str, function: Any) -> None:
    with pytest.raises(
        QueryError,
        match=r"is an? (async|generator) function, which gives a (coroutine|generator) for .* and no value|yields several",
    ):
        QUERIES[where](function)


@pytest.mark.parametrize(
    "function", [is_dear, later, fares, partial(is_dear), Checker()], ids=["async", "async too", "generator", "partial", "method"]
)
def test_the_line_of_such_a_function_is_named(function: Any) -> None:
    with pytest.raises(QueryError, match=r"\n  at .* in test_refusals.py, line \d+\nHint: "):
        trips.where(function)


PARTS = {
    sd.UDA: ["compute_result"],
    sd.TimeSensitiveUDA: ["compute_result"],
    sd.UDO: ["compute_result"],
    sd.TimeSensitiveUDO: ["compute_result"],
    sd.IncrementalUDA: ["create_state", "add_event_to_state", "remove_event_from_state", "compute_result", "merge_states"],
    sd.IncrementalUDO: ["create_state", "copy_state", "add_events_to_state", "remove_events_from_state", "compute_result"],
    sd.TimeSensitiveIncrementalUDA: ["create_state", "add_event_to_state", "remove_event_from_state", "compute_result"],
    sd.TimeSensitiveIncrementalUDO: ["create_state", "add_event_to_state", "remove_event_from_state", "compute_result"],
    UDSO: ["create_state", "process", "copy_state", "is_empty"],
}


async def _later(*_: object) -> None: ...
def _one_by_one(*_: object) -> Iterator[int]:
    yield 1


async def _later_one_by_one(*_: object) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("method", [_later, _one_by_one, _later_one_by_one])
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in PARTS.items() for name in names])
def test_a_method_of_a_module_that_gives_no_value_is_refused_when_the_query_is_made(kind: Any, name: str, method: Any) -> None:
    parts = {each: lambda *_: None for each in kind.__abstractmethods__}
    module: Any = type("Module", (kind,), {**parts, name: method})
    windows: Any = trips.tumbling_window(5)
    many, stream = issubclass(kind, AnyUDO), kind is UDSO
    queries = [lambda: trips.scan(module)] if stream else [lambda: windows.apply(module)] if many else [
        lambda: windows.aggregate(module),
        lambda: windows.aggregate(n=module().of(lambda e: e.fare)),
        lambda: windows.aggregate(lambda w: w.udm(module(), lambda e: e.fare)),
        lambda: trips.group_by("zone").tumbling_window(5).aggregate(module),
    ]  # fmt: skip
    for query in queries:
        if many and name == "compute_result" and method is _one_by_one:
            query()
            continue
        said = rf"{method.__name__} is an? .* function(?s:.*) in test_refusals.py, line \d+\nHint: "
        with pytest.raises(QueryError, match=said):
            query()


def test_a_generator_function_gives_many_rows_and_an_operator_its_results() -> None:
    assert [row.payload for row in sd.from_rows([(1, 2, {"fare": 3})]).select_many(fares).run().cht()] == [3]
    assert sd.udo(fares)
    with pytest.raises(QueryError, match="async function"):
        trips.select_many(later)  # type: ignore[arg-type]


def nothing(e: Any) -> None:
    e.fare > 3  # noqa: B015


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize("value", [None, print, object()], ids=["None", "a function", "an object"])
def test_what_is_no_answer_is_refused_at_the_first_row_traced_called_and_in_the_reference(engine: Any, value: object) -> None:
    rows = sd.from_rows([(1, 9, {"k": 1, "flag": True}), (2, 9, {"k": 1, "flag": value})])
    queries = [
        rows.where(lambda e: e.flag),
        rows.where(lambda e: e.flag if e.k else e.k),
        rows.where(lambda e: e["flag"]),
        rows.join(rows, on="k", where=lambda a, b: b.flag),
        rows.join(rows, on="k", where=lambda a, b: b.flag if a.k else a.k),
        rows.semi_join(rows, on="k", where=lambda a, b: b.flag),
        rows.tumbling_window(10).aggregate(n=sd.count(where=lambda e: e.flag)),
        rows.match(lambda p: p.a.where(lambda e: e.flag).within(5)),
        rows.match(lambda p: p.a.then(p.b.where(lambda e, m: e.flag)).within(5)),
    ]
    for query in queries:
        with pytest.raises(
            UserCodeError, match=r"a predicate returned .*, which is neither true nor false\n.* in test_refusals.py, line \d+"
        ) as caught:
            query.run(engine=engine)
        assert "flag" in str(caught.value)


def unwritten(e: Any) -> None:
    """It reads nothing of its row either."""


@pytest.mark.parametrize("predicate", [nothing, unwritten])
def test_a_function_that_forgets_to_return_is_named_with_its_line(predicate: Any) -> None:
    with pytest.raises(UserCodeError) as caught:
        sd.from_rows([(1, 9, {"fare": 5})]).where(predicate).run()
    assert f"test_refusals.py, line {predicate.__code__.co_firstlineno}, payload Record(fare=5)" in str(caught.value)
    assert "a function returns its answer" in str(caught.value)


def test_an_aggregate_s_class_taken_of_an_expression_is_taught() -> None:
    with refused(QueryError, "not on its class", "Spread().of(lambda e: e.fare)"):
        Spread.of(lambda e: e.fare)  # type: ignore[arg-type]


def test_a_fault_in_a_traced_lambda_names_its_line_and_the_payload_and_a_long_one_is_cut() -> None:
    rows = sd.from_rows([(1, 2, {"v": "x" * 10_000_000, "n": 0})])
    queries = [
        rows.where(lambda e: e.v + 1 > 3),
        rows.select(n=lambda e: 1 // e.n),
        rows.group_by(lambda e: -e.v).tumbling_window(5).aggregate(n=sd.count()),
    ]
    for query, shown in zip(queries, ("v='xxx", "n=0, ...)", "v='xxx"), strict=True):
        with pytest.raises(UserCodeError) as caught:
            query.run()
        line = test_a_fault_in_a_traced_lambda_names_its_line_and_the_payload_and_a_long_one_is_cut.__code__.co_firstlineno
        assert "lambda in test_refusals.py, line " in str(caught.value)
        assert f"payload Record({shown}" in str(caught.value)
        assert line < int(str(caught.value).split("test_refusals.py, line ")[1].split(" ")[0]) < line + 10
        assert len(str(caught.value)) < 3000
    with pytest.raises(SchemaError) as refused_payload:
        sd.source("s", int).open().push([sd.Insert("a", 1, 2, {"v": "x" * 10_000_000})])
    assert len(str(refused_payload.value)) < 3000


def test_a_session_that_has_failed_without_a_word_says_what_kind_of_error_it_was() -> None:
    def fails(e: Any) -> bool:
        raise KeyboardInterrupt

    session = sd.source("s").where(fails).open()
    with pytest.raises(KeyboardInterrupt):
        session.push([sd.Insert("a", 1, 2, 3)])
    with pytest.raises(SessionError, match=r"the session has failed: KeyboardInterrupt at .*fails"):
        session.push([sd.Insert("b", 1, 2, 3)])
