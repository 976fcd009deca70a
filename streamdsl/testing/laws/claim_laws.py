"""Laws of a module's claims, on which the optimizer relies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamdsl.temporal import INFINITY, CHTRow, Lifetime, Record, fields_of, payload_key
from streamdsl.temporal.change import minimal_change
from streamdsl.testing.laws.applicability import (
    claims,
    claims_reads,
    is_deterministic,
    returns_events,
    sees_lifetimes,
)
from streamdsl.testing.laws.law import on_windows
from streamdsl.testing.laws.trials import WindowTrial
from streamdsl.testing.live_window import compute_rows, deep_copy, member, returned_events
from streamdsl.testing.random_payloads import with_fields
from streamdsl.udm.invoke import MemberRow
from streamdsl.windows import Output


@on_windows(
    claims("time_bound"),
    returns_events,
    is_deterministic,
    hint="results that begin before the change stay as they are until its sync time; else do not claim time_bound, and use "
    "another output policy than TIME_BOUND",
)
def time_bound(trial: WindowTrial) -> None:
    """A change of the input at time s changes no output before s."""
    *rest, last = trial.members()
    for before, after in _changes(last, trial.window):
        sync = last.le if before is None or after is None else min(before.re, after.re)
        old, new = (_answer(trial, [*rest, one] if one else rest) for one in (before, after))
        early = [change for change in minimal_change(old, new) if change.sync < sync]
        if early:
            marks = [("", rest), *((mark, [one]) for mark, one in (("-", before), ("+", after)) if one)]
            raise trial.breach(
                f"a change at {sync} changes the output at {min(change.sync for change in early)}",
                marks,
                expected=f"before {sync} what was there: {trial.shown(old)}",
                found=trial.shown(new),
            )


def _answer(trial: WindowTrial, members: list[MemberRow]) -> list[CHTRow[Any]]:
    members = [row for row in members if Lifetime(row.le, row.re).overlaps(trial.window)]
    return compute_rows(trial.module, members, trial.window, trial.clip, Output.TIME_BOUND) if members else []


def _changes(row: MemberRow, window: Lifetime) -> Iterator[tuple[MemberRow | None, MemberRow | None]]:
    """Yield what may happen to an event, as what it was and what it is: it comes, it goes, its end moves."""
    yield None, row
    yield row, None
    for end in {row.le + 1, (window.le + window.re) // 2, window.re, window.re + 2, INFINITY}:
        if row.le < end != row.re:
            yield row, row._replace(re=end)


@on_windows(
    claims_reads,
    is_deterministic,
    hint="list every field that the module reads; None, the default, means that it may read all",
)
def reads(trial: WindowTrial) -> None:
    """The fields that `reads` does not list never matter."""
    listed = set(trial.module.reads or ())
    members = trial.members()
    unknown = listed - {name for row in members for name, _ in fields_of(row.payload)}
    if unknown:
        known = ", ".join(name for name, _ in fields_of(members[0].payload))
        raise trial.breach(f"it claims to read {', '.join(sorted(unknown))}; the fields are: {known}")
    changed = [_with_others(trial, row, listed) for row in members]
    expected, both = trial.answer(members), [("", members), ("or", changed)]
    trial.expect("members that differ in other fields only give another result", trial.answer(changed), expected, both)
    narrow = [_narrowed(row, listed) for row in members]
    trial.expect("records without the other fields give another result", trial.answer(narrow), expected, [("", narrow)])


def _narrowed(row: MemberRow, kept: set[str]) -> MemberRow:
    """Return a member without the fields that are not kept, if it is a record: the optimizer leaves them behind."""
    if not isinstance(row.payload, Mapping):
        return row
    return member(CHTRow(row.le, row.re, Record({name: row.payload[name] for name in row.payload if name in kept})))


def _with_others(trial: WindowTrial, row: MemberRow, kept: set[str]) -> MemberRow:
    """Return a member with other values in the fields that are not kept."""
    names = {name for name, _ in fields_of(row.payload)}
    donor = dict(fields_of(trial.subject.draw_payload(trial.rng)))
    payload = with_fields(row.payload, {name: donor[name] for name in names - kept if name in donor})
    return member(CHTRow(row.le, row.re, payload))


@on_windows(
    claims("commutes_with_filter_on"),
    is_deterministic,
    hint="a result carries such a field unchanged from the members that it is made of, and from no others: as a key does",
)
def commutes_with_filter_on(trial: WindowTrial) -> None:
    """To filter the results by the fields of `commutes_with_filter_on` is to filter the members by them."""
    members = trial.members()
    results = trial.answer(members)
    for name in trial.module.commutes_with_filter_on:
        for what, payloads in (("members", [row.payload for row in members]), ("results", [row.payload for row in results])):
            if not all(name in dict(fields_of(payload)) for payload in payloads):
                raise trial.breach(f"it claims to commute with a filter on {name!r}, a field that not all {what} have")
        for chosen in _subsets(trial, name, members, results):
            found = [row for row in results if _value(row.payload, name) in chosen]
            kept = [row for row in members if _value(row.payload, name) in chosen]
            marked = [("" if row in kept else "out", [row]) for row in members]
            expected = trial.answer(kept) if kept else []
            trial.expect(f"the results filtered by {name!r} are not those of the filtered members", found, expected, marked)


def _subsets(trial: WindowTrial, name: str, *rows: Any) -> Iterator[set[Any]]:
    """Yield sets of a field's values: each is a filter."""
    values = sorted({_value(row.payload, name) for found in rows for row in found}, key=repr)
    yield from ({value} for value in values)
    yield {value for value in values if trial.rng.random() < 0.5}


def _value(payload: Any, name: str) -> Any:
    return payload_key(dict(fields_of(payload))[name])


@on_windows(
    claims("ignores_ends_beyond_window"),
    sees_lifetimes,
    is_deterministic,
    hint="read no ends, or min(event.end_time, window.end_time), for the stamps of results too; else do not claim "
    "ignores_ends_beyond_window: queries may still clip",
)
def ignores_ends_beyond_window(trial: WindowTrial) -> None:
    """Members that end after their window count as those that end with it, also in the timestamps of results."""
    members = trial.members()
    cut = [row._replace(re=min(row.re, trial.window.re)) for row in members]
    expected, found = (deep_copy(returned_events(trial.module, rows, trial.window, trial.clip)) for rows in (members, cut))
    both = [("", members), ("or", cut)]
    trial.expect("members that end with their window give another result", found, expected, both)


LAWS = (time_bound, reads, commutes_with_filter_on, ignores_ends_beyond_window)
