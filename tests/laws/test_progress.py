"""Paper 004: joins, aggregates and unions are what their relational definitions say, at every moment that punctuation allows.

Each law feeds an operator item by item and compares everything that it has sent, and what it holds, with a definition over the
items so far.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from inspect import signature
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl.errors import EventError, StreamDslError
from streamdsl.papers.common import partial_aggregates
from streamdsl.progress import (
    BandJoin,
    Chain,
    Describe,
    EqualityJoin,
    Input,
    Joined,
    JointPunctuation,
    LowLevelAggregate,
    OfAttribute,
    Operator,
    PairAggregate,
    PairResult,
    Punctuation,
    Smooth,
    Sort,
    Tuple,
    Union,
    Unmatched,
    WindowAggregate,
    WindowResult,
    low_water_marks,
    number,
    roll_up,
)
from streamdsl.temporal import INFINITY, Lifetime
from streamdsl.udm.builtin import Sum
from tests.laws.arrivals import NOTHING, Arrival, arrivals, assert_sound, bag, bound, last, less, steps, tuples
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS


@examples(90)
@given(SEEDS)
def test_union_passes_tuples_and_the_least_punctuation(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(1, 3)
    for seen, out in steps(Union(n), arrivals(rng, n)):
        assert bag(item for item in out if isinstance(item, Tuple)) == bag(item for _, item in seen if isinstance(item, Tuple))
        assert last(out, "ts") == min(bound(seen, input) for input in range(n))
    assert_sound(out, lambda item: {"ts": item.ts})


@examples(90)
@given(SEEDS)
def test_the_merge_in_order_sends_each_tuple_as_soon_as_all_inputs_have_reached_it(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(1, 3)
    merge = Union(n, order="in")
    for seen, out in steps(merge, arrivals(rng, n, ordered=True)):
        reached = min(max([bound(seen, i), *(item.ts for item in tuples(seen, i))]) for i in range(n))
        everything = [item for i in range(n) for item in tuples(seen, i)]
        assert bag(out) == bag(item for item in everything if item.ts <= reached)
        assert merge.buffered == len(everything) - len(out)
        assert [item.ts for item in out] == sorted(item.ts for item in out)


def matches(seen: list[Arrival], partner: Callable[[float, float], bool], same_key: bool) -> list[Joined]:
    return [
        Joined(left, right)
        for left in tuples(seen, 0)
        for right in tuples(seen, 1)
        if partner(left.ts, right.ts) and (not same_key or left.payload["k"] == right.payload["k"])
        if left.payload["v"] != right.payload["n"]
    ]


def alone(seen: list[Arrival], pairs: list[Joined], bound: float) -> list[Unmatched]:
    """Return the left tuples earlier than a bound that are in no pair."""
    return [Unmatched(each) for each in tuples(seen, 0) if each.ts < bound and all(pair.left != each for pair in pairs)]


Reach = Callable[[float], float]
Made = tuple[Callable[[Any], Operator], Callable[[float, float], bool], tuple[Reach, Reach]]


def some_join(rng: Random, on: Any, outer: bool = False) -> Made:
    """Return a join, the condition on its times, and the least time on each side that a bound on the other leaves."""
    where = lambda left, right: left["v"] != right["n"]  # noqa: E731
    if rng.random() < 0.3:
        w = rng.randint(1, 5)
        floor: Reach = lambda b: b if abs(b) >= INFINITY else b // w * w  # noqa: E731
        return (lambda order: EqualityJoin(w, on, where, order, outer)), (lambda a, b: a // w == b // w), (floor, floor)
    before, after = rng.choice([(0, 0), (2, 3), (rng.randint(-2, 8), rng.randint(2, 8))])
    return (
        (lambda order: BandJoin(before, after, on, where, order, outer)),
        (lambda a, b: a - before <= b <= a + after),
        ((lambda b: less(b, after)), (lambda b: less(b, before))),
    )


@examples(120)
@given(SEEDS)
def test_a_join_is_its_definition_after_every_push_and_stores_no_more_than_it_must(seed: int) -> None:
    rng = Random(seed)
    on = rng.choice([None, "k", (lambda e: e.k, lambda e: e.k)])
    outer = rng.random() < 0.5
    make, partner, least = some_join(rng, on, outer)
    join = make("any")
    for seen, out in steps(join, arrivals(rng, 2)):
        b0, b1 = bound(seen, 0), bound(seen, 1)
        unmatched = alone(seen, matches(seen, partner, on is not None), least[0](b1)) if outer else []
        assert bag(item for item in out if isinstance(item, Unmatched)) == bag(unmatched)
        assert bag(item for item in out if isinstance(item, Joined)) == bag(matches(seen, partner, on is not None))
        assert join.buffered == sum(t.ts >= least[0](b1) for t in tuples(seen, 0)) + sum(
            t.ts >= least[1](b0) for t in tuples(seen, 1)
        )
        assert last(out, "left") == min(least[0](b1), b0)
        assert last(out, "right") == min(least[1](b0), b1)
        joint = [item for item in out if isinstance(item, JointPunctuation)]
        assert joint[-1:] == ([JointPunctuation(b0, b1)] if NOTHING not in (b0, b1) else [])
        assert len(set(joint)) == len(joint)
    assert_sound(out, lambda item: {"left": item.left.ts, "right": item.right.ts if isinstance(item, Joined) else INFINITY})


@examples(120)
@given(SEEDS)
def test_a_join_in_order_sends_a_result_once_no_earlier_one_can_come(seed: int) -> None:
    rng = Random(seed)
    on, outer = rng.choice([None, "k"]), rng.random() < 0.5
    make, partner, least = some_join(rng, on, outer)
    join = make("in")
    for seen, out in steps(join, arrivals(rng, 2)):
        b0, b1 = bound(seen, 0), bound(seen, 1)
        everything, complete = matches(seen, partner, on is not None), min(b0, least[0](b1))
        released = [pair for pair in everything if pair.left.ts < b0 and pair.right.ts < b1]
        lonely = alone(seen, everything, min(b0, least[0](b1))) if outer else []
        results = [pair for pair in everything if pair.left.ts < complete] + lonely
        assert bag(out) == bag(results)
        assert [pair.left.ts for pair in out] == sorted(pair.left.ts for pair in out)
        kept = sum(t.ts >= min(b0, least[0](b1)) for t in tuples(seen, 0)) + sum(
            t.ts >= min(b1, least[1](b0)) for t in tuples(seen, 1)
        )
        assert join.buffered == kept + len(released) - sum(isinstance(each, Joined) for each in out)


@pytest.mark.parametrize("joint", [True, False])
@examples(60)
@given(SEEDS)
def test_pairs_of_timestamps_are_complete_as_soon_as_punctuation_says(joint: bool, seed: int) -> None:
    rng = Random(seed)
    before, after = rng.randint(0, 5), rng.randint(0, 5)
    join, pairs, results = BandJoin(before, after), PairAggregate(len, joint), []
    fed = 0
    for seen, out in steps(join, arrivals(rng, 2)):
        results += pairs.run((0, item) for item in out[fed:])
        fed = len(out)
        groups = Counter((item.left.ts, item.right.ts) for item in out if isinstance(item, Joined))
        b0, b1 = bound(seen, 0), bound(seen, 1)
        complete = {
            (left, right): n
            for (left, right), n in groups.items()
            if (left < b0 and right < b1 if joint else left < min(b0, less(b1, after)) or right < min(b1, less(b0, before)))
        }
        assert {(each.left, each.right): each.value for each in results} == complete
        assert len(results) == len(complete)
        assert pairs.buffered == len(groups) - len(complete)


@examples(50)
@given(SEEDS)
def test_joint_punctuation_is_never_later_than_individual(seed: int) -> None:
    rng = Random(seed)
    join = BandJoin(rng.randint(0, 9), rng.randint(0, 9))
    done: dict[bool, set[Any]] = {True: set(), False: set()}
    groups = {joint: PairAggregate(len, joint) for joint in done}
    for input, item in arrivals(rng, 2):
        out = join.push(item, input)
        for joint, operator in groups.items():
            done[joint] |= {(each.left, each.right) for each in operator.run((0, each) for each in out)}
        assert done[False] <= done[True]


@examples(60)
@given(SEEDS)
def test_low_water_marks_are_the_least_of_what_is_to_come(seed: int) -> None:
    rng = Random(seed)
    times = [rng.randint(-9, 9) for _ in range(rng.randint(0, 9))]
    assert low_water_marks(times) == [min([*times[n:], INFINITY]) for n in range(len(times) + 1)]


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Union(0), "n is a whole number >= 1"),
    (lambda: Union().push(Tuple(1), 2), "Union has no input 2; its inputs are: 0, 1"),
    (lambda: Union(order="sorted"), 'the order is "any" or "in"'),  # type: ignore[arg-type]
    (lambda: Union().run([(0, Punctuation(5)), (0, Tuple(4))]), "its ts 4 is below the punctuation 5"),
    (lambda: Union(order="in").run([(0, Tuple(5)), (0, Tuple(4))]), "sort them first"),
    (lambda: Union().run([Tuple(1)]), r"takes pairs \(input, item\)"),  # type: ignore[list-item]
    (lambda: Chain(Union(), 5), "5 is no operator"),  # type: ignore[arg-type]
    (lambda: Smooth(sd.count()), "is no operator"),  # type: ignore[arg-type]
    (lambda: Input("slack"), "'slack' is no progress policy"),  # type: ignore[arg-type]
    (lambda: Input(sd.Progress.slack(2, max_jump=5)), r"Progress\.slack\(2, max_jump=5\) is a policy of queries' sources"),
    (lambda: WindowAggregate(1, 1, sd.avg), "is no aggregate"),
    (lambda: BandJoin(-3, 2), "a band from 3 to 2 is empty"),
    (lambda: EqualityJoin(0), "a width is a number greater than 0"),
    (lambda: BandJoin(1, 1, on=5), "says nothing about a payload"),
    (lambda: BandJoin(1, 1, on="k").push(Tuple(1, {"n": 1})), "there is no field 'k'; the fields are: n"),
    (lambda: BandJoin(1, 1, where=lambda a, b: a / b).run([(0, Tuple(1, 1)), (1, Tuple(1, 0))]), "(?s)ZeroDivision.*BandJoin"),
    (lambda: WindowAggregate(1, 1, len, key=lambda e: e.k).push(Tuple(1, 5)), "(?s)'int' object has no.*WindowAggregate"),
    (lambda: WindowAggregate(0, 1, len), "a range is a number greater than 0"),
    (lambda: WindowAggregate(1, 1, 5), "5 is no aggregate"),
    (lambda: WindowAggregate(1, 1, len).push(Joined(Tuple(1), Tuple(1))), "takes tuples and punctuation"),
    (lambda: WindowAggregate(1, 1, lambda _: 1 / 0).run([(0, Tuple(1)), (0, Punctuation(9))]), "ZeroDivisionError in user code"),
    (lambda: PairAggregate(len).push(Tuple(1)), "takes a join's results"),
    (lambda: number([], every=0), "every is a whole number >= 1"),
    (lambda: LowLevelAggregate(5, 4, flush="soon"), 'flush is "slow", "lazy", or "end"'),  # type: ignore[arg-type]
    (lambda: LowLevelAggregate(5, 4, flush="lazy", order="in"), "flushes slowly only"),
    (lambda: LowLevelAggregate(5, 4).run([(0, Tuple(5, 1)), (0, Tuple(4, 1))]), "its ts 4 is before 5"),
    (lambda: Union().push(Tuple(1), "left"), "Union has no input 'left'; its inputs are: 0, 1"),  # type: ignore[arg-type]
    (lambda: Union().push(5), "write Tuple"),  # type: ignore[arg-type]
    (lambda: Union().push(WindowResult(1, None, 5)), "OfWindows makes tuples"),
    (lambda: PairAggregate(len).push(Unmatched(Tuple(1))), "leave outer=True out"),
    (lambda: BandJoin("3", 2), "before is a number, not '3'"),  # type: ignore[arg-type]
    (lambda: BandJoin(3, math.nan), "after is a number, not nan"),
    (lambda: OfAttribute("start").push(Tuple(1, {"start": None})), "its start None is no time"),
    (lambda: OfAttribute("start").push(Tuple(1, {"end": 1})), "there is no field 'start'; the fields are: end"),
]
OPERATORS: list[Callable[[], Operator]] = [
    Union,
    lambda: Union(order="in"),
    Sort,
    Input,
    lambda: Describe(5),
    lambda: BandJoin(1, 2),
    lambda: EqualityJoin(5),
    lambda: WindowAggregate(5, 5, len),
    lambda: LowLevelAggregate(5, 4),
    lambda: Chain(Union(), Sort()),
    lambda: Smooth(Sort()),
]


@pytest.mark.parametrize("make", OPERATORS)
def test_what_is_no_time_is_refused_and_changes_nothing(make: Callable[[], Operator]) -> None:
    operator, plain = make(), make()
    wrong: list[Any] = [math.nan, math.inf, -math.inf, INFINITY + 1, "7", None]
    for ts in wrong:
        with pytest.raises(EventError, match="is no time"):
            operator.push(Tuple(ts, 1))
        if ts not in (math.inf, -math.inf):
            with pytest.raises(EventError, match="is no time"):
                operator.push(Punctuation(ts))
    assert operator.push(Punctuation(-math.inf)) == []
    items: list[Any] = [Tuple(3, 1), Punctuation(3), Tuple(8, 2), Punctuation(math.inf)]
    for item in items:
        assert operator.push(item) == plain.push(item)
    assert operator.buffered == plain.buffered


def test_operators_show_what_they_are_made_of() -> None:
    query = Chain(Union(2), Smooth(WindowAggregate(60, 30, sd.sum(lambda e: e.v), key="k"), every=2))
    inner = "WindowAggregate(range=60, slide=30, fn=sum(e.v), key='k')"
    assert repr(query) == f"Chain(Union(n=2), Smooth(operator={inner}, every=2))"
    assert repr(BandJoin(2, 3, where=lambda a, b: a.v < b.v)) == "BandJoin(before=2, after=3, where=l.v < r.v)"
    assert repr(PairAggregate(len)) == "PairAggregate(fn=len)"
    assert str(signature(PairAggregate)) == "(fn: 'Any', joint: 'bool' = True) -> 'None'"


def test_sizes_may_be_numbers_of_numpy() -> None:
    five: Any = np.int64(5)
    for made in (WindowAggregate(five, five, len), LowLevelAggregate(five, five), EqualityJoin(five), Union(five)):
        made.push(Tuple(3, 1))


@pytest.mark.parametrize("name", ["items", "keys", "count", "index"])
def test_a_field_may_have_the_name_of_a_method(name: str) -> None:
    counts = WindowAggregate(10, 10, len, key=name)
    counts.run([(0, Tuple(1, {name: 3})), (0, Tuple(2, sd.Record({name: 3})))])
    assert counts.close()[0] == WindowResult(0, 3, 2)


def test_groups_of_the_low_level_may_be_any_payloads() -> None:
    groups = [{"k": 1}, sd.Record(k=1), [1, 2], 1, True, 1.0, math.nan, math.nan]
    table = LowLevelAggregate(10, 3)
    counts = roll_up([*table.run((0, Tuple(1, group)) for group in groups), *table.close()])
    assert counts[0, sd.Record(k=1)] == 2
    assert counts[0, 1] == 3
    assert sorted(counts.values()) == [1, 2, 2, 3]


def test_a_sum_of_what_cannot_be_condensed_is_not_looked_at_for_each_value() -> None:
    looked = []

    class Money(Decimal):
        def __add__(self, other: Any) -> Any:
            return Money(Decimal(self) + other)

        __radd__ = __add__

    def seen(values: list[Any]) -> list[Any]:
        looked.append(len(values))
        return values

    total = partial_aggregates.FewValues(Sum(), seen)
    state = total.create()
    for _ in range(1000):
        state = total.add(state, 0, Money(1), Lifetime(0, 1))
    assert sum(looked) < 2000
    assert total.result(state, Lifetime(0, 1)) == 1000


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(StreamDslError, match=text):
        make()


def test_results_of_pairs_come_in_order() -> None:
    pairs = PairAggregate(sd.count())
    for left, right in ((3, 1), (1, 2), (1, 1)):
        pairs.push(Joined(Tuple(left), Tuple(right)))
    assert pairs.close() == [PairResult(1, 1, 1), PairResult(1, 2, 1), PairResult(3, 1, 1)]
