"""The queries that laws run a module in: each kind of window over one stream, a stream operator over it as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamdsl.udm.bases import AnyUDA
from streamdsl.udm.stream_operator import UDSO
from streamdsl.windows import Clip, Output

if TYPE_CHECKING:
    from streamdsl.stream import Stream
    from streamdsl.testing.subject import Subject


def query_of(subject: Subject, module: Any, kind: str, clip: Clip) -> Stream[Any]:
    """Return the query that gives a module the windows of one kind over the source `events`, or a stream operator its rows."""
    from streamdsl.sources import source

    events: Stream[Any] = source("events", unit=subject.unit)
    if isinstance(module, UDSO):
        return events.scan(module)
    method, *arguments = _window(subject, kind)
    windowed = getattr(events, method)(*arguments, clip=clip, output=subject.output)
    stream: Stream[Any] = windowed.aggregate(module) if isinstance(module, AnyUDA) else windowed.apply(module)
    return stream


def text_of(subject: Subject, kind: str, clip: Clip) -> str:
    """Return a query as a user would write it."""
    if isinstance(subject.module, UDSO):
        return f"events.scan({subject.module.label})"
    method, *arguments = _window(subject, kind)
    policies = [f"clip={clip}"] if subject.module.time_sensitive else []
    policies += [f"output={subject.output}"] if subject.output is not Output.ALIGN else []
    call = "aggregate" if isinstance(subject.module, AnyUDA) else "apply"
    return f"events.{method}({', '.join([*map(str, arguments), *policies])}).{call}({subject.module.label})"


def _window(subject: Subject, kind: str) -> tuple[Any, ...]:
    """Return the method that makes windows of a kind, and its arguments; hopping windows hold the subject's own window."""
    size = subject.window.re - subject.window.le
    hop = size if kind == "tumbling" else max(1, size // 2)
    offset = subject.window.le % hop
    windows: dict[str, tuple[Any, ...]] = {
        "tumbling": ("tumbling_window", size, offset),
        "hopping": ("hopping_window", size, hop, offset),
        "snapshot": ("snapshot_window",),
        "count": ("count_window", 2),
    }
    return windows[kind]
