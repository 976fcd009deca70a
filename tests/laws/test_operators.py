"""The law for every operator by itself: random physical streams, all batch sizes, all ways to emit."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.engine.keys import KeyTable
from streamdsl.errors import UnboundedOutputError
from streamdsl.plan.node import AsofJoin
from streamdsl.temporal import INFINITY, Cti, Insert
from tests.laws.choices import Random, given
from tests.laws.expected import sources_of
from tests.laws.harness import EMITS, Run, check_law, check_until, pushes_for
from tests.laws.operators import KINDS, Stream, Variant, operators, with_units
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

OPERATORS = operators()
ALL = OPERATORS | with_units()
WINDOWED = [name for name in OPERATORS if name in KINDS or name == "windows" or name.endswith("time-sensitive")]
SLICE = "streamdsl.engine.batch.SLICE"


@pytest.mark.parametrize("name", ALL)
def test_output_means_what_the_reference_says_after_every_push(name: str) -> None:
    variants = ALL[name]

    @examples(max(4, 24 // len(variants)), parts=len(variants))
    @given(seed=SEEDS)
    def law(variant: Variant, seed: int) -> None:
        rng = Random(f"{variant.name} {seed}")
        emit = rng.choice(EMITS)
        note(variant.name)
        in_bulk = patch("streamdsl.engine.egress.FEW", 1 if seed % 2 else 32)
        with patch.object(KeyTable, "is_due", rng.choice([True, KeyTable.is_due])), patch(SLICE, rng.choice([2, 2**15])), in_bulk:
            check_law(variant.query(), scenario(rng, variant.inputs, variant.unending), emit)

    for variant in variants:
        law(variant)


@pytest.mark.parametrize("name", WINDOWED)
@examples(30)
@given(SEEDS)
def test_a_bounded_run_makes_the_windows_that_end_by_then(name: str, seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(OPERATORS[name])
    check_until(variant.query(), scenario(rng, variant.inputs, unending=True), rng.randint(-5, 40))


@pytest.mark.parametrize("name", OPERATORS)
@examples(16)
@given(SEEDS)
def test_a_cti_beyond_everything_leaves_no_state(name: str, seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(OPERATORS[name])
    run = Run(variant.query(), "speculative")
    for source, events in pushes_for(variant.query(), scenario(rng, variant.inputs, unending=False)):
        run.push(source, events)
    for source in sources_of(variant.query().plan()):
        run.push(source, [Cti(1000)])
    kept = {label: (figures["windows"], figures["events"]) for label, figures in run.session.stats().items()}
    needed = remembered(variant.query())
    assert all(windows + events <= needed for windows, events in kept.values()), kept


def remembered(query: Stream) -> int:
    """Return how many rows may be needed for ever: each key's last, those before a count, those that may still match.

    Of window sequences those of the last window, which may reach back to the first row.
    """
    if "sequence(" in query.explain():
        return 100
    asof = [node for node in query.plan().walk() if isinstance(node, AsofJoin)]
    for node in asof:
        if node.near.tolerance == INFINITY and (node.matching.where is not None or node.near.direction != "back"):
            return 100
    return 8 if asof or "to_edges" in query.explain() or "count" in query.explain() else 0


def test_an_unending_run_of_hopping_windows_is_refused_with_the_event_and_a_hint() -> None:
    query = sd.from_events([Insert("forever", 3, sd.INFINITY, {"v": 1})]).tumbling_window(5).aggregate(n=sd.count())
    with pytest.raises(UnboundedOutputError, match=r"(?s)forever.*Hint: .*until"):
        query.run()
