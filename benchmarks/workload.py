"""What a workload is, and a peer's way to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.answer import Answer
from benchmarks.data import Data

OURS = "streamdsl"


@dataclass(frozen=True)
class Way:
    """How a peer does a workload: `prepare` takes the input to the peer's own form, and only what it returns is measured."""

    prepare: Callable[[Data], Callable[[], Any]]
    read: Callable[[Any, Sequence[str]], Answer]
    """Takes the names of the columns."""
    at_most: int | None = None
    """The most events it is given, where it is slow."""
    against: str = OURS
    """The way of ours that starts from the same form of input."""
    state: Callable[[Data], int] | None = None
    """The bytes that it holds once it has read everything and may not yet forget anything."""


@dataclass(frozen=True)
class Workload:
    """A computation on some data, by several peers, with its answer."""

    name: str
    title: str
    events: int
    data: Callable[[int], Data]
    columns: Sequence[str]
    """The columns of the answer."""
    reference: Callable[[Data], Answer]
    """The answer by plain Python."""
    ways: Mapping[str, Way]
    notes: Sequence[str] = ()
    """What is not like for like."""


def peer_of(way: str) -> str:
    """Return which peer goes a way: its first word."""
    return way.split()[0]
