"""The scan operator: states are kept so that little is computed anew, and forgotten where nothing can change."""

from __future__ import annotations

from random import Random
from typing import Any, Literal
from unittest.mock import patch

import pytest
from hypothesis import given

import streamdsl as sd
from streamdsl.engine.operators import scan
from streamdsl.engine.query_session import Session
from streamdsl.errors import QueryError, UserCodeError
from streamdsl.udm import UDSO
from streamdsl.udm.repository import Repository
from tests.laws.harness import EMITS, check_law
from tests.laws.modules import Since
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


class Total(UDSO[int, int, int]):
    """The running sum; a state of 0 is a new one."""

    def create_state(self) -> int:
        return 0

    def process(self, state: int, payload: int, le: int) -> tuple[int, list[int]]:
        return state + payload, [state + payload]

    def is_empty(self, state: int) -> bool:
        return state == 0


@pytest.mark.parametrize("every", [1, 2, 3])
def test_it_does_not_show_how_often_a_state_is_kept(every: int) -> None:
    @examples(60)
    @given(SEEDS)
    def law(seed: int) -> None:
        rng = Random(seed)
        variant = rng.choice(operators()["scan"])
        with patch.object(scan, "MARK_EVERY", every):
            check_law(variant.query(), scenario(rng, 1, max_size=16), rng.choice(EMITS))

    law()


def calls(session: Session[Any]) -> int:
    return session.stats()["scan_1"]["udm_calls"]


def test_a_late_row_computes_what_comes_after_it_and_little_before() -> None:
    session = sd.source("s").scan(Total()).open()
    session.push([sd.point(n, n, 1) for n in range(1000)])
    before = calls(session)
    out = session.push([sd.point("late", 900, 5)])
    assert len(out) == 1 + 2 * 99, "all rows after it change, and one of its own instant"
    assert calls(session) - before < 101 + 2 * scan.MARK_EVERY
    before = calls(session)
    session.push([sd.point("next", 1000, 1)])
    assert calls(session) - before <= 2


def test_settled_rows_leave_and_empty_groups_with_them() -> None:
    query = sd.source("s").group_by(lambda e: e % 3).apply(lambda g: g.select(lambda e: e - e % 3).scan(Total))
    session = query.open()
    session.push([sd.Insert(n, n, n + 2, n % 3 + 3 * (n % 3 == 1) * (-1) ** n) for n in range(120)])
    full = session.stats()["scan_1"]["state_bytes"]
    session.push([sd.Cti(90)])
    assert session.stats()["scan_1"]["events"] < 30 + 3 * scan.MARK_EVERY + 6
    session.push([sd.Cti(130)])
    figures = session.stats()["scan_1"]
    assert figures["events"] == 0
    assert figures["state_bytes"] < full / 10, "the sums are 0, as they are at first"


def test_a_stream_operator_has_a_name_in_the_repository() -> None:
    repository = Repository()
    repository.register("total", Total)
    assert "total udso int -> int" in " ".join(str(repository.catalog()).split())
    assert isinstance(repository.get("total"), Total)
    with pytest.raises(QueryError, match=r"total.*UDSO(?s:.*)scan\(sd\.udm\.get\('total'\)\)"):
        repository("total")


def test_what_is_no_stream_operator_and_what_fails_is_named() -> None:
    with pytest.raises(QueryError, match=r"scan takes a stream operator.*\n.*streamdsl\.udm\.UDSO"):
        sd.source("s").scan(max)  # type: ignore[arg-type]
    engines: tuple[Literal["local", "reference"], ...] = ("local", "reference")
    for engine in engines:
        with pytest.raises(UserCodeError, match=r"(?s)AttributeError.*scan_1.*7.*None"):
            sd.from_rows([(7, 8, None)]).scan(Since()).run(engine=engine)
