"""`check_udm` and `run_udm` for stream operators: good ones pass, and every law finds its sabotaged ones, by its own name."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError, UdmLawViolation
from streamdsl.temporal import CHTRow
from streamdsl.testing import arrival_orders, check_udm, run_udm
from streamdsl.testing.laws import LAWS_IN_ORDER
from tests.unit.testing.broken import broken_law
from tests.unit.testing.modules import Spread
from tests.unit.testing.stream_operators import GOOD, SABOTAGED, KeepsTheSum, Recent, Total, Visits

OF_RESULTS = {"deterministic", "resumes", "cti_progress", "arrival_order"}


@pytest.mark.parametrize("module", GOOD, ids=lambda module: module.__name__)
def test_good_stream_operators_pass(module: Any) -> None:
    report = check_udm(module)
    skipped = {"same_on_spark"}
    skipped |= set() if module is Recent else {"empty_states_are_as_new"}
    skipped |= set() if module.deterministic else OF_RESULTS
    assert set(report.skipped) == skipped
    assert set(report.held) == {law.name for law in LAWS_IN_ORDER} - skipped
    assert min(report.held.values()) > 10


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("law", "module"),
    [(law, module) for law, found in SABOTAGED.items() for module in found],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_a_sabotaged_stream_operator_is_found_by_its_law(law: str, module: Any, seed: int) -> None:
    assert broken_law(module, seed=seed) == law


def test_every_law_has_a_sabotaged_stream_operator_and_a_hint() -> None:
    assert {*SABOTAGED, "cti_progress", "same_on_spark"} == {law.name for law in LAWS_IN_ORDER}
    assert len({law.name for law in LAWS_IN_ORDER}) == len(LAWS_IN_ORDER)
    assert all(law.statement.endswith(".") and len(law.hint) > 40 for law in LAWS_IN_ORDER)


def test_a_violation_shows_the_rows_in_order_and_what_was_done_with_them() -> None:
    with pytest.raises(UdmLawViolation) as raised:
        check_udm(KeepsTheSum)
    assert raised.value.example.splitlines() == [
        "  processed again, the rows give other results",
        "  time: 0",
        "  1.0 : *",
        "  expected: [0, 1) 1.0",
        "  found   : [0, 1) 2.0",
    ]
    with pytest.raises(UdmLawViolation, match=r"(?m)^  again -?\d+ *: "):
        check_udm(SABOTAGED["resumes"][1])
    with pytest.raises(UdmLawViolation, match=r"(?s)events\.scan\(TellsEqualsApart\).*expected.*found"):
        check_udm(SABOTAGED["arrival_order"][0])


def test_events_that_are_given_are_all_that_a_stream_operator_sees() -> None:
    rows = [(t, t + 5, value) for t, value in enumerate([3, 0, 7, 3])]
    seen: set[int] = set()

    class Spy(Recent):
        def process(self, state: Any, payload: int, le: int) -> Any:
            seen.add(payload)
            return super().process(state, payload, le)

    assert "arrival_order" in check_udm(Spy(), rows).held
    assert seen == {0, 3, 7}
    assert check_udm(Recent, rows[:1]).skipped["resumes"] == "it needs 2 events"


def test_rows_come_in_order_however_they_arrive() -> None:
    rows = [(8, 9, 4.0), (1, 5, 2.0), (6, 6, 99.0), (8, 12, 1.0), (3, 4, -1.0)]
    expected = [CHTRow(1, 5, 2.0), CHTRow(3, 4, 1.0), CHTRow(8, 12, 2.0), CHTRow(8, 9, 6.0)]
    arrivals: list[Any] = [rows, sd.CHT.from_rows(rows), *arrival_orders(rows, 5)]
    for arrival in arrivals:
        assert run_udm(Total(), arrival) == expected
    assert run_udm(Total(), []) == []


def test_windows_are_for_modules_over_windows() -> None:
    with pytest.raises(QueryError, match=r"(?s)Total is a stream operator, and has no windows.*run_udm\(Total"):
        run_udm(Total(), [], (0, 10))  # type: ignore[call-overload]
    with pytest.raises(QueryError, match=r"(?s)Spread computes windows.*window=\(le, re\)"):
        run_udm(Spread(), [])  # type: ignore[call-overload]
    refused: list[dict[str, Any]] = [{"window": (0, 10)}, {"clips": [sd.Clip.FULL]}, {"output": sd.Output.ALIGN}]
    for options in refused:
        with pytest.raises(QueryError, match=r"Visits is a stream operator(?s:.*)leave window, clips and output out"):
            check_udm(Visits, **options)
