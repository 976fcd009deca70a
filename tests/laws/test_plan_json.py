"""Plans as JSON text: what is read is what was written, and runs as it did.

from_json(to_json(plan)) == plan
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.expr.nodes import is_opaque
from streamdsl.plan.base import Node
from streamdsl.plan.json import FORMAT, TYPES, VERSION
from streamdsl.plan.node import Calendar, GroupApply, Source, WindowApply
from streamdsl.plan.outputs import Outputs
from streamdsl.plan.properties import expressions
from streamdsl.udm.repository import repository
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.transcripts.test_transcripts import query as query_of
from tests.transcripts.transcript import transcripts

S: sd.Stream[Any] = sd.source("s")


@dataclass(frozen=True)
class Trip:
    zone: str
    fare: float


class Stats(NamedTuple):
    zone: str
    n: int


class Longest(sd.UDO[Any, Any]):
    """The payloads of at least so many characters."""

    def __init__(self, least: int, title: str = "long") -> None:
        self.least = least
        self.title = title

    def compute_result(self, payloads: Any) -> Any:
        return [payload for payload in payloads if len(payload) >= self.least]


class Secret(Longest):
    """One whose attributes do not say how it was made."""

    def __init__(self, least: int) -> None:
        super().__init__(least)
        self.doubled = 2 * least
        del self.least


@sd.udf
def doubled(x: int) -> int:
    return 2 * x


@sd.uda
def spread(values: Any) -> Any:
    return max(values) - min(values)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_registered", dict(repository._registered))


def nodes(plan: Node) -> Iterator[Node]:
    for node in plan.walk():
        if isinstance(node, GroupApply):
            yield from nodes(node.body)
        yield node


def back(plan: Node, *classes: type) -> Node:
    return sd.composing.plan_from_json(plan.to_json(), classes)


def has_text(plan: Node) -> bool:
    """Say whether a plan has neither opaque lambdas nor modules of nobody knows whom."""
    return not any(any(map(is_opaque, expressions(node))) for node in nodes(plan)) and all(
        type(module).__module__.startswith("streamdsl.")
        for node in nodes(plan)
        for module in [getattr(node, "module", None), *(agg.function for agg in getattr(node, "aggregates", ()))]
        if module is not None
    )


def is_written(plan: Node) -> bool:
    try:
        return bool(plan.to_json())
    except QueryError:
        return False


@examples(90)
@given(SEEDS)
def test_a_plan_is_read_as_it_was_written(seed: int) -> None:
    made, query = composition(Random(seed))
    note(made)
    plan = query.plan()
    if has_text(plan):
        again = back(plan)
        assert again == plan
        assert len(list(nodes(again))) == len(list(nodes(plan)))
        assert again.to_json() == plan.to_json()
    else:
        with pytest.raises(QueryError, match=r"_\d+ holds .*(opaque lambda|module|function).*cannot be written as JSON\nHint: "):
            plan.to_json()


def test_every_type_of_a_plan_but_opaque_lambdas_is_tried() -> None:
    tried: set[str] = set()
    plans = [composition(Random(seed))[1].plan() for seed in range(300)]
    plans += [query_of(each).plan() for each in transcripts().values()]
    plans += [each.plan() for each in MORE]
    for plan in filter(is_written, plans):
        assert back(plan, Trip, Stats) == plan
        tried |= {part["type"] for part in json.loads(plan.to_json())["parts"]} | set(plan.to_json().replace('"', " ").split())
    # Outputs are tried below.
    assert [name for name in TYPES if name not in tried and name != "Outputs"] == []


LIMIT = sd.functions.param("limit", int | None, default=5)
MORE: list[sd.Stream[Any]] = [
    S.where(lambda e: e.v > LIMIT),
    sd.source("trips", Trip, unit="ms", progress=sd.Progress.slack("5m"), on_violation="drop").shift("1h"),
    S.select(lambda e: Stats(e.zone.upper(), e.at.year)),
    S.select(v=lambda e: sd.when(e.v > 1).then(e.v).otherwise(None)),
    S.select(v=lambda e: -(abs(e.v) ** 2), w=lambda e: sd.not_(e.v)).where(lambda e, life: life.re > life.le),
    S.select_many(lambda e: e.tags),
    S.group_by(["zone", "day"])
    .tumbling_window(5)
    .aggregate(n=sd.count(where=lambda e: e.v > 1), q=sd.quantile(lambda e: e.v, 0.9)),
    S.group_by("zone").tumbling_window(5).aggregate(lambda w: (w.key, w.time_weighted_avg(lambda e: e.v))),
    S.group_by("k").apply(lambda g: g.group_by("j").apply(lambda h: h.to_edges())),
    S.session_window(5, 9, clip=sd.Clip.FULL, output=sd.Output.POINT_AT_END).top_k(3, by="v", rank=True),
    S.calendar_window("week", 2, tz="Europe/Berlin").aggregate(n=sd.count()),
    S.select(lambda e: ~e.v),
    S.windows(sd.astral.last_n_every(3, 0.5), start=4).aggregate(n=sd.count()),
    S.windows(sd.astral.range_slide(3)).aggregate(n=sd.count()),
]

CONSTANTS: list[Any] = [
    *(None, True, 1, 2**70, -0.0, 1.5, float("inf"), float("-inf"), float("nan")),
    *("ünï \ud800 \x00", b"\x00\xff", (1, ("a", None), ())),
    *(datetime(2013, 2, 8, 1, 2, 3, 4), datetime(2013, 2, 8, tzinfo=UTC)),
    datetime(2013, 10, 27, 2, fold=1, tzinfo=ZoneInfo("Europe/Oslo")),
    datetime(2013, 2, 8, tzinfo=timezone(timedelta(hours=-5), "EST")),
    *(date(2013, 2, 8), time(1, 2, 3, fold=1), time(4, tzinfo=UTC), timedelta(days=-1, microseconds=7)),
    *(timezone(timedelta(minutes=30)), UTC, Decimal("1.10"), Decimal("NaN"), Fraction(1, 3)),
]


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_constants_are_read_exactly(value: Any) -> None:
    plan = S.select(v=sd.lit(value)).plan()
    assert back(plan) == plan
    json.loads(plan.to_json(), parse_constant=pytest.fail)


def test_what_is_shared_stays_shared() -> None:
    busy = S.where(lambda e: e.v > 1)
    plan = back(busy.join(busy.shift(1), on="k").plan())
    left, right = plan.inputs
    assert left is right.inputs[0]
    doubling = sd.col("v")
    for _ in range(60):
        doubling = doubling + doubling
    assert len(S.select(v=doubling).plan().to_json()) < 10_000
    many = Outputs((busy.plan(), busy.shift(1).plan()))
    assert back(many) == many


def test_modules_and_functions_go_by_their_names_with_their_parameters() -> None:
    words = S.tumbling_window(5)
    query = words.apply(Longest(3, title="words"))
    with pytest.raises(QueryError, match=r"window_apply_1 holds the module Longest, .*\nHint: register it: sd.udm.register"):
        query.plan().to_json()
    sd.udm.register("longest", Longest)
    found = back(query.plan())
    assert isinstance(found, WindowApply)
    assert (type(found.module), vars(found.module)) == (Longest, {"least": 3, "title": "words"})
    rows = [(1, 2, "a"), (2, 3, "abc")]
    assert sd.Stream(found).run({"s": rows}).cht() == query.run({"s": rows}).cht()
    sd.udm.register("secret", Secret)
    with pytest.raises(QueryError, match="each parameter needs an attribute of the same name"):
        words.apply(Secret(3)).plan().to_json()
    for plan in (S.select(lambda e: doubled(e.v)).plan(), words.aggregate(spread).plan()):
        with pytest.raises(QueryError, match=r"cannot be written as JSON\nHint: .*sd.udm.register"):
            plan.to_json()
    sd.udm.register("doubled", doubled)
    sd.udm.register("spread", spread)
    for plan in (S.select(lambda e: doubled(e.v)).plan(), words.aggregate(spread).plan()):
        assert back(plan) == plan


def test_classes_are_those_that_the_reader_gives() -> None:
    plan = S.select(lambda e: Trip(e.zone, e.fare)).plan()
    assert back(plan, Trip) == plan
    with pytest.raises(
        QueryError, match=r"names the class .*:Trip, which is not one of the given classes: \(none\)\nHint: .*\[Trip\]"
    ):
        back(plan)
    with pytest.raises(QueryError, match="names the class os:system"):
        sd.composing.plan_from_json(plan.to_json().replace(f"{__name__}:Trip", "os:system"), [Trip])


PLAN = json.loads(Calendar(Source("trips"), 0, 5).to_json())


def changed(**change: Any) -> str:
    return json.dumps(PLAN | change)


def with_part(number: int, **change: Any) -> str:
    parts = [dict(part) for part in PLAN["parts"]]
    parts[number] |= change
    return changed(parts=parts)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "holds no plan: it is no JSON"),
        ("[]", f'it has no "format": "{FORMAT}"'),
        (changed(format="pickle"), f'it has no "format": "{FORMAT}"'),
        (changed(version=VERSION + 1), rf"a plan of version {VERSION + 1}, and this is streamdsl with version {VERSION}"),
        (changed(version=None), "a plan of version None"),
        (changed(parts=None), 'it has no "parts" and "output"'),
        (changed(output=5), "its output is no operator but 5"),
        (changed(output={"$ref": 9}), "9 is no part before it"),
        (
            with_part(0, type="Teleport"),
            "there is no 'Teleport'; there are: AlterLifetime, AntiJoin, .*\nHint: a later streamdsl",
        ),
        (with_part(0, type="Opaque"), "there is no 'Opaque'"),
        (with_part(0, type="Node"), "there is no 'Node'"),
        (with_part(1, end="5"), "a Calendar does not fit: '5' is no end"),
        (with_part(1, end=True), "a Calendar does not fit: True is no end"),
        (with_part(1, written=3), "it has no field 'written'"),
        (with_part(1, input={"$ref": 1}), "1 is no part before it"),
        (with_part(1, input={"$ref": -1}), "-1 is no part before it"),
        (with_part(1, input="trips"), "'trips' is no input"),
        (with_part(0, on_violation="ignore"), "'ignore' is no on_violation"),
        (with_part(0, source={"$pickle": "gASV"}), "cannot be read"),
        (with_part(0, source={"$udm": "nobody"}), "no module is named 'nobody'"),
        (with_part(0, source={"$float": "x"}), "cannot be read: could not convert"),
        (with_part(0, source={}), "cannot be read"),
        (changed(parts=[5]), "5 has no type"),
    ],
)
def test_a_text_that_is_no_plan_is_refused(text: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        sd.composing.plan_from_json(text)


def test_a_text_with_anything_in_the_place_of_anything_is_refused_or_is_a_plan() -> None:
    rng = Random(7)
    plans = [each.plan() for each in MORE]
    refused = 0
    for _ in range(600):
        found = json.loads(rng.choice(plans).to_json())
        part = rng.choice(found["parts"])
        name = rng.choice(list(part))
        part[name] = rng.choice(
            [None, 5, "x", [], {}, {"$ref": 0}, {"$enum": ["Clip", "X"]}, {"$class": 3}, [1, {"type": "Count"}], 0.5]
        )
        try:
            assert isinstance(sd.composing.plan_from_json(json.dumps(found), [Trip, Stats]), Node)
        except QueryError:
            refused += 1
    assert refused > 300


def test_missing_fields_are_named() -> None:
    parts = [PLAN["parts"][0], {"type": "Calendar", "start": 0, "end": 5}]
    with pytest.raises(QueryError, match="part 1 of the plan cannot be read: a Calendar does not fit: there is no 'input'"):
        sd.composing.plan_from_json(changed(parts=parts))
