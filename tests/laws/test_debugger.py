"""Debugger laws, for random queries and input: what is said of causes is so, as runs without the debugger show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, pairwise
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import note

import streamdsl as sd
from streamdsl.debugger import Cause, EventTrace, Remedy, Why, load
from streamdsl.debugger.lineage import copies
from streamdsl.denote import DENOTATIONS, evaluate
from streamdsl.denote.environment import Environment, project
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.engine.starting import open_session
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.plan.labels import labels
from streamdsl.plan.node import GroupApply, Node, WindowAggregate, WindowApply
from streamdsl.temporal import CHT, CHTRow, Cti, Event
from tests.laws.choices import Random, given
from tests.laws.compositions import composition
from tests.laws.fold import Fold
from tests.laws.harness import pushes_for
from tests.laws.operators import Variant, operators
from tests.laws.profiles import examples, some
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


@examples(120)
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


@examples(150)
@given(SEEDS)
def test_each_row_of_a_lineage_follows_from_those_below_it(seed: int) -> None:
    """By the definition of its operator, of these rows alone; a window has its members, and each leaf is a row that came."""
    rng = Random(seed)
    made, query = composition(rng)
    trace = traced(query, scenario(rng, 2, unending=False, max_size=5).pushes, "speculative", closes=True)
    note(made)
    rows = trace.cht().rows
    for row in rng.sample(rows, min(3, len(rows))):
        tree = trace.why(row).tree
        assert tree is not None
        assert copies([tree.row], row)
        for cause in tree.walk():
            check_step(cause)


def check_step(cause: Cause) -> None:
    node = cause.node
    if cause.input is not None:
        assert cause.row == cause.input.row
    elif isinstance(node, GroupApply):
        (inner,) = cause.causes
        scope = Environment(evaluate, {}, key=cause.key)
        assert copies([inner.row._replace(payload=project(node, scope, node.projection, inner.row))], cause.row)
    elif node.level < 0:
        below: list[CHT[Any]] = [CHT([]) for _ in node.inputs]
        for place, input in enumerate(node.inputs):
            below[place] = CHT(each.row for each in cause.causes if each.node is input)
        assert copies(DENOTATIONS[type(node)](node, Environment(evaluate, {}), *below), cause.row), f"{cause} of {below}"
    if cause.window is not None and isinstance(node, (WindowAggregate, WindowApply)):
        assert len(cause.causes) >= int(cause.did.split()[0])


VARIANTS = [variant for variants in operators().values() for variant in variants]


@pytest.mark.parametrize("variant", some(VARIANTS, 60), ids=lambda variant: variant.name)
def test_each_operator_has_a_lineage(variant: Variant) -> None:
    for seed in range(3):
        rng, query = Random(seed), variant.query()
        trace = traced(query, pushes_for(query, scenario(rng, 2, unending=False, max_size=6)), "speculative", closes=True)
        rows = trace.cht().rows
        for row in rng.sample(rows, min(2, len(rows))):
            why = trace.why(row)
            assert why.is_complete
            assert why.tree is not None
            assert "as far as is known" not in str(why)
            for cause in why.tree.walk():
                check_step(cause)


def test_lineage_rarely_needs_rows_that_it_does_not_see() -> None:
    """What is completed by search alone would be sufficient too; it would say nothing of the operators."""
    causes = context = 0
    for seed in range(40):
        rng = Random(seed)
        trace = traced(composition(rng)[1], scenario(rng, 2, unending=False, max_size=5).pushes, "speculative", closes=True)
        for row in trace.cht().rows[:2]:
            inputs = trace.why(row).inputs
            causes += len(inputs)
            context += sum(cause.is_context for cause in inputs)
    assert causes > 50
    assert context <= causes / 20


@examples(120)
@given(SEEDS)
def test_an_event_of_the_output_is_explained_as_of_the_step_that_gave_it(seed: int) -> None:
    """Of a retraction: with the input that is named, and what came before, the old row is gone, or an equal one has come."""
    rng = Random(seed)
    made, query = composition(rng)
    pushes, emit = scenario(rng, 2, unending=False, max_size=5).pushes, rng.choice(EMITS)
    note(f"{made}; {emit}")
    trace = traced(query, pushes, emit, closes=False)
    reads = set(query.open().sources)
    came = [(source, part) for source, events in pushes if source in reads for part in cut(events)]
    after = list(accumulate(step for push in trace.recording.pushes for step in push.steps))
    assert len(after) == len(came)
    places = [n for n, event in enumerate(trace.output) if not isinstance(event, Cti)]
    for place in rng.sample(places, min(3, len(places))):
        event, why = trace.output[place], trace.why(trace.output[place])
        assert str(why)
        n = next(n for n, last in enumerate(after) if place < last)
        if isinstance(event, sd.Insert):
            check_why(query, came[: n + 1], emit, False, why, CHTRow(event.le, event.re, event.payload))
            continue
        assert isinstance(event, sd.Retract)
        old, before = CHTRow(event.le, event.re, event.payload), [(source, e) for source, part in came[:n] for e in part]
        by = [(cause.source, each) for cause in why.changed_by for each in cause.events]
        n_old = copies(output_of(query, came[:n], emit, False), old)
        left = output_of(query, came[: n + 1], emit, False, lambda s, e, kept=(*by, *before): (s, e) in kept)  # type: ignore[misc]
        if not by and copies(output_of(query, came[: n + 1], emit, False), old) >= n_old:
            assert why.row == old, "an equal row is in its place"
            continue
        assert copies(left, old) < n_old, f"{event} is not explained by {by}:\n{why}"


def cut(events: Sequence[Event[Any]]) -> list[tuple[Event[Any], ...]]:
    """Return the pieces of a push, each with the CTI that ends it."""
    ends = [n for n, event in enumerate(events, 1) if isinstance(event, Cti)]
    edges = [0, *ends, *([len(events)] if ends[-1:] != [len(events)] else [])]
    return [tuple(events[a:b]) for a, b in pairwise(edges)]


@examples(100)
@given(SEEDS)
def test_the_effects_of_an_event_are_what_a_run_without_it_lacks_and_has(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    pushes, emit, closes = scenario(rng, 2, unending=False, max_size=5).pushes, rng.choice(EMITS), rng.random() < 0.5
    note(f"{made}; {emit}, closes={closes}")
    trace = traced(query, pushes, emit, closes)
    events = [(source, event) for source, event in trace.input if isinstance(event, sd.Insert)]
    for source, event in rng.sample(events, min(3, len(events))):
        effects = trace.effects(event)
        story = next(events for events in stories(pushes, source) if event in events)
        without = output_of(query, pushes, emit, closes, lambda s, e, of=source, gone=story: s != of or e not in gone)  # type: ignore[misc]
        there = trace.cht()
        assert CHT([*without, *effects.output.made]) == CHT([*there, *effects.output.prevented]), f"{event}:\n{effects}"
        assert all(copies(there, row) for row in effects.output.made)
        assert not set(map(repr, effects.output.made)) & set(map(repr, effects.output.prevented))


def stories(pushes: Iterable[Push], source: str) -> list[list[Event[Any]]]:
    """Return the events of each row of a source."""
    found: dict[Any, list[list[Event[Any]]]] = {}
    for name, events in pushes:
        for event in events:
            if name == source and isinstance(event, sd.Insert):
                found.setdefault(event.id, []).append([event])
            elif name == source and isinstance(event, sd.Retract):
                found[event.id][-1].append(event)
    return [story for stories in found.values() for story in stories]


def late_sources(rng: Random, query: Query) -> Query:
    """Return a query whose sources drop or adjust what is late, by the CTIs of a policy."""
    policy, slack = rng.choice(["drop", "adjust"]), rng.randint(0, 4)
    progress = rng.choice([None, sd.Progress.slack(slack), sd.Progress.every(2, slack), sd.Progress.every("3", slack)][:3])
    given = {name: sd.source(name, progress=progress, on_violation=policy) for name in query.open().sources}  # type: ignore[arg-type]
    return query.bind(**given)


def out_of_order(rng: Random, pushes: Sequence[Push]) -> list[Push]:
    """Return insertions in any order, with CTIs that they break."""
    found: list[Push] = []
    for source, events in pushes:
        rows = [
            sd.Insert((len(found), n), e.le, min(e.re, e.le + 9), e.payload)
            for n, e in enumerate(events)
            if isinstance(e, sd.Insert)
        ]
        rng.shuffle(rows)
        found.append((source, (*rows, *([Cti(rng.randint(-5, 9))] if rng.random() < 0.3 else []))))
    return [(source, tuple(e for e in events)) for source, events in found if events]


@examples(150)
@given(SEEDS)
def test_late_input_is_as_it_was_in_the_run(seed: int) -> None:
    """The causes are sufficient where sources drop and adjust rows: on the rows as they counted, and the CTIs that there were."""
    rng = Random(seed)
    made, query = composition(rng)
    plain, query = query, late_sources(rng, query)
    pushes = out_of_order(rng, scenario(rng, 2, unending=False, max_size=8).pushes)
    emit, closes = rng.choice(EMITS), rng.random() < 0.5
    note(f"{made}; {emit}, closes={closes}")
    trace = traced(query, pushes, emit, closes)
    rows = trace.cht().rows
    for row in rng.sample(rows, min(2, len(rows))):
        why = trace.why(row)
        assert why.is_complete
        if closes:
            counted = {
                name: [sd.Insert(n, *c.row) for n, c in enumerate(why.inputs) if c.source == name]
                for name in query.open().sources
            }
            assert copies(plain.run(counted).cht(), row), f"not sufficient:\n{why}"


@examples(60)
@given(SEEDS)
def test_a_trace_is_replayed_to_the_same_output_and_so_is_its_file(seed: int) -> None:
    rng = Random(seed)
    query = composition(rng)[1]
    if seed % 2:
        query = late_sources(rng, query)
    pushes, emit = scenario(rng, 2, unending=False, max_size=6).pushes, rng.choice(EMIT_MODES)
    trace = traced(query, out_of_order(rng, pushes) if seed % 2 else pushes, emit, closes=seed % 3 == 0)
    assert trace.replay() == trace.output
    with TemporaryDirectory() as folder:
        trace.save(f"{folder}/trace.json")
        again = load(f"{folder}/trace.json", query)
    assert (again.input, again.output) == (trace.input, trace.output)
    assert again.replay() == trace.output


@examples(150)
@given(SEEDS)
def test_what_a_missing_answer_lacks_gives_it_and_less_does_not(seed: int) -> None:
    """All remedies together give the answer, in a session without the debugger; with any one of them left out it is not there."""
    rng = Random(seed)
    made, plain = composition(rng)
    query = late_sources(rng, plain)
    pushes = out_of_order(rng, scenario(rng, 2, unending=False, max_size=6).pushes)
    emit, closes = rng.choice(EMITS), rng.random() < 0.5
    trace = traced(query, pushes, emit, closes)
    wanted: Any = rng.choice([lambda e: e.v == 2, lambda e: e.k == "b" and e.v > 0, lambda e, life: life.le > 8, lambda e: True])
    there = [row for row in trace.cht() if wants(wanted, row)]
    note(f"{made}; {emit}, closes={closes}")
    if there:
        with pytest.raises(QueryError, match="not missing"):
            trace.why_not(wanted)
        return
    answer = trace.why_not(wanted)
    note(str(answer))
    assert answer.remedies or answer.says
    if not answer.remedies:
        return
    assert answer.rows
    assert all(wants(wanted, row) for row in answer.rows)
    for n in range(len(answer.remedies) + 1):
        chosen = [remedy for place, remedy in enumerate(answer.remedies) if place != n]
        found = remedied(trace, plain, pushes, emit, closes, chosen)
        is_there = found is not None and any(wants(wanted, row) for row in found)
        assert is_there == (n == len(answer.remedies)), f"with {chosen}: {found}"


def wants(wanted: Callable[..., Any], row: CHTRow[Any]) -> bool:
    return bool(wanted(row.payload, row) if wanted.__code__.co_argcount > 1 else wanted(row.payload))


def remedied(
    trace: EventTrace, plain: Query, pushes: Sequence[Push], emit: EmitMode, closes: bool, remedies: Sequence[Remedy]
) -> CHT[Any] | None:
    """Return the output with some remedies: of a session in which late events come first, None if the query's code fails."""
    written = plain.plan()
    nodes, names = {id(node): node for node in written.walk_all()}, labels(written)
    opened = {each.name for each in remedies if each.kind == "operator"}

    @cache
    def open_all(node: int) -> Node:
        made = nodes[node].map_below(lambda below: open_all(id(below)))
        return made.inputs[0] if names[node] in opened else made

    plan = open_all(id(written))
    session, out = open_session(plan, emit=emit), Fold()
    in_time = [(r.name, e) for r in remedies if r.kind == "late" for e in r.events]
    gone = [(r.name, e) for r in remedies if r.kind == "input" for e in r.events]
    rejected: dict[Any, sd.Rejected] = {
        (source, each.event): each for push in trace.recording.pushes for source, each in push.rejected
    }
    try:
        for source, event in in_time:
            if source in session.sources:
                out.take(session.push([event], source))
        for push in trace.recording.pushes:
            if push.end is not None:
                continue
            for source, events in push.batches:
                if source in session.sources:
                    counted = [as_counted(e, rejected.get((source, e))) for e in events if (source, e) not in in_time + gone]
                    out.take(session.push([e for e in counted if e is not None], source))
            for source, cti in push.ctis.items():
                if source in session.sources and cti > session.ctis[source]:
                    out.take(session.push([Cti(cti)], source))
        for remedy in remedies:
            if remedy.kind == "cti":
                out.take(session.push([Cti(sd.INFINITY)], remedy.name))
        if closes:
            out.take(session.close())
    except StreamDslError:
        return None
    return out.cht()


def as_counted(event: Event[Any], rejected: sd.Rejected | None) -> Event[Any] | None:
    if rejected is None or not isinstance(event, sd.Insert):
        return event
    return sd.Insert(event.id, rejected.cti, event.re, event.payload) if rejected.reason.startswith("adjusted") else None


@examples(60)
@given(SEEDS)
def test_a_traced_run_gives_what_a_run_gives(seed: int) -> None:
    rng = Random(seed)
    made, query = composition(rng)
    if seed % 2:
        query = late_sources(rng, query)
    given: dict[str, list[Event[Any]]] = {name: [] for name in query.open().sources}
    pushes = scenario(rng, 2, unending=False, max_size=6).pushes
    for source, events in out_of_order(rng, pushes) if seed % 2 else pushes:
        if source in given:
            given[source] += events
    until = rng.choice([None, 12])
    note(f"{made}; until={until}")
    trace = query.trace(given, until=until)
    assert trace.cht() == query.run(given, engine="reference", until=until).cht()
    for row in trace.cht().rows[:2]:
        assert trace.why(row).is_complete
