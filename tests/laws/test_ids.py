"""The law of ids: a stream is told apart by what its events are, however often an id comes back, and beside rows without ids."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pandas as pd
import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.temporal import CHT, CHTRow, Event, Record
from streamdsl.testing import assert_cht_equal
from tests.laws.choices import Random, given
from tests.laws.modules import Since
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.operators import entries

TWICE: list[Event[Any]] = [
    sd.edge_start("t1", 0, {"k": "a", "v": 1}),
    sd.edge_end("t1", 0, 5),
    sd.Cti(6),
    sd.edge_start("t1", 7, {"k": "a", "v": 2}),
    sd.edge_end("t1", 7, 9),
]
QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda s, t: s.where(lambda e: e.v > 0),
    "extend": lambda s, t: s.extend(10),
    "quantize": lambda s, t: s.quantize(10, 10),
    "to edges": lambda s, t: s.to_edges("k"),
    "union": lambda s, t: s.union(t),
    "union with itself": lambda s, t: s.union(s),
    "join": lambda s, t: s.extend(10).join(t.extend(20), on="k"),
    "full join": lambda s, t: s.full_join(t, on="k"),
    "as-of join": lambda s, t: s.asof_join(t, on="k", how="left"),
    "clip by": lambda s, t: s.clip_by(t, on="k"),
    "clip of a union": lambda s, t: s.union(t).clip_interval(1, 30),
    "starts alike": lambda s, t: s.alter_lifetime(start=lambda e: 0, duration=lambda e: 50),
    "a list": lambda s, t: s.extend(10).select_many(lambda e: [e.v, e.v + 1]),
}
VARIANTS: dict[str, Callable[[Any, Any], Any]] = {
    f"{name}, a variant": partial(entry.over, 0) for name, entry in entries().items()
}


@pytest.mark.parametrize("emit", ["speculative", "watermark", "final"])
@pytest.mark.parametrize("name", QUERIES | VARIANTS)
@pytest.mark.parametrize("together", [False, True])
def test_an_id_that_is_used_again_is_another_row(name: str, emit: Any, together: bool) -> None:
    query = (QUERIES | VARIANTS)[name](sd.source("s"), sd.source("t"))
    session, sent = query.open(emit=emit), list[Event[Any]]()
    for source in session.sources:
        for events in [TWICE] if together else [[event] for event in TWICE]:
            sent += session.push(events, source)
    history = CHT.from_events(TWICE)
    assert_cht_equal(CHT.from_events([*sent, *session.close()]), denote(query.plan(), {"s": history, "t": history}))


def numbers(rng: Random) -> Any:
    """Return an id that is a number, which rows of frames may have too."""
    number = rng.randint(-1, 12)
    return rng.choice([number, number, float(number), bool(number % 2), Decimal(number), 2**63 + number, str(number)])


@examples(300)
@given(SEEDS)
def test_rows_of_frames_and_events_under_numbers_do_not_meet(seed: int) -> None:
    rng = Random(seed)
    policy: Any = rng.choice(["error", "drop", "adjust"])
    progress = rng.choice([None, sd.Progress.slack(40), sd.Progress.every(3, delay=40)])
    query = rng.choice(list(QUERIES.values()))(sd.source("s", on_violation=policy, progress=progress), sd.source("t"))
    emit: Any = rng.choice(["speculative", "watermark", "final"])
    session, sent = query.open(emit=emit), list[Event[Any]]()
    rows: list[CHTRow[Any]] = []
    used: set[Any] = set()
    for _ in range(rng.randint(1, 6)):
        size = rng.choice([1, 2, 20])
        if rng.random() < 0.5:
            le = [rng.randint(0, 30) for _ in range(size)]
            frame = pd.DataFrame({"le": le, "re": [each + rng.randint(1, 5) for each in le], "k": "a", "v": le})
            sent += session.push(frame, "s")
            rows += [CHTRow(*each, Record(k="a", v=each[0])) for each in zip(frame["le"], frame["re"], strict=True)]
            continue
        events: list[Event[Any]] = []
        for id in (numbers(rng) for _ in range(size)):
            if id in used:
                continue
            used.add(id)
            start, end = rng.randint(0, 30), rng.randint(31, 35)
            events.append(sd.Insert(id, start, end, {"k": "a", "v": start}))
            if rng.random() < 0.5:
                events.append(sd.Retract(id, start, end, start + 1))
                end = start + 1
            rows.append(CHTRow(start, end, Record(k="a", v=start)))
        sent += session.push(events, "s")
    expected = denote(query.plan(), {"s": CHT(rows), "t": CHT([])})
    assert_cht_equal(CHT.from_events([*sent, *session.close()]), expected)


def test_a_number_that_a_row_has_is_an_id_like_any_other() -> None:
    session = sd.source("s").open()
    first = session.push(pd.DataFrame({"le": [1], "re": [9], "v": [1]}))
    then = session.push([sd.Insert(0, 2, 9, {"v": 2}), sd.Retract(0, 2, 9, 5)])
    last = session.push(pd.DataFrame({"le": [3], "re": [9], "v": [3]}))
    cht = CHT.from_events([*first, *then, *last])
    assert [(row.le, row.re) for row in cht] == [(1, 9), (2, 5), (3, 9)]


def test_an_id_that_the_progress_policy_lets_go_comes_again_after_the_cti_that_did() -> None:
    """Of the row that moves the CTI nothing may go out, and the id may come again in the same push."""
    rows = [("a", 3, 4), ("empty", 5, 5), ("a", 5, 6)]
    events: list[Event[Any]] = [sd.Insert(id, le, re, Record(v=1)) for id, le, re in rows]
    events.insert(1, sd.Cti(4))
    session = sd.source("s", progress=sd.Progress.ordered()).open()
    assert session.push(events) == [*events[:2], sd.Cti(5), events[-1]]


def test_a_row_that_an_operator_on_lifetimes_hides_for_a_while_comes_back_under_another_id() -> None:
    row = {"k": "a", "v": 1}
    session = sd.source("s").scan(Since()).extend(-3).open()
    out = session.push([sd.interval("a", 0, 9, row)])
    out += session.push([sd.Retract("a", 0, 9, 2, row)])  # too short to be seen
    out += session.push([sd.Retract("a", 0, 2, 7, row)])
    assert [(row.le, row.re) for row in CHT.from_events(out)] == [(0, 4)]
    assert len({event.id for event in out if isinstance(event, sd.Insert)}) == 2
