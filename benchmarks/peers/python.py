"""Plain Python over tuples, and numpy over columns: what one would write by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.answer import Answer, from_rows
from benchmarks.data import Data, Rows, rows
from benchmarks.workload import Way


def loop(query: Callable[..., Iterable[Sequence[Any]]], against: str = "streamdsl tuples") -> Way:
    """Run a function of rows, one list for each input, to rows."""

    def prepare(data: Data) -> Callable[[], Any]:
        given = [rows(columns) for columns in data.values()]
        return lambda: query(*given)

    return Way(prepare, from_rows, against=against)


def floor(query: Callable[..., Answer]) -> Way:
    """Run a function of columns, one mapping for each input, to columns."""

    def prepare(data: Data) -> Callable[[], Any]:
        return lambda: query(*data.values())

    return Way(prepare, lambda answer, names: {name: answer[name] for name in names})


def reference(query: Callable[..., Iterable[Sequence[Any]]], names: Sequence[str]) -> Callable[[Data], Answer]:
    """Return the answer that a function of rows gives."""

    def answer(data: Data) -> Answer:
        given: list[Rows] = [rows(columns) for columns in data.values()]
        return from_rows(query(*given), names)

    return answer
