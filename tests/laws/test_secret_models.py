"""What is said about profiles: which dimension differs, when they agree, what explains an engine, and a query under one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest

import streamdsl as sd
from streamdsl import secret
from streamdsl.errors import StreamDslError
from streamdsl.papers.secret.equivalence import why
from streamdsl.papers.secret.search import assumed
from streamdsl.secret import At, FromFirst, Grid, Profile, Report, Scope, Tick
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.laws.test_secret import PAPER, profile, stream

GAPS = [(10, 30), (20, 31), (30, 36), (40, 37)]


@examples(60)
@given(SEEDS)
def test_the_dimensions_named_are_enough_and_those_not_named_are_not_needed(seed: int) -> None:
    rng = Random(seed)
    first, second, tuples = profile(rng), profile(rng), stream(rng)
    size, slide = rng.randint(1, 5), rng.randint(1, 5)
    found = secret.compare([first, second], size, slide, tuples)
    fields = {"Scope": ("t0", "scope"), "Content": ("feed",), "Report": ("report",), "Tick": ("tick",)}
    assert found.agree == (found.dimension is None)
    for difference in found.differences:
        assert found.traces[0].outputs != found.traces[1].outputs
        for named in (difference.dimensions, *difference.instead):
            taken = {name: getattr(second, name) for each in named for name in fields[each]}
            assert secret.compare([second, replace(first, **taken)], size, slide, tuples).agree


def test_a_mean_that_is_no_number_is_the_same_in_each_engine() -> None:
    tuples = [(math.nan, 1), (2, 4), (3, 4), (4, 9)]
    mean: Any = sd.avg(lambda e: e)
    assert secret.compare([secret.CORAL8, replace(secret.CORAL8, name="again")], 2, 1, tuples, mean).agree
    found = secret.compare([secret.CORAL8, secret.STREAMBASE], 2, 1, tuples, mean)
    assert found.dimension is not None
    assert "nan" in found.table()


def test_where_either_of_two_dimensions_would_do_both_are_named() -> None:
    found = secret.compare([secret.CORAL8, secret.STREAM], 2, 1, [(1, 2), (2, 2), (3, 5)], sum)
    assert (found.dimension, found.differences[0].instead) == ("Report", (("Tick",),))
    assert "; or else Tick differs: Coral8 is batch-driven, STREAM time-driven" in str(found)


def test_the_experiments_of_the_paper_each_differ_in_their_dimension() -> None:
    coral8, streambase = secret.CORAL8, secret.STREAMBASE
    assert secret.compare([streambase, coral8, secret.STREAM], 5, 1, GAPS).dimension == "Report"
    runs = [streambase.fed(partial(secret.restamp, first=first)) for first in (10, 11, 12)]
    input = [(v, t) for t, v in enumerate(range(10, 80, 10), 1)]
    windows = secret.compare(runs, 3, 3, input, lambda values: sum(values) / len(values))
    assert [trace.outputs for trace in windows.traces] == [[15, 40], [10, 30], [20, 50]]
    assert [trace.t0 for trace in windows.traces] == [8, 8, 8]
    assert windows.dimension == "Content"
    simultaneous = [(10, 3), (20, 5), (30, 5), (40, 5), (50, 5), (60, 7)]
    bundles = [partial(secret.bundle, by=by) for by in ("tuple", "time", 2)]
    outputs = [secret.simulate(coral8.fed(feed), 4, 1, simultaneous, sum).outputs for feed in bundles]
    assert outputs == [[10, 30, 60, 100, 150], [10, 150], [10, 60, 150]]
    ticks = [replace(coral8, name=tick.value, tick=tick) for tick in (Tick.TUPLE, Tick.TIME)]
    assert secret.compare(ticks, 4, 1, simultaneous, sum).dimension == "Tick"
    starts = [replace(streambase, t0=t0) for t0 in (Grid(-1), Grid(-1, whole=False))]
    assert secret.compare(starts, 4, 2, simultaneous).dimension == "Scope"


def test_profiles_agree_under_the_assumptions_of_appendix_c() -> None:
    ticks = [replace(secret.CORAL8, tick=tick) for tick in Tick]
    for p, q in combinations(ticks, 2):
        assert secret.equivalent(p, q, 2, 1, "no simultaneous tuples")
        assert not secret.equivalent(p, q, 2, 1)
    found = secret.equivalent(ticks[0], ticks[1], 2, 1)
    assert [each.t_app for each in found.counterexample or ()] == [2, 2]
    assert found.comparison is not None
    assert found.comparison.dimension == "Tick"
    assert secret.equivalent(ticks[0], ticks[2], 2, 1, ["one tuple per batch"]).why
    assert secret.agreement(secret.STREAM, secret.ORACLE_CEP, 2, 1) == [frozenset()]


def test_a_query_is_ported_by_its_bundles_or_there_is_a_counterexample() -> None:
    by_time = replace(secret.CORAL8, name="by time", tick=Tick.TIME)
    found = secret.port(by_time, secret.CORAL8, 3, 1)
    assert found.profile is not None
    assert (found.size, found.slide, found.profile.name) == (3, 1, "Coral8, bundle(by='time')")
    none = secret.port(secret.STREAMBASE, secret.CORAL8, 3, 1, windows=[(3, 1), (2, 1)])
    assert not none
    assert none.counterexample is not None
    assert "Report differs" in repr(none)


@pytest.mark.parametrize("given", [*PAPER, replace(secret.CORAL8, name="", tick=Tick.TUPLE, t0=FromFirst(-1, whole=False))])
def test_an_engine_is_explained_by_its_own_settings(given: Profile) -> None:
    found = secret.infer(lambda tuples, slide, size: secret.simulate(given, size, slide, tuples, sum).outputs, [(3, 2)])
    assert replace(given, name="") in [replace(each, name="") for each in found.candidates]


def test_an_engine_may_have_one_window_and_takes_the_tuples_alone() -> None:
    found = secret.infer(lambda stream: secret.simulate(secret.CORAL8, 3, 1, stream).outputs, [(3, 1)])
    assert found.profile == secret.CORAL8
    assert secret.infer(lambda s, slide, size: secret.simulate(secret.CORAL8, size, slide, s), [(3, 1)]).profile == secret.CORAL8


def test_what_an_engine_does_not_have_stays_undetermined() -> None:
    sliding = secret.infer(partial(secret.simulate, secret.STREAMBASE), [(2, 1)])
    assert sliding.undetermined.keys() >= {"t0", "tick"}
    tumbling = secret.infer(partial(secret.simulate, secret.STREAMBASE), [(2, 1), (3, 3)])
    assert set(map(str, tumbling.candidates)) < set(map(str, sliding.candidates))


def test_an_engine_that_no_settings_explain_is_shown_with_an_input() -> None:
    def every_other(size: int, slide: int, tuples: list[Any]) -> list[Any]:
        return secret.simulate(secret.CORAL8, size, slide, tuples).outputs[::2]

    found = secret.infer(every_other, [(3, 1)])
    assert not found
    assert found.witnesses[-1].outputs != found.witnesses[-1].expected
    assert "no settings explain it" in repr(found)


@examples(60)
@given(SEEDS)
def test_a_query_under_a_profile_gives_what_its_aggregate_makes_of_the_reports(seed: int) -> None:
    rng = Random(seed)
    given, tuples = replace(profile(rng), scope=Scope.ACTIVE), stream(rng, late=False)
    rows = [{"v": each.value, "at": each.t_app, "n": each.t_sys, "b": each.bid} for each in tuples]
    source = sd.from_rows([(0, 1, row) for row in rows]) if rows else sd.from_rows([(0, 1, {"v": 0, "at": 0, "n": 0, "b": 0})])
    size, slide = rng.randint(1, 5), rng.randint(1, 5)
    query = source.where(lambda e: e.v != 2).hopping_window(size, slide).aggregate(all=sd.collect(lambda e: e.v))
    ran = query.as_of(given, t_app="at", t_sys="n", bid="b")
    kept = [each for each in tuples if each.value != 2] if rows else [secret.Tuple(0, 0, 0, 0)]
    expected = secret.simulate(given, size, slide, kept)
    assert [None if out is None else out.all for out in ran.outputs] == [values or None for values in expected.outputs]


@examples(40)
@given(SEEDS)
def test_a_grouped_query_under_a_profile_divides_what_each_report_holds(seed: int) -> None:
    rng = Random(seed)
    given, tuples = replace(profile(rng), scope=Scope.ACTIVE), stream(rng, late=False)
    if not tuples:
        return
    rows = [{"k": each.value % 2, "v": each.value, "at": each.t_app, "n": each.t_sys, "b": each.bid} for each in tuples]
    size, slide = rng.randint(1, 5), rng.randint(1, 5)
    grouped = sd.from_rows([(0, 1, row) for row in rows]).where(lambda e: e.v != 2).group_by("k").hopping_window(size, slide)
    ran = grouped.aggregate(all=sd.collect(lambda e: e.v)).as_of(given, t_app="at", t_sys="n", bid="b")
    reports = secret.simulate(given, size, slide, [each for each in tuples if each.value != 2]).outputs
    divided = [[(k, part) for k in (0, 1) if (part := [v for v in values if v % 2 == k])] for values in reports]
    assert [[(out.k, out.all) for out in outs] for outs in ran.outputs] == divided


@examples(60)
@given(SEEDS)
def test_slack_orders_what_is_late_by_no_more_and_loses_the_rest(seed: int) -> None:
    rng = Random(seed)
    tuples, delay = [each for each in stream(rng) if each.value is not secret.HEARTBEAT], rng.randint(0, 7)
    highest = [max(each.t_app for each in tuples[: n + 1]) for n in range(len(tuples))]
    kept = [each for each, most in zip(tuples, highest, strict=True) if each.t_app >= most - delay]
    found = secret.slack(tuples, delay)
    assert [(each.t_app, each.value) for each in found] == [
        (each.t_app, each.value) for each in sorted(kept, key=lambda e: e.t_app)
    ]
    assert [each.t_sys for each in found] == list(range(1, len(found) + 1))


@examples(60)
@given(SEEDS)
def test_heartbeats_add_reports_and_take_none_away_while_nothing_is_late(seed: int) -> None:
    rng = Random(seed)
    engine = replace(profile(rng), tick=rng.choice([Tick.TUPLE, Tick.TIME]), scope=Scope.ACTIVE)
    tuples, delay = [secret.Tuple(n, 3 * n, 3 * n, n) for n in range(1, rng.randint(2, 9))], rng.randint(1, 4)
    size, slide = rng.randint(1, 5), rng.randint(1, 5)
    plain = secret.simulate(engine, size, slide, tuples).reports
    beaten = secret.simulate(engine, size, slide, secret.max_delay(tuples, delay)).reports
    assert [(each.t, each.values) for each in beaten] == [(each.t, each.values) for each in plain]


def test_a_cti_of_the_source_is_a_heartbeat() -> None:
    events = [sd.point("a", 1, 7), sd.Cti(9)]
    query = sd.source("s").tumbling_window(4).aggregate(sd.sum(lambda e: e))
    assert query.as_of(secret.STREAMBASE, {"s": events}).outputs == [7]
    assert query.as_of(secret.STREAMBASE, {"s": events[:1]}).outputs == []


def test_traces_and_comparisons_are_drawn() -> None:
    compared = secret.compare([secret.CORAL8, secret.STREAMBASE], 5, 1, [("<a>", 30), ("b", 33)])
    for shown in (compared._repr_html_(), compared.traces[0]._repr_html_()):
        assert "<svg" in shown
        assert "<a>" not in shown
        assert "&lt;a&gt;" in shown


def test_tuples_are_drawn_where_each_profile_sees_them() -> None:
    """Restamped tuples are not where another start has them."""
    tuples = [("a", 1), ("b", 2)]
    starts = [secret.STREAMBASE.fed(partial(secret.restamp, first=first)) for first in (10, 20)]
    assert secret.compare(starts, 2, 1, tuples)._repr_html_().count("<circle") == 4
    assert secret.compare([secret.CORAL8, secret.STREAMBASE], 2, 1, tuples)._repr_html_().count("<circle") == 2


def test_long_traces_are_shown_in_part() -> None:
    many = [(n, n) for n in range(5000)]
    compared = secret.compare([secret.CORAL8, secret.STREAMBASE], 5, 3, many)
    assert str(compared).endswith("... 4949 instants more: table() has them all")
    assert repr(compared.traces[0]).endswith(", ... 4949 more]")
    assert len(compared.table().splitlines()) == 5000
    for shown in (compared, compared.traces[0]):
        assert len(shown._repr_html_()) < 100_000
        assert "reports more" in shown._repr_html_()


def test_long_times_are_passed_over_where_nothing_is_in_sight() -> None:
    far = [("a", 0), ("b", 10**15), ("c", 2 * 10**15)]
    for engine in (*PAPER, secret.STREAMDSL, secret.STREAMDSL_FINAL):
        trace = secret.simulate(engine, 10**6, 10**6, far)
        assert [each for [each] in dict.fromkeys(map(tuple, trace.outputs))] == ["a", "b"], engine
        assert trace.table().count("yes") == len(trace.reports)
        assert "<svg" in trace._repr_html_()


ROWS = sd.from_rows([(1, 2, {"k": "a", "v": 1})])
SIDE = secret.Side([], 3, 1)
ANY: Any = secret
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: ANY.simulate("CORAL8", 3, 1, []), "is no profile"),
    (lambda: ANY.simulate(secret.CORAL8, 3, 1, ROWS), "is no list of tuples"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, [("a", True)]), "not all integers"),
    (lambda: ANY.simulate(secret.CORAL8, 3, 1, GAPS, t0=1.5), "t0 is a whole number"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, GAPS, sd.avg), "is no aggregate"),
    (lambda: ANY.ticks(GAPS, 0, "never"), "there is no tick 'never'; there are: 'tuple', 'time', 'batch'"),
    (lambda: ANY.Profile("x", 7, Report(), Tick.TIME), "t0 is a function"),
    (lambda: ANY.Profile("x", Grid(), "close", Tick.TIME), "is no report"),
    (lambda: ANY.CORAL8.fed(5), "is a function of tuples"),
    (lambda: secret.simulate(replace(secret.CORAL8, t0=lambda *_: None), 3, 1, GAPS), "t0 of Coral8 is a whole number"),  # type: ignore[arg-type]
    (lambda: ANY.compare(secret.CORAL8, 3, 1, GAPS), "compared with nothing"),
    (lambda: ANY.bundle(GAPS, 1.5), "or by a whole number >= 1"),
    (lambda: ANY.bundle(GAPS, None), "or by a whole number >= 1"),
    (lambda: secret.slack(GAPS, -1), "a slack is a whole number >= 0"),
    (lambda: ANY.until(GAPS, "late"), "a heartbeat's time is a whole number"),
    (lambda: ANY.restamp(GAPS, "now"), "new time is a whole number"),
    (lambda: ANY.infer(secret.CORAL8, [(3, 1)]), "cannot be run"),
    (lambda: secret.infer(lambda tuples: None, [(3, 1)]), "as a list, not None"),
    (lambda: secret.equivalent(secret.CORAL8, secret.STREAM, 0, 1), "size is a whole number >= 1"),
    (lambda: ROWS.session_window(5).aggregate(n=sd.count()).as_of(secret.CORAL8), "not one over Session"),
    (lambda: secret.simulate(secret.CORAL8, 0, 1, []), "size is a whole number >= 1"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, [("a", 1.5)]), "not all integers"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, [("a", 1, 1, 1), ("b", 2, 1, 2)]), "at most one tuple"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, ["ab"]), "is no tuple of a stream"),
    (lambda: secret.simulate(secret.CORAL8, 3, 1, [], 7), "is no aggregate"),
    (lambda: secret.simulate(replace(secret.CORAL8, scope=Scope.ALL_OPEN), 3, 1, [], by="tuples"), "not all open windows"),
    (lambda: Report(periodic=0), "period is None or a whole number >= 1"),
    (lambda: secret.equivalent(secret.CORAL8, secret.STREAM, 3, 1, "no luck"), "the assumptions are: no simultaneous"),
    (lambda: secret.compare([], 3, 1, []), "no profile to compare"),
    (lambda: secret.infer(list, []), "pairs of size and slide, not"),
    (lambda: secret.bundle([], by="pair"), 'by "tuple", by "time"'),  # type: ignore[arg-type]
    (lambda: ROWS.as_of(secret.CORAL8), "hopping or tumbling"),
    (lambda: ROWS.tumbling_window(2).aggregate(n=sd.count()).as_of("CORAL8"), "is no profile"),  # type: ignore[arg-type]
    (lambda: ROWS.count_window(2).aggregate(n=sd.count()).as_of(secret.CORAL8), "hopping or tumbling"),
    (lambda: ROWS.shift(3).tumbling_window(2).aggregate(n=sd.count()).as_of(secret.CORAL8), "where and select of a source"),
    (lambda: ROWS.tumbling_window(2).aggregate(n=sd.count()).as_of(secret.CORAL8, t_sys="n"), "no field 'n'"),
    (lambda: ROWS.group_by("k").session_window(2).aggregate(n=sd.count()).as_of(secret.CORAL8), "not one over Session"),
    (lambda: ANY.equivalent("CORAL8", secret.STREAM, 3, 1), "is no profile"),
    (lambda: ANY.port(secret.STREAM, 3, 3, 1), "is no profile"),
    (lambda: ANY.equivalent(secret.CORAL8, secret.STREAM, 3, 1, 5), "no assumption 5"),
    (lambda: ANY.infer(list, 5), "pairs of size and slide, not 5"),
    (lambda: ANY.infer(list, [(5,)]), "pairs of size and slide, not"),
    (lambda: ANY.simulate_join("CORAL8", SIDE, SIDE), "is no profile"),
    (lambda: ANY.simulate_join(secret.CORAL8, GAPS, SIDE), "is no input of a join"),
    (lambda: secret.simulate_join(secret.CORAL8, SIDE, SIDE, closing="one"), "not 'one'"),
    (lambda: secret.simulate_join(replace(secret.CORAL8, scope=Scope.ALL_OPEN), SIDE, SIDE), "not at all open windows"),
    (lambda: secret.Side([], 0, 1), "size is a whole number"),
    (lambda: ANY.Profile("x", Grid(), Report(), Tick.TIME, "open"), "no scope 'open'; there are: 'active'"),
    (lambda: secret.scope(3, 1, 2, 0), "slide is a whole number"),
    (lambda: secret.scopes(3, 1, 2, 0), "slide is a whole number"),
    (lambda: secret.lifetime(3, 1, 2, 0), "slide is a whole number"),
    (lambda: ANY.bundle(GAPS, [1]), "or by a whole number >= 1"),
]


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_what_is_not_defined_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(StreamDslError, match=text):
        make()


def test_a_start_rule_may_be_any_function() -> None:
    assert Profile("own", lambda first, size, slide: first - 1, Report(), Tick.TUPLE).start(5, 3, 1) == 4
    assert At(7)(5, 3, 1) == 7


@examples(80)
@given(SEEDS)
def test_where_the_model_says_why_profiles_agree_they_do_on_other_inputs_too(seed: int) -> None:
    rng = Random(seed)
    p = profile(rng)
    q = replace(p, tick=rng.choice(list(Tick)))
    assumption = rng.choice(["no simultaneous tuples", "one tuple per batch"])
    size, slide = rng.randint(1, 5), rng.randint(1, 5)
    tuples = stream(rng, late=False)
    if assumption == "no simultaneous tuples":
        tuples = [each._replace(t_app=5 + 3 * n, bid=n) for n, each in enumerate(tuples, 1)]
    else:
        tuples = [each._replace(bid=n) for n, each in enumerate(tuples, 1)]
    if why(p, q, assumed(assumption)):
        assert secret.compare([p, q], size, slide, tuples).agree


def test_no_reason_is_given_that_does_not_always_hold() -> None:
    """At t0 time alone does not tick, and what an engine does to its input may make tuples simultaneous."""
    at_first = Profile("at first", FromFirst(0, whole=False), Report(), Tick.TUPLE)
    kept = assumed("no simultaneous tuples")
    assert not secret.compare([at_first, replace(at_first, tick=Tick.TIME)], 2, 1, [("a", 3), ("b", 4)]).agree
    assert why(at_first, replace(at_first, tick=Tick.TIME), kept) is None
    halved = secret.CORAL8.fed(lambda tuples: [each._replace(t_app=each.t_app // 2) for each in tuples])
    assert not secret.compare([halved, replace(halved, tick=Tick.TIME)], 2, 1, [("a", 8), ("b", 9), ("c", 12)]).agree
    assert why(halved, replace(halved, tick=Tick.TIME), assumed(["no simultaneous tuples", "one tuple per batch"])) is None


NUMBERS = count()


@pytest.mark.parametrize("aggregate", [lambda values: object(), lambda values: next(NUMBERS)])
def test_outputs_that_are_others_each_time_are_told_from_differences(aggregate: Any) -> None:
    with pytest.raises(StreamDslError, match="STREAM gives other outputs each time it runs"):
        secret.compare([secret.CORAL8, secret.STREAM], 2, 1, GAPS, aggregate)


def test_heartbeats_go_on_from_the_latest_time_whatever_came_late() -> None:
    beaten = secret.max_delay([("a", 100, 10, 1), ("late", 1, 11, 2), ("b", 200, 20, 3), ("c", 150, 21, 4), ("d", 300, 27, 5)], 3)
    assert [(each.t_app, each.t_sys) for each in beaten if each.value is secret.HEARTBEAT] == [(104, 14), (107, 17), (204, 24)]
    assert [each.t_sys for each in beaten] == sorted(each.t_sys for each in beaten)
    assert secret.max_delay([], 3) == []


def test_a_join_is_fed_what_its_engine_makes_of_its_input() -> None:
    sides = secret.Side([("a", 3, 1, 1), ("b", 5, 3, 3)], 2, 1), secret.Side([("x", 3, 2, 2), ("y", 8, 4, 4)], 2, 1)
    plain = secret.simulate_join(secret.CORAL8, *sides)
    shifted = secret.simulate_join(secret.CORAL8.fed(partial(secret.restamp, first=13)), *sides)
    assert plain
    assert [each.t - 10 for each in shifted] == [each.t for each in plain]
    assert [each.pairs for each in shifted] == [each.pairs for each in plain]
    beating = secret.simulate_join(secret.CORAL8.fed(partial(secret.until, time=20)), *sides)
    assert beating[: len(plain)] == plain


def test_an_engine_is_asked_about_the_inputs_that_are_given() -> None:
    inputs: Any = [[({"v": 1}, 3), ({"v": 2}, 3), ({"v": 2}, 4), ({"v": 3}, 9)]]
    engine = lambda size, slide, tuples: secret.simulate(secret.CORAL8, size, slide, tuples)  # noqa: E731
    assert secret.infer(engine, [(2, 1)], inputs=inputs).profile == secret.CORAL8


def test_a_running_simulation_numbers_tuples_that_do_not_say_when_they_arrive() -> None:
    running = secret.Simulation(secret.CORAL8, 3, 1)
    found = [report for each in GAPS for report in running.push(each)]
    assert found == secret.simulate(secret.CORAL8, 3, 1, GAPS).reports
    assert repr(running) == "<Simulation of Coral8, size 3, slide 1, by time: 2 tuples kept>"


@pytest.mark.parametrize("aggregate", [statistics.mean, max, len, sd.avg(lambda e: e)])
def test_an_engine_whose_outputs_are_aggregates_is_explained(aggregate: Any) -> None:
    """Some have no value of nothing, and settings that would report nothing are among those tried."""
    engine = lambda size, slide, tuples: secret.simulate(secret.STREAMBASE, size, slide, tuples, aggregate).outputs  # noqa: E731
    assert secret.infer(engine, [(3, 1)]).profile == secret.STREAMBASE


def test_times_may_be_numbers_of_numpy_and_a_tick_its_word() -> None:
    tuples: Any = [(v, np.int64(t)) for v, t in GAPS]
    size: Any = np.int64(5)
    assert secret.simulate(secret.CORAL8, size, 1, tuples).reports == secret.simulate(secret.CORAL8, 5, 1, GAPS).reports
    word: Any = "time"
    assert secret.ticks(GAPS, 25, word) == secret.ticks(GAPS, 25, Tick.TIME)
    assert replace(secret.CORAL8, tick=word).tick is Tick.TIME
