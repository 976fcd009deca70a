"""`infer` gives back every profile that its settings can express, and says of engines that are none that they are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pandas as pd
import pytest

from streamdsl import secret
from streamdsl.papers.secret.inference import WINDOWS, _candidates
from streamdsl.papers.secret.start import At
from streamdsl.secret import Profile, Report, Tick
from tests.laws.profiles import MANY

EXPRESSIBLE = [replace(each, name="") for each in _candidates()]
CHOSEN = Random(0).sample(EXPRESSIBLE, min(len(EXPRESSIBLE), MANY or 1))
AT_A_TIME = [
    Profile("", At(0), Report(content_change=True), Tick.BATCH),
    Profile("", At(-1), Report(True, False, True, 3), Tick.TIME),
    Profile("", At(0), Report(window_close=True, non_empty=True, periodic=3), Tick.BATCH),
]
"""Before their first window has begun they answer otherwise than those with a grid."""
Engine = Callable[[int, int, list[Any]], list[Any]]


def chance(rng: Random, size: int) -> list[tuple[int, int]]:
    """Return an input that nothing has been chosen by, often with tuples before a window that starts at 0 is whole."""
    time, found = 0, list[tuple[int, int]]()
    for value in range(rng.randint(1, 9)):
        time += rng.choice([0, 0, 1, 1, 2, 3, size - 1, size, size + 2])
        found.append((value, time))
    return found


@pytest.mark.parametrize("given", [*AT_A_TIME, *CHOSEN], ids=str)
def test_what_is_believed_answers_as_the_hidden_profile_does_on_inputs_that_nothing_was_chosen_by(given: Profile) -> None:
    """`LAW_EXAMPLES=400` tries so many profiles."""
    found = secret.infer(partial(secret.simulate, given), ended=False).profile
    assert found is not None
    rng = Random(str(given))
    for size, slide in WINDOWS:
        for tuples in (chance(rng, size) for _ in range(20)):
            outputs = [secret.simulate(each, size, slide, tuples).outputs for each in (given, found)]
            assert list(map(sorted, outputs[0])) == list(map(sorted, outputs[1])), (size, slide, tuples, found)


@pytest.mark.parametrize("given", CHOSEN, ids=str)
def test_what_a_profile_simulates_is_explained_by_it_or_by_one_that_answers_alike(given: Profile) -> None:
    found = secret.infer(partial(secret.simulate, given), ended=False)
    assert found.profile is not None
    assert given in [replace(each, name="") for each in found.candidates]
    if given != replace(found.profile, name=""):
        assert all(secret.equivalent(replace(given, name="given"), found.profile, size, slide) for size, slide in WINDOWS)


def pandas_rolling(how: str) -> Engine:
    """A row for each row: an aggregate of those of the last `size` instants."""

    def engine(size: int, slide: int, tuples: list[Any]) -> list[Any]:
        times = pd.to_datetime([each[1] for each in tuples], unit="s")
        rolling = pd.Series([each[0] for each in tuples], index=times).rolling(f"{size}s")
        return [each.tolist() for each in rolling] if how == "list" else list(getattr(rolling, how)())

    return engine


def rows_rolling(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    """A window of rows, not of time."""
    return list(pd.Series([each[0] for each in tuples]).rolling(size, min_periods=1).sum())


def forgets_late(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    """Coral8, but that it forgets everything when a tuple expires while another stays."""
    found, kept = [], list[Any]()
    for each in tuples:
        kept = [*kept, each] if all(each[1] - old[1] < size for old in kept) else [each]
        found.append([old[0] for old in kept])
    return found


def every_other(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    return secret.simulate(secret.CORAL8, size, slide, tuples).outputs[::2]


def keeps_four(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    """STREAM, but that it has room for four: only inputs that have much in them tell, which settings are not told apart by."""
    return [values[-4:] for values in secret.simulate(secret.STREAM, size, slide, tuples).outputs]


def polars_rolling(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"v": [each[0] for each in tuples], "t": [each[1] for each in tuples]})
    return list(frame.rolling("t", period=f"{size}i").agg("v")["v"].to_list())


def polars_dynamic(size: int, slide: int, tuples: list[Any]) -> list[Any]:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"v": [each[0] for each in tuples], "t": [each[1] for each in tuples]})
    return list(frame.group_by_dynamic("t", every=f"{slide}i", period=f"{size}i").agg("v")["v"].to_list())


@pytest.mark.parametrize(
    ("engine", "windows"),
    [
        (pandas_rolling("sum"), [(5, 1)]),
        (pandas_rolling("max"), [(3, 3)]),
        (pandas_rolling("list"), WINDOWS),
        (rows_rolling, [(3, 1)]),
        (forgets_late, [(5, 1)]),
        (every_other, WINDOWS),
        (keeps_four, WINDOWS),
        (polars_rolling, WINDOWS),
    ],
    ids=["pandas sum", "pandas max", "pandas lists", "rows", "forgets", "every other", "keeps four", "polars"],
)
def test_an_engine_that_is_no_profile_is_none_and_the_witness_shows_it(engine: Engine, windows: Any) -> None:
    found = secret.infer(engine, windows)
    last = found.witnesses[-1]
    assert found.profile is None
    assert last.outputs != last.expected
    assert f"it gives {last.outputs!r}" in repr(found)
    if found.alone:
        assert all(secret.simulate(each, last.size, last.slide, last.tuples).outputs != last.outputs for each in EXPRESSIBLE)


def test_polars_windows_by_the_clock_are_a_profile() -> None:
    found = secret.infer(polars_dynamic)
    assert found.profile is not None
    assert all(bool(secret.equivalent(found.profile, secret.POLARS_DYNAMIC, size, slide)) for size, slide in WINDOWS)


def test_the_aggregate_is_not_taken_from_the_first_input_that_it_fits() -> None:
    """Of windows of one tuple the mean, the sum, the largest and the least are the same."""
    inputs: Any = [[(4, 3), (1, 30), (2, 60)], [(4, 3), (1, 4), (2, 30), (8, 60)]]
    for aggregate in (min, max, sum):
        engine = partial(secret.simulate, secret.STREAMBASE, aggregate=aggregate)
        ask = lambda size, slide, tuples, engine=engine: engine(size, slide, tuples).outputs  # noqa: E731
        assert secret.infer(ask, [(3, 1)], inputs=inputs)
