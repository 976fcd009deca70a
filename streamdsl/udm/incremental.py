"""States of incremental modules: adding and removing members, merging, and computing results (paper 001, IV.A.2 and V.E)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.temporal import Lifetime
from streamdsl.udm.bases import UDM, AnyUDA, AnyUDO, Incremental, WindowDescriptor, can_remove
from streamdsl.udm.invoke import EXCLUDED, Member, MemberRow, Stamped, as_result, empty_result, results_of, seen, stamped
from streamdsl.windows import Clip, Output


class Held(NamedTuple):
    """The state of one module for one window, and the number of members in it."""

    state: Any
    n_members: int


class MemberChange(NamedTuple):
    """A change of a window's member: its RE before and after, None if it is not a member before, or after."""

    member: Member
    re_old: int | None
    re_new: int | None


def keeps_state(module: UDM) -> bool:
    """Say whether the engine keeps a module's states: it is incremental, and the order of members does not matter to it."""
    return isinstance(module, Incremental) and module.order_insensitive


def describe_state(module: UDM) -> str:
    """Return how the engine uses an incremental module's states, for `explain()`; "" for any other module.

    >>> from streamdsl.udm.builtin import Count
    >>> describe_state(Count())
    ''
    """
    if not module.incremental:
        return ""
    if not keeps_state(module):
        return " [incremental, but in order: computed anew]"
    removal = "" if can_remove(module) else ", computed anew on removal"
    merging = "" if module.mergeable else ", states not merged"
    return f" [incremental{removal}{merging}]"


def create(module: Any) -> Held:
    """Return the state of a window without members."""
    return Held(module.create_state(), 0)


def build(module: Any, position: int, members: Sequence[Member], window: Lifetime, clip: Clip) -> Held:
    """Return the state of all members of a window; `position` is the index of the module's argument in each."""
    return add(module, position, create(module), members, window, clip)


def advance(module: Any, position: int, held: Held, changes: Iterable[MemberChange], window: Lifetime, clip: Clip) -> Held | None:
    """Return the state after changes of the window's members; None if members must be removed and the module cannot do that.

    For a time-sensitive module a change of the clipped lifetime is a removal and an addition; other changes of ends are ignored.
    """
    removed, added = _moved(module, changes, window, clip)
    chosen = [member for member in removed if member.arguments[position] is not EXCLUDED]
    if chosen:
        if not can_remove(module):
            return None
        state = module.remove_events_from_state(
            held.state, seen(module, chosen, position, window, clip), *_period(module, window)
        )
        held = Held(state, held.n_members - len(chosen))
    return add(module, position, held, added, window, clip)


def value(function: AnyUDA[Any, Any], held: Held, window: Lifetime) -> Any:
    """Return an aggregate of a window from its state."""
    return as_result(detached(_compute(function, held, window))) if held.n_members else empty_result(function)


def rows(module: AnyUDO[Any, Any], held: Held, window: Lifetime, output: Output) -> list[Stamped]:
    """Return an operator's results for a window from its state, with lifetimes by the output policy."""
    return stamped(module, [detached(item) for item in results_of(module, _compute(module, held, window))], window, output)


def copied(module: Any, held: Held) -> Held:
    """Return an independent copy of a state, for another window with the same members."""
    return Held(module.copy_state(held.state), held.n_members)


def merge(module: Any, held: Held, other: Held) -> Held:
    """Return the state of the members of both; `held` may change in place, `other` stays as it is."""
    return Held(module.merge_states(held.state, other.state), held.n_members + other.n_members) if other.n_members else held


def detached(value: Any) -> Any:
    """Return a copy of a result that shares no mutable object with the state that it comes from.

    >>> state = [1]
    >>> shown = detached(state); state.append(2); shown
    [1]
    """
    return value if type(value) in IMMUTABLE else copy.deepcopy(value)


def _compute(module: Any, held: Held, window: Lifetime) -> Any:
    return module.compute_result(held.state, *_period(module, window))


def add(module: Any, position: int, held: Held, members: Iterable[Member], window: Lifetime, clip: Clip) -> Held:
    """Return the state with more members of a window, without those whose argument is `EXCLUDED`."""
    chosen = [member for member in members if member.arguments[position] is not EXCLUDED]
    if not chosen:
        return held
    state = module.add_events_to_state(held.state, seen(module, chosen, position, window, clip), *_period(module, window))
    return Held(state, held.n_members + len(chosen))


def _moved(module: Any, changes: Iterable[MemberChange], window: Lifetime, clip: Clip) -> tuple[list[Member], list[Member]]:
    removed: list[Member] = []
    added: list[Member] = []
    for member, re_old, re_new in _net(changes):
        if re_old == re_new:
            continue
        if re_old is not None and re_new is not None:
            same = clip.apply(Lifetime(member.le, re_old), window) == clip.apply(Lifetime(member.le, re_new), window)
            if same or not module.time_sensitive:
                continue
        if re_old is not None:
            removed.append(MemberRow(member.le, re_old, member.payload, member.arguments))
        if re_new is not None:
            added.append(MemberRow(member.le, re_new, member.payload, member.arguments))
    return removed, added


def _net(changes: Iterable[MemberChange]) -> Iterable[MemberChange]:
    """Return the net change of each member. Otherwise members that came and went meanwhile would be removed but never added."""
    net: dict[int, MemberChange] = {}
    for change in changes:
        earlier = net.get(id(change.member))
        net[id(change.member)] = change if earlier is None else change._replace(re_old=earlier.re_old)
    return net.values()


def _period(module: Any, window: Lifetime) -> tuple[WindowDescriptor, ...]:
    return (WindowDescriptor(*window),) if module.time_sensitive else ()
