"""What `why` says of answers, for the page of a trace: of the newest ones within a budget, or of those that are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from streamdsl.debugger.answers import Why
from streamdsl.debugger.pushes import Recording
from streamdsl.errors import QueryError, StreamDslError, shortened
from streamdsl.temporal import Cti, Event

if TYPE_CHECKING:
    from streamdsl.debugger.event_trace import EventTrace

MOST_CAUSES: Final = 50
"""The causes of one answer of which a page knows whether they are necessary."""
_WORK: Final = 300_000
"""The input rows that are run again, about, until no further answer is asked: a few seconds."""
_RUNS: Final = 3
"""The runs that an answer takes besides those for each of its causes."""
_STEP: Final = 40
"""What a run, and each push and each CTI in it, costs besides the rows, in rows."""


def asked(trace: EventTrace, chosen: Iterable[Event[Any]] | None) -> Iterator[tuple[int, Why, int]]:
    """Yield the places of answers in the output, what `why` says of each, and how many of its causes are to be tried.

    Without a choice they are the newest, the last one first, for as long as the budget lasts. Those of which `why` says
    nothing are left out.
    """
    output = [event for push in trace.recording.pushes for event in push.output]
    left, run = _WORK, _cost(trace.recording)
    for place in _newest(output) if chosen is None else _places(output, chosen):
        if chosen is None and left < (_RUNS + 1) * run:
            return
        try:
            why = trace.why(output[place])
        except StreamDslError:  # the query's code fails on a part of the input
            continue
        left -= _RUNS * run
        n_causes = MOST_CAUSES if chosen is not None else min(MOST_CAUSES, left // run)
        left -= run * (min(len(why.inputs), n_causes) + min(len(why.changed_by), n_causes))
        yield place, why, n_causes


def _newest(output: list[Event[Any]]) -> Iterator[int]:
    return (place for place in reversed(range(len(output))) if not isinstance(output[place], Cti))


def _places(output: list[Event[Any]], chosen: Iterable[Event[Any]]) -> list[int]:
    """Return the places of chosen events but CTIs; of equal ones that are not the recording's own it is the first."""
    own = {id(event): place for place, event in enumerate(output)}
    places: dict[int, None] = {}
    for event in chosen:
        if isinstance(event, Cti):
            continue
        place = own.get(id(event))
        if place is None:
            place = next((n for n, each in enumerate(output) if each == event), None)
        if place is None:
            hint = "to_html(path, why=trace.output[-20:]) takes events of trace.output"
            raise QueryError(f"{shortened(event)} is not in the output", hint=hint)
        places[place] = None
    return list(places)


def _cost(recording: Recording) -> int:
    """Return what a run of the whole recording costs, in rows."""
    events = [event for push in recording.pushes for _, batch in push.batches for event in batch]
    return len(events) + _STEP * (1 + len(recording.pushes) + sum(isinstance(event, Cti) for event in events))
