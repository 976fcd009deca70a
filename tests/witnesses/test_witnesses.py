"""Profiles of engines give the answers that the engines gave, and no profile that is a setting away does.

`python -m benchmarks.engines.record` runs the engines and writes the answers, those of each engine to a file of this folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

import streamdsl as sd
from streamdsl import secret
from streamdsl.papers.secret import known_engines
from streamdsl.papers.secret.inference import _candidates
from streamdsl.papers.secret.search import some
from streamdsl.secret import At, FromFirst, Grid, Profile, Scope, Since, Tick, Tuple
from tests.golden.test_golden_000 import OPS, PROFILES, load

FOLDER: Final = Path(__file__).parent
SEARCHED: Final = 24
"""So many inputs of each window are tried to tell a profile from one that is a setting away."""


@dataclass(frozen=True)
class Recorded:
    """An engine's answers, with the profile that is to give them."""

    profile: Profile
    ended: bool
    late: str
    witnesses: list[dict[str, Any]]
    beyond: list[dict[str, Any]]

    @property
    def windows(self) -> list[tuple[int, int]]:
        return sorted({(each["size"], each["slide"]) for each in self.witnesses})


def read(path: Path) -> Recorded:
    found = json.loads(path.read_text())
    return Recorded(getattr(secret, found["profile"]), *(found[name] for name in ("ended", "late", "witnesses", "beyond")))


FILES: Final = {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}
NAMES: Final = pytest.mark.parametrize("name", FILES)


def ended(feed: Any, size: int, slide: int, tuples: Sequence[Tuple]) -> list[Tuple]:
    """What an engine makes of its input, and then a heartbeat after all of it."""
    found = list(tuples) if feed is None else list(feed(tuples))
    return secret.until(found, max(each.t_app for each in found) + size + 2 * slide + 1)


def reads(profile: Profile, size: int, slide: int, ends: bool) -> Profile:
    """Return a profile that reports the rest at its end, if it does."""
    return profile.fed(partial(ended, profile.feed, size, slide)) if ends else profile


def answer(profile: Profile, size: int, slide: int, tuples: Any, ends: bool) -> list[list[int]]:
    return list(map(sorted, secret.simulate(reads(profile, size, slide, ends), size, slide, tuples).outputs))


def gives(profile: Profile, witness: dict[str, Any], ends: bool) -> bool:
    """Say whether a profile gives what the engine gave."""
    return bool(answer(profile, witness["size"], witness["slide"], witness["tuples"], ends) == witness["outputs"])


@NAMES
def test_a_profile_gives_the_answers_of_its_engine(name: str) -> None:
    found = FILES[name]
    wrong = [each for each in found.witnesses if not gives(found.profile, each, found.ended)]
    for each in wrong[:1]:
        expected = answer(found.profile, each["size"], each["slide"], each["tuples"], found.ended)
        assert each["outputs"] == expected, f"{len(wrong)} of {len(found.witnesses)}: {each}"
    assert found.witnesses


@NAMES
def test_a_query_under_a_profile_gives_the_answers_of_its_engine(name: str) -> None:
    found = FILES[name]
    for each in found.witnesses:
        size, slide = each["size"], each["slide"]
        names = ("v", "t", "s", "b")
        rows = sd.from_events(
            [sd.point(n, row[1], sd.Record(zip(names, row, strict=True))) for n, row in enumerate(each["tuples"])]
        )
        query = rows.hopping_window(size, slide).aggregate(all=sd.collect(lambda e: e.v))
        trace = query.as_of(reads(found.profile, size, slide, found.ended), t_app="t", t_sys="s", bid="b")
        assert [sorted(output.all) for output in trace.outputs] == each["outputs"], each


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_of_the_paper_has_witnesses_in_its_tables(profile: str) -> None:
    """Oracle CEP follows STREAM (B.3)."""
    cases = [case.values[0] for case in load()]
    told = "STREAM" if PROFILES[profile] == replace(secret.STREAM, name=profile) else profile
    named: list[Any] = [case for case in cases if case["params"].get("profile") == told]
    assert {case["op"] for case in named} >= {"t0"}
    assert {case["op"] for case in named} & {"simulate", "aggregate"}
    for case in named:
        params = {**case["params"], "profile": profile}
        assert OPS[case["op"]]({**case, "params": params}) == case["expected"]


def test_each_profile_of_an_engine_of_today_has_witnesses() -> None:
    recorded = {json.loads(path.read_text())["profile"] for path in FOLDER.glob("*.json")}
    assert recorded == {name for name, value in vars(known_engines).items() if isinstance(value, Profile)}, "run `make profile`"


FEEDS: Final = {
    "as it comes": None,
    "as a table": secret.in_order,
    "at the ends of batches": secret.at_batch_ends,
    "a batch behind": partial(secret.at_batch_ends, behind=1),
    "two batches behind": partial(secret.at_batch_ends, behind=2),
    "without late ones": partial(secret.slack, delay=0),
    "late ones wait": partial(secret.slack, delay=1),
    "by arrival": secret.system_time,
    "batches by time": partial(secret.bundle, by="time"),
}
STARTS: Final[tuple[Any, ...]] = (
    *(Grid(shift, whole) for shift, whole in product((-2, -1, 0), (True, False))),
    *(FromFirst(shift, whole) for shift, whole in product((-1, 0), (True, False))),
    *(Since(time) for time in (-5, 0, 1)),
    At(0),
    At(-1),
)


def others(given: Recorded) -> Iterator[tuple[str, Profile, bool]]:
    """Yield what is one setting away from an engine's profile."""
    profile, report = given.profile, given.profile.report
    yield "reports the rest, or not", profile, not given.ended
    made = {f"t0 {start}": replace(profile, t0=start) for start in STARTS}
    made |= {f"{tick}": replace(profile, tick=tick) for tick in Tick}
    made |= {f"{scope}": replace(profile, scope=scope) for scope in Scope}
    if given.late != "refused":
        made |= {f"is fed {how}": replace(profile, feed=feed) for how, feed in FEEDS.items() if not _same(feed, profile.feed)}
    for name in ("content_change", "window_close", "non_empty"):
        made[name] = replace(profile, report=replace(report, **{name: not getattr(report, name)}))
    made |= {f"every {period}": replace(profile, report=replace(report, periodic=period)) for period in (2, 3)}
    for name, other in made.items():
        if other != profile:
            yield name, other, given.ended


def _same(feed: Any, other: Any) -> bool:
    return feed == other or (isinstance(feed, partial) and isinstance(other, partial) and repr(feed) == repr(other))


def is_told(given: Recorded, other: Profile, ends: bool) -> bool:
    return any(not gives(other, each, ends) for each in given.witnesses)


@cache
def searched(size: int, slide: int, late: str) -> list[list[Tuple]]:
    """Return inputs that nothing was recorded of; every second one in such disorder as an engine is asked about."""
    move = {"refused": lambda each, n: each, "as its profile": _late, "beyond the model": _by_instant}[late]
    return [move(each, n) if n % 2 else each for n, each in enumerate(some(size, slide, SEARCHED))]


def _late(tuples: list[Tuple], seed: int) -> list[Tuple]:
    rng = Random(seed)
    return _moved(tuples, sorted(tuples, key=lambda each: each.t_app + rng.choice([0, 0, 2, 5])))


def _by_instant(tuples: list[Tuple], seed: int) -> list[Tuple]:
    return secret.bundle(tuples, "time")


def _moved(tuples: list[Tuple], moved: list[Tuple]) -> list[Tuple]:
    return [each._replace(t_sys=place.t_sys, bid=place.bid) for each, place in zip(moved, tuples, strict=True)]


def counterexample(given: Recorded, other: Profile, ends: bool) -> tuple[int, int, list[Tuple]] | None:
    """Return an input that the engine takes, on which its profile and one that is a setting away differ."""
    for size, slide in given.windows:
        for tuples in searched(size, slide, given.late):
            ours = answer(given.profile, size, slide, tuples, given.ended)
            if ours != answer(other, size, slide, tuples, ends):
                return size, slide, tuples
    return None


ONCE: Final = frozenset({"Tick.TUPLE", "Tick.TIME", "Tick.BATCH", "Scope.LAST_CLOSED", "Scope.ALL_OPEN"})
"""An engine that reports a window when it closes, of tuples in order, does so once, whatever it ticks at."""


def nothing_tells(given: Recorded) -> frozenset[str]:
    """Return what is a setting away and gives all the same answers.

    Open windows do not change to nothing, and slots that do not overlap begin with that of the first tuple.
    """
    if not given.profile.report.window_close:
        return frozenset({"non_empty"})
    return ONCE | ({f"t0 {Grid(whole=False)}"} if all(size == slide for size, slide in given.windows) else set())


@NAMES
def test_what_is_a_setting_away_fails_a_witness_unless_nothing_tells_it(name: str) -> None:
    found = FILES[name]
    unseen = {other: (made, ends) for other, made, ends in others(found) if not is_told(found, made, ends)}
    assert unseen.keys() <= nothing_tells(found), "there is no witness of it: record one"
    assert {other: shown for other, made in unseen.items() if (shown := counterexample(found, *made))} == {}


@pytest.mark.parametrize("name", [name for name, found in FILES.items() if found.beyond])
def test_what_is_beyond_the_model_no_settings_explain(name: str) -> None:
    found = FILES[name]
    assert found.late == "beyond the model"
    for made in (replace(each, feed=feed) for each in _candidates() for feed in (None, found.profile.feed)):
        assert not all(gives(made, each, found.ended) for each in found.beyond)
