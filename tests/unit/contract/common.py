"""What the tests of the public contract share: sources, payloads, and runs by every engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import streamdsl as sd
from streamdsl import CHT, Record

ENGINES: tuple[Any, ...] = ("local", "reference")
EMITS: tuple[Any, ...] = ("speculative", "watermark", "final")
X: sd.Stream[Any] = sd.source("x")
Y: sd.Stream[Any] = sd.source("y")
DAY = 86_400


@dataclass
class Trip:
    zone: str
    fare: float | None = None

    @property
    def double(self) -> float:
        return 2 * (self.fare or 0)


class Zone(NamedTuple):
    zone: str
    n: int


@dataclass
class Checked:
    n: int

    def __post_init__(self) -> None:
        self.checked = True


def rows(*payloads: Any) -> sd.Stream[Any]:
    """Return the payloads with the lifetimes [1, 5), [2, 6), ..."""
    return sd.from_rows([(n, n + 4, payload) for n, payload in enumerate(payloads, 1)])


def cht_of(query: sd.Stream[Any], **arguments: Any) -> CHT[Any]:
    """Return what a query gives, the same on every engine."""
    found = [query.run(engine=engine, **arguments).cht() for engine in ENGINES]
    assert found[0] == found[1]
    kinds = [[type(row.payload) for row in cht] for cht in found]
    assert kinds[0] == kinds[1]
    return found[0]


def payloads_of(query: sd.Stream[Any], **arguments: Any) -> list[Any]:
    return [row.payload for row in cht_of(query, **arguments)]


def refused(kind: type[Exception], *texts: str) -> Any:
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, texts)))


def wrapped(value: Any) -> Iterator[Any]:
    """Yield every numpy value inside a payload, an event or a row."""
    if isinstance(value, (np.generic, np.ndarray)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from wrapped(item)
    elif isinstance(value, Record):
        yield from wrapped(list(dict(value).values()))
    elif hasattr(value, "__dataclass_fields__"):
        yield from wrapped([getattr(value, name) for name in value.__dataclass_fields__])
