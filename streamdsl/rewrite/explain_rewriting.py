"""The text of `explain()`: the rewritten plan, the rules that fire, and the plan as written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from streamdsl.plan.explain import explain as explain_plan
from streamdsl.plan.explain import tree
from streamdsl.plan.node import Node
from streamdsl.rewrite.optimizer import Rewriting, rewriting
from streamdsl.rewrite.rule import Mode, Rule

SESSIONS: Final[tuple[Mode, ...]] = ("speculative", "watermark", "final")
AS_WRITTEN: Final = 'as written, and with engine_options={"rewrite": "off"}:'
NO_RULE: Final = "no rule has fired"


def explain(plan: Node, engine: str = "local", rules: bool = False) -> str:
    """Return the plan that runs as text; if rules fire, also their names, and the plan as written, which the reference runs.

    Some rules do not fire in sessions, or only for some values of `emit`, which the text then lists. With `rules` all steps
    follow, each with its rule, the operator that it replaces, and the trees before and after.

    >>> from streamdsl.plan.node import Source, shift
    >>> print(explain(shift(Source("trips"), 5)))
    shift_1 [LE + 5, RE + 5)  <alter_lifetime (columnar)>
    └─ source:trips
    >>> print(explain(shift(Source("trips"), 5), rules=True))
    shift_1 [LE + 5, RE + 5)  <alter_lifetime (columnar)>
    └─ source:trips
    no rule has fired
    """
    found = rewriting(plan, names=() if engine == "reference" else None, engine=engine)
    as_written = explain_plan(plan, engine)
    if not found.steps:
        return f"{as_written}\n{NO_RULE}" if rules else as_written
    parts = [explain_plan(found.plan, engine), *_rules(plan, found.fired, engine), AS_WRITTEN, as_written]
    return "\n".join([*parts, *(_steps(found) if rules else ())])


def _steps(found: Rewriting) -> Iterator[str]:
    for number, step in enumerate(found.steps, 1):
        yield f"step {number}: {step.rule.__name__} at {step.label}, before:"
        yield tree(step.old, step.before)
        yield "after:"
        yield tree(step.new, step.after)


def _rules(plan: Node, fired: tuple[Rule, ...], engine: str) -> Iterator[str]:
    often = Counter(fired)
    in_sessions = {mode: Counter(rewriting(plan, mode, engine=engine).fired) for mode in SESSIONS}
    for rule, times in often.items():
        modes = [f'emit="{mode}"' for mode in SESSIONS if in_sessions[mode][rule] == times]
        where = "" if len(modes) == len(SESSIONS) else f" (in sessions: {', '.join(modes) or 'never'})"
        yield f"rewritten by {rule.__name__}{where}"
