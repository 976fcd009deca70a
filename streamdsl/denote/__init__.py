"""The reference semantics: one pure function CHT -> CHT per operator, slow and obvious; `engine="reference"` runs it.

    CHT(run(plan, events)) == denote(plan, CHT(events))

holds for each engine, order of arrival, batch size and rewrite: this package defines the correct result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamdsl.denote import combining, grouping, pattern_matches, source, span, windowed
from streamdsl.denote.environment import Environment
from streamdsl.denote.source import history
from streamdsl.denote.windowed import describe
from streamdsl.errors import QueryError
from streamdsl.plan.labels import by_name, labels
from streamdsl.plan.node import Node, sources
from streamdsl.temporal import CHT, INFINITY, Rejections

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound
    from streamdsl.result import Result

__all__ = ["DENOTATIONS", "denote", "describe", "evaluate", "history", "run_reference", "sources"]

DENOTATIONS: Final[Mapping[type[Node], Callable[..., CHT[Any]]]] = by_name(
    source, grouping, span, windowed, pattern_matches, combining
)
"""The denotation of each operator: a function of the node, the scope in which it is evaluated, and the CHTs of its inputs."""


Seen: TypeAlias = Callable[[Node, Environment, tuple[CHT[Any], ...]], None]
"""What is called with each operator that is evaluated, its scope, and the CHTs of its inputs."""


def denote(plan: Node, inputs: Mapping[str, CHT[Any]], until: int = INFINITY, seen: Seen | None = None) -> CHT[Any]:
    """Return the output CHT of a plan, given its sources' CHTs by name; window operators make only windows with RE <= `until`.

    Raises `UserCodeError` if a lambda or a module raises, `UnboundedOutputError` if there are infinitely many windows.

    >>> from streamdsl.plan.node import Source, shift
    >>> denote(shift(Source("s"), 5), {"s": CHT.from_rows([(0, 1, "x")])})
    CHT
      [5, 6) 'x'
    """
    meaning = partial(evaluate, seen=seen)
    return meaning(plan, Environment(meaning, inputs, until, labels(plan)))


def evaluate(plan: Node, scope: Environment, seen: Seen | None = None) -> CHT[Any]:
    """Return the output CHT of a plan in a scope."""
    meaning: dict[int, CHT[Any]] = {}
    for node in plan.walk():
        below = tuple(meaning[id(each)] for each in node.inputs)
        if seen is not None:
            seen(node, scope, below)
        meaning[id(node)] = DENOTATIONS[type(node)](node, scope, *below)
    return meaning[id(plan)]


def run_reference(plan: Node, bindings: Mapping[str, Bound], until: int | None = None) -> Result[Any]:
    """Run a plan by its definition: fold the complete input of each source into a CHT, and evaluate the plan on the CHTs."""
    from streamdsl.result import Result

    inputs: dict[str, CHT[Any]] = {}
    rejected = Rejections()
    for name, node in sources(plan).items():
        if name not in bindings:
            raise QueryError(f"the source {name!r} is bound to nothing; bound are: {', '.join(bindings) or '(none)'}")
        inputs[name] = history(node, bindings[name].events(), bindings[name].unit, rejected)
    cht = denote(plan, inputs, INFINITY if until is None else until)
    return Result.from_cht(cht, cht.unit, rejected)
