"""Random queries of up to six operators on Spark give what the definition says, of histories and of physical events."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.denote import denote, sources
from streamdsl.spark.flow import Flow
from streamdsl.spark.frame_roles import SourceFrame
from streamdsl.spark.source_frames import source_of_frame
from streamdsl.testing import arrival_orders
from tests.laws.compositions import STEPS, composition
from tests.spark.helpers import check_noted, lives
from tests.spark.streams import row_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SEEDS = (836, 637, 0, 609, 643, 10, 566, 508, 93, 252, 243, 875, 306, 197, 263, 710, 6, 550, 891, 35)
"""Those of queries that are planned soon, in which every operator occurs, and that give rows."""


HOSTILE = ("V", "p", "a`b.c", "", "shard", "new\nline")
OWN = ("kind", "id", "le", "re", "re_new")


def history(rng: random.Random) -> sd.CHT[Any]:
    """Return a random history of records `k`, `v` and fields with hostile names; some of the values are None."""
    return sd.CHT.from_rows([(*life, record(rng)) for life in lives(rng, 8, unending=False)])


def record(rng: random.Random) -> dict[str, Any]:
    k, v = rng.choice(("a", "b", None)), rng.randint(-1, 3)
    return {"k": k, "v": v, **dict.fromkeys(HOSTILE, v or None)}


def in_frames(spark: Any, query: sd.Stream[Any], inputs: Mapping[str, sd.CHT[Any]], seed: int) -> dict[str, Flow]:
    """Return sources that are frames of physical events, whose ids are used again."""
    found = {}
    for name, node in sources(query.plan()).items():
        (events,) = arrival_orders(inputs[name], 1, seed)
        rows = list(map(row_of, events))
        columns = (*OWN, "k", "v", *HOSTILE)
        kinds = {"kind": "string", "id": "string", "k": "string"}
        ddl = ", ".join(f"c{place} {kinds.get(column, 'long')}" for place, column in enumerate(columns))
        frame = spark.createDataFrame([tuple(map(row.get, columns)) for row in rows], ddl).toDF(*columns)
        found[name] = source_of_frame(replace(node, time_unit="tick"), SourceFrame(frame))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions(spark: Any, seed: int) -> None:
    rng = random.Random(seed)
    _, query = composition(rng)
    both = {name: history(rng) for name in ("s0", "s1")}
    inputs = {name: both[name] for name in sources(query.plan())}
    expected = denote(query.plan(), inputs)
    assert len(expected) > 1
    flows = in_frames(spark, query, inputs, seed) if SEEDS.index(seed) % 2 else None
    check_noted(query, inputs, expected, flows=flows)


def test_every_operator_occurs() -> None:
    made = "; ".join(composition(random.Random(seed))[0] for seed in SEEDS)
    assert [step.name for step in STEPS if f"= {step.name} of" not in made] == []
