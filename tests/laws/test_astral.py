"""The properties of paper 003, as corrected: windows, projection, selection, and transposition in time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.astral import (
    AnySequence,
    GenericWindowSequence,
    Linear,
    View,
    WindowSequence,
    fixed,
    for_loop,
    landmark,
    last_n_every,
    linear,
    range_slide,
    rows_slide,
    transposable,
)
from streamdsl.errors import StreamDslError
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

Tuples = list[tuple[Any, Fraction, int]]


def stream(rng: Random, spread: bool = False) -> Tuples:
    """Return random tuples in order of position; `spread`: each in a batch of its own."""
    time, batch, found = Fraction(rng.randint(0, 4)), 0, []
    for n in range(rng.randint(0, 14)):
        found.append((n, time, batch))
        step = rng.choice([0, 0, 1, 1, 2, 5]) if not spread else rng.choice([1, 1, 2, 5])
        time, batch = (time, batch + rng.randint(0, 1)) if step == 0 else (time + Fraction(step, 2), 0)
    return found


def moments(tuples: Tuples, t0: Fraction | int = 0) -> list[tuple[Any, int]]:
    """Return batches in and between tuples, from t0 on."""
    times = {t + d for _, t, _ in tuples for d in (0, Fraction(1, 4), Fraction(7, 2))} | {Fraction(t0)}
    return sorted((t, i) for t in times for i in (0, 1, 9) if t >= t0)


def in_time(rng: Random) -> AnySequence:
    c = rng.randint(1, 4)
    b = rng.randint(0, 3)
    return rng.choice(
        [
            linear((rng.randint(0, c), b), (c, b + rng.randint(0, 5)), c),
            range_slide(rng.randint(1, 6), rng.randint(1, 4), rng.random() < 0.5),
            range_slide(rng.randint(1, 6)),
            fixed(b, b + rng.randint(0, 6)),
            WindowSequence(lambda j: j, lambda j: 2 * j + 3, 2, delay=rng.randint(0, 3)),
            GenericWindowSequence(lambda b, v: v.t0, lambda b, v: b[0] - 1, lambda at, v: (at[0] // 2 * 2, 0)),
        ]
    )


def in_positions(rng: Random) -> AnySequence:
    n = rng.randint(1, 4)
    return rng.choice(
        [
            landmark(),
            rows_slide(n, rng.randint(1, 4), rng.random() < 0.5),
            last_n_every(n, rng.randint(1, 4)),
            fixed(1, 1 + n, "position"),
            WindowSequence(lambda j, v: max(0, v.tau_inv(j) - 1), lambda j, v: v.tau_inv(j), 1, "position", "time"),
        ]
    )


def literal(view: View, ws: AnySequence, at: tuple[Any, int]) -> list[Any]:
    """Definition 10, as it is written: sets of tuples by their batches, then the last ones by position."""
    bounds = view.bounds(ws, at)
    if bounds is None:
        return []
    low, high = bounds
    seen = [(n, batch) for n, batch in enumerate(view.batches) if batch <= at]
    if ws.domain == "time":
        last = (high, at[1]) if high == at[0] else (high, 10**9)
        return [view.payloads[n] for n, batch in seen if (low, 0) <= batch <= last]
    if low > high or not seen or low >= len(seen):
        return []
    ends = [view.tau(n) if n >= 0 else (view.t0, 0) for n in (max(int(low), -1), min(int(high), len(seen) - 1))]
    inside = [n for n, batch in seen if (ends[0] <= batch or low < 0) and batch <= ends[1]]
    return [view.payloads[n] for n in inside if sum(n < m for m in inside) <= high - low]


@pytest.mark.parametrize("kind", [in_time, in_positions])
@examples(90)
@given(SEEDS)
def test_a_window_holds_what_its_definition_says(kind: Callable[[Random], AnySequence], seed: int) -> None:
    rng = Random(seed)
    tuples, ws, t0 = stream(rng), kind(rng), rng.randint(0, 3)
    view = View(tuples, t0)
    for at in moments(tuples):
        assert view.content(ws, at) == (literal(view, ws, at) if at[0] >= t0 else []), (ws, at)


@pytest.mark.parametrize("kind", [in_time, in_positions])
@examples(50)
@given(SEEDS)
def test_property_1_a_projection_may_come_before_the_window_or_after(kind: Callable[[Random], AnySequence], seed: int) -> None:
    rng = Random(seed)
    tuples, ws = stream(rng), kind(rng)
    projected = View([(n % 3, t, i) for n, t, i in tuples])
    for at in moments(tuples):
        assert projected.content(ws, at) == [n % 3 for n in View(tuples).content(ws, at)]


@examples(60)
@given(SEEDS)
def test_properties_2_and_3_a_selection_may_come_first_in_time_and_with_landmarks(seed: int) -> None:
    rng = Random(seed)
    tuples, ws = stream(rng), rng.choice([in_time(rng), landmark()])
    view, p = View(tuples, rng.randint(0, 2)), lambda n: n % 3 != 1
    for at in moments(tuples):
        assert view.where(p).content(ws, at) == list(filter(p, view.content(ws, at))), (ws, at)


def test_a_selection_may_not_come_before_windows_of_positions() -> None:
    view, two = View([(n, n) for n in range(6)]), rows_slide(2, 1)
    assert view.where(lambda n: n % 2 == 0).content(two, 5) == [2, 4]
    assert [n for n in view.content(two, 5) if n % 2 == 0] == [4]


def agree(first: AnySequence, t0: Any, second: AnySequence, t1: Any, tuples: Tuples) -> bool:
    """Say whether the two queries are equal from the first window of the second one on."""
    before, after = View(tuples, t0), View(tuples, t1)
    late = {n for n, t, _ in tuples if t >= t1}
    return all(
        [n for n in before.content(first, at) if n in late] == after.content(second, at)
        for at in moments(tuples, t1)
        if after.gamma(second, at) is not None
    )


def pair(rng: Random, hidden: int, least: tuple[int, int]) -> tuple[Linear, Linear]:
    """Return two sequences for which property 4 holds, or almost."""
    rate = rng.randint(1, 4)
    k = rng.choice([0, 0, 1, 2])
    a = rng.randint(0, rate)
    c = rate if k or rng.random() < 0.7 else rng.randint(a, rate)
    b, width = rng.randint(-3, 4) + least[0], rng.randint(0, 5)
    d = max(b, least[0]) + width
    shifted = b + a * k - hidden if a else rng.choice([b - hidden, least[1], least[1] - 2])
    domain: Any = "position" if least == (0, 0) else "time"
    wrong = rng.choice([0, 0, 0, 1])
    return linear((a, b), (c, d), rate, domain), linear((a, shifted), (c, d + k * rate - hidden + wrong), rate, domain)


@examples(90)
@given(SEEDS)
def test_property_4_what_is_transposable_in_time_is_equal_once_created(seed: int) -> None:
    rng = Random(seed)
    t0 = rng.randint(1, 2)
    t1 = t0 + rng.randint(0, 6)
    first, second = pair(rng, 0, (t0, t1))
    tuples = stream(rng)
    assert not transposable(first, t0, second, t1) or agree(first, t0, second, t1, tuples)


@examples(90)
@given(SEEDS)
def test_property_4_what_is_transposable_in_positions_is_equal_once_created(seed: int) -> None:
    rng = Random(seed)
    t1 = rng.randint(0, 4)
    tuples = stream(rng, spread=rng.random() < 0.5)
    hidden = sum(t < t1 for _, t, _ in tuples)
    first, second = pair(rng, hidden, (0, 0))
    assert not transposable(first, 0, second, t1, tuples) or agree(first, 0, second, t1, tuples)


@examples(60)
@given(SEEDS)
def test_corollary_2_sliding_windows_and_landmarks_are_transposable_by_their_rate(seed: int) -> None:
    rng = Random(seed)
    t0, rate, k = rng.randint(0, 3), rng.randint(1, 4), rng.randint(0, 3)
    a, b, d = rng.choice([(0, -rng.randint(0, 2), rng.randint(0, 4)), (rate, rng.randint(-3, 3), rng.randint(3, 6))])
    t1 = t0 + k * rate
    first, second = (linear((a, b + t), (rate, d + t), rate) for t in (t0, t1))
    assert transposable(first, t0, second, t1)
    assert agree(first, t0, second, t1, stream(rng))


def test_the_later_query_is_empty_until_its_first_window_while_the_earlier_one_is_not() -> None:
    first, second = linear((2, 3), (5, 3), 5), linear((2, 7), (5, 13), 5)
    tuples = [(n, Fraction(n, 2), 0) for n in range(80)]
    assert transposable(first, 0, second, 5)
    assert [n for n in View(tuples).content(first, 9) if n >= 10]
    assert View(tuples, 5).content(second, 9) == []


def test_several_tuples_in_a_batch_make_positions_transposable_only_where_no_window_is_cut() -> None:
    tuples = [(0, 0, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0)]
    first, second = linear((0, -1), (3, 3), 3, "position"), linear((0, -2), (3, 2), 3, "position")
    assert not transposable(first, 0, second, 1, tuples)
    assert transposable(first, 0, second, 1, [(n, n, 0) for n in range(5)])


def test_transposing_asks_for_linear_sequences() -> None:
    with pytest.raises(TypeError, match="linear sequences"):
        transposable(range_slide(4, 2), 0, linear((2, 0), (2, 4), 2), 2)


def test_a_stream_is_seen_by_le_and_payload() -> None:
    view = View(sd.from_rows([(4, 9, "c"), (2, 5, "b"), (2, 7, "a"), (-1, 3, "early"), (6, 6, "never")]))
    assert view.content(landmark(), 9) == ["a", "b", "c"]
    assert [view.tau(n) for n in (-1, 0, 1, 2)] == [(0, 0), (2, 0), (2, 0), (4, 0)]
    assert view.content(rows_slide(1, 1), 3) == ["b"]


def test_a_query_sees_nothing_before_it_starts_and_nothing_later_than_now() -> None:
    view = View([("a", 1), ("b", 2), ("c", 5)], t0=2)
    assert view.gamma(fixed(0, 9), 1) is None
    assert view.content(landmark(), 1) == []
    assert view.content(landmark(), 4) == ["b"]
    ahead = WindowSequence(lambda j, v: v.t0, lambda j, v: v.tau(j + 1)[0], 1, "time", "position")
    assert view.gamma(ahead, 4) is None
    assert view.content(ahead, 5) == ["b", "c"]


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: View([("b", 2), ("a", 1)]), "in order of position"),
    (lambda: View([("a", 1)]).tau(1), "no tuple at position 1; the positions so far are 0 to 0"),
    (lambda: linear((1, 0), (1, 0.5), 1, "position"), "whole numbers"),
    (lambda: linear((1, 0), (1, 0), 0), "a rate is greater than 0"),
    (lambda: range_slide(4, 0), "a rate is greater than 0"),
    (lambda: range_slide(0), "a range is greater than 0"),
    (lambda: last_n_every(3, -1), "a period is greater than 0"),
    (lambda: rows_slide(0, 1), "at least one tuple"),
    (lambda: fixed("soon", 5), "not a number"),  # type: ignore[arg-type]
    (lambda: WindowSequence(lambda j: j, lambda j: j, 1, "rows"), '"time" and "position"'),  # type: ignore[arg-type]
    (lambda: WindowSequence(lambda j: j, lambda j: j, 1, delay=-1), "at least 0"),
    (lambda: View([("a", 1)]).content(landmark().partitioned("loc"), 3), "no field 'loc'"),
    (lambda: View([("a", 1)]).content(for_loop(0, lambda u: True, lambda u: u, lambda u: (0, u)), 3), "which must increase"),
]


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_what_is_no_sequence_or_no_view_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(StreamDslError, match=text):
        make()
