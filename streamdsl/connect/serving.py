"""`query.serve`: a job from sources to sinks, as a call and as a coroutine."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamdsl import running
from streamdsl.connect.protocols import Sink, Source
from streamdsl.connect.runner import Metrics, Runner, Served, Settings, Watch
from streamdsl.connect.stopping import stopped_by_signals
from streamdsl.emit import Emit, EmitMode, mode_of
from streamdsl.errors import NO_SOURCE, QueryError, StreamDslError
from streamdsl.plan.node import Source as SourceNode
from streamdsl.temporal import to_duration

if TYPE_CHECKING:
    from streamdsl.stream import Stream

_SOURCE_HINT: Final = "streamdsl.connect has iterable, jsonl_file, csv_file, ..., and docs/connectors.md says how to write one"
_SINK_HINT: Final = "streamdsl.sinks has tables, streamdsl.connect has JsonlFile and calling(function)"


def serve(
    query: Stream[Any],
    sources: Source | Mapping[str, Source],
    sinks: Sink | Iterable[Sink] | Mapping[EmitMode | Emit, Sink | Iterable[Sink]],
    checkpoint: str | os.PathLike[str] | None,
    every: int | str | timedelta,
    emit: EmitMode | Emit,
    once: bool,
    dead_letters: Sink | None,
    late: Sink | None,
    watch: Watch | None,
    metrics: Metrics,
    workers: int | None,
    stop: threading.Event | None = None,
) -> Served:
    """Run a query as a job; see `Stream.serve`."""
    nodes = running.runnable_sources(query._node)
    given = _sources(sources, nodes, query)
    lives = {name: each for name, source in given.items() if (each := getattr(source, "lifetime_columns", None)) is not None}
    nodes |= {name: replace(nodes[name], lifetime_columns=each) for name, each in lives.items()}
    sides = {kind: _sinks(sink) for kind, sink in (("letters", dead_letters), ("late", late)) if sink is not None}
    rows = float(every) if type(every) is int else float("inf")
    seconds = float("inf") if type(every) is int else _seconds(every)
    if min(rows, seconds) <= 0:
        raise QueryError(f"every is a positive duration, or a number of rows, not {every!r}")
    by_emit = _by_emit(sinks, emit)
    running.check_workers(query._node, by_emit[0][0], workers)
    settings = Settings(rows, seconds, once, watch, metrics, "" if checkpoint is None else str(checkpoint), workers)
    stop = threading.Event() if stop is None else stop
    runner = Runner(query, nodes, given, by_emit, sides, settings, stop)
    with stopped_by_signals(stop):
        if checkpoint is not None:
            return runner.run(Path(checkpoint))
        with tempfile.TemporaryDirectory(prefix="streamdsl-") as folder:
            return runner.run(Path(folder))


async def in_thread(serve: Callable[[threading.Event], Served]) -> Served:
    """Run a job in a thread of its own, so that the loop goes on; where the task is cancelled, the job stops in order first."""
    stop, loop = threading.Event(), asyncio.get_running_loop()
    job = asyncio.ensure_future(asyncio.to_thread(serve, stop))
    with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or not on this system
        loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([job])
        if not job.cancelled() and (error := job.exception()) is not None:
            raise error from None
        raise
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGTERM)


def _seconds(every: object) -> float:
    try:
        return to_duration(every, "us") / 10**6
    except StreamDslError:
        raise QueryError(
            f"every is a duration or a number of rows, not {every!r}", hint='every="1s", or every=10_000 for rows'
        ) from None


def _sources(given: Any, nodes: Mapping[str, SourceNode], query: Stream[Any]) -> dict[str, Source]:
    """Return the source of each source of the query that is no reference data. Raises `QueryError`."""
    tables = [name for name, node in nodes.items() if node.table and name in query._bindings]
    live = [name for name in nodes if name not in tables]
    if not isinstance(given, Mapping):
        if len(live) != 1:
            raise QueryError(
                f"the query has the sources {', '.join(live)}, and it is not said which one this is: {given!r:.80}",
                hint=f"serve({{{live[0] if live else 'name'!r}: source, ...}}, ...)",
            )
        given = {live[0]: given}
    for name, source in given.items():
        if name not in live:
            raise QueryError(f"there is no source {name!r}; the sources of this query are: {', '.join(live)}", hint=NO_SOURCE)
        if not isinstance(source, Source) or isinstance(source, os.PathLike):
            raise QueryError(f"the source {name!r} is given by what is no source: {source!r:.80}", hint=_SOURCE_HINT)
    for name in live:
        if name not in given:
            raise QueryError(f"the source {name!r} is not given; the sources are: {', '.join(live)}", hint=_SOURCE_HINT)
    return dict(given)


def _by_emit(sinks: Any, emit: EmitMode | Emit) -> list[tuple[EmitMode | Emit, list[Sink]]]:
    """Return the sinks by the way in which their rows are emitted; first the one that the session has, which serves the others.

    >>> [emit for emit, _ in _by_emit({"final": [], "speculative": []}, "speculative")]
    ['speculative', 'final']
    """
    if not isinstance(sinks, Mapping):
        return [(emit, _sinks(sinks))]
    if emit != "speculative":
        raise QueryError(f"emit={emit!r} is given, and the sinks are by emit too", hint="name it among the sinks alone")
    modes = ("speculative", "watermark", "final")
    found = sorted(((each, _sinks(to)) for each, to in sinks.items()), key=lambda pair: modes.index(mode_of(pair[0])))
    if not found:
        raise QueryError("there are no sinks", hint=_SINK_HINT)
    is_shared = len(found) > 1 and mode_of(found[0][0]) == "final"
    return [("speculative", []), *found] if is_shared else found


def _sinks(given: Any) -> list[Sink]:
    sinks = list(given) if isinstance(given, (list, tuple)) else [given]
    for sink in sinks:
        if not isinstance(sink, Sink):
            raise QueryError(f"this is no sink, as it has no write and promise: {sink!r:.80}", hint=_SINK_HINT)
    return sinks
