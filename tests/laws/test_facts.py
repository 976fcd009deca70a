"""What operators and kinds of windows say of themselves, held to what they do: the facts that optimizer, checks and shards use.

Rows are drawn by hypothesis itself, so that a wrong fact is shown with the smallest input that contradicts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import streamdsl as sd
from streamdsl import windows as kinds
from streamdsl.checks.holding import Situation, busy, idle, unending
from streamdsl.denote import denote
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.engine.query_session import Session
from streamdsl.expr.nodes import Field, Opaque, Whole
from streamdsl.plan.facts import Keeps, Open
from streamdsl.plan.json import named_types
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Group, GroupApply, Node, Select, Source, Where, WindowApply
from streamdsl.plan.outputs import Outputs
from streamdsl.rewrite.demand import demands
from streamdsl.stream import Stream
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime
from streamdsl.windows import Ends, Windows
from streamdsl.windows.liveliness import output_cti
from tests.laws.choices import SHRINKING
from tests.laws.compositions import STEPS
from tests.laws.profiles import examples
from tests.operators import entries
from tests.operators import kinds as kinds_of_windows

LIGHT = settings(examples(20), phases=SHRINKING)
"""Few examples of each of many operators, the smallest that fails is looked for."""
UNTIL = 60
FAR = 1_000
SELECTS = 6
MORE: dict[str, Any] = {
    "alter_duration (endless)": lambda s: s.alter_duration(INFINITY),
    "alter_duration (none)": lambda s: s.alter_duration(0),
    "extend (endless)": lambda s: s.extend(INFINITY),
    "clip_interval (open)": lambda s: s.clip_interval(3, INFINITY),
    "stitch": lambda s: s.stitch(),
    "quantize": lambda s: s.quantize(4, 4),
    "select (life)": lambda s: s.select(lambda e, life: {"k": e.k, "v": life.le}),
    "select (key)": lambda s: s.select(k=lambda e: e.k),
    "match": lambda s: s.match(lambda p: p.a.then(p.b).within(4), by="k"),
    "match (all)": lambda s: s.match(lambda p: p.a.then(p.b).within(4)),
    "avg": lambda s: s.tumbling_window(5).aggregate(m=sd.avg(lambda e: e.v)),
    "top_k (all)": lambda s: s.tumbling_window(5).top_k(2, by="v"),
    "first": lambda s: s.session_window(3).aggregate(f=sd.first(lambda e: e.v)),
    "count of some": lambda s: s.session_window(3).aggregate(n=sd.count(where=lambda e: e.k == "a")),
}


def cases() -> dict[str, tuple[Node, Node]]:
    """Return each operator of the queries once, by query and label, as it stands in its plan.

    The queries are the steps and, of operators that have none, the first variants.
    """
    s, t = sd.source("s"), sd.source("t")
    queries = {step.name: step.apply(*(s, t)[: step.inputs]) for step in STEPS} | {name: made(s) for name, made in MORE.items()}
    stepless = [entry for name, entry in entries().items() if name not in {step.name.split()[0] for step in STEPS}]
    for entry in stepless:
        queries |= {f"{entry.name} {i}": entry.over(i, s, t) for i in range(len(entry.variants[:3]))}
    found: dict[str, tuple[Node, Node]] = {}
    known: list[Node] = []

    def n_of(cls: type[Node]) -> int:
        return sum(type(node) is cls for node in known)

    for name, query in queries.items():
        plan = query.plan()
        named = labels(plan)
        for node in plan.walk():
            bare = node.map_inputs(lambda _: Source("in"))
            if (
                (node.inputs or type(node) is Source)
                and bare not in known
                and (type(node) is not Select or n_of(Select) < SELECTS)
            ):
                known.append(bare)
                found[f"{name}: {named[id(node)]}"] = node, plan
    return found


CASES = cases()
ROWS = st.lists(
    st.builds(
        lambda le, length, k, v: CHTRow(le, INFINITY if length is None else le + length, sd.Record(k=k, v=v)),
        st.integers(0, 15),
        st.integers(1, 8),
        st.sampled_from("ab"),
        st.integers(-1, 3),
    ),
    min_size=1,
    max_size=6,
)
INPUTS = st.fixed_dictionaries({"s": ROWS, "t": ROWS})


def without_end(rows: Sequence[CHTRow[Any]]) -> list[CHTRow[Any]]:
    """Return the rows, the first of which never ends."""
    return [rows[0]._replace(re=INFINITY), *rows[1:]]


def alone(node: Node, drawn: dict[str, list[CHTRow[Any]]]) -> tuple[Node, dict[str, list[CHTRow[Any]]]]:
    """Return a node over sources of its own, and the rows that it reads of them in its plan."""
    if isinstance(node, Source):
        return node, {node.source: drawn[node.source]}
    given = {name: CHT(rows) for name, rows in drawn.items()}
    names = [f"in{position}" for position in range(len(node.inputs))]
    rows = {name: list(denote(below, given, UNTIL).rows) for name, below in zip(names, node.inputs, strict=True)}
    sources = iter(names)
    return node.map_inputs(lambda _: Source(next(sources))), rows


def meaning(node: Node, rows: dict[str, list[CHTRow[Any]]]) -> Counter[Any]:
    return bag(denote(node, {name: CHT(each) for name, each in rows.items()}, UNTIL).rows)


def bag(rows: Sequence[CHTRow[Any]], fields: frozenset[str] | None = None) -> Counter[Any]:
    """Return rows as they are compared, of records these fields alone."""

    def seen(payload: Any) -> str:
        if fields is None or not isinstance(payload, sd.Record):
            return repr(payload)
        return repr([(name, getattr(payload, name)) for name in sorted(fields)])

    return Counter((row.le, row.re, seen(row.payload)) for row in rows)


def some(fact: Any) -> list[str]:
    """Return the names of the operators of which a fact holds; there are some."""
    found = [name for name, (node, _) in CASES.items() if fact(node)]
    assert found
    return found


def node_cases(fact: Any = lambda node: True) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", some(fact))


@node_cases(lambda node: node.row_wise)
@LIGHT
@given(drawn=INPUTS)
def test_rows_pass_a_row_wise_operator_one_by_one(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    each = [meaning(node, {other: [row] if other == source else [] for other in rows}) for source in rows for row in rows[source]]
    assert sum(each, Counter()) == meaning(node, rows)


@node_cases(lambda node: not node.row_wise and None not in node.partition_by)
@LIGHT
@given(drawn=INPUTS)
def test_rows_with_different_keys_do_not_meet(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    keyed: list[tuple[Any, str, CHTRow[Any]]] = []
    for key, (source, each) in zip(node.partition_by, rows.items(), strict=True):
        assert key is not None
        shown = [denote(Select(Source("in"), key), {"in": CHT([row])}).rows[0].payload for row in each]
        keyed += zip(shown, [source] * len(each), each, strict=True)
    parts: list[dict[str, list[CHTRow[Any]]]] = []
    keys: list[Any] = []
    for key, source, row in keyed:
        if key not in keys:
            keys.append(key)
            parts.append({other: [] for other in rows})
        parts[keys.index(key)][source].append(row)
    assert sum((meaning(node, part) for part in parts), Counter()) == meaning(node, rows)


@node_cases(lambda node: node.passes_payload)
@LIGHT
@given(drawn=INPUTS)
def test_payloads_come_through(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    given = {repr(row.payload) for each in rows.values() for row in each}
    assert {payload for _, _, payload in meaning(node, rows)} <= given


@node_cases(lambda node: node.passes_lifetime)
@LIGHT
@given(drawn=INPUTS)
def test_lifetimes_come_through(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    given = {(row.le, row.re) for row in next(iter(rows.values()))}
    assert {(le, re) for le, re, _ in meaning(node, rows)} <= given


def alive(rows: Sequence[CHTRow[Any]], time: int) -> Counter[str]:
    return Counter(repr(row.payload) for row in rows if row.le <= time < row.re)


def with_second(node: Node, rows: dict[str, list[CHTRow[Any]]], others: Sequence[CHTRow[Any]]) -> dict[str, list[CHTRow[Any]]]:
    """Return the inputs of a node with other rows on the second one, if it has two."""
    first, *more = rows
    return {first: rows[first], **{name: list(others) for name in more}}


@node_cases(lambda node: node.removes is not None)
@LIGHT
@given(drawn=INPUTS, other=ROWS)
def test_what_removes_rows_gives_parts_of_them_and_for_the_reason_that_is_said(name: str, drawn: Any, other: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    first = next(iter(rows.values()))
    results = denote(node, {source: CHT(each) for source, each in rows.items()}, UNTIL).rows
    assert all(alive(results, time) <= alive(first, time) for time in range(30))
    single = {source: each[:1] for source, each in with_second(node, rows, []).items()}
    if node.removes == "rows with others" and first:
        assert meaning(node, single) == bag(first[:1])
    if node.removes == "rows without others":
        assert not meaning(node, with_second(node, rows, []))
        more = denote(node, {source: CHT(each) for source, each in with_second(node, rows, [*drawn["t"], *other]).items()}, UNTIL)
        less = denote(node, {source: CHT(each) for source, each in with_second(node, rows, drawn["t"]).items()}, UNTIL)
        assert all(alive(less.rows, time) <= alive(more.rows, time) for time in range(30))
    if node.removes == "rows as they are":
        assert node.row_wise


@node_cases(lambda node: len(node.inputs) == 2)
@LIGHT
@given(drawn=INPUTS)
def test_rows_that_wait_for_a_match_go_out_where_it_is_said_alone(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    if not node.shows_unmatched:
        early = {payload for _, _, payload in meaning(node, with_second(node, rows, []))}
        assert early <= {payload for _, _, payload in meaning(node, rows)}


def with_sources(node: Node, *names: str) -> Node:
    """Return a node over sources of its own."""
    given = iter(names)
    return node.map_inputs(lambda _: Source(next(given)))


def test_an_operator_that_shows_unmatched_rows_takes_some_back() -> None:
    s, t = sd.from_rows([(1, 9, "a")]), sd.from_rows([(0, 9, "b")])
    for query in (s.anti_join(t), s.left_join(t), s.full_join(t), s.asof_join(t, how="left")):
        plan = query.plan()
        assert any(node.shows_unmatched for node in plan.walk_all())
        node = next(node for node in plan.walk_all() if node.shows_unmatched)
        left, right = ([CHTRow(1, 9, "a")], [CHTRow(0, 9, "b")])
        over = with_sources(node, "left", "right")
        early, late = (meaning(over, {"left": left, "right": given}) for given in ([], right))
        assert not early <= late


WANTED = st.sampled_from([None, frozenset("k"), frozenset("v"), frozenset("kv"), frozenset[str]()])


def disguised(row: CHTRow[Any], needed: frozenset[str]) -> CHTRow[Any]:
    """Return a row with other values in the fields that are not needed."""
    if not isinstance(row.payload, sd.Record):
        return row
    others = {"k": "z", "v": 77}
    return row._replace(payload=replaced(row.payload, {name: value for name, value in others.items() if name not in needed}))


def replaced(payload: Any, values: dict[str, Any]) -> Any:
    names = [name for name in ("k", "v") if hasattr(payload, name)]
    return sd.Record(**{name: values.get(name, getattr(payload, name)) for name in names})


@node_cases(lambda node: not isinstance(node, GroupApply))
@LIGHT
@given(drawn=INPUTS, wanted=WANTED)
def test_fields_that_are_not_needed_change_nothing(name: str, drawn: Any, wanted: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    for position, source in enumerate(rows):
        needed = node.fields_needed(position, wanted)
        if needed is None:
            continue
        changed = {**rows, source: [disguised(row, needed) for row in rows[source]]}
        results = [denote(node, {each: CHT(found) for each, found in given.items()}, UNTIL).rows for given in (rows, changed)]
        fields = {name for row in results[0] if isinstance(row.payload, sd.Record) for name in "kv" if hasattr(row.payload, name)}
        before, after = (bag(found, None if wanted is None else wanted & fields) for found in results)
        assert before == after


@node_cases()
@LIGHT
@given(drawn=INPUTS)
def test_fields_that_a_plan_does_not_demand_change_nothing(name: str, drawn: Any) -> None:
    _, plan = CASES[name]
    wanted = demands(plan)
    changed = dict(drawn)
    for source in plan.walk():
        if isinstance(source, Source) and (needed := wanted[id(source)]) is not None:
            changed[source.source] = [disguised(row, needed) for row in drawn[source.source]]
    assert meaning(plan, changed) == meaning(plan, drawn)


@node_cases(lambda node: node.fixed_duration is not None)
@LIGHT
@given(drawn=INPUTS)
def test_a_fixed_duration_is_that_of_all_rows(name: str, drawn: Any) -> None:
    node, _ = CASES[name]
    rows = denote(node, {each: CHT(found) for each, found in drawn.items()}, UNTIL).rows
    assert {row.re - row.le for row in rows if row.re < INFINITY} <= {node.fixed_duration}


@node_cases(lambda node: node.one_at_a_time)
@LIGHT
@given(drawn=INPUTS)
def test_rows_that_are_said_to_live_one_at_a_time_do(name: str, drawn: Any) -> None:
    rows = sorted(denote(CASES[name][0], {each: CHT(found) for each, found in drawn.items()}, UNTIL).rows, key=lambda row: row.le)
    assert all(a.re <= b.le for a, b in pairwise(rows))


OVER: dict[str, Any] = {
    "rows of one duration": lambda s: s.alter_duration(2),
    "rows that live one at a time": lambda s: s.snapshot_window().aggregate(sd.first(lambda e: e)),
}
"""What passes payloads, and has facts of lifetimes that those above may pass on."""


def all_over(node: Node) -> list[Node]:
    """Return a node over each of these, in the place of its inputs."""
    return [node.map_inputs(lambda each, make=make: make(Stream(each)).plan()) for make in OVER.values()]  # type: ignore[misc]


@pytest.mark.parametrize("below", OVER)
@node_cases(lambda node: any(each.fixed_duration is not None or each.one_at_a_time for each in all_over(node)))
@LIGHT
@given(drawn=INPUTS)
def test_what_is_said_of_lifetimes_over_others_of_which_it_is_said_is_so(name: str, below: str, drawn: Any) -> None:
    node = all_over(CASES[name][0])[list(OVER).index(below)]
    rows = sorted(denote(node, {each: CHT(found) for each, found in drawn.items()}, UNTIL).rows, key=lambda row: row.le)
    duration = node.fixed_duration
    assert duration is None or {row.re - row.le for row in rows if row.re < INFINITY} <= {duration}
    assert not node.one_at_a_time or all(a.re <= b.le for a, b in pairwise(rows))


CONDITIONS = st.sampled_from([lambda e: "v=1" in repr(e), lambda e: "'a'" in repr(e), lambda e: True])


@node_cases(lambda node: node.filter_below is not None)
@LIGHT
@given(drawn=INPUTS, condition=CONDITIONS)
def test_a_filter_may_be_below(name: str, drawn: Any, condition: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    predicate = Opaque(condition)
    above, below = Where(node, predicate), node.map_inputs(lambda each: Where(each, predicate))
    assert meaning(above, rows) == meaning(below, rows)
    if node.filter_below == "the same rows":
        assert {payload for _, _, payload in meaning(node, rows)} == {repr(row.payload) for row in rows["in0"]}


@node_cases(lambda node: not isinstance(node, GroupApply))
@LIGHT
@given(drawn=INPUTS)
def test_rows_end_as_is_said(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    assume(all(rows.values()) and all(row.re < INFINITY for each in rows.values() for row in each))
    said = node.open_rows([Open(below, depends_on_data=True) for below in node.inputs])
    ended = {re for _, re, _ in meaning(node, rows)}
    opened = {re for _, re, _ in meaning(node, {each: without_end(found) for each, found in rows.items()})}
    if said is None:
        assert INFINITY not in ended | opened
    elif said.depends_on_data:
        assert INFINITY not in ended
    else:
        assert said.origin == node
        # A module may give nothing for the last window.
        assert not ended or INFINITY in ended or isinstance(node, WindowApply)


def events_of(rows: Sequence[CHTRow[Any]]) -> list[Any]:
    """Return insertions of those rows that have payloads of the same shape as the first."""

    def shape(payload: Any) -> tuple[Any, ...]:
        return type(payload), len(payload) if isinstance(payload, tuple) else 0

    return [sd.Insert(number, *row) for number, row in enumerate(rows) if shape(row.payload) == shape(rows[0].payload)]


def pushed(
    node: Node, rows: dict[str, list[CHTRow[Any]]], cti: int | None, emit: EmitMode = "speculative"
) -> tuple[Session[Any], list[Any]]:
    """Return a session of a node that has had these rows, and then this CTI, and what it has sent."""
    query: Stream[Any] = Stream(node)
    session = query.open(emit)
    sent = [event for source, each in rows.items() for event in session.push(events_of(each), source)]
    if cti is not None:
        sent += [event for source in rows for event in session.push([sd.Cti(cti)], source)]
    return session, sent


@node_cases(lambda node: not node.opens_cells and not isinstance(node, GroupApply))
@LIGHT
@given(drawn=INPUTS)
def test_what_opens_no_cells_shows_all_of_its_rows_at_once(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    _, sent = pushed(node, rows, None)
    came = {source: [CHTRow(event.le, event.re, event.payload) for event in events_of(each)] for source, each in rows.items()}
    assert bag(CHT.from_events(sent).rows) == meaning(node, came)


@node_cases(lambda node: node.follows_ctis and not isinstance(node, GroupApply))
@LIGHT
@given(drawn=INPUTS, others=INPUTS, cti=st.integers(16, 40), emit=st.sampled_from(EMIT_MODES))
def test_the_cti_depends_on_no_row(name: str, drawn: Any, others: Any, cti: int, emit: EmitMode) -> None:
    ctis = []
    for each in (drawn, others):
        node, rows = alone(CASES[name][0], each)
        rows = {source: [row for row in found if row.le < cti] for source, found in rows.items()}
        # What final holds back until it can no longer change is no matter of the operator.
        ends = [re for _, re, _ in meaning(node, rows)] + [row.re for found in rows.values() for row in found]
        assume(emit != "final" or all(re < cti for re in ends))
        _, sent = pushed(node, rows, cti, emit)
        ctis.append(max((event.time for event in sent if isinstance(event, sd.Cti)), default=None))
    assert ctis[0] == ctis[1]


@node_cases(lambda node: node.moves_starts_as_ctis)
@LIGHT
@given(drawn=INPUTS)
def test_ordered_input_stays_ordered(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    ordered: Stream[Any] = Stream(node.map_inputs(lambda _: Source("in0", progress=sd.Progress.slack(0))))
    session = ordered.open()
    latest = cti = -INFINITY
    for event in events_of(sorted(rows["in0"], key=lambda row: row.le)):
        for out in session.push([event]):
            if isinstance(out, sd.Cti):
                cti = out.time
            else:
                latest = max(latest, out.le)
        assert latest <= cti


def kept(session: Session[Any], node: Node) -> int:
    """Return how many events the node's operator holds."""
    figures: dict[str, int] = session.stats()[labels(node)[id(node)]]
    return figures["events"]


@node_cases(lambda node: node.keeps is Keeps.NOTHING and not isinstance(node, (GroupApply, Source)))
@LIGHT
@given(drawn=INPUTS)
def test_what_keeps_nothing_holds_no_events(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    session, _ = pushed(node, rows, None)
    assert kept(session, node) == 0


@node_cases(lambda node: node.keeps in (Keeps.ROWS, Keeps.LAST_ROWS))
@LIGHT
@given(drawn=INPUTS)
def test_rows_without_end_stay_where_rows_are_kept_and_only_there(name: str, drawn: Any) -> None:
    node, rows = alone(CASES[name][0], drawn)
    assume(all(rows.values()))
    for position, (source, each) in enumerate(rows.items()):
        held = []
        for re in (each[0].le + 1, INFINITY):
            session, _ = pushed(node, {other: [each[0]._replace(re=re)] if other == source else [] for other in rows}, FAR)
            held.append(kept(session, node))
        if node.keeps is Keeps.LAST_ROWS:
            assert 0 < held[0] <= held[1]
        else:
            assert (held[0] < held[1]) == any(below is node.inputs[position] for below in node.kept_inputs)


LIVES = st.lists(st.builds(lambda le, length: Lifetime(le, le + length), st.integers(0, 30), st.integers(1, 12)), max_size=6)
KINDS: dict[str, Windows] = {name: each for entry in kinds_of_windows().values() for name, (each, _) in entry.instances.items()}
TICKS = {name: entry.tick for entry in kinds_of_windows().values() for name in entry.instances}
"""How many ticks one of the drawn lives is."""


def stretched(kind: str, lives: Sequence[Lifetime]) -> list[Lifetime]:
    step = TICKS[kind]
    return [Lifetime(life.le * step, life.re * step) for life in lives]


def test_every_kind_of_windows_is_held_to_its_facts() -> None:
    assert set(named_types.KINDS.values()) == {type(each) for each in KINDS.values()}


@pytest.mark.parametrize("kind", KINDS)
@LIGHT
@given(lives=LIVES, late=st.integers(0, 12), cti=st.integers(0, 60))
def test_windows_are_what_their_kind_says(kind: str, lives: list[Lifetime], late: int, cti: int) -> None:
    windows, step = KINDS[kind], TICKS[kind]
    lives, late, cti, bound = stretched(kind, lives), late * step, cti * step, 200 * step
    found = windows.over(lives, bound)
    assert all(window.re - window.le <= windows.longest for window in found)
    assert windows.fixed_size is None or {window.re - window.le for window in found} <= {windows.fixed_size}
    assert not windows.are_apart or all(a.re <= b.le for a, b in pairwise(found))
    if not windows.completed_by_rows:
        new = Lifetime(max([life.re for life in lives], default=0) + late, FAR * step)
        before = [window for window in found if window.re <= new.le]
        assert [window for window in windows.over([*lives, new], bound) if window.re <= new.le] == before
    if windows.follows_ctis:
        assert windows.settled(lives, cti, False, False) == windows.settled([], cti, False, False)


def rows_of(lives: Sequence[Lifetime]) -> list[CHTRow[int]]:
    return [CHTRow(life.le, life.re, number) for number, life in enumerate(lives)]


@pytest.mark.parametrize("kind", [kind for kind, windows in KINDS.items() if not windows.ends_count])
@LIGHT
@given(lives=LIVES, longer=st.integers(1, 9))
def test_ends_do_not_count_where_it_is_said(kind: str, lives: list[Lifetime], longer: int) -> None:
    def divided(lives: Sequence[Lifetime]) -> list[Any]:
        return [(window, [row.payload for row in rows]) for window, rows in KINDS[kind].divide(rows_of(lives), 200)]

    assert divided(lives) == divided([Lifetime(life.le, life.re + longer) for life in lives])


@pytest.mark.parametrize("kind", [kind for kind, windows in KINDS.items() if windows.ends is not Ends.ALWAYS])
def test_windows_that_may_have_no_end_are_those_of_rows_without_end_or_the_last(kind: str) -> None:
    windows = KINDS[kind]
    of_rows_that_end = windows.over([Lifetime(0, 2), Lifetime(5, 7), Lifetime(30, 40)])
    assert (of_rows_that_end[-1].re == INFINITY) == (windows.ends is Ends.NEVER)


@pytest.mark.parametrize("kind", [kind for kind, windows in KINDS.items() if windows.ends is Ends.ALWAYS])
@LIGHT
@given(lives=LIVES)
def test_windows_that_end_do_whatever_becomes_of_their_rows(kind: str, lives: list[Lifetime]) -> None:
    step = TICKS[kind]
    found = KINDS[kind].over([Lifetime(life.le, INFINITY) for life in stretched(kind, lives)], 500 * step)
    assert not KINDS[kind].by_clock or bool(found) == bool(lives)
    assert all(window.re - window.le < 100 * step for window in found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cti_follows_where_windows_are_bounded(kind: str) -> None:
    windows = KINDS[kind]
    row = [Lifetime(time, time + 4) for time in range(0, 400, 4)]
    for setting, bounded in windows.bounded():
        ctis = [output_cti(each, sd.Clip.NONE, sd.Output.ALIGN, False, row, 300) or 0 for each in (windows, bounded)]
        assert setting
        assert ctis[0] == 0 < ctis[1]
    given_settings = (getattr(windows, name, None) or 0 for name in ("size", "hop", "gap", "max_duration", "n"))
    assert windows.horizon >= max(given_settings)


SETTINGS = st.integers(1, 30)
WITH_SETTINGS = (kinds.Hopping, kinds.Session, kinds.Count)
DRAWN: st.SearchStrategy[Windows] = (
    st.builds(kinds.Hopping, SETTINGS, SETTINGS, st.integers(-9, 9))
    | st.builds(kinds.Session, SETTINGS, SETTINGS | st.none())
    | st.builds(kinds.Count, st.integers(1, 6), st.sampled_from(["start", "end"]))
    | st.sampled_from([windows for windows in KINDS.values() if not isinstance(windows, WITH_SETTINGS)])
)
POLICIES = st.tuples(st.sampled_from(sd.Clip), st.sampled_from([sd.Output.ALIGN, sd.Output.POINT_AT_END]), st.booleans())
SITUATIONS = st.sampled_from([idle, unending, busy])
MOST = 80
"""Windows that the rows of a situation make at most, whatever the settings are."""


@examples(60)
@given(windows=DRAWN, policies=POLICIES, situation=SITUATIONS)
def test_the_fewest_windows_are_held_back_as_all_are_and_are_few(windows: Windows, policies: Any, situation: Situation) -> None:
    clip, output, time_sensitive = policies
    assume(not isinstance(windows, kinds.Sequenced) or (output is sd.Output.ALIGN and not time_sensitive))
    few = windows.fewest()
    assert type(few) is type(windows)
    assert few.fewest() == few
    far = 8 * (1 + few.horizon)
    rows = situation(2 * far, far // 8)
    if few.ends is Ends.ALWAYS or situation is not unending:
        assert len(few.over(rows, 2 * far)) <= MOST
    ctis = []
    for each in (windows, few):
        near = 8 * (1 + each.horizon)
        ctis.append([output_cti(each, clip, output, time_sensitive, situation(t, near // 8), t) for t in (near, 2 * near)])
    assert len({cti[0] == cti[1] for cti in ctis}) == 1, ctis


GROUPED = GroupApply(Source("in"), Field("k"), Group(None, None), Whole())
"""Each group's rows as they are: what is said of `Group` is so of them, of one group and of all."""


@LIGHT
@given(drawn=ROWS, others=ROWS, cti=st.integers(16, 40), emit=st.sampled_from(EMIT_MODES))
def test_the_rows_of_a_group_are_those_that_go_into_it(drawn: Any, others: Any, cti: int, emit: EmitMode) -> None:
    (group,) = [node for node in GROUPED.body.walk() if isinstance(node, Group)]
    session, sent = pushed(GROUPED, {"in": drawn}, None)
    assert not group.opens_cells
    assert bag(CHT.from_events(sent).rows) == bag(drawn)
    assert group.keeps is Keeps.NOTHING
    assert sum(figures["events"] for label, figures in session.stats().items() if "source" not in label) == 0
    said = group.open_rows([Open(GROUPED.input, depends_on_data=True)])
    assert said is not None
    assert said.depends_on_data
    assert group.open_rows([None]) is None
    assert group.follows_ctis
    drawn, others = ([row for row in each if row.re < cti] for each in (drawn, others))
    ctis = [
        [event for event in pushed(GROUPED, {"in": each}, cti, emit)[1] if isinstance(event, sd.Cti)] for each in (drawn, others)
    ]
    assert ctis[0] == ctis[1] == [sd.Cti(cti)]


@LIGHT
@given(drawn=INPUTS, cti=st.integers(16, 40))
def test_an_output_is_what_it_reads(drawn: Any, cti: int) -> None:
    parts = (Source("s"), Source("t"))
    outputs = Outputs(parts)
    results: dict[str, Any] = sd.composing.run_all(
        {each.source: Stream(each) for each in parts}, {name: events_of(rows) for name, rows in drawn.items()}
    )
    ends = {name: {row.re for row in results[name].cht().rows} for name in drawn}
    assert {name: bag(results[name].cht().rows) for name in drawn} == {name: bag(rows) for name, rows in drawn.items()}
    said = outputs.open_rows([Open(each) if INFINITY in ends[each.source] else None for each in parts])
    assert (said is not None) == (INFINITY in set().union(*ends.values()))


def test_an_operator_that_leaves_a_fact_out_has_no_nodes() -> None:
    class Silent(Node):
        def describe(self) -> str:
            return ""

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]


def test_every_operator_is_among_the_cases() -> None:
    from tests.architecture.test_completeness import NODES

    found = {type(node) for node, _ in CASES.values()}
    assert {node.__name__ for node in NODES} - {cls.__name__ for cls in found} == {"Group"}, (
        "those of groups have laws of their own"
    )
