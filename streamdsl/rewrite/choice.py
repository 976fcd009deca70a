"""Whether a plan is rewritten before it runs: `engine_options={"rewrite": "on" | "off"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.plan.node import Node
from streamdsl.rewrite.optimizer import optimize
from streamdsl.rewrite.rule import Mode


def as_chosen(plan: Node, mode: Mode, options: Mapping[str, Any] | None) -> tuple[Node, dict[str, Any]]:
    """Return the plan to run, and the options that are the engine's own; by default plans are rewritten.

    >>> from streamdsl.plan.node import Source
    >>> as_chosen(Source("trips"), "run", {"rewrite": "off", "window": "general"})[1]
    {'window': 'general'}
    """
    rest = dict(options or {})
    choice = rest.pop("rewrite", "on")
    if choice not in ("on", "off"):
        raise QueryError(f'engine_options["rewrite"] is "on" or "off", not {choice!r}')
    return (optimize(plan, mode) if choice == "on" else plan), rest
