"""Laws of an incremental module's state: it follows the members, and can be copied, merged and pickled."""

from __future__ import annotations

from typing import Final

from streamdsl.testing.laws.applicability import (
    claims,
    is_deterministic,
    is_order_insensitive,
    keeps_state,
    merges,
    removes,
    takes_sets,
)
from streamdsl.testing.laws.law import on_large_windows, on_windows
from streamdsl.testing.laws.trials import Parts, WindowTrial
from streamdsl.testing.live_window import LiveWindow, deep_copy, equal_copy
from streamdsl.testing.pickling import PickleStore
from streamdsl.udm.bases import can_remove
from streamdsl.udm.invoke import MemberRow

_STEPS = 8
"""How often members are added to a state, or removed from it."""
_OF_FLOATS: Final = (
    "a float sum does not ((1.0 + 1e16) - 1e16 is 0.0): keep fractions, integers or counts; leave it out, and the engine "
    "computes such windows anew; or claim how far floats may be off: float_error = 1e-6"
)


@on_windows(
    keeps_state,
    is_deterministic,
    hint="compute_result only reads the state: work on a copy of what it changes",
)
def computing_keeps_state(trial: WindowTrial) -> None:
    """Computing the result does not change the state."""
    window = trial.live(trial.members())
    first = deep_copy(window.result())
    trial.expect("computed again from the same state, it gives another result", window.result(), first)


@on_windows(
    keeps_state,
    is_deterministic,
    takes_sets,
    hint="add_events_to_state and remove_events_from_state do what the methods for one member do, for each of a set",
)
def sets_equal_singles(trial: WindowTrial) -> None:
    """A set of members changes the state as its members do one by one."""
    together, singly = trial.live(trial.members()), trial.live()
    for one in trial.members():
        (seen,) = singly.seen([one])
        singly.state = trial.module.add_event_to_state(singly.state, seen, *singly.period)
    trial.expect("added as a set, members give another result than one by one", together.result(), singly.result())
    *kept, _ = trial.members()
    if not kept or not can_remove(trial.module):
        return
    gone = trial.members()[: len(kept)]
    together.remove(*gone)
    for one in gone:
        (seen,) = singly.seen([one])
        singly.state = trial.module.remove_event_from_state(singly.state, seen, *singly.period)
    marked = [("", trial.members()), ("-", gone)]
    what = "removed as a set, members leave another result than one by one"
    trial.expect(what, together.result(), singly.result(), marked, together.members)


@on_windows(
    keeps_state,
    is_deterministic,
    removes,
    hint=f"remove_event_from_state takes back exactly what add_event_to_state did; {_OF_FLOATS}",
)
def remove_undoes_add(trial: WindowTrial) -> None:
    """Removing a member that was added leaves the state as it was."""
    *rest, last = trial.members()
    window = trial.live(rest)
    window.add(last)
    window.remove(equal_copy(last))
    marked = [("", rest), ("+", [last]), ("-", [last])]
    if not rest:
        window.add(last)
        marked.append(("+", [last]))
    expected = trial.answer(rest or [last])
    trial.expect("a member that was added and removed has left a trace", window.result(), expected, marked, rest or [last])


@on_windows(
    keeps_state,
    is_deterministic,
    hint="a state is a function of the members that are there, not of those that have been: what a removal may need again (the "
    "second largest value, a count of equal ones) must be in the state too",
)
def incremental_equals_recompute(trial: WindowTrial) -> None:
    """However members came and went, the result is that of a fresh state with the members that are left."""
    window, waiting = trial.live(), trial.members()
    steps: list[tuple[str, list[MemberRow]]] = []
    for _ in range(_STEPS + len(waiting)):
        present = window.members
        goes = bool(present) and (not waiting or trial.rng.random() < 0.4)
        source = present if goes else waiting
        chosen = source[trial.rng.randrange(len(source))]
        if goes:
            window.remove(equal_copy(chosen))
            waiting.append(chosen)
        else:
            waiting.remove(chosen)
            window.add(chosen)
        steps.append(("-" if goes else "+", [chosen]))
        if window.members:
            _expect_fresh(trial, window, steps)


@on_large_windows(
    keeps_state,
    is_deterministic,
    hint=f"what a removal may need again must be in the state, however many members there are: the few largest values are not "
    f"enough for a maximum; {_OF_FLOATS}",
    share=0.4,
)
def what_has_gone_leaves_no_trace(trial: WindowTrial) -> None:
    """However many members have come and gone, in any order, the result is that of those that are left."""
    window, members = trial.live(), trial.members()
    steps = [("+", members)]
    window.add(*members)
    for left in (trial.rng.randint(1, 3), len(members) // 3):
        gone = trial.rng.sample(window.members, max(0, len(window.members) - left))
        for part in [[row] for row in gone] if can_remove(trial.module) else [gone]:
            window.remove(*map(equal_copy, part))
        steps.append(("-", gone))
        _expect_fresh(trial, window, steps)
        back = trial.rng.sample(gone, len(gone) // 2)
        window.add(*back)
        steps.append(("+", back))
        _expect_fresh(trial, window, steps)


def _expect_fresh(trial: WindowTrial, window: LiveWindow, steps: Parts) -> None:
    """Raise `Breach` unless a window's state gives what a fresh one with the same members gives."""
    fresh = trial.answer(deep_copy(window.members))
    what = "the state and the members that are left give different results"
    trial.expect(what, deep_copy(window.result()), fresh, steps, window.members)


@on_windows(
    keeps_state,
    is_deterministic,
    hint="copy_state returns a state that shares nothing that changes; the default, copy.deepcopy, does",
    least=2,
)
def state_copyable(trial: WindowTrial) -> None:
    """A copy of a state has the same content, and a change of one is no change of the other."""
    *rest, last = trial.members()
    window = trial.live(rest)
    before = deep_copy(window.result())
    copy = window.with_state(trial.module.copy_state(window.state))
    trial.expect("a copy of the state gives another result", deep_copy(copy.result()), before, [("", rest)])
    copy.add(last)
    marked = [("", rest), ("+", [last])]
    trial.expect("a change of the copy has changed the state", deep_copy(window.result()), before, marked)
    changed = deep_copy(copy.result())
    window.add(last)
    if can_remove(trial.module):
        window.remove(rest[0])
    trial.expect("a change of the state has changed its copy", deep_copy(copy.result()), changed, marked)


@on_windows(
    claims("mergeable"),
    is_deterministic,
    is_order_insensitive,
    hint="merge_states(a, b) returns the state of the members of both; it may change and return a, and keeps no part of b; a "
    "module without it is not mergeable",
    least=2,
)
def merge_agrees(trial: WindowTrial) -> None:
    """Merging the states of parts gives the state of all members, however they are grouped."""
    *members, extra = trial.members()
    if not merges(trial.module):
        raise trial.breach("it claims mergeable, and defines no merge_states")
    cut = trial.rng.randint(0, len(members))
    left, right = trial.live(members[:cut]), trial.live(members[cut:])
    merged = left.with_state(trial.module.merge_states(left.state, right.state))
    merged.members = list(members)
    marked = [("a", members[:cut]), ("b", members[cut:])]
    expected = trial.answer(deep_copy(members))
    trial.expect(
        "the merged state gives another result than one state of all members", deep_copy(merged.result()), expected, marked
    )
    if right.members:
        before = trial.answer(deep_copy(right.members))
        merged.add(extra)
        marked.append(("+", [extra]))
        trial.expect("a change of the merged state has changed the part b", deep_copy(right.result()), before, marked)
        after = deep_copy(merged.result())
        right.add(extra)
        trial.expect("a change of the part b has changed the merged state", deep_copy(merged.result()), after, marked)
    _expect_any_grouping(trial)


def _expect_any_grouping(trial: WindowTrial) -> None:
    """Raise `Breach` unless three parts, some of them perhaps empty, merged from either side give the state of all members."""
    members, merge = trial.members(), trial.module.merge_states
    low, high = sorted(trial.rng.randint(0, len(members)) for _ in range(2))
    cuts = {"a": members[:low], "b": members[low:high], "c": members[high:]}
    expected = trial.answer(deep_copy(members))
    for left in (True, False):
        a, b, c = (trial.live(part).state for part in cuts.values())
        merged = trial.live().with_state(merge(merge(a, b), c) if left else merge(a, merge(b, c)))
        what = f"merged as {'(a b) c' if left else 'a (b c)'}, three parts give another result than one state of all members"
        trial.expect(what, deep_copy(merged.result()), expected, cuts.items())


@on_windows(
    hint="modules and states travel to workers and into checkpoints, so they hold plain values: no locks, files, sessions, "
    "generators or lambdas; a class or a function is found by its name in an imported module",
    least=2,
)
def picklable(trial: WindowTrial) -> None:
    """A module and its states can be stored with pickle, and go on as they were."""
    *rest, last = trial.members()
    store = PickleStore(trial.module)
    store.store_code()
    module = store.again(trial.module)
    deterministic = trial.module.deterministic
    if deterministic:
        found = trial.answer(trial.members(), module)
        trial.expect("stored and loaded, the module gives another result", found, trial.answer(trial.members()))
    if keeps_state(trial.subject) is not None:
        return
    window = trial.live(rest)
    loaded = LiveWindow(module, trial.window, trial.clip, trial.subject.output).with_state(store.again(window.state))
    loaded.members = list(rest)
    loaded.add(last)
    if deterministic:
        expected = trial.answer(trial.members())
        marked = [("", rest), ("+", [last])]
        trial.expect("stored and loaded, a state goes on to another result", deep_copy(loaded.result()), expected, marked)


LAWS = (
    computing_keeps_state,
    sets_equal_singles,
    remove_undoes_add,
    incremental_equals_recompute,
    what_has_gone_leaves_no_trace,
    state_copyable,
    merge_agrees,
    picklable,
)
