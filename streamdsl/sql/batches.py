"""Queries over batches (paper 002): the only module of SQL that uses `cql`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.papers import cql
from streamdsl.papers.cql import BatchStream, Relation
from streamdsl.papers.cql.stream_groups import group_of
from streamdsl.plan.node import Source
from streamdsl.sql.named_inputs import Sources
from streamdsl.sql.parsing import name_of
from streamdsl.sql.spans import NO_PARTS, in_batches
from streamdsl.stream import Stream
from streamdsl.temporal import Unit, is_calendar


@dataclass
class Batches(Sources):
    """The named inputs of a query over batches: streams of one group, and relations."""

    def framed(self, token: Any, found: Any, frame: Any) -> Any:
        """Return the rows of a source: a stream through its window, a relation unchanged."""
        if isinstance(found, BatchStream):
            return self._window(token, found, frame)
        if frame is not None and not isinstance(found, Stream):
            raise self.text.refused(frame, f"{name_of(token)!r} is a relation, which has no window")
        return super().framed(token, found, frame)

    def is_batched(self, token: Any) -> bool:
        return isinstance(self.named.get(name_of(token)), BatchStream)

    def spread(self, tree: Any) -> None:
        all_, names, on, into = tree.children
        old, new = ([name_of(token) for token in each.children] for each in (names, into))
        if len(old) != len(new):
            raise self.text.refused(into, f"{len(old)} streams are spread into {len(new)}")
        for token in names.children:
            if not isinstance(self.named.get(name_of(token)), BatchStream):
                raise self.text.refused(
                    token, f"{name_of(token)!r} is no stream that can be spread", "ISTREAM(...) makes one of a relation"
                )
        by = None if on is None else [_attribute(name_of(token)) for token in on.children]
        group = group_of({name: self.named[name] for name in old})
        with self.text.at(on or names):
            group = cql.spread(group, old, on=by, all=all_ is not None)
        self.named.update(zip(new, (group[name] for name in old), strict=True))

    def _window(self, token: Any, stream: BatchStream, frame: Any) -> Relation:
        if frame is None:
            hint = f"write {name_of(token)} [RANGE 10], [ROWS 3], or [ROWS UNBOUNDED]"
            raise self.text.refused(token, f"{name_of(token)!r} is a stream, and has rows only in a window", hint)
        with self.text.at(frame):
            if frame.data == "keep":
                return stream.keep(int(frame.children[0]))
            names, extent, slide = frame.children
            step = None if slide is None else in_batches(self.text, slide, self.unit)
            return self._extent(stream, names, extent, step)

    def _extent(self, stream: BatchStream, names: Any, extent: Any, slide: int | None) -> Relation:
        size = None if extent.data == "unbounded" else 0 if extent.data == "now" else -1
        if names is not None:
            if extent.data != "rows" or slide is not None:
                raise QueryError(NO_PARTS)
            return stream.partition_by(*(name_of(token) for token in names.children)).rows(int(extent.children[0]))
        if extent.data == "rows":
            return stream.rows(int(extent.children[0]), slide)
        return stream.range(in_batches(self.text, extent.children[0], self.unit) if size == -1 else size, slide)


def with_batches(sources: Sources, tree: Any, groups: tuple[Any, ...], batched: bool) -> Sources:
    """Return the inputs of a query including the streams of groups; they are batched if `batched`, or if one of them is."""
    for group in groups:
        if not isinstance(group, cql.StreamGroup):
            raise QueryError(f"{group!r} has no name in the query", hint="a stream is given by name: sd.sql(text, S=stream)")
    found = {name: group[name] for group in groups for name in group} | sources.named
    names = _names(tree)
    used = {name: value for name, value in found.items() if name in names}
    unit = _unit(used)
    batched = batched or any(isinstance(value, (BatchStream, Relation)) for value in used.values())
    if batched:
        used |= _in_one_group({name: value for name, value in used.items() if not isinstance(value, Relation)}, tree)
    for name, value in (found | used).items():
        if name in used or not isinstance(value, list):
            _check_stream(name, value)
    if not batched:
        return replace(sources, named=found | used)
    return Batches(sources.text, found | used, sources.functions, sources.modules, unit)


def _names(tree: Any) -> set[str]:
    """Return the names of all inputs that the statements of a program read."""
    tokens = [source.children[0] for source in tree.find_data("named")]
    for spread in tree.find_data("spread"):
        tokens += spread.children[1].children
    return {name_of(token) for token in tokens}


def _check_stream(name: str, value: object) -> None:
    if not isinstance(value, (Stream, BatchStream, Relation)):
        hint = "for example sd.source('trips'), or a stream of a cql group"
        if isinstance(value, list):
            hint = f"a list of (payload, t) is read over batches, as {name} [ROWS 3]; else write {name}=sd.from_rows(...)"
        raise QueryError(f"{name}={value!r} is no stream", hint=hint)


def _unit(given: Mapping[str, Any]) -> Unit:
    """Return the unit of the inputs; seconds if no input has a calendar unit."""
    units = [_unit_of(value) for value in given.values()]
    return next((unit for unit in units if is_calendar(unit)), None) or "s"


def _unit_of(value: object) -> Unit | None:
    if isinstance(value, Stream):
        return value.plan().unit
    return getattr(getattr(value, "timeline", None), "unit", None)


def _in_one_group(streams: Mapping[str, Any], tree: Any) -> Mapping[str, Any]:
    timelines = {id(value.timeline) if isinstance(value, BatchStream) else 0 for value in streams.values()}
    if not streams or (len(timelines) == 1 and 0 not in timelines):
        return streams
    for name, value in streams.items():
        if isinstance(value, Stream) and _lacks_rows(value):
            raise QueryError(
                f"{name} has no rows of its own, and a query over batches reads rows that are there",
                hint=f"sd.from_rows(...), or {name}=[(payload, t), ...]; over rows to come: cql's relation.open()",
            )
    group = group_of(streams, batching=cql.CCL if any(tree.find_data("keep")) else cql.ORACLE)
    return {name: group[name] for name in streams}


def _lacks_rows(stream: Stream[Any]) -> bool:
    return any(isinstance(node, Source) and node.source not in stream._bindings for node in stream.plan().walk())


def _attribute(name: str) -> str:
    return "t" if name.lower() in ("t", "time") else name
