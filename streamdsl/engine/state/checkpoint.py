"""A session as bytes, and back: a section for each of its operators and sources, and a head that says of which query it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamdsl.emit import Emit, mode_of
from streamdsl.engine.state.attributes import attributes_of
from streamdsl.engine.state.buffers import Data, Writing, parsed
from streamdsl.engine.state.classes import Classes
from streamdsl.engine.state.external import ExternalReferences, is_configuration
from streamdsl.engine.state.objects import check_types
from streamdsl.engine.state.reader import Reader
from streamdsl.engine.state.writer import Writer
from streamdsl.errors import CheckpointError, WorkerError
from streamdsl.extras import own_version
from streamdsl.temporal import to_duration

if TYPE_CHECKING:
    from streamdsl.engine.query_session import Session

FORMAT: Final = 8
"""Format 1 named functions and any loaded class, format 2 held rows back by another rule, formats 3 and 4 had other class names.

In format 5 variances kept values, format 6 knew no subscriptions and no origins of CTIs, format 7 counted no retractions.
None of these is read any more.
"""
_REMEDY: Final = (
    "let the version of streamdsl that has written it end the session (restore(path), push what is left, close()), "
    "or begin anew with open() and push the input again"
)
_KINDS: Final[dict[str, Any]] = {
    "streamdsl": str,
    "emit": (str, dict),
    "subscriptions": list,
    "options": dict,
    "unit": (str, NoneType),
    "plan": list,
    "pickled": list,
    "sections": dict,
}
"""What the head of a checkpoint holds."""
_MAGIC: Final = b"streamdsl checkpoint "
OF_SHARDS: Final = b"streamdsl checkpoint of shards\n"
"""With this a file begins that holds a session and its shards, each as a snapshot."""
_DIGEST: Final = 32
_SESSION: Final = "session"
_OWN: Final = ("_ctis", "_now", "_early")
"""What a session holds besides its operators, sources and streams."""


def roots_of(session: Session[Any]) -> dict[str, Any]:
    """Return the objects of a session that have a section each, by its name."""
    graph = session._graph
    roots: dict[str, Any] = {f"keys:{number}": table for number, table in enumerate(graph.key_tables)}
    for number, stage in enumerate(graph.stages):
        if stage.operator is not None:
            roots[f"operator:{number}:{stage.operator.label}"] = stage.operator
    roots |= {f"source:{name}": ingress for name, ingress in session._sources.items()}
    roots |= {f"published:{name}": stream for name, stream in session.published.items()}
    roots |= {f"subscription:{number}": each.subscriber for number, each in enumerate(session.subscriptions)}
    return {**roots, "output": session.output, "egress": session._egress}


def snapshot(session: Session[Any], types: Iterable[type] = (), anywhere: bool = False) -> bytes:
    """Return the state of a session as bytes. Raises `CheckpointError` naming the operator and what of it cannot be saved.

    `types` are classes whose values may be saved besides those that the query declares; with `anywhere` all may.
    """
    classes, roots = Classes(session.parts.declared(types), anywhere), roots_of(session)
    out, sections, pickled = Writing(), {}, set()
    for name, root in {_SESSION: None, **roots}.items():
        writer = Writer(ExternalReferences(session.parts, roots, root), classes)
        held = {each: getattr(session, each) for each in _OWN} if root is None else _saved(root)
        try:
            sections[name] = out.put_parts(writer.section(held))
        except Exception as error:  # of a comparison, or a class of the user's that cannot be looked into
            raise CheckpointError(f"{_shown(name)} cannot be saved, at {writer.at}: {_why(error)}") from error
        pickled |= writer.pickled
    head = {
        "streamdsl": own_version(),
        "emit": _emit(session.emit),
        "subscriptions": [_emit(each.emit) for each in session.subscriptions],
        "options": _options(session),
        "unit": session.unit,
        "plan": session.described,
        "pickled": sorted(pickled),
        "sections": sections,
    }
    content = out.parts(head)
    return b"".join([_MAGIC, f"{FORMAT:8}\n".encode(), _digest(content), *content])


def _digest(parts: Iterable[Data]) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()


def _saved(root: object) -> dict[str, Any]:
    return {name: held for name, held in attributes_of(root).items() if not is_configuration(held)}


def _shown(section: str) -> str:
    """Return the operator, or whatever else a section is of, as errors name it."""
    kind, _, name = section.partition(":")
    return name.partition(":")[2] if kind == "operator" else section


def _options(session: Session[Any]) -> dict[str, Any]:
    return {name: each if isinstance(each, (str, int)) else sorted(each) for name, each in session.options.items()}


def _emit(emit: Any) -> Any:
    if not isinstance(emit, Emit):
        return emit
    return {"every": emit.every, "durations": [[type(each) is int, to_duration(each, "ns")] for each in emit.durations]}


def _found_emit(emit: Any) -> Any:
    """Return the way to emit that `_emit` has written."""
    if isinstance(emit, str):
        mode_of(emit)
        return emit
    hold, delay = (n if in_ticks else np.timedelta64(n, "ns") for in_ticks, n in emit["durations"])
    return Emit(hold, emit["every"], delay)


class Checkpoint:
    """The bytes of a snapshot, whole and of this version of streamdsl; raises `CheckpointError` where they are not.

    What is in the file is not believed: see `reader`.
    """

    def __init__(self, data: bytes) -> None:
        start = len(_MAGIC) + 9
        if data.startswith(OF_SHARDS):
            raise CheckpointError(
                "the checkpoint is of a session with workers", hint="restore(path, workers=n), any number of them"
            )
        if data[: len(_MAGIC)] != _MAGIC:
            raise CheckpointError("this is no checkpoint", hint="session.checkpoint(path) writes one")
        if (format := data[len(_MAGIC) : start].strip()) != str(FORMAT).encode():
            raise CheckpointError(
                f"the checkpoint has format {format.decode(errors='replace')}, this streamdsl reads format {FORMAT}", hint=_REMEDY
            )
        digest, content = data[start : start + _DIGEST], memoryview(data)[start + _DIGEST :]
        if _digest([content]) != digest:
            raise CheckpointError("the checkpoint is damaged: it is not what was written", hint="use an earlier one")
        with _reading("the checkpoint's head"):
            head, self._arrays = parsed(content)
            self._head = {name: _is_of(head[name], kind) for name, kind in _KINDS.items()}
            self._places = {name: (start, size) for name, (start, size) in self._head["sections"].items()}
            self._then = [(str(owner), str(text)) for owner, text in self._head["plan"]]
            self._emit, *self._subscriptions = map(_found_emit, [self._head["emit"], *self._head["subscriptions"]])
        if self._head["streamdsl"] != own_version():
            raise CheckpointError(
                f"the checkpoint is of streamdsl {self._head['streamdsl']}, this is {own_version()}: their states differ",
                hint=_REMEDY,
            )

    def fresh(self, opened: Callable[[Any, dict[str, Any]], Session[Any]]) -> Session[Any]:
        """Return a session that emits as the one did that was saved, and has its `engine_options`."""
        try:
            return opened(self._emit, self.options)
        except WorkerError:
            raise
        except Exception as error:
            how = f"emit={self._emit!r:.80}, engine_options={self.options!r:.200}"
            raise CheckpointError(f"the checkpoint is of a session with {how}, which are none here: {error}") from error

    @property
    def options(self) -> dict[str, Any]:
        """The session's `engine_options`."""
        return dict(self._head["options"])

    @property
    def sections(self) -> dict[str, bytes]:
        """The sections by name: what has not changed has the same bytes."""
        return {name: bytes(self._section(name)) for name in self._places}

    def lay_over(self, session: Session[Any], trust: bool = False, types: Iterable[type] = ()) -> None:
        """Give a fresh session of the same query the state. Raises `CheckpointError`; the session is then of no use.

        `types` are classes whose values may be restored besides those that the query declares, with `trust` all that are loaded.
        """
        self._check_query(session)
        if self._head["pickled"] and not trust:
            names = ", ".join(map(str, self._head["pickled"]))
            raise CheckpointError(
                f"the checkpoint holds pickled values, of {names}: to load them may run any code",
                hint="restore(path, trust=True) if you know who has written it; values that are dataclasses need no trust",
            )
        with _reading("the subscriptions"):
            for emit in self._subscriptions:
                session.subscribe(emit)
        roots = roots_of(session)
        if {_SESSION, *roots} != self._places.keys():
            raise CheckpointError("the checkpoint is of other operators", hint=_REMEDY)
        classes = Classes(session.parts.declared(types), anywhere=trust)
        for name, root in {_SESSION: None, **roots}.items():
            with _reading(_shown(name)):
                reader = Reader(self._section(name), ExternalReferences(session.parts, roots, root), classes, trust)
                _put(session if root is None else root, reader.attributes(), _OWN if root is None else _saved(root))
        with _reading("the session"):
            session._wait()
            for stream in (*session.published.values(), session.output):
                stream.flush()

    def _section(self, name: str) -> memoryview:
        return self._arrays.view(*self._places[name])

    def _check_query(self, session: Session[Any]) -> None:
        """Raise where the plan, the way to emit or the options are not those of the session that was saved."""
        ways = [("emit", self._head["emit"], _emit(session.emit)), ("engine_options", self.options, _options(session))]
        for what, then, now in ways:
            if then != now:
                raise CheckpointError(f"the checkpoint is of a session with {what}={then!r}, this one has {now!r}")
        if self._then != session.described:
            raise CheckpointError(
                f"the checkpoint is of another query: {_difference(self._then, session.described)}",
                hint="restore it with the query as it was; a changed one starts anew with open()",
            )


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Let whatever goes wrong where data are read that cannot be trusted be a `CheckpointError`."""
    try:
        yield
    except Exception as error:
        raise CheckpointError(f"{what} cannot be restored: {_why(error)}") from error


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its values hold one another too deeply"
    return str(error) if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error!s:.200}"


def _is_of(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise CheckpointError(f"it has {value!r:.80} where there must be a {kind}")
    return value


def _put(root: Any, held: Mapping[str, Any], expected: Iterable[str]) -> None:
    """Set the attributes of a fresh object, each of which has a value of the type that a fresh one has."""
    if set(expected) != held.keys():
        names = sorted(set(expected) ^ held.keys())
        raise CheckpointError(f"it has other attributes: {', '.join(names)}", hint=_REMEDY)
    for name, value in held.items():
        check_types(name, [value], {type(getattr(root, name))})
    for name, value in held.items():
        setattr(root, name, value)


def _difference(then: list[tuple[str, str]], now: list[tuple[str, str]]) -> str:
    """Return the first thing in which two plans differ."""
    for (was_of, was), (is_of, found) in zip(then, now, strict=False):
        if was_of != is_of:
            return f"where it has {was_of}, this one has {is_of}"
        if was != found:
            return f"in {was_of} it has {was}, this one has {found}"
    longer, what = (then, "it") if len(then) > len(now) else (now, "this one")
    return f"{what} goes on with {longer[min(len(then), len(now))][0]}"
