"""The steps of a pattern: the conditions of each, and which events and sequences of steps it allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Expr
from streamdsl.temporal import INFINITY


@dataclass(frozen=True, slots=True)
class PatternStep:
    """A step takes an event for which all `tests`, of the event, and all `over`, of the event and the run so far, are true.

    With `many` it takes one or more events; with `optional` it may take none.
    """

    name: str
    tests: tuple[Expr, ...] = ()
    over: tuple[Expr, ...] = ()
    many: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return self.name + {(True, True): "*", (True, False): "+", (False, True): "?"}.get((self.many, self.optional), "")


def check_pattern(steps: Sequence[PatternStep], unless: Sequence[PatternStep], within: int) -> None:
    """Raise `QueryError` for a pattern that can never match, or whose matches have no definite end."""
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
            f"the last step, {steps[-1].name!r}, is many or optional, so a match has no definite last event",
            hint="end the pattern with a single, required step",
        )
    if not 0 < within < INFINITY:
        raise QueryError(
            f"a pattern needs a finite within > 0, not {within}",
            hint="it bounds how long a match lives, and when its events are dropped from the state; within(1) is one instant",
        )
