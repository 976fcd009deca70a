"""Checking a module: every law that its kind and its claims imply, on random examples (paper 001, sections III-V)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from streamdsl.errors import UdmLawViolation
from streamdsl.monitoring.progress_meter import tracked
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.html import table, text
from streamdsl.testing.history import History
from streamdsl.testing.laws import LAWS, LAWS_IN_ORDER, Law
from streamdsl.testing.subject import Subject, subject_of
from streamdsl.udm.bases import AnyUDA, AnyUDO
from streamdsl.udm.stream_operator import UDSO, AnyUDSO
from streamdsl.windows import Clip, Output

V = TypeVar("V")


@dataclass(frozen=True, repr=False)
class UdmReport(Displayed):
    """What has been checked of a module: the laws that held, on how many examples, and those that were skipped, and why.

    >>> UdmReport("Mean", {"answers": 30, "deterministic": 30}, {"clipping": "it is time-insensitive"})
    <UdmReport Mean: 2 laws hold>
      on 30 examples: answers, deterministic
      skipped, as it is time-insensitive: clipping
    """

    module: str
    held: dict[str, int]
    skipped: dict[str, str]

    def __repr__(self) -> str:
        held = [f"  on {n} examples: {', '.join(names)}" for n, names in _grouped(self.held).items()]
        skipped = [f"  skipped, as {reason}: {', '.join(names)}" for reason, names in _grouped(self.skipped).items()]
        return "\n".join([f"<UdmReport {self.module}: {len(self.held)} laws hold>", *held, *skipped])

    def _below(self) -> str:
        tried = {*self.held, *self.skipped}
        laws = LAWS_IN_ORDER if tried <= {law.name for law in LAWS_IN_ORDER} else LAWS
        statements = {law.name: law.statement for law in laws}
        held = [[name, statements.get(name, ""), f"{n} examples"] for name, n in self.held.items()]
        skipped = [f"{', '.join(names)}: {reason}" for reason, names in _grouped(self.skipped).items()]
        shown = table(["law", f"{self.module} keeps it", "tried on"], (map(escape, row) for row in held))
        others = f"<summary>{len(self.skipped)} laws do not apply to it</summary>{text(chr(10).join(skipped))}"
        return f"{shown}<details>{others}</details>"


def _grouped(named: Mapping[str, V]) -> dict[V, list[str]]:
    groups: dict[V, list[str]] = {}
    for name, value in named.items():
        groups.setdefault(value, []).append(name)
    return groups


def check_udm(
    module: AnyUDA[Any, Any] | AnyUDO[Any, Any] | AnyUDSO | type,
    events: History | None = None,
    seed: int = 0,
    *,
    spark: Any = None,
    window: tuple[int, int] | None = None,
    clips: Collection[Clip] = tuple(Clip),
    output: Output | None = None,
    examples: int = 30,
) -> UdmReport:
    """Check every law that a module's kind and claims imply, with no engine but in the last laws, and return what was checked.

    `module` is an instance, a class that is made without parameters, or a function with `@uda` or `@udo`. Members are drawn from
    `events` (an event table or marbles, CHT rows, `IntervalEvent`s or physical events); without them payloads are made up of what
    the module's type arguments or annotations say: finite floats, small ints, short text, dates, dataclasses field by field.
    `window` is the period that the module is tried on, `clips` the clippings and `output` the output policy that queries use it
    with: by default all clippings, and its own timestamps unchanged if it has any. Claims of `time_bound` and
    `commutes_with_filter_on` are checked on windows that no event changes, such as hopping ones. A stream operator has laws of
    its own, on rows in order and on its states, and no `window`, `clips` or `output`. The same seed gives the same examples. With
    `spark`, the active session, the last law runs the module there.

    Raises `UdmLawViolation` for the first law that is broken, with the smallest example that was found, and `QueryError` for what
    is no module or takes payloads of which nothing is known.

    >>> from streamdsl.udm import uda
    >>> @uda
    ... def spread(prices: list[float]) -> float:
    ...     return max(prices) - min(prices)
    >>> sorted(check_udm(spread).held)
    ['answers', 'arrival_order', 'cti_progress', 'deterministic', 'inputs_not_mutated', 'order_insensitive', 'picklable', \
'result_not_aliased']
    >>> @uda
    ... def first(prices: list[float]) -> float:
    ...     return prices[0]
    >>> check_udm(first)
    Traceback (most recent call last):
        ...
    streamdsl.errors.UdmLawViolation: first breaks the law order_insensitive: Members in any order give the same result.
      in another order, its members give another result
      time  : 0    5    10
      window: [=========)
      2.0   : [=========)
      1.0   : [=========)
      expected: 1.0
      found   : 2.0
    Hint: members are a bag: sort them by what they are before their order matters, or claim order_insensitive = False
    """
    subject = subject_of(module, events, window, clips, output, spark)
    held: dict[str, int] = {}
    skipped: dict[str, str] = {}
    laws = LAWS_IN_ORDER if isinstance(subject.module, UDSO) else LAWS
    for law in tracked(laws, f"laws of {subject.module.label}"):
        reason = law.reason_to_skip(subject)
        tried = 0 if reason else _try(law, subject, law.examples(subject, seed, examples))
        if tried:
            held[law.name] = tried
        else:
            skipped[law.name] = reason or f"it needs {law.least} events"
    return UdmReport(subject.module.label, held, skipped)


def _try(law: Law, subject: Subject, examples: Sequence[Any]) -> int:
    """Check a law on examples; return their number, or raise `UdmLawViolation` with a shrunk example."""
    for example in examples:
        breach = law.breach(subject, example)
        if breach is not None:
            smallest = law.smallest(subject, example, breach)
            label, cause = subject.module.label, smallest.__cause__
            raise UdmLawViolation(label, law.name, law.statement, smallest.text, hint=law.hint) from cause
    return len(examples)
