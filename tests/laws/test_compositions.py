"""The law for random queries of two to six operators over two sources, and that they try what they should."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

from hypothesis import note

from streamdsl.denote import denote
from streamdsl.engine.keys import KeyTable
from streamdsl.plan.node import Node
from streamdsl.plan.units import in_unit
from streamdsl.rewrite import optimize
from streamdsl.temporal import CHT
from tests.laws.choices import Random, given
from tests.laws.compositions import STEPS, composition
from tests.laws.expected import is_row_wise, sources_of, windows_of
from tests.laws.harness import EMITS, check_law, pushes_for
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario


@examples(90)
@given(SEEDS)
def test_a_composition_means_what_the_reference_says(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    note(made)
    with patch("streamdsl.engine.batch.SLICE", 1 if seed % 3 == 0 else 2**15), patch.object(KeyTable, "least", seed % 2 * 1_000):
        check_law(query, scenario(rng, 2, unending=False, max_size=5), rng.choice(EMITS))


@examples(200)
@given(SEEDS)
def test_a_node_knows_its_leaves_its_depth_and_its_unit_as_a_walk_finds_them(seed: int) -> None:
    """Before and after it is rewritten, in whatever order nodes are asked."""
    rng = Random(seed)
    plan = composition(rng)[1].plan()
    for each in (plan, optimize(plan), in_unit(plan, "s")):
        nodes = list(each.walk_all())
        for node in rng.sample(nodes, len(nodes)):
            leaves = [below for below in node.walk() if not below.inputs]
            assert {id(leaf) for leaf in node.leaves} == {id(leaf) for leaf in leaves}
            assert len(node.leaves) == len(leaves)
            assert node.depth == longest(node)
            assert node.unit == next((leaf.unit for leaf in leaves if leaf.unit), None)


def longest(node: Node) -> int:
    return 1 + max(map(longest, node.inputs), default=0)


def test_compositions_use_every_step_and_often_give_rows() -> None:
    used: Counter[str] = Counter()
    rows = checked_after_every_push = 0
    for seed in range(600):
        rng = Random(seed)
        made, query = composition(rng)
        used.update({step.name for step in STEPS if f"= {step.name} of" in made})
        pushes = pushes_for(query, scenario(rng, 2, unending=False, max_size=5))
        inputs = {name: [e for source, part in pushes if source == name for e in part] for name in sources_of(query.plan())}
        rows += bool(denote(query.plan(), {name: CHT.from_events(events) for name, events in inputs.items()}).rows)
        checked_after_every_push += all(is_row_wise(below) for _, below in windows_of(query.plan()))
    assert min(used[step.name] for step in STEPS) >= 20, used
    assert rows >= 300
    assert checked_after_every_push >= 180
