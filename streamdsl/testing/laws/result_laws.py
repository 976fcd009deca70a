"""Laws of a module's result: it exists, depends on nothing but the members, and does not change later."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from streamdsl.errors import TimestampViolation
from streamdsl.testing.laws.applicability import (
    is_deterministic,
    is_order_insensitive,
    keeps_state,
    may_not_reach_back,
    merges,
    returns_events,
    sees_lifetimes,
)
from streamdsl.testing.laws.law import on_windows
from streamdsl.testing.laws.trials import WindowTrial
from streamdsl.testing.live_window import compute_rows, deep_copy, period_of
from streamdsl.testing.mutation_guard import MutationGuard
from streamdsl.udm.bases import AnyUDA, can_remove
from streamdsl.udm.invoke import MemberRow, member_order, seen
from streamdsl.windows import Output

_ALL_ORDERS = 3
"""The largest number of members of which every order is tried."""


@on_windows(
    hint="a window is never empty, but it may have one member; if the payloads that were made up are not what the module is for, "
    "give some: events=[(le, re, payload), ...]"
)
def answers(trial: WindowTrial) -> None:
    """Every window with members has an answer: one value of an aggregate, an iterable of results of an operator."""
    found = compute_rows(trial.module, trial.members(), trial.window, trial.subject.strictest_clip, Output.ALIGN)
    if isinstance(trial.module, AnyUDA) and isinstance(found[0].payload, Iterator):
        raise trial.breach(f"it returns a {type(found[0].payload).__name__}, which is no value; an aggregate returns one value")


@on_windows(
    keeps_state,
    hint="the methods may change the state that they are given, and return it: end them with `return state`",
)
def states_are_returned(trial: WindowTrial) -> None:
    """Every method that changes a state returns it."""
    module, window = trial.module, trial.live()
    if window.state is None:
        return
    every = window.seen(trial.members())
    one = {} if module.vectorized else {"event": every[0]}
    for what, given in {**one, "events": every}.items():
        state = _returned(trial, f"add_{what}_to_state", module.create_state(), given, *window.period)
        if can_remove(module):
            _returned(trial, f"remove_{what}_from_state", state, given, *window.period)
    if merges(module):
        _returned(trial, "merge_states", window.state, module.create_state())


def _returned(trial: WindowTrial, method: str, *arguments: Any) -> Any:
    state = getattr(trial.module, method)(*arguments)
    if state is None:
        raise trial.breach(f"{method} returns None")
    return state


@on_windows(
    sees_lifetimes,
    hint="members may begin before their window and end after it, or never (INFINITY); if queries always clip, say how: "
    "clips=[sd.Clip.FULL]",
)
def clipping(trial: WindowTrial) -> None:
    """There is an answer however the window clips its members."""
    for clip in trial.subject.clips:
        try:
            compute_rows(trial.module, trial.members(), trial.window, clip, Output.ALIGN)
        except Exception as error:
            raise trial.clipped(clip).failure(error) from error


@on_windows(
    returns_events,
    may_not_reach_back,
    hint="start results at max(event.start_time, window.start_time); or say that queries cut or replace its stamps: "
    "output=sd.Output.CLIP",
)
def no_output_in_the_past(trial: WindowTrial) -> None:
    """No result starts before its window."""
    for clip in trial.subject.clips:
        try:
            compute_rows(trial.module, trial.members(), trial.window, clip, Output.UNCHANGED)
        except TimestampViolation as violation:
            raise trial.clipped(clip).breach(str(violation).splitlines()[0]) from violation


@on_windows(hint="work on a copy: sorted(payloads) instead of payloads.sort(); the engine still needs what it lends")
def inputs_not_mutated(trial: WindowTrial) -> None:
    """The module changes neither the payloads and events that it is given nor the sequence that holds them."""
    for guarded in _guard_states(trial) if trial.module.incremental else [_guard(trial)]:
        if guarded.is_changed():
            raise trial.breach("what it was given is no longer what it was", found=repr(guarded.value))


def _guard(trial: WindowTrial) -> MutationGuard:
    guarded = MutationGuard(seen(trial.module, trial.members(), 0, trial.window, trial.clip))
    result = trial.module.compute_result(guarded.value, *period_of(trial.module, trial.window))
    _ = result if isinstance(trial.module, AnyUDA) else list(result)
    return guarded


def _guard_states(trial: WindowTrial) -> Iterator[MutationGuard]:
    """Yield what was lent to a state whose result was computed, and to one that it was removed from."""
    for remove in (False, True):
        window = trial.live()
        guarded = MutationGuard(window.seen(trial.members()))
        state = trial.module.add_events_to_state(window.state, guarded.value, *window.period)
        if not remove:
            window.with_state(state).result()
        elif can_remove(trial.module):
            trial.module.remove_events_from_state(state, guarded.value, *window.period)
        yield guarded


@on_windows(
    is_deterministic,
    hint="a result is a function of the window's members alone: no clock, no chance, nothing kept in self or in globals from one "
    "window to the next, and results that compare by value; else claim deterministic = False",
)
def deterministic(trial: WindowTrial) -> None:
    """Equal members give equal results, whatever was computed before."""
    first = trial.answer(trial.members())
    trial.expect("computed again, it gives another result", trial.answer(trial.members()), first)
    some = (len(trial.example.rows) + 1) // 2
    for before, after in ((some, None), (None, some)):
        used, members = trial.subject.fresh(), trial.members()[:after]
        trial.answer(trial.members()[:before], used)
        what = f"computed after {'some' if before else 'more'} of the members, it gives another result than at first"
        marked = [("", members), ("before", trial.members()[len(members) :])]
        trial.expect(what, trial.answer(members, used), trial.answer(members, trial.subject.fresh()), marked)


@on_windows(
    hint="return a copy, such as list(state); or build the result anew each time",
    least=2,
)
def result_not_aliased(trial: WindowTrial) -> None:
    """A result that was returned is not changed by what the module does later."""
    *rest, last = trial.members()
    window = trial.live(rest) if keeps_state(trial.subject) is None else None
    result = window.result() if window else compute_rows(trial.module, rest, trial.window, trial.clip, trial.subject.output)
    before = deep_copy(result)
    if window:
        window.add(last)
    else:
        trial.answer([*rest, last])
    trial.expect("a result was changed after it had been returned", result, before, [("", rest), ("+", [last])])


@on_windows(
    is_deterministic,
    is_order_insensitive,
    hint="members are a bag: sort them by what they are before their order matters, or claim order_insensitive = False",
    least=2,
)
def order_insensitive(trial: WindowTrial) -> None:
    """Members in any order give the same result."""
    first = trial.answer(trial.members())
    for order in _orders(trial):
        found = trial.answer(order)
        trial.expect("in another order, its members give another result", found, first, [("", order)])


def _orders(trial: WindowTrial) -> Iterator[Sequence[MemberRow]]:
    members = trial.members()
    if len(members) <= _ALL_ORDERS:
        yield from (list(order) for order in itertools.permutations(members))
        return
    yield members[::-1]
    yield sorted(members, key=member_order)
    for _ in range(4):
        yield trial.rng.sample(members, len(members))


LAWS = (
    states_are_returned,
    answers,
    clipping,
    no_output_in_the_past,
    inputs_not_mutated,
    deterministic,
    result_not_aliased,
    order_insensitive,
)
