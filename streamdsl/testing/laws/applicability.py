"""Conditions of laws: the reason why a law does not apply to a module, for the report, or None."""

from __future__ import annotations

from streamdsl.testing.subject import Subject
from streamdsl.udm.bases import Incremental, can_remove
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Output


def keeps_state(subject: Subject) -> str | None:
    """Incremental modules."""
    if not subject.module.incremental:
        return "it is not incremental"
    return None if subject.module.order_insensitive else "it claims order_insensitive = False, so that no state is kept"


def is_deterministic(subject: Subject) -> str | None:
    """Modules whose results can be compared at all."""
    return None if subject.module.deterministic else "it claims deterministic = False"


def is_order_insensitive(subject: Subject) -> str | None:
    """Modules to which members come in any order."""
    return None if subject.module.order_insensitive else "it claims order_insensitive = False"


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


def claims_time_bound(subject: Subject) -> str | None:
    """Modules that claim to be time-bound."""
    return None if subject.module.time_bound else "it does not claim time_bound"


def claims_ends(subject: Subject) -> str | None:
    """Modules that claim that ends beyond the window do not matter."""
    return None if subject.module.ignores_ends_beyond_window else "it does not claim ignores_ends_beyond_window"


def claims_mergeable(subject: Subject) -> str | None:
    """Modules that claim that their states can be merged."""
    return None if subject.module.mergeable else "it does not claim mergeable"


def merges(module: object) -> bool:
    """Say whether a module defines how its states are merged."""
    return isinstance(module, Incremental) and type(module).merge_states is not Incremental.merge_states


def claims_filter(subject: Subject) -> str | None:
    """Modules that claim to commute with a filter."""
    return None if subject.module.commutes_with_filter_on else "it does not claim commutes_with_filter_on"


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
    inherited = type(subject.module).is_empty is UDSO.is_empty if isinstance(subject.module, UDSO) else True
    return "it defines no is_empty, so that every group's state is kept" if inherited else None


def has_spark(subject: Subject) -> str | None:
    """Checks that were given a Spark session."""
    return None if subject.spark is not None else "no Spark session was given: check_udm(..., spark=session)"
