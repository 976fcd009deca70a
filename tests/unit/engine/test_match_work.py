"""What pattern matching remembers and asks: rows that no step takes, open runs, and a change that is followed."""

from __future__ import annotations

from typing import Any

import streamdsl as sd

Point = tuple[int, int]


def points(*rows: Point) -> list[sd.Event[Any]]:
    return [sd.point(f"e{t}", t, {"v": v}) for t, v in rows]


def events(session: Any) -> int:
    found: int = session.stats()["match_1"]["events"]
    return found


def one_two(p: sd.pattern.Steps[Any]) -> sd.pattern.Pattern[Any]:
    return p.a.where(lambda e: e.v == 1).then(p.b.where(lambda e: e.v == 2)).within(10)


def test_rows_that_no_step_takes_are_not_kept_and_may_go_again() -> None:
    session = sd.source("s").match(one_two).open()
    session.push(points((1, 5), (2, 7)))
    assert events(session) == 0
    assert session.push([sd.Retract("e1", 1, 2, 1)]) == []


def test_after_a_cti_the_events_of_open_runs_are_kept_until_within_has_passed() -> None:
    session = sd.source("s").match(one_two).open()
    session.push([*points((1, 1), (4, 1)), sd.Cti(9)])
    assert events(session) == 2
    session.push([sd.Cti(11)])
    assert events(session) == 1
    assert [event.le for event in session.push(points((12, 2))) if isinstance(event, sd.Insert)] == [12]
    session.push([sd.Cti(13)])
    assert events(session) == 0


def test_a_late_event_may_change_all_later_matches_and_none_before_it() -> None:
    session = sd.source("s").match(lambda p: p.a.then(p.b).within(10), select=lambda m: (m.a.v, m.b.v)).open()
    session.push(points((1, 1), (3, 3), (5, 5), (7, 7), (9, 9), (11, 11)))
    changed = session.push(points((4, 4)))
    assert [(event.le, event.payload) for event in changed if isinstance(event, sd.Insert)] == [
        (5, (4, 5)),
        (9, (7, 9)),
    ]
    assert all(event.le >= 4 for event in changed if not isinstance(event, sd.Cti))


def test_a_predicate_over_what_is_taken_is_not_asked_again_about_runs_that_a_change_leaves_alone() -> None:
    asked: list[tuple[int, int]] = []

    def larger(e: Any, m: Any) -> bool:
        asked.append((m.a.v, e.v))
        return bool(e.v > 3 * m.a.v)

    query = sd.source("s").match(lambda p: p.a.then(p.b.where(lambda e, m: larger(e, m))).within(100), overlapping=True)
    session = query.open()
    session.push(points(*((t, 50 + t) for t in range(20))))
    assert len(asked) == 20 * 19 / 2
    asked.clear()
    session.push([sd.point("late", 5, {"v": 99})])
    assert {run for run, _ in asked} <= {50, 51, 52, 53, 54, 55, 99}
    assert len(asked) < 40
