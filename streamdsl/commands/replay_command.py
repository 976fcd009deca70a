"""`streamdsl replay`: what was recorded, played into a query."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from streamdsl.emit import EMIT_MODES
from streamdsl.jobs.input_options import add_query_options, query_of
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.jobs.served_job import report, sinks_of, sources_of
from streamdsl.running import runnable_sources

if TYPE_CHECKING:
    from streamdsl.connect import Source
    from streamdsl.plan.node import Source as SourceNode


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `replay`."""
    add_query_options(parser)
    add = parser.add_argument
    add("recorded", nargs="+", metavar="[NAME=]FILE", help="JSON lines of physical events or rows that a source reads")
    add("--speed", type=float, metavar="N", help="N times as fast as it was, a tick being a second; without it at once")
    add("--sink", action="append", default=[], metavar="[EMIT=]ADDRESS", help="where the output goes (default: stdout://)")
    add("--emit", choices=EMIT_MODES, default="speculative", help="when results go out (default: %(default)s)")


def replay_into_named(options: argparse.Namespace) -> int:
    """Play recorded files into a query, and print or write what comes of it."""
    mistakes = Mistakes()
    query = mistakes.of(query_of, options, "replay")
    nodes = None if query is None else mistakes.of(runnable_sources, query._node)
    sources = sources_of(options.recorded, nodes or {}, mistakes, lambda path, node: _recorded(path, node, options.speed))
    sinks, modes = sinks_of(options.sink or ["stdout://"], options.emit, mistakes)
    mistakes.refuse()
    assert query is not None
    every: dict[str, Any] = {} if options.speed is None else {"every": "100ms"}
    report(query.serve(sources, sinks, **modes, **every))
    return 0


def _recorded(path: str, node: SourceNode | None, speed: float | None) -> Source:
    from streamdsl.connect import replay

    if node is None:
        return replay(path, speed=speed)
    return replay(path, speed=speed, unit=node.time_unit or "tick", start=node.lifetime_columns.start)
