"""The steps of a pattern: which events each takes, and in which order they may follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Expr
from streamdsl.temporal import INFINITY


@dataclass(frozen=True, slots=True)
class PatternStep:
    """An event for which all `tests`, over it alone, and all `over`, over it and what is taken so far, are true.

    `many`: one or more such events; `optional`: or none.
    """

    name: str
    tests: tuple[Expr, ...] = ()
    over: tuple[Expr, ...] = ()
    many: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return self.name + {(True, True): "*", (True, False): "+", (False, True): "?"}.get((self.many, self.optional), "")


def check_pattern(steps: Sequence[PatternStep], unless: Sequence[PatternStep], within: int) -> None:
    """Raise `QueryError` for steps of which none can be a match, or nothing says when one is complete."""
    names = [step.name for step in (*steps, *unless)]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if not steps:
        raise QueryError("a pattern without steps matches nothing", hint="for example p.a.then(p.b).within(10)")
    if twice is not None:
        raise QueryError(
            f"two steps of the pattern are called {twice!r}; the steps are: {', '.join(names)}",
            hint="give each a name of its own; p.a.many() takes several events",
        )
    if steps[-1].many or steps[-1].optional:
        raise QueryError(
            f"the last step, {steps[-1].name!r}, is many or optional, so nothing says when a match is complete",
            hint="end the pattern with a single, required step",
        )
    if not 0 < within < INFINITY:
        raise QueryError(
            f"a pattern needs a finite within > 0, not {within}",
            hint="it says how long a match lives, and when its events can be forgotten; within(1) is one instant",
        )
