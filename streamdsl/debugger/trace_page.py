"""A trace as one page of HTML that needs no network: its events, what was at each operator, and how rows came to be there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamdsl.debugger.answers import Cause, InputCause, Why
from streamdsl.debugger.input_rows import inputs_of, ticked
from streamdsl.debugger.lineage import Lineage, same
from streamdsl.debugger.page_answers import asked
from streamdsl.debugger.running_moment import HeldState, RunningMoment
from streamdsl.engine.collector import collector_paused
from streamdsl.engine.versions import RowVersion
from streamdsl.errors import StreamDslError
from streamdsl.pictures import cut
from streamdsl.plan.drawing import chart
from streamdsl.plan.labels import labels
from streamdsl.plan.node import Node, Source
from streamdsl.temporal import INFINITY, CHTRow, Cti, Event, Insert, Retract, Unit, format_time
from streamdsl.temporal.display import scrolled
from streamdsl.temporal.events import id_repr

if TYPE_CHECKING:
    from streamdsl.debugger.event_trace import EventTrace

MOST_MOMENTS: Final = 300
"""The pushes after which a page knows what is at each operator; of more, so many evenly spaced ones."""
MOST_ROWS: Final = 2_000
"""The input rows up to which a page knows where rows come from."""
_WORK: Final = 200_000
"""The input rows that are run again for a page, over all moments."""
_PAYLOAD: Final = 160
_ID: Final = 90
"""The most characters of a payload, and of an id."""
_CHART_LINE: Final = 29
"""The characters of a line in a box of the plan, whose column is narrow, the more so in a notebook."""
_CHART_SHRINKS: Final = 0.75
"""The share of its size to which the plan shrinks before it is scrolled."""


_THEMES: Final = (
    "[data-jp-theme-light=true] .sd-trace,[data-theme=light] .sd-trace{color-scheme:light}"
    "[data-jp-theme-light=false] .sd-trace,[data-theme=dark] .sd-trace{color-scheme:dark}"
)
"""A page in a frame is as dark as JupyterLab and the site are, whatever the reader prefers elsewhere."""


def page(trace: EventTrace, why: Iterable[Event[Any]] | None = None, refresh: float | None = None) -> str:
    """Return the page of a trace; `why` are the answers whose causes are tried, by default the newest.

    With `refresh` it reads its file again every so many seconds.
    """
    content = {**_Film(trace).data(why), "refresh": refresh, "left_out": trace.recording.left_out}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    template = files(__package__).joinpath("trace_page.html").read_text(encoding="utf-8")
    # A script ends at `</` and is a comment from `<!` on, whatever JSON says: so no `<` is left in it.
    return template.replace("@DATA@", data.replace("<", "\\u003c"), 1)


def frame(trace: EventTrace) -> str:
    """Return what Jupyter shows of a trace: its page in a frame that reaches nothing outside of it, or a text if it is long."""
    if sum(map(len, trace.recording.pushes)) > MOST_ROWS:
        return f"<pre>{escape(repr(trace))}; to_html(path) writes its page</pre>"
    settings = 'class="sd-trace" sandbox="allow-scripts" style="width:100%;height:640px;border:0"'
    return f'<style>{_THEMES}</style><iframe {settings} srcdoc="{escape(page(trace))}"></iframe>'


class _Film:
    """A recording as data: events in order; rows with their causes; at each moment what has come to, and gone from, operators.

    Times are text, as a script has no integers of 64 bits.
    """

    def __init__(self, trace: EventTrace) -> None:
        self.trace = trace
        self.recording = trace.recording
        self.pushes = list(self.recording.pushes)
        self.notes = list(self.recording.limits())
        self._inputs: list[list[int]] = []
        """The numbers of the events of each input row: the insertion and its retractions."""
        self._output: list[int] = []
        """The numbers of the events of the output."""
        self._begun: dict[tuple[str, Hashable, int], int] = {}
        """The numbers of the events with which rows began: source, id, and LE."""
        self._first: dict[Hashable, int] = {}
        """The numbers of the events with which the first versions of answers began."""
        self._rows: list[tuple[Any, ...]] = []
        self._places: dict[tuple[Any, ...], int] = {}
        self._known: dict[Any, _KnownRow] = {}
        self._operators: dict[str, int] = {}
        self._held: Mapping[str, HeldState] = {}
        """What operators hold at the last moment."""

    def data(self, why: Iterable[Event[Any]] | None) -> dict[str, Any]:
        """Return what the page's script reads."""
        picture = chart(self.recording.plan)
        for name in picture.boxes:
            self._operator(name)
        with collector_paused():
            events = list(self._events())
        moments, answers = list(self._moments()), self._answers(why)
        return {
            "infinity": str(INFINITY),
            "unit": self.recording.unit,
            "output": labels(self.recording.plan)[id(self.recording.plan)],
            "chart": scrolled(picture.svg(_CHART_LINE), _CHART_SHRINKS),
            "events": events,
            "rows": self._rows,
            "moments": moments,
            "answers": answers,
            "late": self._late(),
            "operators": list(self._operators),
            "notes": self.notes,
        }

    def _events(self) -> Iterator[list[Any]]:
        """Yield the events: push, source ("" for the output), kind, id, LE, RE, new RE, payload, the lifetime as text.

        Then the numbers of the events with which the row, and the first version of the answer, began.
        """
        unit, current, number = self.recording.unit, dict[Any, int](), 0
        for n, push in enumerate(self.pushes):
            for source, batch in push.batches:
                for event in ticked(batch, unit):
                    self._enlist(current, source, event, number)
                    yield [*self._event(n, source, event), *self._begin(source, event, number)]
                    number += 1
            for event in push.output:
                self._output.append(number)
                yield [*self._event(n, "", event), *self._begin("", event, number)]
                number += 1

    def _enlist(self, current: dict[Any, int], source: str, event: Event[Any], number: int) -> None:
        """Note of which input row an event is; rows are numbered in order of their insertions."""
        if isinstance(event, Insert):
            current[source, event.id] = len(self._inputs)
            self._inputs.append([number])
        elif isinstance(event, Retract) and (source, event.id) in current:
            self._inputs[current[source, event.id]].append(number)

    def _begin(self, source: str, event: Event[Any], number: int) -> tuple[int | None, int | None]:
        """Return with which event the row of an event began, and with which the first version of it, if it is an answer."""
        if isinstance(event, Cti):
            return None, None
        slot, first = (source, event.id, event.le), event.id.id if isinstance(event.id, RowVersion) else event.id
        if isinstance(event, Insert):
            self._begun[slot] = number
            if not source and first is event.id:
                self._first[first] = number
        # Of a ring the beginning may be gone.
        began = self._begun.setdefault(slot, number)
        return began, began if source else self._first.setdefault(first, began)

    def _event(self, push: int, source: str, event: Event[Any]) -> list[Any]:
        unit = self.recording.unit
        if isinstance(event, Cti):
            return [push, source, "cti", "", str(event.time), str(event.time), None, "", format_time(event.time, unit)]
        text, ends = _life(event, unit), [str(event.le), str(event.re)]
        if isinstance(event, Insert):
            return [push, source, "insert", self._id(event), *ends, None, cut(event.payload, _PAYLOAD), text]
        new = "deleted" if event.re_new <= event.le else format_time(event.re_new, unit)
        return [push, source, "retract", self._id(event), *ends, str(event.re_new), "", f"{text} → {new}"]

    def _id(self, event: Insert[Any] | Retract) -> str:
        return cut(event.id if isinstance(event.id, str) else id_repr(event.id, self.recording.unit), _ID)

    def _late(self) -> dict[int, str]:
        """Return what was wrong with events that came too late, by their numbers."""
        found = {}
        for row in inputs_of(self.recording, self.pushes).rows:
            numbers = dict(zip(map(id, row.events), self._inputs[row.number], strict=False))
            for each in row.rejected:
                number = next(numbers[id(event)] for event in row.events if event == each.event)
                found[number] = f"it broke the CTI {format_time(each.cti, self.recording.unit)}, {each.reason}"
        return found

    def _answers(self, why: Iterable[Event[Any]] | None) -> dict[int, dict[str, Any]]:
        """Return what `why` says of answers, by the numbers of their events."""
        found = {self._output[place]: self._answer(each, n) for place, each, n in asked(self.trace, why)}
        count = sum(not isinstance(event, Cti) for push in self.pushes for event in push.output)
        if len(found) < count:
            known = f"which causes are necessary is known of {len(found):,} of {count:,} answers"
            self.notes.append(f"{known}: to_html(path, why=events) chooses them")
        return found

    def _answer(self, why: Why, n_tried: int) -> dict[str, Any]:
        """Return one answer: the place of its row, its causes, what changed it, and whether the recording has all of them."""
        return {
            "row": None if why.tree is None else self._place(why.tree, {}),
            "causes": list(self._tried(why.inputs, n_tried)),
            "changed": list(self._tried(why.changed_by, n_tried)),
            "complete": why.is_complete,
        }

    def _tried(self, causes: Iterable[InputCause], n_tried: int) -> Iterator[list[Any]]:
        """Yield causes: their events, whether they are necessary (None: not tried), and whether they are context."""
        for n, cause in enumerate(causes):
            events = self._inputs[cause.number][: len(cause.events)]
            yield [events, cause.necessary if n < n_tried else None, cause.is_context]

    def _moments(self) -> Iterator[dict[str, Any]]:
        """Yield after which push, which rows have come to the operators and gone from them."""
        there: set[int] = set()
        running, chosen = RunningMoment(self.recording), set(self._chosen())
        for n, push in enumerate(self.pushes):
            try:
                running.take(push)
                if n not in chosen:
                    continue
                with collector_paused():
                    now, held = set(self._at(running)), running.held()
            except StreamDslError as why:
                self.notes.append(f"what is at operators is not known from push {n + 1} on: {str(why).splitlines()[0]}")
                return
            yield {"push": n, "came": sorted(now - there), "went": sorted(there - now), "held": self._changed(held)}
            there = now

    def _changed(self, held: Mapping[str, HeldState]) -> dict[int, HeldState]:
        """Return what those operators hold that hold something else than at the moment before, by their numbers."""
        found = {self._operator(label): each for label, each in held.items() if self._held.get(label) != each}
        self._held = held
        return found

    def _chosen(self) -> list[int]:
        """Return the pushes after which it is said what is at operators."""
        count = len(self.pushes)
        most = max(2, min(MOST_MOMENTS, _WORK // max(len(self._inputs), 1)))
        if len(self._inputs) > MOST_ROWS:
            self.notes.append(f"of more than {MOST_ROWS:,} input rows no causes are shown: trace.why(event) tells them")
        if count <= most:
            return list(range(count))
        self.notes.append(f"what is at operators is known after {most} of {count:,} pushes")
        return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})

    def _at(self, moment: RunningMoment) -> Iterator[int]:
        """Yield the places of the rows that are at the operators at a moment, those inside of groups among them."""
        lineage, names = moment.lineage, labels(moment.plan)
        alive = {(row.number, row.le, row.re) for row in moment.inputs.rows}
        for node in moment.plan.walk():
            seen: Counter[Any] = Counter()
            for index, row in enumerate(lineage.rows[id(node)]):
                equal = same(row)
                key = names[id(node)], equal, seen[equal]
                seen[equal] += 1
                known = self._known.get(key)
                if known is None or not known.leaves <= alive:
                    known = self._known[key] = self._caused(lineage, node, index)
                yield from known.places

    def _caused(self, lineage: Lineage, node: Node, index: int) -> _KnownRow:
        """Return a row of an operator with all that it was made of; without that if there are too many rows."""
        if len(self._inputs) > MOST_ROWS and not isinstance(node, Source):
            return _KnownRow(frozenset(), (self._plain(node, lineage, index),))
        known: dict[int, int] = {}
        cause = lineage.of(node, index)
        self._place(cause, known)
        inputs = [each.input for each in cause.walk() if each.input is not None]
        return _KnownRow(frozenset((row.number, row.le, row.re) for row in inputs), tuple(known.values()))

    def _plain(self, node: Node, lineage: Lineage, index: int) -> int:
        row = lineage.rows[id(node)][index]
        return self._put(lineage.scope.label(node), row, "", [], [], [])

    def _place(self, cause: Cause, known: dict[int, int]) -> int:
        """Return the place of a cause, after all those that are below it."""
        if id(cause) not in known:
            below = [self._place(each, known) for each in cause.causes]
            window = "" if cause.window is None else f"{_life(cause.window, self.recording.unit)} "
            # Not those that come after the moment.
            events = [] if cause.input is None else self._inputs[cause.input.number][: len(cause.input.events)]
            calls = [call.text(self.recording.unit) for call in cause.calls]
            known[id(cause)] = self._put(cause.operator, cause.row, window + cause.did, calls, below, events)
        return known[id(cause)]

    def _put(self, label: str, row: CHTRow[Any], did: str, calls: list[str], below: list[int], events: list[int]) -> int:
        """Return the place of a row: operator, LE, RE, payload, lifetime as text, what was done, calls, causes, and events."""
        life = [str(row.le), str(row.re), cut(row.payload, _PAYLOAD), _life(row, self.recording.unit)]
        made = self._operator(label), *life, did, tuple(calls), tuple(below), tuple(events)
        place = self._places.setdefault(made, len(self._rows))
        if place == len(self._rows):
            self._rows.append(made)
        return place

    def _operator(self, label: str) -> int:
        return self._operators.setdefault(label, len(self._operators))


class _KnownRow(NamedTuple):
    """A row at an operator: the input rows that it was made of, as they were then, and the places of all rows on the way."""

    leaves: frozenset[tuple[int, int, int]]
    places: tuple[int, ...]


def _life(row: Any, unit: Unit | None) -> str:
    return f"[{format_time(row.le, unit)}, {format_time(row.re, unit)})"
