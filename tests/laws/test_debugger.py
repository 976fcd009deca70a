"""Debugger laws, for random queries and input: what is said of causes is so, as runs without the debugger show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from hypothesis import note

import streamdsl as sd
from streamdsl.debugger import EventTrace, Why
from streamdsl.debugger.lineage import copies
from streamdsl.emit import EmitMode
from streamdsl.temporal import CHT, CHTRow, Cti, Event
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.fold import Fold
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS, Push, scenario

Keep: TypeAlias = Callable[[str, Event[Any]], bool]
Query: TypeAlias = "sd.Stream[Any]"
EMITS: tuple[EmitMode, ...] = ("speculative", "final")


def output_of(query: Query, pushes: Iterable[Push], emit: EmitMode, closes: bool, keep: Keep = lambda *_: True) -> CHT[Any]:
    """Return what is out of a session after some pushes, of which only some events come, and all CTIs."""
    session, out = query.open(emit), Fold()
    for source, events in pushes:
        if source in session.sources:
            out.take(session.push([e for e in events if isinstance(e, Cti) or keep(source, e)], source=source))
    if closes:
        out.take(session.close())
    return out.cht()


def traced(query: Query, pushes: Sequence[Push], emit: EmitMode, closes: bool) -> EventTrace:
    session = query.open(emit)
    trace = session.trace(last=None)
    for source, events in pushes:
        if source in session.sources:
            session.push(list(events), source=source)
    if closes:
        session.close()
    return trace


def only(why: Why) -> Keep:
    return lambda source, event: (source, event) in why.events


def check_why(query: Query, pushes: Sequence[Push], emit: EmitMode, closes: bool, why: Why, row: CHTRow[Any]) -> None:
    """Check that the causes of a row are sufficient, and that each is necessary where that is said, and not where it is not."""
    assert why.is_complete
    assert copies(output_of(query, pushes, emit, closes, only(why)), row), f"not sufficient:\n{why}"
    for cause in why.inputs[:4]:
        left = output_of(query, pushes, emit, closes, lambda source, e, c=cause: source != c.source or e not in c.events)  # type: ignore[misc]
        assert bool(copies(left, row)) != cause.necessary, f"necessary={cause.necessary} of {cause}:\n{why}"


@examples(200)
@given(SEEDS)
def test_the_causes_of_a_row_are_sufficient_and_those_called_necessary_are(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    pushes, emit, closes = scenario(rng, 2, unending=False, max_size=5).pushes, rng.choice(EMITS), rng.random() < 0.5
    note(f"{made}; {emit}, closes={closes}")
    trace = traced(query, pushes, emit, closes)
    rows = trace.cht().rows
    for row in rng.sample(rows, min(3, len(rows))):
        why = trace.why(row)
        assert str(why)
        check_why(query, pushes, emit, closes, why, row)
