"""What runs, batch by batch, is what the whole input gives; and it forgets."""

from __future__ import annotations

from typing import Any

import pytest

import streamdsl as sd
from streamdsl import cql
from streamdsl.errors import EventError, FieldNotFound, QueryError, SessionError
from streamdsl.papers.cql import relation_session
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS
from tests.laws.test_cql import Data, bag, data, query, ranked


@pytest.mark.parametrize("many", [1, 256])
@examples(40)
@given(SEEDS)
def test_a_session_gives_what_the_whole_input_gives(many: int, seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    semantics: Any = rng.choice(["delta", "difference"])
    made = query(rng, known).made
    session = made.open(semantics=semantics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation_session, "_MIN_SPLIT", many)
        came, went = run(rng, session, known)
    assert bag(came) == bag(made.istream(semantics).events())
    assert bag(went) == bag(made.dstream(semantics).events())
    states = made.states()
    if semantics == "delta" and states:
        assert bag(session.state()) == bag(states[-1][1])


@examples(40)
@given(SEEDS)
def test_windows_on_derived_streams_run_with_their_relation(seed: int) -> None:
    rng = Random(seed)
    known = data(rng)
    inner = query(rng, known, 1).made.select(lambda e: e.value)
    derived = rng.choice([inner.istream, lambda: inner.dstream("difference"), inner.rstream])()
    n = rng.randint(1, 3)
    windows = [
        derived.rows(n),
        derived.range(n),
        derived.rows(n, slide=2),
        derived.keep(n),
        derived.partition_by("value").rows(n),
    ]
    made = rng.choice(windows).join(derived.range(1), on="value", select=lambda one, other: {"value": one.value, "t": other.t})
    came, went = run(rng, made.open(), known)
    assert bag(came) == bag(made.istream().events())
    assert bag(went) == bag(made.dstream().events())


def run(rng: Random, session: cql.RelationSession, known: Data) -> tuple[list[Any], list[Any]]:
    """Push a group's batches, one or several at once, from the first timestamp of its span to the last."""
    tuples = sorted(((at, name, v) for name, rows in known.streams.items() for v, at in rows), key=lambda each: each[0])
    came, went = [], []
    session.advance(known.span[0])
    batches = sorted({at for at, _, _ in tuples})
    while batches:
        now, batches = batches[: (size := rng.randint(1, 4))], batches[size:]
        changes = [session.push([(name, v, *at) for at, name, v in tuples if at in now])]
        if rng.random() < 0.3:
            over = not batches or batches[0][0] > now[-1][0]
            changes.append(session.advance(now[-1][0] + over))
        came += [event for each in changes for event in each.istream]
        went += [event for each in changes for event in each.dstream]
    last = session.advance(known.span[1] + 1)
    return came + last.istream, went + last.dstream


@examples(60)
@given(SEEDS)
def test_a_running_spread_gives_the_batches_of_spread_whatever_the_order_of_arrival(seed: int) -> None:
    rng = Random(seed)
    g, whole = ranked(rng), rng.random() < 0.5
    on: Any = rng.choice(["a", ["a", "b"], "t"])
    waiting = [(name, payload, *at) for name in g for at, payload in g[name].events()]
    rng.shuffle(waiting)
    running, found = cql.RunningSpread(on=on, all=whole), []
    while waiting:
        running.push([waiting.pop()])
        if rng.random() < 0.5 and waiting:
            t, i, value = min((t, 0 if whole else i, p["a"]) for _, p, t, i in waiting)
            close: dict[str, Any] = {} if whole else {"i": i}
            if on != "t" and rng.random() < 0.7:
                close["on"] = value
            found += running.advance(t, **close)
            assert running.held <= sum(map(len, (g[name].payloads for name in g))) - len(waiting) - len(found)
    found += running.close()
    made = cql.spread(g, ["S", "T"], on=on, all=whole)
    assert [each[2:] for each in found] == sorted(each[2:] for each in found)
    assert bag(found) == bag([(name, payload, *at) for name in made for at, payload in made[name].events()])


def test_an_attribute_releases_a_batch_before_its_timestamp_is_over() -> None:
    running = cql.RunningSpread(on="rank", all=True)
    running.push([("S", {"rank": 1}, 5), ("S", {"rank": 2}, 5)])
    assert running.advance(5) == []
    assert running.advance(5, on=2) == [("S", {"rank": 1}, 5, 1)]
    with pytest.raises(EventError, match="nothing comes any more before 5, attribute 2"):
        running.push([("S", {"rank": 1}, 5)])


def test_without_an_attribute_each_tuple_is_alone() -> None:
    running = cql.RunningSpread()
    running.push([("S", "a", 1), ("S", "b", 1), ("T", "c", 1)])
    assert running.advance(2) == [("S", "a", 1, 1), ("S", "b", 1, 2), ("T", "c", 1, 3)]


def test_late_batches_and_unknown_streams_are_refused() -> None:
    session = cql.stream_group(S=[]).S.rows(1).open()
    session.push([("S", "a", 1)])
    with pytest.raises(QueryError, match=r"batch \(1, 1\) is over"):
        session.push([("S", "b", 1)])
    with pytest.raises(QueryError, match="no stream 'T'; its streams are: S"):
        session.push([("T", "b", 2)])
    session.advance(5)
    with pytest.raises(QueryError, match=r"batch \(4, 1\) is over"):
        session.push([("S", "b", 4)])


@pytest.mark.parametrize("until", [2, 6])
def test_what_advance_has_said_is_over_holds_for_the_timestamp_that_came_last_too(until: int) -> None:
    session = cql.stream_group(S=[]).S.range(1).select(lambda e: e.value).open()
    session.push([("S", "a", 1, 1)])
    assert session.push([("S", "b", 1, 2)]).istream == [((1, 2), "b")]
    session.advance(until)
    with pytest.raises(QueryError, match=r"batch \(1, 3\) is over"):
        session.push([("S", "c", 1, 3)])
    assert session.push([("S", "d", until)]).istream == [((until, 1), "d")]


@pytest.mark.parametrize("wrong", [5, [5], [("S", "a")], ("S", "a", 1), "abc", [(1, "a", 1)]])
def test_what_is_no_list_of_tuples_is_refused(wrong: Any) -> None:
    session, ordered = cql.stream_group(S=[]).S.rows(1).open(), cql.RunningSpread()
    for push in (session.push, ordered.push):
        with pytest.raises(QueryError, match=r"is no list of tuples|is no tuple of a stream that it names"):
            push(wrong)
    for advance in (session.advance, ordered.advance):
        with pytest.raises(QueryError, match="a timestamp is a whole number"):
            advance("soon")  # type: ignore[arg-type]


def test_of_a_refused_push_a_running_spread_takes_nothing() -> None:
    ordered = cql.RunningSpread(on="rank")
    ordered.advance(3, 2)
    with pytest.raises(EventError, match="nothing comes any more before 3, batch 2, and this tuple is of the timestamp 3"):
        ordered.push([("S", {"rank": 1}, 3, 2), ("S", {"rank": 1}, 3, 1)])
    with pytest.raises(FieldNotFound):
        ordered.push([("S", {"rank": 1}, 4), ("S", {"v": 1}, 4)])
    assert ordered.held == 0
    ordered.close()
    with pytest.raises(EventError, match="it is closed"):
        ordered.push([("S", {"rank": 1}, 9)])


def test_what_runs_shows_what_it_holds() -> None:
    session, ordered = cql.stream_group(S=[]).S.rows(1).open(), cql.RunningSpread(on="rank", all=True)
    session.push([("S", "a", 1)])
    ordered.push([("S", {"rank": 1}, 3)])
    assert repr(session) == "<RelationSession on S: 1 tuples held>"
    assert repr(ordered) == "<RunningSpread ALL: 1 tuples wait>"


def test_a_refused_push_changes_nothing_and_a_failed_one_ends_the_session() -> None:
    session = cql.stream_group(S=[]).S.partition_by("k").rows(1).open()
    session.push([("S", {"k": 1}, 1)])
    with pytest.raises(QueryError, match="inconsistent"):
        session.push([("S", {"k": 1}, 3, 1), ("S", {"k": 1}, 2, 1)])
    assert session.push([("S", {"k": 1}, 2)]).dstream == [((2, 1), {"k": 1, "t": 1})]
    with pytest.raises(FieldNotFound, match="no field 'k'"):
        session.push([("S", {"v": 1}, 3)])
    with pytest.raises(SessionError, match="broke off"):
        session.push([("S", {"k": 1}, 4)])


def test_single_tuples_are_numbered_on_from_push_to_push() -> None:
    session = cql.stream_group(S=[]).S.rows(1).select(lambda e: e.value).open(batching=cql.STREAMBASE)
    assert session.push([("S", "a", 1), ("S", "b", 1)]).istream == [((1, 1), "a"), ((1, 2), "b")]
    assert session.push([("S", "c", 1), ("S", "d", 2)]).istream == [((1, 3), "c"), ((2, 1), "d")]


def test_output_every_is_not_windowed_in_a_session() -> None:
    late = cql.stream_group(S=[("a", 1)]).S.rows(1).output_every(1)
    with pytest.raises(QueryError, match="output_every"):
        late.rows(1).open()


S = cql.stream_group(S=[]).S
WINDOWS = {
    "rows": S.rows(20),
    "range": S.range(20),
    "range of its own": S.range(20, clock="stream"),
    "rows slide": S.rows(3, slide=50),
    "range slide": S.range(20, slide=7),
    "keep": S.keep(20),
    "partition": S.partition_by("key").rows(2),
}


@pytest.mark.parametrize("kind", WINDOWS)
def test_what_a_window_holds_is_bounded(kind: str) -> None:
    session = WINDOWS[kind].aggregate(n=sd.count()).open()
    sizes = []
    for t in range(0, 6000, 50):
        session.push([("S", {"key": n % 10}, n) for n in range(t, t + 50)])
        figures = session.stats()
        sizes.append((figures["windows"]["tuples"], sum(each.get("events", 0) for each in figures.values())))
    assert max(sizes[60:]) <= max(sizes[:60])
    assert max(held for held, _ in sizes) <= 150
