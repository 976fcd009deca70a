"""User-defined modules on Spark: of every kind, window and policy; what they return; what they raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import TimestampViolation, UnboundedOutputError, UserCodeError
from streamdsl.spark import portion
from tests.spark.helpers import check, check_many, explained, history, stream

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


class Spread(sd.UDA[float, float]):
    def compute_result(self, payloads: Sequence[float]) -> float:
        return max(payloads) - min(payloads)


@dataclass
class Share:
    key: str
    part: float


class Shares(sd.UDO[Any, Share]):
    def __init__(self, least: int) -> None:
        self.least = least

    def compute_result(self, payloads: Sequence[Any]) -> Iterable[Share]:
        keys = sorted({payload["k"] for payload in payloads})
        counts = {key: sum(payload["k"] == key for payload in payloads) for key in keys}
        return [Share(key, n / len(payloads)) for key, n in counts.items() if n >= self.least]


class Covered(sd.TimeSensitiveUDA[int, int]):
    def compute_result(self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor) -> int:
        ends = [min(event.end_time, 99) - event.start_time for event in events]
        return sum(ends) * 1000 + window.start_time + min(window.end_time, 99)


class Echo(sd.TimeSensitiveUDO[int, int]):
    def compute_result(
        self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor
    ) -> Iterable[sd.IntervalEvent[int]]:
        return [sd.IntervalEvent(max(event.start_time, window.start_time), event.end_time, event.payload) for event in events]


class Early(sd.TimeSensitiveUDO[int, int]):
    def compute_result(
        self, events: Sequence[sd.IntervalEvent[int]], window: sd.WindowDescriptor
    ) -> Iterable[sd.IntervalEvent[int]]:
        return [sd.IntervalEvent(window.start_time - 1, window.end_time, 1)]


@sd.uda
def middle(values: Sequence[int]) -> float:
    return sorted(values)[len(values) // 2]


@sd.udo
def pairs(values: Sequence[int]) -> Iterable[tuple[int, int]]:
    return [(value, value * value) for value in values]


def covered(s: sd.Stream[Any], clip: sd.Clip) -> sd.Stream[Any]:
    return s.snapshot_window(clip=clip).aggregate(Covered, lambda e: e.v)


MODULES: dict[str, Callable[[sd.Stream[Any]], sd.Stream[Any]]] = {
    "uda": lambda s: s.snapshot_window().aggregate(Spread, lambda e: e.f),
    "uda beside built-ins": lambda s: s.snapshot_window().aggregate(
        n=sd.count(), x=Spread().of(lambda e: e.f), m=sd.median(lambda e: e.v)
    ),
    "uda by key": lambda s: s.group_by("k").count_window(2).aggregate(Spread, lambda e: e.f),
    "uda of whole payloads": lambda s: s.snapshot_window().apply(Shares(1)),
    "uda that is a function": lambda s: s.snapshot_window().aggregate(middle, lambda e: e.v),
    "udo that is a function": lambda s: s.group_by("k").snapshot_window().apply(pairs, lambda e: e.v),
    "udo": lambda s: s.group_by("m").count_window(2, by="end").apply(Shares(2)),
    "time-sensitive": lambda s: covered(s, sd.Clip.NONE),
    "clipped left": lambda s: covered(s, sd.Clip.LEFT),
    "clipped right": lambda s: covered(s, sd.Clip.RIGHT),
    "clipped": lambda s: covered(s, sd.Clip.FULL),
    "aligned": lambda s: s.snapshot_window().apply(Echo, lambda e: e.v),
    "unchanged": lambda s: s.snapshot_window(output=sd.Output.UNCHANGED).apply(Echo, lambda e: e.v),
    "cut": lambda s: s.count_window(2, output=sd.Output.CLIP).apply(Echo, lambda e: e.v),
    "point at end": lambda s: s.count_window(2, output=sd.Output.POINT_AT_END).apply(Echo, lambda e: e.v),
    "window lambda": lambda s: s.snapshot_window().aggregate(lambda w: f"{w.count()}{w.max(lambda e: e.k)}"),
    "truths' median": lambda s: s.group_by("k").snapshot_window().aggregate(sd.median(lambda e: e.v > 0)),
    "after a module": lambda s: (
        s.snapshot_window().apply(Shares(1)).where(lambda e: e.part > 0.3).group_by("key").apply(lambda g: g.to_edges())
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    assert any("Python (Arrow)" in said for said in explained(MODULES[name](stream())).values())
    check_many(MODULES[name], seeds=range(6), native=False)


def test_hopping_windows_of_many_rows() -> None:
    rows = sd.CHT.from_rows([(t, t + 5, {"k": "ab"[t % 2], "f": float(t % 7)}) for t in range(300)])
    check(stream().group_by("k").hopping_window(20, 5).aggregate(Spread, lambda e: e.f), {"s": rows})
    check(stream().tumbling_window(20).aggregate(Spread, lambda e: e.f), {"s": rows}, until=200)


HOPPING: dict[str, Callable[[sd.Stream[Any]], sd.Stream[Any]]] = {
    "overlapping": lambda s: s.hopping_window(7, 2, 1).aggregate(Spread, lambda e: e.f),
    "with gaps": lambda s: s.hopping_window(1, 3).aggregate(Spread, lambda e: e.f),
    "time-sensitive": lambda s: s.tumbling_window(2, clip=sd.Clip.RIGHT).aggregate(Covered, lambda e: e.v),
    "unchanged": lambda s: s.tumbling_window(2, output=sd.Output.UNCHANGED).apply(Echo, lambda e: e.v),
    "point at end": lambda s: s.tumbling_window(1, output=sd.Output.POINT_AT_END).apply(Shares(1)),
}


KEYS: dict[str, Callable[[sd.Stream[Any]], Any]] = {
    "none": lambda s: s,
    "text": lambda s: s.group_by("k"),
    "that may be None": lambda s: s.group_by("m"),
    "float": lambda s: s.group_by("f"),
    "pair": lambda s: s.group_by(lambda e: (e.k, e.m)),
}


@pytest.mark.parametrize(("name", "key"), list(zip(HOPPING, KEYS, strict=True)))
def test_many_hopping_windows_in_portions(name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portion, "_WINDOWS", 3)
    query = HOPPING[name](KEYS[key](stream()))
    assert any("portion of windows" in said for said in explained(query).values())
    check(query, {"s": history(3, 20, unending=False)}, native=False)
    check(query, {"s": history(4, 20)}, until=30)


GROUPED: dict[str, Callable[[sd.Stream[Any]], sd.Stream[Any]]] = {
    "groups of groups": lambda s: s.group_by("k").apply(
        lambda g: g.group_by("m").apply(lambda h: h.tumbling_window(3).aggregate(Spread, lambda e: e.f))
    ),
    "a projection that reads the key": lambda s: (
        s.group_by("k").tumbling_window(3).aggregate(lambda w: (w.key, w.udm(middle, lambda e: e.v)))
    ),
    "bare values": lambda s: s.select(lambda e: e.v).group_by(lambda e: e % 2).hopping_window(4, 2).aggregate(middle),
    "objects": lambda s: s.group_by("k").apply(
        lambda g: g.select(lambda e: Share(str(e.k), e.f)).tumbling_window(3).aggregate(Spread, lambda e: e.part)
    ),
    "whole payloads": lambda s: s.group_by("m").tumbling_window(4).apply(Shares(1)),
}


@pytest.mark.parametrize("name", GROUPED)
def test_portions_of_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portion, "_WINDOWS", 2)
    assert any("portion of windows" in said for said in explained(GROUPED[name](stream())).values())
    check(GROUPED[name](stream()), {"s": history(5, 24, unending=False)}, native=False)


def test_zeros_and_nan_are_one_key_of_portions() -> None:
    values = [float("nan"), 0.0, -0.0, 1.0, -float("nan"), float("inf"), None]
    rows = sd.CHT.from_rows([(t, t + 1, {"x": value, "v": 1}) for t in range(3) for value in values])
    query = stream().group_by("x").tumbling_window(5).aggregate(n=sd.uda(len).of(lambda e: e.v))
    assert sorted(row.payload["n"] for row in check(query, {"s": rows}, native=False)) == [3, 3, 3, 6, 6]


def test_portions_whatever_the_session_is_set_to(spark: Any) -> None:
    """A portion is told the time between any two rows, and Spark does not join small partitions."""
    names = {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.adaptive.enabled": "false",
    }
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        check(stream().group_by("k").hopping_window(7, 2).aggregate(Spread, lambda e: e.f), {"s": history(6, 24)}, until=30)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_classes_come_back_as_they_are() -> None:
    found = check(stream().snapshot_window().apply(Shares(1)), {"s": history(1)})
    assert {type(row.payload) for row in found} == {Share}


def test_errors_have_the_names_of_the_local_engine() -> None:
    data = {"s": [sd.Insert(i, row.le, row.re, row.payload) for i, row in enumerate(history(2))]}
    endless = {"s": [sd.Insert(0, 1, sd.INFINITY, {"v": 1, "f": 1.0})]}
    with pytest.raises(TimestampViolation, match="Early"):
        stream().snapshot_window(output=sd.Output.UNCHANGED).apply(Early, lambda e: e.v).run(data, engine="spark")
    with pytest.raises(UserCodeError, match="TypeError"):
        stream().snapshot_window().aggregate(Spread, lambda e: e.m).run(data, engine="spark")
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        stream().select(lambda e: 1 // (len(e.k) - 1)).run(data, engine="spark")
    for query in (
        stream().tumbling_window(5).aggregate(n=sd.count()),
        stream().tumbling_window(5).aggregate(m=sd.median(lambda e: e.f)),
        stream().tumbling_window(5).aggregate(Spread, lambda e: e.f),
    ):
        with pytest.raises(UnboundedOutputError, match="until"):
            query.run(endless, engine="spark")
        assert query.run(endless, engine="spark", until=20).cht() == query.run(endless, engine="reference", until=20).cht()
    dated = sd.from_rows([("2026-03-01", sd.INFINITY, {"f": 1.0})])
    for query in (
        dated.tumbling_window("1h").aggregate(n=sd.count()),
        dated.tumbling_window("1h").aggregate(n=sd.median(lambda e: e.f)),
        dated.tumbling_window("1h").top_k(1, by="f"),
        dated.chop("1h"),
    ):
        with pytest.raises(UnboundedOutputError, match=r"would fill tumbling\(1h\) windows for ever"):
            query.run(engine="spark")
