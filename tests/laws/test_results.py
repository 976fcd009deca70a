"""What a run leaves in columns is what its events mean: the same rows in the same order, and the same frames."""

from __future__ import annotations

from typing import Any

from hypothesis import note
from pandas.testing import assert_frame_equal

import streamdsl as sd
from streamdsl.io.data_frames import history_to_arrow
from streamdsl.plan.types import output_types
from streamdsl.temporal import CHT, Event
from streamdsl.temporal.pandas_frames import HistoryColumns, history_to_pandas
from tests.laws.choices import Random, given
from tests.laws.harness import pushes_for
from tests.laws.operators import operators
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, scenario

VARIANTS = [variant for variants in operators().values() for variant in variants]


@examples(90)
@given(SEEDS)
def test_rows_and_frames_of_a_run_are_those_of_its_events(seed: int) -> None:
    rng = Random(seed)
    variant = rng.choice(VARIANTS)
    note(variant.name)
    query = variant.query()
    inputs: dict[str, list[Event[Any]]] = {f"s{number}": [] for number in range(variant.inputs)}
    for source, events in pushes_for(query, scenario(rng, variant.inputs, variant.unending)):
        inputs[source] += events
    named = {node.source for node in query.plan().walk() if hasattr(node, "source")}
    unit = query.plan().unit
    result = query.run({name: sd.from_events(events, unit=unit) for name, events in inputs.items() if name in named})
    folded: CHT[Any] = CHT.from_events(result.events(), result.unit)
    assert repr(result.cht().rows) == repr(folded.rows)
    fields = query.plan().schema
    history = HistoryColumns.of(folded, fields.names if fields else ())
    assert_frame_equal(result.to_pandas(), history_to_pandas(history))
    assert result.to_pandas().attrs == history_to_pandas(history).attrs
    try:
        expected = history_to_arrow(history, output_types(query.plan()))
    except sd.errors.SchemaError:
        return
    assert result.to_arrow().equals(expected, check_metadata=True)
