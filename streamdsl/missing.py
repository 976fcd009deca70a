"""Hints for missing methods: names of other libraries, and steps of a query that were left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamdsl.errors import MethodNotFound, closest
from streamdsl.temporal.completion import Completed

_ELSEWHERE: Final = {
    "agg": "aggregate",
    "assign": "select",
    "collect": "run",
    "concat": "union",
    "filter": "where",
    "flat_map": "select_many",
    "flatmap": "select_many",
    "groupby": "group_by",
    "key_by": "group_by",
    "map": "select",
    "mean": "avg",
    "merge": "union",
    "to_list": "run",
    "window": "tumbling_window",
}
"""Names of methods in other libraries, and their names here."""

_OF_FRAMES: Final = frozenset({"to_csv", "to_excel", "to_json", "to_parquet", "to_sql"})
_AGGREGATES: Final = ("aggregate", "aggregate_as", "count", "sum", "avg", "min", "max", "median", "first", "last", "top_k")
_OF_GROUPS: Final = "a query over each group follows: .tumbling_window(10).aggregate(n=sd.count()), or .apply(lambda g: ...)"
_OF_ROWS: Final = "aggregate it first: .aggregate(n=sd.count()), or .apply(MyUDO()); where and select stand before the window"
_IN_WINDOWS: Final = "rows are aggregated in windows: .tumbling_window(10).aggregate(...), at every instant .snapshot_window()"


class Fluent(Completed):
    """A base class that raises `MethodNotFound`, with a hint, for a method that does not exist.

    >>> import streamdsl as sd
    >>> sd.source("trips").filter(lambda e: e.fare > 5)
    Traceback (most recent call last):
        ...
    streamdsl.errors.MethodNotFound: a Stream has no 'filter'
    Hint: it is called 'where' here
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise MethodNotFound(f"a {type(self).__name__} has no {name!r}", hint=_instead(type(self), name))


def _instead(cls: type, name: str) -> str | None:
    """Return the hint for a method that a class lacks, None if there is none."""
    there = [each for each in dir(cls) if not each.startswith("_")]
    wanted = _ELSEWHERE.get(name, name)
    if wanted in there:
        return f"it is called {wanted!r} here"
    windowed = "aggregate" in there
    if wanted in _AGGREGATES:
        return f"write .aggregate(n=sd.{wanted}(...))" if windowed else _IN_WINDOWS
    if name in _OF_FRAMES and "to_pandas" in there:
        return f"to_pandas().{name}(...) writes the answer"
    if close := closest(name, there):
        return f"did you mean {close!r}?"
    return _OF_ROWS if windowed else None if "run" in there else _OF_GROUPS
