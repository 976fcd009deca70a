"""A projection of an outer join that fails where a side is missing fails exactly where the definition says that it is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.errors import UserCodeError
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

Query = Callable[[sd.Stream[Any], sd.Stream[Any]], sd.Stream[Any]]


def of_right(a: Any, b: Any) -> Any:
    return b.v


QUERIES: dict[str, Query] = {
    **{
        f"asof_join {direction}": lambda a, b, direction=direction: a.asof_join(  # type: ignore[misc]
            b, on="k", how="left", direction=direction, select=of_right
        )
        for direction in ("back", "forward", "nearest")
    },
    "asof_join under a condition": lambda a, b: a.asof_join(b, where=lambda x, y: x.k == y.k, how="left", select=of_right),
    "asof_join in groups": lambda a, b: (
        a.select(k=sd.col("k"), v=sd.col("v"), left=sd.lit(True))
        .union(b.select(k=sd.col("k"), v=sd.col("v"), left=sd.lit(False)))
        .group_by("k")
        .apply(lambda g: g.where(lambda e: e.left).asof_join(g.where(lambda e: sd.not_(e.left)), how="left", select=of_right))
    ),
    "left_join": lambda a, b: a.left_join(b, on="k", select=of_right),
}


def rows(rng: Random, keys: str, n: int) -> sd.CHT[Any]:
    lives = [(start, start + rng.choice([1, 3, 40])) for start in (rng.randint(-3, 9) for _ in range(n))]
    return sd.CHT.from_rows([(le, re, sd.Record(k=rng.choice(keys), v=n)) for n, (le, re) in enumerate(lives)])


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_missing_for_a_while_only_is_not_missing(name: str) -> None:
    seen = set()

    @examples(60)
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        keys = rng.choice(["a", "ab"])
        left, right = rows(rng, keys, rng.randint(0, 3)), rows(rng, keys, rng.randint(1, 6))
        query = QUERIES[name](sd.source("left", unit="tick"), sd.source("right", unit="tick"))
        events = {
            source: [sd.Insert(i, *row) for i, row in enumerate(each)] for source, each in (("left", left), ("right", right))
        }
        try:
            expected = denote(query.plan(), {"left": left, "right": right})
        except UserCodeError:
            expected = None
        seen.add(None if expected is None else len(expected) > 0)
        for order in (("left", "right"), ("right", "left")):
            inputs = {source: events[source] for source in order}
            if expected is None:
                with pytest.raises(UserCodeError):
                    query.run(inputs)
            else:
                assert_cht_equal(query.run(inputs).cht(), expected)

    law()
    assert {None, True} <= seen
