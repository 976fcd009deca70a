"""The law of portions of windows, which Spark's Python workers compute where no key divides the rows."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.plan.node import Windowed
from streamdsl.spark.portion import WindowPortion
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts
from tests.laws.profiles import examples
from tests.laws.test_framed_windows import CLIPS, RESULTS, STAMPING, TIMED

Query = Callable[[Any], sd.Stream[Any]]


def applied(module: Any, windows: Any) -> sd.Stream[Any]:
    found: sd.Stream[Any] = windows.apply(module, lambda e: e.v)
    return found


MODULES: list[tuple[Query, sd.Output]] = [
    *itertools.product([*RESULTS, *TIMED], (sd.Output.ALIGN, sd.Output.POINT_AT_END)),
    *((partial(applied, module), output) for module, output in STAMPING),
]
SIZES = st.integers(1, 9)


@examples(200)
@given(
    st.builds(lambda size, hop, offset, first, count: ((size, hop, offset), first, count), SIZES, SIZES, SIZES, SIZES, SIZES),
    st.sampled_from(MODULES),
    chts(
        st.builds(lambda k, v: sd.Record(k=k, v=v), st.sampled_from(["a", "\u00e9"]), st.integers(-3, 3)),
        12,
        -9,
        25,
        unending=True,
    ),
    st.sampled_from(CLIPS),
    st.integers(0, 60) | st.just(sd.INFINITY),
)
def test_a_portion_gives_what_its_windows_mean(
    of: Any, module: tuple[Query, sd.Output], rows: sd.CHT[Any], clip: sd.Clip, until: int
) -> None:
    (hopping, first, count), (result, output) = of, module
    query = result(sd.source("s", unit="tick").hopping_window(*hopping, clip=clip, output=output))
    plan = query.plan()
    assert isinstance(plan, Windowed)
    windows = WindowPortion(plan.windows, first - 4, count)  # type: ignore[arg-type]
    ending = sd.CHT(row for row in rows if until < sd.INFINITY or row.re < sd.INFINITY)
    portion = query._over(dataclasses.replace(plan, windows=windows))
    assert_cht_equal(portion.run({"s": ending}, until=until).cht(), denote(portion.plan(), {"s": ending}, until))
