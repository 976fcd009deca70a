"""States of incremental modules: adding members, merging, and computing results (paper 001, IV.A.2 and V.E)."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.temporal import Lifetime
from streamdsl.udm.bases import UDM, AnyUDA, Incremental, WindowDescriptor, can_remove
from streamdsl.udm.invoke import EXCLUDED, Member, as_result, empty_result, seen
from streamdsl.windows import Clip


class Held(NamedTuple):
    """The state of one module for one window, and the number of members in it."""

    state: Any
    n_members: int


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


def value(function: AnyUDA[Any, Any], held: Held, window: Lifetime) -> Any:
    """Return an aggregate of a window from its state."""
    return as_result(detached(_compute(function, held, window))) if held.n_members else empty_result(function)


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


def _period(module: Any, window: Lifetime) -> tuple[WindowDescriptor, ...]:
    return (WindowDescriptor(*window),) if module.time_sensitive else ()
