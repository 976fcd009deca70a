"""Conditions of laws: the reason why a law does not apply to a module, for the report, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streamdsl.testing.subject import Subject
from streamdsl.udm.bases import Incremental, can_remove
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Output

Condition: TypeAlias = Callable[[Subject], str | None]
"""Why a law does not apply to a subject; None if it does."""


def claims(name: str) -> Condition:
    """Return the condition of modules that claim something."""
    return lambda subject: None if getattr(subject.module, name) else f"it does not claim {name}"


def does_not_deny(name: str) -> Condition:
    """Return the condition of modules that do not say that something is not so of them."""
    return lambda subject: None if getattr(subject.module, name) else f"it claims {name} = False"


is_deterministic = does_not_deny("deterministic")
"""Modules whose results can be compared at all."""
is_order_insensitive = does_not_deny("order_insensitive")
"""Modules to which members come in any order."""


def keeps_state(subject: Subject) -> str | None:
    """Incremental modules."""
    if not subject.module.incremental:
        return "it is not incremental"
    return None if subject.module.order_insensitive else "it claims order_insensitive = False, so that no state is kept"


def removes(subject: Subject) -> str | None:
    """Modules that take members out of their state."""
    return None if can_remove(subject.module) else "it defines no remove_event_from_state"


def sees_lifetimes(subject: Subject) -> str | None:
    """Time-sensitive modules."""
    return None if subject.module.time_sensitive else "it is time-insensitive"


def returns_events(subject: Subject) -> str | None:
    """Modules that stamp their results themselves."""
    return None if subject.returns_events else "it stamps no results"


def may_not_reach_back(subject: Subject) -> str | None:
    """Modules whose own stamps are kept as they are."""
    if subject.output in (Output.UNCHANGED, Output.TIME_BOUND):
        return None
    return f"its stamps are cut or replaced by {subject.output}"


def merges(module: object) -> bool:
    """Say whether a module defines how its states are merged."""
    return isinstance(module, Incremental) and type(module).merge_states is not Incremental.merge_states


def claims_reads(subject: Subject) -> str | None:
    """Modules that claim to read some fields only."""
    return None if subject.module.reads is not None else "it does not claim reads"


def takes_sets(subject: Subject) -> str | None:
    """Modules that take sets of members in a way of their own."""
    module = subject.module
    own = ("add_events_to_state", "remove_events_from_state")
    if module.vectorized:
        return "it is vectorized, so that it takes sets only"
    inherited = all(_is_inherited(module, name) for name in own)
    return "its sets are added one by one" if inherited else None


def _is_inherited(module: object, name: str) -> bool:
    defined = next(cls for cls in type(module).__mro__ if name in cls.__dict__)
    return defined.__module__ == Incremental.__module__


def forgets_groups(subject: Subject) -> str | None:
    """Stream operators that say when a state is as good as a new one."""
    keeps = subject.module.keeps_states if isinstance(subject.module, UDSO) else True
    return "it defines no is_empty and no fresh_from, so that every group's state is kept" if keeps else None


def has_spark(subject: Subject) -> str | None:
    """Checks that were given a Spark session."""
    return None if subject.spark is not None else "no Spark session was given: check_udm(..., spark=session)"
