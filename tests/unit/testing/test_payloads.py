"""Payloads that are made up of what a module's types say."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, Protocol, TypedDict, TypeVar, Union

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl import IntervalEvent, Record, WindowDescriptor
from streamdsl.errors import QueryError
from streamdsl.testing.payload_types import payload_type
from streamdsl.testing.random_payloads import draw_payload, simpler_payloads
from streamdsl.testing.strategies import payloads, udm_events
from streamdsl.udm.builtin import Count
from tests.unit.testing import modules

T = TypeVar("T")
B = TypeVar("B", bound=str)
Fare = NewType("Fare", float)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Trip:
    zone: Literal["north", "south"]
    fare: Fare
    stops: list[Point] = field(default_factory=list)
    colour: Optional[Colour] = None  # noqa: UP045
    length: int = field(init=False, default=3)


@dataclass
class Reading(Generic[T]):
    value: T
    when: datetime | date


@dataclass
class Chain:
    value: int
    next: Chain | None


@dataclass
class Checked:
    n: int

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError(self.n)


class Impossible(Checked):
    def __post_init__(self) -> None:
        raise ValueError(self.n)


class HasFare(Protocol):
    fare: float
    zone: str


class Typed(TypedDict):
    fare: float


class Plain:
    pass


TYPES: list[tuple[Any, type]] = [
    (float, float),
    (int, int),
    (bool, bool),
    (str, str),
    (bytes, bytes),
    (timedelta, timedelta),
    (Fare, float),
    (object, int),
    (Annotated[int, "a note"], int),
    (Colour, Colour),
    (Literal[3, 4], int),
    (Point, Point),
    (Trip, Trip),
    (Reading[float], Reading),
    (Chain, Chain),
    (Checked, Checked),
    (HasFare, Record),
    (Typed, Record),
    (dict[str, float], Record),
    (Mapping[str, int], Record),
    (tuple[int, str], tuple),
    (tuple[int, ...], tuple),
    (list[int], list),
    (Sequence[int], list),
    (frozenset[str], frozenset),
    (B, str),
    (T, int),
]


@pytest.mark.parametrize(("of", "kind"), TYPES, ids=str)
def test_payloads_have_the_type_that_was_asked_for(of: Any, kind: type) -> None:
    drawn = [draw_payload(of, Random(seed)) for seed in range(40)]
    assert {type(payload) for payload in drawn} == {kind}
    assert len({repr(payload) for payload in drawn}) > 1
    assert [draw_payload(of, Random(seed)) for seed in range(40)] == drawn


def test_fields_have_their_types() -> None:
    trips = [draw_payload(Trip, Random(seed)) for seed in range(60)]
    assert {trip.zone for trip in trips} == {"north", "south"}
    assert {type(trip.fare) for trip in trips} == {float}
    assert {trip.colour for trip in trips} == {None, *Colour}
    assert {type(stop) for trip in trips for stop in trip.stops} == {Point}
    assert {trip.length for trip in trips} == {3}
    assert {type(draw_payload(Reading[bool], Random(seed)).value) for seed in range(9)} == {bool}
    assert {type(draw_payload(Union[int, None], Random(seed))) for seed in range(20)} == {int, type(None)}  # noqa: UP007
    assert {len(draw_payload(tuple[int, ...], Random(seed))) for seed in range(20)} == {2}


@pytest.mark.parametrize("of", [Any, Plain, Impossible, Record, tuple[Plain, int], "Trip"], ids=str)
def test_nothing_is_made_up_of_nothing(of: Any) -> None:
    with pytest.raises(QueryError, match=r"(?s)can be made up.*events=\[\(le, re, payload\)"):
        draw_payload(of, Random(0))


@pytest.mark.parametrize(("of", "kind"), TYPES, ids=str)
def test_what_is_simpler_ends_at_what_is_simplest(of: Any, kind: type) -> None:
    for seed in range(10):
        payload, steps = draw_payload(of, Random(seed)), 0
        while (found := next(simpler_payloads(payload), None)) is not None:
            assert type(found) is type(payload)
            payload, steps = found, steps + 1
            assert steps < 100


class Quoted(sd.UDA["Trip", float]):
    def compute_result(self, payloads: Sequence[Trip]) -> float:
        return 0.0


class Inherited(Quoted):
    pass


class OfAnything(sd.UDA[T, int], Generic[T]):
    def compute_result(self, payloads: Sequence[T]) -> int:
        return 0


class OfText(OfAnything[str]):
    pass


class Bare(sd.UDA):  # type: ignore[type-arg]
    def compute_result(self, payloads: Sequence[Point]) -> int:
        return 0


class BareEvents(sd.TimeSensitiveUDA):  # type: ignore[type-arg]
    def compute_result(self, events: Sequence[IntervalEvent[Point]], window: WindowDescriptor) -> int:
        return 0


class BareState(sd.TimeSensitiveIncrementalUDO):  # type: ignore[type-arg]
    def create_state(self) -> list[int]:
        return []

    def add_event_to_state(self, state: list[int], event: IntervalEvent[Point], window: WindowDescriptor) -> list[int]:
        return state

    def compute_result(self, state: list[int], window: WindowDescriptor) -> list[Any]:
        return []


class Untyped(sd.UDA):  # type: ignore[type-arg]
    def compute_result(self, payloads):  # type: ignore[no-untyped-def]
        return 0


@sd.uda
def untyped(payloads):  # type: ignore[no-untyped-def]
    return 0


@sd.udo
def of_events(events: Sequence[IntervalEvent[Trip]], window: WindowDescriptor) -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (modules.Spread(), float),
        (modules.Coverage(), int),
        (modules.Zones(), modules.Trip),
        (modules.Lasting(), str),
        (modules.Uptime(), bool),
        (modules.middle, int),
        (modules.running, float),
        (Quoted(), Trip),
        (Inherited(), Trip),
        (OfAnything(), T),
        (OfText(), str),
        (Bare(), Point),
        (BareEvents(), Point),
        (BareState(), Point),
        (of_events, Trip),
        (Untyped(), Any),
        (untyped, Any),
        (Count(), Any),
    ],
    ids=lambda x: getattr(x, "label", str(x)),
)
def test_a_module_says_what_it_takes(module: Any, expected: Any) -> None:
    assert payload_type(module) == expected


@given(payloads(Trip))
def test_the_strategy_gives_payloads(trip: Trip) -> None:
    assert isinstance(trip.fare, float)


@given(udm_events(modules.Zones(), window=(5, 9), max_size=3))
def test_the_strategy_gives_the_members_of_a_window(events: list[IntervalEvent[modules.Trip]]) -> None:
    assert 1 <= len(events) <= 3
    assert all(event.start_time < 9 and event.end_time > 5 and isinstance(event.payload, modules.Trip) for event in events)
