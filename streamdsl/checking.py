"""Checks of queries: from a program (`sd.check`), and from the command line (`python -m streamdsl check module:query`)."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from streamdsl.checks import Finding, findings
from streamdsl.errors import QueryError, StreamDslError
from streamdsl.running import sources
from streamdsl.stream import Stream


def check(query: Stream[Any]) -> list[Finding]:
    """Return what is wrong with a query that can be seen before it runs: state that no CTI frees, CTIs held back, lost speed.

    Each finding names the operator, what it holds back, the remedy, and the line that made it. Bounded inputs end, so nothing is
    said of their rows. LEs, REs and CTIs are not touched: nothing runs. Raises `QueryError` for what is no query.

    >>> import streamdsl as sd
    >>> doors, lamps = sd.source("doors").to_edges("room"), sd.source("lamps").to_points()
    >>> [found.operator for found in sd.check(doors.join(lamps, on="room"))]
    ['to_edges_1', 'join_1']
    >>> found = sd.check(doors.semi_join(lamps))[-1]
    >>> found.level, found.what
    ('warning', 'keeps the rows of to_edges_1 that never end until the input is closed')
    >>> found.remedy
    'end the rows below it: clip_duration(d), or to_points() where only starts count'
    >>> [found.level for found in sd.check(doors.clip_duration(60).join(lamps, on="room"))]
    ['note']
    """
    if not isinstance(query, Stream):
        raise QueryError(
            f"check takes a query, not {query!r}", hint="of groups or windows check the result of aggregate or apply"
        )
    sources(query._node)
    return findings(query._node, query._bindings)


def check_named(target: str) -> int:
    """Print what is found in the query `module:name`; return 1 if there is a warning, 2 if there is no such query, else 0."""
    try:
        found = check(_named(target))
    except StreamDslError as error:
        print(error, file=sys.stderr)
        return 2
    warnings = sum(each.level == "warning" for each in found)
    for each in found:
        print(each)
    print(f"{target}: {_count(warnings, 'warning')}, {_count(len(found) - warnings, 'note')}")
    return min(warnings, 1)


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _named(target: str) -> Stream[Any]:
    """Return the query that `module:name` is; raises `QueryError` that says what there is instead."""
    module_name, _, name = target.partition(":")
    if not module_name:
        raise QueryError(f"{target!r} names no query", hint="python -m streamdsl check package.module:query")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise QueryError(
            f"there is no module {error.name!r}",
            hint="name it as an import does, without .py: python -m streamdsl check package.module:query",
        ) from None
    queries = [each for each, value in vars(module).items() if isinstance(value, Stream)]
    value = getattr(module, name, None) if name else None
    if isinstance(value, Stream):
        return value
    wrong = f"{name!r} of {module_name} is no query but {value!r}" if hasattr(module, name) else f"{module_name} has no {name!r}"
    listed = f"its queries are: {', '.join(queries)}" if queries else "it has no queries at its top level"
    what = wrong if name else f"{target!r} does not say which query"
    raise QueryError(f"{what}; {listed}", hint=f"python -m streamdsl check {module_name}:{next(iter(queries), 'query')}")
