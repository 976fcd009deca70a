"""The rules, one by one: where they fire, where they must not, and what `optimize` and `explain` make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import streamdsl as sd
from streamdsl.errors import QueryError
from streamdsl.plan.node import AlterLifetime, GroupApply, Node, Select, Where, WindowAggregate, WindowApply, shift
from streamdsl.plan.outputs import Outputs
from streamdsl.rewrite import RULES, Mode, RuleContext, optimize, rewriting
from streamdsl.rewrite.optimizer import MOST_STEPS
from tests.unit.rewrite.cases import FIRES, MUST_NOT_FIRE, Build, best, source
from tests.unit.rewrite.modules import Best, Ended, Row, Tally, Total

EVERY = [(rule.__name__, name) for rule in RULES for name in FIRES[rule.__name__]]
NEVER = [(rule.__name__, name) for rule in RULES for name in MUST_NOT_FIRE[rule.__name__]]


def fired(plan: Node, mode: Mode = "run") -> list[str]:
    return [rule.__name__ for rule in rewriting(plan, mode).fired]


def filtered(s: Any) -> Any:
    return best(s).where(lambda e: e.k == "a")


@pytest.mark.parametrize(("rule", "name"), EVERY)
def test_rule_fires(rule: str, name: str) -> None:
    plan = FIRES[rule][name](source()).plan()
    assert rule in fired(plan)
    assert optimize(plan) is not plan


@pytest.mark.parametrize(("rule", "name"), NEVER)
def test_rule_must_not_fire(rule: str, name: str) -> None:
    assert rule not in fired(MUST_NOT_FIRE[rule][name](source()).plan())


@pytest.mark.parametrize(("rule", "name"), EVERY)
def test_a_rewritten_plan_stays_as_it_is(rule: str, name: str) -> None:
    plan = optimize(FIRES[rule][name](source()).plan())
    assert optimize(plan) is plan


def test_a_condition_that_cannot_fail_is_left_below_alone() -> None:
    plan = optimize(filtered(source()).plan())
    assert [node.name for node in plan.walk_all()] == ["Source", "Where", "WindowApply"]


def test_a_condition_that_can_fail_stays_above_and_is_forgiving_below() -> None:
    query = sd.from_rows([(1, 2, {"k": "a", "v": 3}), (2, 3, {"k": None, "v": None}), (3, 4, {"k": "b", "v": 1})])
    above_a = query.tumbling_window(5).apply(Best()).where(lambda e: e.k > "a")
    assert [node.name for node in optimize(above_a.plan()).walk_all()] == ["Source", "Where", "WindowApply", "Where"]
    assert above_a.run().cht() == above_a.run(engine="reference").cht()
    assert [row.payload for row in above_a.run().cht()] == [sd.Record(k="b", v=1)]


def test_conditions_on_other_fields_stay_above() -> None:
    plan = optimize(best(source()).where(lambda e: (e.v > 0) & (e.k == "a")).plan())
    assert isinstance(plan, Where)
    assert "v" in str(plan.predicate)
    assert "'k'" not in str(plan.predicate)
    assert isinstance(plan.input, WindowApply)
    assert isinstance(plan.input.input, Where)


def test_a_filter_passes_another_filter() -> None:
    plan = optimize(best(source()).where(lambda e: e.v > 0).where(lambda e: e.k == "a").plan())
    assert [node.name for node in plan.walk_all()] == ["Source", "Where", "WindowApply", "Where"]


def test_both_rules_fire_on_one_window() -> None:
    tally = source().tumbling_window(5).apply(Tally()).where(lambda e: e.k == "a")
    assert sorted(fired(tally.plan())) == ["narrow_to_reads", "push_filter_below_module"]
    assert {type(node) for node in optimize(tally.plan()).walk_all()} >= {Select, Where}


def test_bodies_of_groups_are_rewritten_and_keys_keep_their_fields() -> None:
    plan = optimize(source().group_by("k").tumbling_window(5).aggregate(Total()).plan())
    assert isinstance(plan, GroupApply)
    assert isinstance(plan.body, WindowAggregate)
    assert isinstance(plan.body.input, Select)
    assert plan.input.schema is not None
    assert plan.input.schema.names == ("k", "v")


def test_what_several_nodes_read_stays_shared() -> None:
    totals = source().tumbling_window(5).aggregate(Total())
    plan = optimize(totals.union(totals.shift(5)).plan())
    assert [node.name for node in plan.walk_all()] == ["Source", "Select", "WindowAggregate", "Shift", "Union"]


def test_equal_parts_run_once() -> None:
    def totals() -> Any:
        return source().tumbling_window(5).aggregate(n=sd.sum(lambda e: e.v))

    again = source().tumbling_window(5).aggregate(n=sd.sum(lambda e: e.v))  # written on another line
    query = totals().union(again.shift(5))
    written, shared = (query.open(engine_options={"rewrite": choice}) for choice in ("off", ["share_equals"]))
    assert list(written.stats()) == ["source:s0", "window_aggregate_1", "window_aggregate_2", "shift_1", "union_1", "(output)"]
    assert list(shared.stats()) == ["source:s0", "window_aggregate_1", "shift_1", "union_1", "(output)"]


def test_a_filter_of_an_outer_join_reaches_its_sources_and_runs_once() -> None:
    left: Any = sd.source("l", Row)
    right: Any = sd.source("r", Row)
    joined = left.left_join(right, on="k", select=lambda a, b: {"k": a.k, "v": a.v}).where(lambda e: e.k == "a")
    assert [node.name for node in optimize(joined.plan()).walk_all()] == [
        "Source",
        "Where",
        "Source",
        "Select",
        "Join",
        "AntiJoin",
        "Select",
        "Union",
    ]


MODES: list[tuple[str, Build, set[Mode]]] = [
    ("events of any length", filtered, {"run", "final"}),
    ("points", lambda s: filtered(s.to_points()), {"run", "final", "speculative"}),
    ("a module that sees ends", FIRES["push_filter_below_module"]["a time-sensitive module"], {"run"}),
    ("records", FIRES["narrow_to_reads"]["an aggregate"], {"run", "final", "speculative", "watermark"}),
]


@pytest.mark.parametrize(("build", "modes"), [case[1:] for case in MODES], ids=[case[0] for case in MODES])
def test_a_session_is_rewritten_where_no_push_shows_it(build: Build, modes: set[Mode]) -> None:
    every: Sequence[Mode] = ("run", "speculative", "watermark", "final")
    assert {mode for mode in every if fired(build(source()).plan(), mode)} == modes


@pytest.mark.parametrize(
    ("progress", "modes"),
    [(sd.Progress.ordered(), 3), (sd.Progress.slack(2), 1), (sd.Progress.every(3), 1)],
    ids=["ordered", "slack", "every"],
)
def test_a_session_over_an_ordered_source_is_rewritten(progress: sd.Progress, modes: int) -> None:
    plan = filtered(source(progress).where(lambda e: e.v > 0).shift(3)).plan()
    assert len([mode for mode in ("speculative", "watermark", "final") if fired(plan, mode)]) == modes


def test_a_filter_that_reads_ends_holds_back_the_cti_of_an_ordered_source() -> None:
    ordered = source(sd.Progress.ordered()).where(lambda e, life: life.re > 3)
    assert fired(filtered(ordered).plan(), "speculative") == []


@pytest.mark.parametrize("emit", ["speculative", "watermark", "final"])
def test_ctis_do_not_wait_for_ends_that_do_not_matter(emit: Any) -> None:
    counts = source().tumbling_window(5).aggregate(Ended())
    first = [sd.interval("x", 1, 900, {"k": "a", "v": 1}), sd.Cti(12)]
    written, clipped = (counts.open(emit, engine_options={"rewrite": choice}) for choice in ("off", "on"))
    assert [type(event) for event in written.push(first)].count(sd.Cti) == 1
    assert clipped.push(first)[-1] == sd.Cti(10)
    assert [session.stats()["window_aggregate_1"]["output_cti"] for session in (written, clipped)] == [0, 10]


def undone(node: Node, setting: RuleContext) -> Node | None:
    return shift(node.input, -node.ends.cti(0)) if isinstance(node, AlterLifetime) else None


def test_rules_that_undo_one_another_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdsl.rewrite.optimizer.PHASES", ((undone,),))
    assert len(rewriting(source().shift(3).plan()).fired) == MOST_STEPS * 2


# What users see.


def test_rewriting_can_be_turned_off() -> None:
    query = source().tumbling_window(5).aggregate(Total())
    session = query.open(engine_options={"rewrite": "off"})
    assert list(session.stats()) == ["source:s0", "window_aggregate_1", "(output)"]
    assert list(query.open().stats()) == ["source:s0", "select_1", "window_aggregate_1", "(output)"]


@pytest.mark.parametrize(
    "start", [lambda q: q.open(engine_options={"rewrite": False}), lambda q: q.run({"s0": []}, engine_options={"rewrite": 1})]
)
def test_the_choice_is_on_or_off(start: Build) -> None:
    with pytest.raises(QueryError, match=r'engine_options\["rewrite"\] is "on" or "off", or the names of rules, not'):
        start(source())


def test_the_choice_may_be_rules_by_name() -> None:
    query = source().tumbling_window(5).apply(Best()).where(lambda e: e.k == "a").where(lambda e: e.v > 0)
    assert query.run({"s0": []}, engine_options={"rewrite": ["fuse_filters"]}).cht() == sd.CHT([])
    with pytest.raises(QueryError, match=r"there is no rule 'fuse'; the rules are: push_filter_below_module, .*fuse_filters"):
        query.open(engine_options={"rewrite": ["fuse"]})


def test_explain_shows_the_steps() -> None:
    text = filtered(source()).explain(rules=True)
    assert text.startswith(filtered(source()).explain())
    assert text.splitlines()[8:] == [
        "step 1: push_filter_below_module at where_1, before:",
        "where_1 e.k == 'a' [duration 5]",
        "└─ window_apply_1 tumbling(5), Best() [duration 5]",
        "   └─ source:s0  (k, v)",
        "after:",
        "window_apply_1 tumbling(5), Best() [duration 5]",
        "└─ where_1 e.k == 'a'  (k, v)",
        "   └─ source:s0  (k, v)",
    ]
    assert source().shift(3).explain(rules=True).splitlines()[-1] == "no rule has fired"


def test_on_spark_no_filter_leaves_spark() -> None:
    joined = source().join(source().shift(1), on="k", select=lambda a, b: {"v": a.v}).where(lambda e: e.v > 0)
    assert "holds_or_fails" in joined.explain()
    assert "holds_or_fails" not in joined.explain("spark")


def test_an_unknown_option_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(QueryError, match="no engine option 'rewrites'; the options are: attach, most_windows, rewrite"):
        source().open(engine_options={"rewrites": "off"})


def test_explain_shows_what_runs_then_the_rules_then_what_was_written() -> None:
    text = filtered(source()).explain()
    assert text.splitlines() == [
        "window_apply_1 tumbling(5), Best() [duration 5]  <window (framed)>",
        "└─ where_1 e.k == 'a'  (k, v)  <where (columnar)>",
        "   └─ source:s0  (k, v)",
        'rewritten by push_filter_below_module (in sessions: emit="final")',
        'as written, and with engine_options={"rewrite": "off"}:',
        "where_1 e.k == 'a' [duration 5]  <where (columnar)>",
        "└─ window_apply_1 tumbling(5), Best() [duration 5]  <window (framed)>",
        "   └─ source:s0  (k, v)",
    ]


def test_a_part_that_is_read_twice_is_drawn_once() -> None:
    joined = source()
    for _ in range(40):
        joined = joined.left_join(source(), on="k", select=lambda a, b: {"k": a.k, "v": a.v})
    text = joined.explain("reference").splitlines()
    assert len(text) <= 40 * 8
    assert sum(line.endswith(" (above)") for line in text) == 40 - 1


def test_windows_over_the_same_points_have_panes_across_queries_too() -> None:
    points = source().to_points().group_by("k")
    minutes, hours = (points.tumbling_window(size).aggregate(lo=sd.min(lambda e: e.v)) for size in (5, 60))
    rows = [sd.point(n, n, {"k": "ab"[n % 2], "v": -n if n % 7 else None}) for n in range(99)]
    expected = [query.run({"s0": rows}, engine="reference").cht() for query in (minutes, hours)]
    found = sd.composing.run_all({"minutes": minutes, "hours": hours}, {"s0": rows})
    assert [found["minutes"].cht(), found["hours"].cht()] == expected
    assert fired(Outputs((minutes.plan(), hours.plan()))) == ["share_panes"]


def test_explain_says_nothing_of_sessions_where_they_are_rewritten_too() -> None:
    assert "rewritten by narrow_to_reads\n" in source().tumbling_window(5).aggregate(Total()).explain()


def test_the_reference_runs_plans_as_written() -> None:
    assert "rewritten" not in filtered(source()).explain("reference")


def test_a_module_is_called_with_the_promised_fields_alone() -> None:
    seen: list[set[str]] = []

    class Watched(Total):
        def compute_result(self, payloads: Sequence[sd.Record]) -> int:
            seen.extend(set(row) for row in payloads)
            return super().compute_result(payloads)

    query = source().tumbling_window(5).aggregate(Watched())
    query.run({"s0": [sd.point("x", 1, {"k": "a", "v": 3})]})
    query.run({"s0": [sd.point("x", 1, {"k": "a", "v": 3})]}, engine_options={"rewrite": "off"})
    assert seen == [{"v"}, {"k", "v"}]


def test_a_filter_below_spares_calls_of_the_module() -> None:
    calls: list[int] = []

    class Watched(Best):
        def compute_result(self, payloads: Sequence[sd.Record]) -> Any:
            calls.append(len(payloads))
            return super().compute_result(payloads)

    rows = [(t, t + 1, {"k": "a" if t == 3 else "b", "v": t}) for t in range(20)]
    query = sd.from_rows(rows).tumbling_window(5).apply(Watched()).where(lambda e: e.k == "a")
    rewritten = query.run().cht()
    assert calls == [1]
    assert query.run(engine_options={"rewrite": "off"}).cht() == rewritten
    assert calls[1:] == [5, 5, 5, 5]
