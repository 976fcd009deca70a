"""Traces in files of JSON: the query, the settings, and the events, push by push. Nothing is pickled."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final

from streamdsl.debugger.pushes import Push, Recording, Sample
from streamdsl.emit import Emit
from streamdsl.engine.state.whole_files import write_whole
from streamdsl.engine.versions import RowVersion
from streamdsl.errors import QueryError, shortened
from streamdsl.expr.schema import TupleRow, is_plain_class
from streamdsl.plan.json import from_json, to_json
from streamdsl.plan.json.constants import CONSTANTS, constant
from streamdsl.plan.node import Node, sources
from streamdsl.temporal import MISSING, Cti, CtiOrigin, Event, Insert, Record, Rejected, Retract, fields_of
from streamdsl.temporal.json_text import loads

FORMAT: Final = "streamdsl trace"
VERSION: Final = 1


def write(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to a file, as a whole or not at all."""
    target = _path(path)
    try:
        plan: str | None = to_json(recording.plan)
    except QueryError:
        plan = None  # the reader gives the query
    emit = recording.emit
    held = {
        "format": FORMAT,
        "version": VERSION,
        "plan": plan,
        "emit": value([emit.hold, emit.every, emit.max_delay]) if isinstance(emit, Emit) else emit,
        "options": value(dict(recording.options)),
        "until": recording.until,
        "unit": recording.unit,
        "last": recording.last,
        "sample": None if recording.sample is None else recording.sample.share,
        "before": recording.before,
        "left_out": recording.left_out,
        "pushes": [_push(push) for push in recording.pushes],
    }
    write_whole(target, json.dumps(held, ensure_ascii=False, allow_nan=False).encode())


def read(path: str | os.PathLike[str], query: Node | None, types: Iterable[type]) -> Recording:
    """Read the recording in a file."""
    source = _path(path)
    try:
        held = loads(source.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise _no_trace(path, f"it is no JSON: {error}") from None
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise _no_trace(path, f'it has no "format": "{FORMAT}"')
    if held.get("version") != VERSION:
        raise _no_trace(path, f"it has the version {held.get('version')}, and this is version {VERSION}")
    classes = list(types)
    if query is None:
        if held["plan"] is None:
            raise QueryError(
                f"the trace {str(path)!r} has no query, as that has lambdas without a JSON form", hint="load(path, query=query)"
            )
        query = from_json(held["plan"], classes)
    declared = [node.payload.cls for node in sources(query).values() if node.payload is not None and node.payload.cls is not None]
    reader = _Values({f"{each.__module__}:{each.__qualname__}": each for each in (*classes, *declared)})
    try:
        emit: Any = held["emit"] if isinstance(held["emit"], str) else Emit(*reader.value(held["emit"]))
        pushes = deque(reader.push(push) for push in held["pushes"])
        return Recording(
            query,
            emit,
            reader.value(held["options"]),
            held["until"],
            held["unit"],
            held["last"],
            None if held["sample"] is None else Sample(held["sample"], "the key of the recording", None),
            before=held["before"],
            left_out=held["left_out"],
            pushes=pushes,
        )
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise _no_trace(path, f"something is missing or damaged: {error!r}") from None


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise QueryError(f"a trace is in a file, given by its path, not by {shortened(path)}", hint='trace.save("trips.trace")')
    return Path(path)


def _no_trace(path: object, what: str) -> QueryError:
    return QueryError(f"the file {str(path)!r} holds no trace: {what}", hint="trace.save(path) writes one")


def value(given: Any) -> Any:
    """Return a value as JSON; raises `QueryError` for what has no form in JSON.

    >>> value({"a": (1, None)})
    {'$dict': [['a', {'$tuple': [1, None]}]]}
    """
    if given is None:
        return None
    if given is MISSING:
        return {"$missing": 0}
    if type(given) is list:
        return [value(each) for each in given]
    if type(given) in (tuple, TupleRow):
        return {"$tuple": [value(each) for each in given]}
    if isinstance(given, RowVersion):
        return {"$version": [value(given.id), given.version]}
    if isinstance(given, Record):
        return {"$record": [[name, value(each)] for name, each in given.items()]}
    if type(given) is dict:
        return {"$dict": [[name, value(each)] for name, each in given.items()]}
    if type(given) in (set, frozenset):
        return {f"${type(given).__name__}": [value(each) for each in given]}
    if is_plain_class(type(given)):
        cls = type(given)
        return {"$of": [f"{cls.__module__}:{cls.__qualname__}", [[name, value(each)] for name, each in fields_of(given)]]}
    written = constant(given)
    if written is None:
        raise QueryError(
            f"the trace cannot be saved: {shortened(given)} is of {type(given).__name__}, which has no form in JSON",
            hint="payloads of plain values, dataclasses and named tuples can; a trace need not be saved to be asked",
        )
    return written


def _event(event: Event[Any]) -> list[Any]:
    if isinstance(event, Cti):
        return ["cti", value(event.time)]
    if isinstance(event, Insert):
        return ["insert", *map(value, (event.id, event.le, event.re, event.payload))]
    return ["retract", *map(value, (event.id, event.le, event.re, event.re_new, event.payload))]


def _push(push: Push) -> dict[str, Any]:
    return {
        "in": [[source, [_event(event) for event in events]] for source, events in push.batches],
        "out": [_event(event) for event in push.output],
        "ctis": dict(push.ctis),
        "rejected": [[source, _event(each.event), each.cti, each.reason, each.origin] for source, each in push.rejected],
        "end": push.end,
        "steps": list(push.steps),
    }


_EVENTS: Final[dict[str, Callable[..., Event[Any]]]] = {"insert": Insert, "retract": Retract, "cti": Cti}


class _Values:
    """Reads the values of a file; a class may only be one of those that it is given."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.classes = classes

    def push(self, held: Any) -> Push:
        rejected = tuple((source, self.rejected(*each)) for source, *each in held["rejected"])
        batches = tuple((source, tuple(map(self.event, events))) for source, events in held["in"])
        return Push(batches, tuple(map(self.event, held["out"])), held["ctis"], rejected, held["end"], tuple(held["steps"]))

    def rejected(self, event: Any, cti: int, reason: str, origin: list[Any] | None = None) -> Rejected:
        return Rejected(self.event(event), cti, reason, origin and CtiOrigin(*origin))  # type: ignore[arg-type]

    def event(self, held: Any) -> Event[Any]:
        kind, *parts = held
        return _EVENTS[kind](*map(self.value, parts))

    def value(self, held: Any) -> Any:
        if isinstance(held, list):
            return [self.value(each) for each in held]
        if not isinstance(held, dict):
            return held
        ((name, inside),) = held.items()
        if name in ("$record", "$dict"):
            fields = {each: self.value(given) for each, given in inside}
            return Record(fields) if name == "$record" else fields
        if name == "$of":
            return self._object(*inside)
        if name == "$missing":
            return MISSING
        if name == "$float":
            return float(inside)
        if name == "$version":
            return RowVersion(self.value(inside[0]), inside[1])
        if name in _COLLECTIONS:
            return _COLLECTIONS[name](map(self.value, inside))
        return CONSTANTS[name[1:]][2](inside)

    def _object(self, name: str, fields: list[Any]) -> Any:
        if name not in self.classes:
            known = ", ".join(self.classes) or "(none)"
            raise QueryError(
                f"the trace has payloads of {name}, which is not given; given are: {known}", hint="load(path, types=[...])"
            )
        cls = self.classes[name]
        made = {each: self.value(given) for each, given in fields}
        return cls(**made) if is_dataclass(cls) else cls._make(made.values())  # type: ignore[attr-defined]


_COLLECTIONS: Final[dict[str, Callable[..., Any]]] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
