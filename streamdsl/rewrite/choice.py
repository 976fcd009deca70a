"""The choice of rules that rewrite a plan before it runs: `engine_options={"rewrite": "on" | "off" | [names]}`."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from streamdsl.errors import QueryError, level_of_caller
from streamdsl.plan.node import Node
from streamdsl.rewrite.optimizer import RULES, optimize
from streamdsl.rewrite.rule import Mode


def as_chosen(plan: Node, mode: Mode, options: Mapping[str, Any] | None, engine: str = "local") -> tuple[Node, dict[str, Any]]:
    """Return the plan rewritten by the chosen rules, by default all, and the options that remain for the engine.

    Raises `QueryError` for an invalid choice, and for an unknown rule.

    >>> from streamdsl.plan.node import Source
    >>> as_chosen(Source("trips"), "run", {"rewrite": "off", "attach": "on"})[1]
    {'attach': 'on'}
    """
    if options is not None and not isinstance(options, Mapping):
        raise QueryError(f"engine_options are options by name, not {options!r}", hint='engine_options={"rewrite": "off"}')
    rest = dict(options or {})
    if rest.pop("window", None) is not None:
        text = 'engine_options["window"] chooses nothing any more: there is one window operator; the next version refuses it'
        warnings.warn(text, DeprecationWarning, level_of_caller())
    return optimize(plan, mode, chosen(rest.pop("rewrite", "on")), engine), rest


def chosen(choice: object) -> Collection[str] | None:
    """Return the names of the chosen rules, None for all.

    >>> chosen("off"), chosen(["fuse_selects"])
    ((), ('fuse_selects',))
    """
    if isinstance(choice, str) and choice in ("on", "off"):
        return None if choice == "on" else ()
    if not isinstance(choice, Collection) or isinstance(choice, (str, bytes)):
        raise QueryError(f'engine_options["rewrite"] is "on" or "off", or the names of rules, not {choice!r}')
    names = tuple(choice)
    known = [rule.__name__ for rule in RULES]
    for name in names:
        if name not in known:
            raise QueryError(f"there is no rule {name!r}; the rules are: {', '.join(known)}")
    return names
