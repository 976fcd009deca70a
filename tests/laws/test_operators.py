"""The law for every operator by itself: random physical streams, all batch sizes, all ways to emit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl.errors import UnboundedOutputError
from streamdsl.temporal import Cti, Insert
from tests.laws.expected import sources_of
from tests.laws.harness import EMITS, Run, check_law, check_same, check_until, pushes_for
from tests.laws.operators import KINDS, UNENDING, Variant, operators
from tests.laws.profiles import examples
from tests.laws.scenarios import scenarios

OPERATORS = operators()
WINDOWED = [name for name in OPERATORS if name in KINDS or name.endswith("time-sensitive")]
GRIDS = [name for name in WINDOWED if name.split(",")[0] not in UNENDING]


def variants(name: str) -> st.SearchStrategy[Variant]:
    return st.sampled_from(OPERATORS[name])


@pytest.mark.parametrize("name", OPERATORS)
@examples(200)
@given(st.data())
def test_output_means_what_the_reference_says_after_every_push(name: str, data: st.DataObject) -> None:
    variant, emit = data.draw(variants(name)), data.draw(st.sampled_from(EMITS))
    check_law(variant.query(), data.draw(scenarios(variant.inputs, variant.unending)), emit)


@pytest.mark.parametrize("name", ["tumbling", "hopping"])
@examples(200)
@given(st.data())
def test_both_window_operators_show_the_same_after_every_push(name: str, data: st.DataObject) -> None:
    variant, emit = data.draw(variants(name)), data.draw(st.sampled_from(EMITS))
    scenario = data.draw(scenarios(variant.inputs, variant.unending))
    check_same(variant.query(), scenario, emit, None, {"window": "general"})


@pytest.mark.parametrize("name", GRIDS)
@examples(100)
@given(st.data())
def test_a_bounded_run_makes_the_windows_that_end_by_then(name: str, data: st.DataObject) -> None:
    variant, until = data.draw(variants(name)), data.draw(st.integers(-5, 40))
    check_until(variant.query(), data.draw(scenarios(variant.inputs, unending=True)), until)


@pytest.mark.parametrize("name", OPERATORS)
@examples(50)
@given(st.data())
def test_a_cti_beyond_everything_leaves_no_state(name: str, data: st.DataObject) -> None:
    variant = data.draw(variants(name))
    run = Run(variant.query(), "speculative")
    scenario = data.draw(scenarios(variant.inputs, unending=False))
    for source, events in pushes_for(variant.query(), scenario):
        run.push(source, events)
    for source in sources_of(variant.query().plan()):
        run.push(source, [Cti(1000)])
    kept = {label: figures["events"] for label, figures in run.session.stats().items()}
    waiting = 2 if "count" in name else 0
    assert "to_edges" in name or "to_edges" in variant.query().explain() or sum(kept.values()) <= waiting * 8, kept


def test_an_unending_run_of_hopping_windows_is_refused_with_the_event_and_a_hint() -> None:
    query = sd.from_events([Insert("forever", 3, sd.INFINITY, {"v": 1})]).tumbling_window(5).aggregate(n=sd.count())
    with pytest.raises(UnboundedOutputError, match=r"(?s)forever.*Hint: .*until"):
        query.run()
