"""Running the demo's queries as physical streams, each through a local session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import streamdsl as sd
from streamdsl.demo.corrections import Corrections
from streamdsl.demo.data import UNIT, Data, Feed
from streamdsl.demo.queries import Question

PERIOD: Final = 15 * 60
"""A push holds the reports that arrived in a quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a query in a local session, with its output events and figures."""

    question: Question
    events: Sequence[sd.Event[Any]]
    cht: sd.CHT[Any]
    reports: int
    pushes: int
    seconds: float
    corrections: Corrections


def pushes(feeds: Mapping[str, Feed], period: int = PERIOD) -> Iterator[tuple[str, Sequence[sd.Event[Any]]]]:
    """Yield `(source, events)`: for each period what arrived in it, source by source."""
    arrived = (
        (int(arrival) // period, place, name, n)
        for place, (name, feed) in enumerate(feeds.items())
        for n, arrival in enumerate(feed.arrivals)
    )
    for (_, _, name), run in groupby(sorted(arrived), key=lambda each: each[:3]):
        yield name, [feeds[name].events[n] for *_, n in run]


def play(question: Question, data: Data, show: Callable[[int, int], None]) -> Answer:
    """Answer a question by pushing reports into a session as they arrive; `show` receives how many of how many are in."""
    feeds = {name: data.feeds()[name] for name in question.sources}
    total = sum(len(feed.events) for feed in feeds.values())
    began, done, count, output = time.perf_counter(), 0, 0, list[sd.Event[Any]]()
    session = question.query.open()
    for source, events in pushes(feeds):
        output += session.push(events, source=source)
        done, count = done + len(events), count + 1
        show(done, total)
    output += session.close()
    seconds = time.perf_counter() - began
    return Answer(question, output, sd.CHT.from_events(output, UNIT), total, count, seconds, Corrections.of(output))
