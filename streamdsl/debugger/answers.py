"""The answers of the debugger: trees of causes, and what an event has changed; they print as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from streamdsl.debugger.input_rows import InputRow
from streamdsl.errors import shortened
from streamdsl.plan.node import Node
from streamdsl.temporal import CHTRow, Cti, Event, Lifetime, Retract, Unit, fields_of, format_time
from streamdsl.temporal.display import Displayed
from streamdsl.temporal.events import id_repr, unit_of
from streamdsl.temporal.html import text as preformatted
from streamdsl.temporal.time import life_text
from streamdsl.udm.bases import IntervalEvent

if TYPE_CHECKING:
    from streamdsl.pictures.timeline_picture import Timeline

SHOWN: Final = 12
"""The most rows that a text lists in one place."""


def row_text(row: CHTRow[Any], unit: Unit | None) -> str:
    """Return a row as people read it.

    >>> row_text(CHTRow(0, 10, {"n": 2}), None)
    '[0, 10) n=2'
    """
    fields = fields_of(row.payload)
    named = [name for name, _ in fields] != ["value"]
    shown = " ".join(f"{name}={shortened(value)}" for name, value in fields) if named else shortened(row.payload)
    return f"{life_text(row.le, row.re, unit)} {shown}"


def event_text(event: Event[Any], unit: Unit | None) -> str:
    """Return a physical event as people read it.

    >>> event_text(Retract("a", 1, 5, 3), None)
    "retract 'a' [1, 5) -> 3"
    """
    if isinstance(event, Cti):
        return f"CTI {format_time(event.time, unit)}"
    life = life_text(event.le, event.re, unit)
    if isinstance(event, Retract):
        return f"retract {id_repr(event.id, unit)} {life} -> {format_time(event.re_new, unit)}"
    return f"insert {id_repr(event.id, unit)} {life}"


def listed(lines: list[str], what: str = "more") -> list[str]:
    """Return the first lines, and how many there are besides."""
    return lines if len(lines) <= SHOWN else [*lines[: SHOWN - 1], f"... {len(lines) - SHOWN + 1} {what}"]


def rows_text(n: int) -> str:
    """Return a number of rows as text."""
    return "1 row" if n == 1 else f"{n} rows"


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """What a module was given for a window, and what it gave.

    `arguments` are its values, of a time-sensitive module the events as it saw them, with clipped lifetimes.
    """

    module: str
    arguments: tuple[Any, ...]
    result: Any

    def text(self, unit: Unit | None) -> str:
        """Return the call as people read it."""
        members = [each for each in self.arguments if isinstance(each, IntervalEvent)]
        lives = [life_text(each.start_time, each.end_time, unit) for each in members]
        seen = f" seen as {', '.join(listed(lives))}" if lives else ""
        gave = self.result if isinstance(self.result, str) else shortened(self.result)
        return f"{self.module} over {rows_text(len(self.arguments))}{seen} gave {gave}"


class Explanation(Displayed):
    """The base of answers: their text is a tree, which a notebook shows."""

    __slots__ = ()

    def _below(self) -> str:
        return preformatted(str(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cause:
    """A row on the way to an answer: the operator that made it, what that did, and the rows that it made it of.

    `window` is the window whose result the row is, `key` its group's key, `calls` are those of the window's modules.
    `input` is the row of a source at the leaves, with its events.
    """

    operator: str
    node: Node
    row: CHTRow[Any]
    did: str
    causes: tuple[Cause, ...] = ()
    window: Lifetime | None = None
    key: Any = None
    calls: tuple[ModuleCall, ...] = ()
    input: InputRow | None = None

    def __repr__(self) -> str:
        return f"Cause({self.operator}: {row_text(self.row, unit_of(self.row))}, of {len(self.causes)})"

    def walk(self) -> Iterator[Cause]:
        """Yield this cause and all below it, each once, the nearest to the answer first."""
        seen, waiting = set[int](), [self]
        for cause in waiting:
            if id(cause) not in seen:
                seen.add(id(cause))
                yield cause
                waiting.extend(cause.causes)

    def lines(self, unit: Unit | None, mark: Callable[[InputRow], str], shown: set[int]) -> Iterator[str]:
        """Yield the lines of the tree; what is there already is only named again."""
        if self.input is not None:
            events = "; ".join(event_text(event, unit) for event in self.input.events)
            yield f"{row_text(self.row, unit)}  <- {self.operator}: {events}{mark(self.input)}"
            return
        again = id(self) in shown
        period = "" if self.window is None else f" {life_text(self.window.le, self.window.re, unit)}"
        did = " (above)" if again else f":{period} {self.did}" if self.did else ""
        yield f"{row_text(self.row, unit)}  <- {self.operator}{did}"
        if again:
            return
        shown.add(id(self))
        yield from (f"   {call.text(unit)}" for call in self.calls)
        for cause in self.causes[: SHOWN if len(self.causes) > SHOWN else None]:
            for line in cause.lines(unit, mark, shown):
                yield f"   {line}"
        if len(self.causes) > SHOWN:
            yield f"   ... {len(self.causes) - SHOWN} rows more"


@dataclass(frozen=True, eq=False)
class InputCause:
    """An input row that an answer stands on, with its physical events in order.

    `is_context` says that no operator made the answer of it: without it another answer would be in its place.
    """

    source: str
    row: CHTRow[Any]
    events: tuple[Event[Any], ...]
    is_context: bool
    number: int
    _stays: Callable[[], bool] = field(repr=False)

    @cached_property
    def necessary(self) -> bool:
        """Whether the answer would not be there without this row, and all others as they are; else it is a possible cause.

        It is found by a run without the row, when it is first asked for.
        """
        return not self._stays()


@dataclass(frozen=True, eq=False, repr=False)
class Why(Explanation):
    """Where an answer comes from: the tree of its causes, and the input rows at its leaves.

    The inputs are sufficient: a run on these rows and the CTIs alone gives the answer, unless `is_complete` is False, as the
    recording lacks some. `ctis` are how far the sources had come. `push` is the number of the push that gave the answer, from 0.
    """

    row: CHTRow[Any]
    tree: Cause | None
    inputs: tuple[InputCause, ...]
    is_complete: bool
    push: int
    ctis: Mapping[str, int]
    unit: Unit | None
    gone: CHTRow[Any] | None = None
    """What a retraction took back; `changed_by` did it, of which a necessary row is one without which that would be there."""
    changed_by: tuple[InputCause, ...] = ()
    limits: tuple[str, ...] = ()
    _needs: Callable[[str], bool] = field(default=lambda _: False, repr=False)

    @cached_property
    def needed_ctis(self) -> Mapping[str, int]:
        """The CTIs without which the answer would not be out, by source: of final results those that closed them."""
        return {name: cti for name, cti in self.ctis.items() if self._needs(name)}

    @property
    def events(self) -> list[tuple[str, Event[Any]]]:
        """The physical events of the input rows, by source."""
        return [(cause.source, event) for cause in self.inputs for event in cause.events]

    @property
    def windows(self) -> list[Lifetime]:
        """The windows on the way, the nearest to the answer first."""
        return [] if self.tree is None else [each.window for each in self.tree.walk() if each.window is not None]

    def timeline(self) -> Timeline:
        """Return a picture of the input rows, the windows on the way and the answer, what was taken back struck through."""
        from streamdsl.debugger.answer_timelines import timeline_of_why

        return timeline_of_why(self)

    def _picture(self) -> Timeline:
        return self.timeline()

    def __repr__(self) -> str:
        return f"Why({row_text(self.row, self.unit)}, of {rows_text(len(self.inputs))} of input)"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        named = {cause.number: cause for cause in self.inputs}
        left = SHOWN

        def mark(row: InputRow) -> str:
            nonlocal left
            left -= 1
            cause = named.get(row.number)
            return "" if cause is None or left < 0 or cause.necessary else "  (possible: another could take its place)"

        if self.gone is not None:
            what = "was changed by" if self.changed_by else "is now" if self.tree is not None else "was no more as time went on"
            yield f"{row_text(self.gone, self.unit)} was taken back; it {what}"
            yield from listed([f"   {_cause_text(each, self.unit)}" for each in self.changed_by])
        if self.tree is not None:
            yield from self.tree.lines(self.unit, mark, set())
        context = [_cause_text(cause, self.unit) for cause in self.inputs if cause.is_context]
        if context:
            yield "and there must be, or else it would be another answer:"
            yield from (f"   {line}" for line in listed(context))
        for name, cti in self.needed_ctis.items():
            yield f"let out by the CTI {format_time(cti, self.unit)} of {name!r}"
        if not self.is_complete:
            yield "the recording does not hold all that made it" + "".join(f"; {limit}" for limit in self.limits)


def _cause_text(cause: InputCause, unit: Unit | None) -> str:
    events = "; ".join(event_text(event, unit) for event in cause.events)
    return f"{row_text(cause.row, unit)}  <- source:{cause.source}: {events}"


@dataclass(frozen=True, slots=True)
class OperatorEffect:
    """What an event has changed in the output of one operator: rows that are there with it, and others that are without it."""

    operator: str
    made: tuple[CHTRow[Any], ...]
    prevented: tuple[CHTRow[Any], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Effects(Explanation):
    """What an input event has changed, operator by operator along the flow: the run with it, compared to the run without it.

    `late` says what its source did, if it came too late.
    """

    event: Event[Any]
    operators: tuple[OperatorEffect, ...]
    output: OperatorEffect
    unit: Unit | None
    late: str = ""

    def timeline(self) -> Timeline:
        """Return a picture of what has changed, operator by operator; what the event took away is struck through."""
        from streamdsl.debugger.answer_timelines import timeline_of_effects

        return timeline_of_effects(self)

    def _picture(self) -> Timeline | None:
        return self.timeline() if self.operators else None

    def __repr__(self) -> str:
        return f"Effects({event_text(self.event, self.unit)}, at {len(self.operators)} operators)"

    def __str__(self) -> str:
        late = f" ({self.late})" if self.late else ""
        lines = [f"{event_text(self.event, self.unit)}{late}"]
        for step in self.operators:
            lines.append(f"   {step.operator}")
            lines += listed([f"      + {row_text(row, self.unit)}" for row in step.made])
            lines += listed([f"      - {row_text(row, self.unit)}" for row in step.prevented])
        return "\n".join(lines if self.operators else [*lines, "   nothing would be different without it"])
