"""`streamdsl bench`: how long a query takes for an event, beside reading alone."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from random import Random
from typing import TYPE_CHECKING, Any, Final

from streamdsl.commands.json_report import add_json_option, part, print_json
from streamdsl.commands.operator_times import operator_times
from streamdsl.errors import QueryError
from streamdsl.jobs.input_files import inputs_of
from streamdsl.jobs.input_options import add_input_options, query_of
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.running import runnable_sources

if TYPE_CHECKING:
    from streamdsl.io.binding import Bound
    from streamdsl.plan.node import Source
    from streamdsl.stream import Stream

_PAYLOADS: Final = 1_000
_REST: Final = "taking in and giving out"
_AT_A_TIME: Final = 10
"""Made events that start together."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `bench`."""
    add_input_options(parser)
    add = parser.add_argument
    add("--events", type=int, default=100_000, metavar="N", help="made for each source without an input (default: %(default)s)")
    add("--repeat", type=int, default=3, metavar="N", help="how often it is measured (default: %(default)s)")
    add_json_option(parser)


def bench_named(options: argparse.Namespace) -> int:
    """Print the time of reading alone, of the whole run, and of each operator in it; the median of several runs."""
    query, bindings = _query_and_inputs(options)
    read = _median(lambda: _read(bindings), options.repeat)
    events = _read(bindings)
    if not events:
        raise QueryError("the inputs have no events to measure", hint="--input name=path, or --events N")
    query.run(bindings, until=options.until)  # imports, and what is made at the first call
    ran = _median(lambda: query.run(bindings, until=options.until), options.repeat)
    with operator_times() as taken:
        whole = _median(lambda: query.run(bindings, until=options.until), 1)
    rows = [_row("reading alone", events, read), _row("run", events, ran, times_reading=round(ran / read, 1))]
    rows += [_row(label, events, ns / 10**9) for label, ns in taken.items()]
    rows.append(_row(_REST, events, max(0.0, whole - sum(taken.values()) / 10**9)))
    if options.json:
        return print_json(rows)
    print(f"{events:,} events, the median of {options.repeat} run{'s' * (options.repeat != 1)}")
    print(*map(_line, rows), sep="\n")
    return 0


def _query_and_inputs(options: argparse.Namespace) -> tuple[Stream[Any], dict[str, Bound]]:
    mistakes = Mistakes()
    if options.repeat < 1 or options.events < 1:
        mistakes.note([QueryError("--repeat and --events are numbers above 0")])
    query = mistakes.of(query_of, options, "bench")
    named = None if query is None else mistakes.of(runnable_sources, query._node)
    if query is None or named is None:
        mistakes.refuse()
        raise AssertionError
    given = {text.partition("=")[0] for text in options.input}
    lacking = [name for name in named if name not in given and name not in query._bindings]
    inputs = inputs_of(options.input, named, [*query._bindings, *lacking], mistakes)
    made = {name: found for name in lacking if (found := mistakes.of(_made, named[name], options.events)) is not None}
    mistakes.refuse()
    return query, {**{name: each.read(each.files()) for name, each in inputs.items()}, **made}


def _made(source: Source, events: int) -> Bound:
    """Return point events with payloads of the type that a source declares. Raises `QueryError` if it declares none."""
    from streamdsl.io.readers import bind
    from streamdsl.temporal import point
    from streamdsl.testing.random_payloads import draw_payload

    cls = None if source.payload is None else source.payload.cls
    if cls is None:
        raise QueryError(
            f"the source {source.source!r} declares no payload, so no events can be made up",
            hint=f"--input {source.source}=path, or sd.source({source.source!r}, Payload)",
        )
    rng = Random(0)
    payloads = cycle([draw_payload(cls, rng) for _ in range(_PAYLOADS)])
    return bind([point(n, n // _AT_A_TIME, payload) for n, payload in enumerate(islice(payloads, events))], source)


def _read(bindings: Mapping[str, Bound]) -> int:
    """Read all inputs, and return the number of their events."""
    return sum(len(piece) for bound in bindings.values() for piece in bound.pieces())


def _median(run: Callable[[], object], times: int) -> float:
    def seconds() -> float:
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    return statistics.median(seconds() for _ in range(times))


def _row(name: str, events: int, seconds: float, **more: Any) -> dict[str, Any]:
    figures = {"events": events, "seconds": round(seconds, 6), "ns_per_event": round(seconds * 10**9 / events, 1)}
    return part(name, "ok", **figures, **more)


def _line(row: Mapping[str, Any]) -> str:
    """Return a row as a line of text.

    >>> _line(_row("run", 1000, 0.5, times_reading=2.5))
    'run                              500,000.0 ns per event        2,000 events/s   2.5 x reading alone'
    """
    rate = f"{row['events'] / max(row['seconds'], 1e-9):12,.0f} events/s"
    beside = f"   {row['times_reading']} x reading alone" if "times_reading" in row else ""
    return f"{row['name']:30.30} {row['ns_per_event']:11,.1f} ns per event {rate}{beside}"
