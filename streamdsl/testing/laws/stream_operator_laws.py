"""Laws of a stream operator: its results for rows in order, and its states, which the engine copies and resumes."""

from __future__ import annotations

from streamdsl.testing.laws.applicability import forgets_groups, is_deterministic
from streamdsl.testing.laws.law import on_rows
from streamdsl.testing.laws.trials import RowsTrial
from streamdsl.testing.live_window import deep_copy
from streamdsl.testing.mutation_guard import MutationGuard
from streamdsl.testing.pickling import PickleStore
from streamdsl.udm.invoke import MemberRow


@on_rows(
    hint="process returns a pair: the state, and a list of results, which may be empty; if the payloads that were made up are "
    "not what the module is for, give some: events=[(le, re, payload), ...]"
)
def answers(trial: RowsTrial) -> None:
    """Every row has an answer: the state after it, and an iterable of results."""
    trial.answer(trial.members())


@on_rows(
    hint="keep a copy of what is to change, such as list(payload.items); the engine gives a row again when one before it changes"
)
def inputs_not_mutated(trial: RowsTrial) -> None:
    """The module changes no payload that it is given, not at later rows either."""
    members = trial.members()
    guarded = [MutationGuard(row.payload) for row in members]
    trial.answer(members)
    changed = next((payload for payload in guarded if payload.is_changed()), None)
    if changed is not None:
        raise trial.breach("a payload that it was given is no longer what it was", found=repr(changed.value))


@on_rows(hint="create_state makes a new state each time, and gives out nothing that the module or its class holds")
def states_are_new(trial: RowsTrial) -> None:
    """Each state that create_state returns is a new one, that shares nothing that changes with another."""
    other = MutationGuard(trial.module.create_state())
    trial.answer(trial.members())
    if other.is_changed():
        raise trial.breach("rows that went into one state have changed another")


@on_rows(
    is_deterministic,
    hint="the results of a row are a function of the row and the state alone: no clock, no chance, nothing kept in self or in "
    "globals, and results that compare by value; else claim deterministic = False",
)
def deterministic(trial: RowsTrial) -> None:
    """Equal rows give equal results, whatever was processed before."""
    first = trial.answer(trial.members())
    trial.expect("processed again, the rows give other results", trial.answer(trial.members()), first)
    some = trial.members()[: (len(trial.members()) + 1) // 2]
    fresh = trial.answer(some, trial.subject.fresh())
    trial.expect("after all of them, the first rows give other results", trial.answer(some), fresh, [("", some)])


@on_rows(
    hint="copy_state returns a state that shares nothing that changes; the default, copy.deepcopy, does",
    least=2,
)
def state_copyable(trial: RowsTrial) -> None:
    """A change of a state is no change of its copy, nor the other way round."""
    before, after = _cut(trial)
    state, _ = trial.after(trial.module.create_state(), before)
    copy = MutationGuard(trial.module.copy_state(state))
    trial.after(state, after)
    if copy.is_changed():
        raise trial.breach("a change of the state has changed its copy", found=repr(copy.value))
    trial.after(trial.module.copy_state(copy.value), after)
    if copy.is_changed():
        raise trial.breach("a change of the copy has changed the state", found=repr(copy.value))


@on_rows(
    is_deterministic,
    hint="what a result depends on is in the state, all of it, and in what copy_state returns; nothing is kept in self: a late "
    "row has the engine go on from a state that it kept, and a restored session is another process",
    least=2,
)
def resumes(trial: RowsTrial) -> None:
    """From a copy of a state, in another instance too, rows give what they gave from the start."""
    before, after = _cut(trial)
    state, _ = trial.after(trial.module.create_state(), before)
    kept = trial.module.copy_state(state)
    _, expected = trial.after(state, after)
    marked = [("", before), ("again", after)]
    for where, module in (("", trial.module), (" in another instance", trial.subject.fresh())):
        _, found = trial.after(module.copy_state(kept), deep_copy(after), module)
        trial.expect(f"from a copy of the state{where}, the rows after it give other results", found, expected, marked)


@on_rows(
    forgets_groups,
    is_deterministic,
    hint="is_empty is true of a state from which every row goes on as it would from create_state(), and of no other; "
    "fresh_from is an LE from which on every row does: the engine forgets it",
    least=2,
)
def empty_states_are_as_new(trial: RowsTrial) -> None:
    """A state that is_empty calls empty gives what a new one gives, and so does any from its fresh_from on."""
    state, members = trial.module.create_state(), trial.members()
    for at, row in enumerate(members[:-1], 1):
        state, _ = trial.after(state, [row])
        guarded = MutationGuard(state)
        is_empty, fresh = trial.module.is_empty(state), trial.module.fresh_from(state)
        if guarded.is_changed():
            raise trial.breach("is_empty or fresh_from changes the state", [("", members[:at])], found=repr(state))
        later = members[at:] if is_empty else [row for row in members[at:] if fresh is not None and row.le >= fresh]
        if later:
            _, found = trial.after(trial.module.copy_state(state), later)
            marked = [("before", members[:at]), ("", later)]
            what = (
                "from a state that is empty" if is_empty else f"from {fresh} on, where fresh_from says that the state is as new"
            )
            trial.expect(f"{what}, rows give other results", found, trial.answer(later), marked)


@on_rows(
    hint="modules and states travel to workers and into checkpoints, so they hold plain values: no locks, files, sessions, "
    "generators or lambdas; a class is found by its name in an imported module",
    least=2,
)
def picklable(trial: RowsTrial) -> None:
    """A module and its states can be stored with pickle, and go on as they were."""
    before, after = _cut(trial)
    store = PickleStore(trial.module)
    store.store_code()
    module = store.again(trial.module)
    state, _ = trial.after(trial.module.create_state(), before)
    _, found = trial.after(store.again(state), deep_copy(after), module)
    if trial.module.deterministic:
        _, expected = trial.after(state, after)
        marked = [("", before), ("loaded", after)]
        trial.expect("stored and loaded, module and state go on to other results", found, expected, marked)


def _cut(trial: RowsTrial) -> tuple[list[MemberRow], list[MemberRow]]:
    """Return the rows before some row, and it and those after it."""
    members = trial.members()
    at = trial.rng.randint(1, len(members) - 1)
    return members[:at], members[at:]


LAWS = (
    answers,
    inputs_not_mutated,
    states_are_new,
    deterministic,
    state_copyable,
    resumes,
    empty_states_are_as_new,
    picklable,
)
