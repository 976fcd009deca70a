"""Answers: columns, the same from every peer up to the order of the rows and the last digits of floats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Answer: TypeAlias = dict[str, NDArray[Any]]


def from_rows(rows: Iterable[Sequence[Any]], names: Sequence[str]) -> Answer:
    """Return rows as an answer."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: np.asarray(column) for name, column in zip(names, columns, strict=True)}


def from_arrow(table: Any, names: Sequence[str]) -> Answer:
    """Return columns of an Arrow table as an answer."""
    return {name: table.column(name).to_numpy() for name in names}


def difference(found: Answer, expected: Answer) -> str | None:
    """Return what is wrong with an answer, None if nothing is."""
    if list(found) != list(expected):
        return f"columns {list(found)} instead of {list(expected)}"
    sizes = [len(next(iter(answer.values()))) for answer in (found, expected)]
    if sizes[0] != sizes[1]:
        return f"{sizes[0]} rows instead of {sizes[1]}"
    found, expected = _sorted(found), _sorted(expected)
    for name, column in expected.items():
        other = found[name].astype(column.dtype) if sizes[0] else found[name]
        wrong = np.flatnonzero(~np.isclose(other, column, rtol=1e-9, atol=1e-9, equal_nan=True))
        if len(wrong):
            at = wrong[0]
            return f"{name} is {other[at]} instead of {column[at]} in row {at}, and wrong in {len(wrong)} rows"
    return None


def _sorted(answer: Answer) -> Answer:
    order = np.lexsort(list(answer.values())[::-1])
    return {name: column[order] for name, column in answer.items()}
