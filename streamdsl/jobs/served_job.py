"""Jobs of the command line from sources to sinks, by their addresses: `query.serve`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.errors import QueryError
from streamdsl.jobs.input_options import query_of
from streamdsl.jobs.mistakes import Mistakes
from streamdsl.jobs.status_line import StatusLine
from streamdsl.plan.node import Source as SourceNode
from streamdsl.running import runnable_sources
from streamdsl.stream import Stream

if TYPE_CHECKING:
    from streamdsl.connect import Served, Sink, Source

_OF_FILES: Final[Mapping[str, Any]] = {
    "input": [],
    "output": None,
    "engine": "local",
    "format": None,
    "trigger": "available-now",
    "until": None,
    "bad_files": "stop",
    "shards": None,
}
"""The options of jobs of files, with their defaults."""
_OWN: Final[Mapping[str, Any]] = {
    "source": [],
    "sink": [],
    "dead_letters": None,
    "late": None,
    "metrics": [],
    "workers": None,
    "once": False,
    "follow": False,
}


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name sources and sinks."""
    add = parser.add_argument
    add("--source", action="append", default=[], metavar="[NAME=]ADDRESS", help="what a source reads, as jsonl://trips.jsonl")
    add("--sink", action="append", default=[], metavar="[EMIT=]ADDRESS", help="where the output goes, as final=parquet://trips")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of jobs from sources to sinks."""
    add_source_options(parser)
    add = parser.add_argument
    add("--dead-letters", metavar="ADDRESS", help="where records go that are refused; without it they end the job")
    add("--late", metavar="ADDRESS", help="where events go that sources drop or adjust")
    metrics = "where its figures are served, as 127.0.0.1:9464; or otel"
    add("--metrics", action="append", default=[], metavar="ADDRESS", help=metrics)
    add("--workers", type=int, metavar="N", help="so many processes of this machine run the operators")
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--once", action="store_true", help="end where nothing is there now; the next run goes on")
    until.add_argument("--follow", action="store_true", help="wait for more where files and folders end")


def is_served(options: argparse.Namespace) -> bool:
    """Say whether the options are those of a job from sources to sinks."""
    return any(getattr(options, name) != default for name, default in _OWN.items())


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A query with its sources and sinks, and the settings of `query.serve`."""

    query: Stream[Any]
    sources: Mapping[str, Source] | Source
    sinks: Any
    settings: Mapping[str, Any]

    def run(self) -> Served:
        """Run the job, with a line for each micro-batch."""
        line = StatusLine()
        try:
            done = self.query.serve(self.sources, self.sinks, watch=line, **self.settings)
        finally:
            line.end()
        return done


def job_of(options: argparse.Namespace) -> ServedJob:
    """Return the job that the options name. Raises `QueryError` with all that is wrong with them."""
    mistakes = Mistakes()
    mistakes.note(_of_others(options))
    query = mistakes.of(query_of, options, "run")
    nodes = None if query is None else mistakes.of(runnable_sources, query._node)
    sources = sources_of(options.source, nodes or {}, mistakes, _made(options.follow or options.once))
    sinks, modes = sinks_of(options.sink, options.emit, mistakes)
    beside = {name: address for name in ("dead_letters", "late") if (address := getattr(options, name)) is not None}
    sides = {name: mistakes.of(_sink, address) for name, address in beside.items()}
    mistakes.refuse()
    assert query is not None
    kept = {name: getattr(options, name) for name in ("checkpoint", "once", "metrics", "workers")}
    every = {} if options.every is None else {"every": options.every}
    return ServedJob(query, sources, sinks, {**kept, **modes, **every, **sides})


def report(done: Served) -> None:
    """Say what a job has done, on the standard error."""
    batches = f"{done.micro_batches:,} micro-batch{'es' * (done.micro_batches != 1)}"
    rejected = f", {done.bad_records:,} REJECTED" if done.bad_records else ""
    late = f", {done.late_events:,} late" if done.late_events else ""
    print(f"{done.end}: {batches}, {done.rows_in:,} rows in, {done.rows_out:,} out{rejected}{late}", file=sys.stderr)


def sources_of(
    given: Sequence[str], nodes: Mapping[str, SourceNode], mistakes: Mistakes, make: Callable[[str, SourceNode | None], Source]
) -> Any:
    """Return the sources of `name=address` texts by name; of a single one without a name, itself."""
    pairs = [_named(text, nodes) for text in given]
    names = [name for name, _ in pairs]
    several = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    hint = "--source name=address, once for each source"
    mistakes.note(
        QueryError(f"several addresses are given for {name or 'a source without a name'}", hint=hint) for name in several
    )
    if not given:
        mistakes.note([QueryError(f"no source is given; the sources are: {', '.join(nodes)}", hint=hint)])
    only = next(iter(nodes.values()), None)
    made = {name: mistakes.of(make, address, nodes.get(name) if name else only) for name, address in pairs}
    return made[""] if list(made) == [""] else made


def sinks_of(given: Sequence[str], emit: EmitMode, mistakes: Mistakes) -> tuple[Any, dict[str, Any]]:
    """Return the sinks of `emit=address` texts, and the way to emit of those without one."""
    if not given:
        mistakes.note([QueryError("no sink is given", hint="--sink address, such as jsonl://counts.jsonl or stdout://")])
    by: dict[str, list[Sink | None]] = {}
    for text in given:
        mode, equals, address = text.partition("=")
        is_by = bool(equals) and mode in EMIT_MODES
        by.setdefault(mode if is_by else "", []).append(mistakes.of(_sink, address if is_by else text))
    if list(by) in ([], [""]):
        return by.get("", []), {"emit": emit}
    if "" in by or emit != "speculative":
        said = "some sinks say how their rows are emitted, and the others, or --emit, say it too"
        mistakes.note([QueryError(said, hint="--sink final=address, for each of them")])
    return by, {}


def _named(text: str, nodes: Mapping[str, SourceNode]) -> tuple[str, str]:
    """Return the name and the address of `name=address`; the name of an address alone is empty."""
    name, equals, address = text.partition("=")
    return (name, address) if equals and (name in nodes or name.isidentifier()) else ("", text)


def _made(follow: bool) -> Callable[[str, SourceNode | None], Source]:
    """Return a function that makes a source of an address, which follows files that grow."""

    def made(address: str, node: SourceNode | None) -> Source:
        from streamdsl.connect.addresses import source_of

        payload = None if node is None or node.payload is None else node.payload.cls
        return source_of(address, {"follow": follow, "payload": payload})

    return made


def _sink(address: str) -> Sink:
    from streamdsl.connect import sink_at

    return sink_at(address)


def _of_others(options: argparse.Namespace) -> Iterator[QueryError]:
    """Yield a refusal of options that are of jobs of files alone."""
    for name, default in _OF_FILES.items():
        if getattr(options, name) != default:
            yield QueryError(
                f"--{name.replace('_', '-')} is for jobs of files, and --source and --sink are for others",
                hint="streamdsl run module:query --input name=path --output path, or --source name=address --sink address",
            )
