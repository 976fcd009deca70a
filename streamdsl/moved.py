"""Old names of `import streamdsl as sd`: they work for one version more, with a `DeprecationWarning` that says the new one."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Final

from streamdsl.errors import level_of_caller, with_hint

MOVED: Final[dict[str, str]] = {
    "Emit": "emit",
    "Finding": "checks",
    "Lifetime": "temporal",
    "Pattern": "pattern",
    "Step": "pattern",
    "Steps": "pattern",
    "UDSO": "udm",
    "cast": "functions",
    "check": "checks",
    "coalesce": "functions",
    "contains": "functions",
    "from_table": "sources",
    "length": "functions",
    "local_time": "functions",
    "param": "functions",
    "plan_from_json": "composing",
    "run_all": "composing",
    "truncate": "functions",
}
"""The module of `streamdsl` that each old name is in now."""

_ELSEWHERE: Final = {"len": "count", "mean": "avg", "nunique": "count_distinct", "size": "count", "std": "stddev"}
"""Names of aggregates in other libraries, and their names here."""


def moved(name: str) -> object:
    """Return what an old name stands for, with a warning at the line that asks the package; raises `AttributeError` for others.

    >>> with warnings.catch_warnings(action="ignore"):
    ...     moved("Lifetime")
    <class 'streamdsl.temporal.lifetime.Lifetime'>
    """
    if name not in MOVED:
        hint = f"it is called {_ELSEWHERE[name]!r} here" if name in _ELSEWHERE else None
        raise AttributeError(with_hint(f"module 'streamdsl' has no attribute {name!r}", hint), name=name)
    place = f"streamdsl.{MOVED[name]}"
    warnings.warn(
        f"streamdsl.{name} has moved: write {place}.{name}; the next version has the old name no more",
        DeprecationWarning,
        stacklevel=level_of_caller(),
    )
    return getattr(import_module(place), name)
