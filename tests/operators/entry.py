"""What an entry says of its operator: all that laws, tests of the facade and of Spark, and generated pages need to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import streamdsl as sd
from streamdsl.errors import UnboundedOutputError
from streamdsl.plan.node import Node
from streamdsl.temporal import INFINITY, Lifetime
from streamdsl.windows import Windows

Stream: TypeAlias = "sd.Stream[Any]"
Query: TypeAlias = Callable[..., Stream]
"""A query over one stream, or over as many as the operator has inputs."""


class Meaning(NamedTuple):
    """A row of the table of operators in docs/semantics.md: how far the CTI goes after an input CTI c."""

    operator: str
    rows: str
    cti: str


@dataclass(frozen=True)
class Operator:
    """An operator of the facade: an entry of `OPERATORS` in a module of this package.

    Queries take streams of records of a text `k` and an integer `v` of either sign; those of `spark` also have `n`, and a `v`
    that is a float.
    """

    name: str
    """The method of `Stream`."""
    page: Literal["rows", "order", "combining", "windows"]
    """The page of docs/operators that shows it."""
    variants: Sequence[Query]
    """Queries for the laws, each of which is held to the reference, stopped, restored, attached to, ..."""
    inputs: int = 1
    ends: bool = False
    """Whether it needs rows that end."""
    spark: Mapping[str, Query] = field(default_factory=dict)
    """Rows of the table in docs/spark.md, which says how they run; each is run on Spark too."""
    meaning: Sequence[Meaning] = ()
    plans: Sequence[tuple[Stream, Node]] = ()
    """What the method builds, over `trips` and `zones` of tests/unit/facade/trips.py."""
    refused: Sequence[tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = ()
    """Queries that are refused where they are written, each with the class of the error and texts that it has."""
    transcripts: Mapping[str, str] = field(default_factory=dict)
    """Sessions in the form of tests/transcripts, by name, if they are not files there."""

    def over(self, variant: int, *streams: Any) -> Stream:
        """Return a variant over the first of these streams, as many as it has inputs."""
        return self.variants[variant](*streams[: self.inputs])


Life: TypeAlias = tuple[int, int]
Divided: TypeAlias = list[tuple[Life, list[int]]]
"""Windows, each with the numbers of its members."""
Oracle: TypeAlias = Callable[[Sequence[Life]], Divided]


@dataclass(frozen=True)
class Kind:
    """A kind of windows: an entry of `KINDS` in a module of this package."""

    name: str
    meaning: str = ""
    """Its item in the list of docs/semantics.md, unless that of another entry speaks of it too."""
    ctis: Mapping[str, str] = field(default_factory=dict)
    """Its rows in the table of CTIs there; a grid needs none, for it is named in the row of all grids."""
    variants: Sequence[Callable[..., Any]] = ()
    """Windows over a stream, which take `clip` and `output` too: for the laws, under every aggregate and way to stamp."""
    time_bound: Any = None
    """The operator that the laws run under `Output.TIME_BOUND`; None: there is none that keeps its promise over these windows."""
    instances: Mapping[str, tuple[Windows, Oracle | None]] = field(default_factory=dict)
    """Windows that are held to the facts of their kind, and to an oracle: which windows lifetimes make, and of which members."""
    tick: int = 1
    """How many ticks the laws take for one, if windows are long."""
    may_grow: bool = False
    """Whether the end of a window that is out may move beyond all that has come, when the CTI has passed its start."""
    spark: Mapping[str, Query] = field(default_factory=dict)
    """Rows of the table in docs/spark.md."""

    @property
    def unending(self) -> bool:
        """Whether there are finitely many windows over rows that never end."""
        return all(fills_few(windows) for windows, _ in self.instances.values())


def fills_few(windows: Windows) -> bool:
    """Say whether a row that never ends is in finitely many windows."""
    try:
        windows.over([Lifetime(0, INFINITY)])
    except UnboundedOutputError:
        return False
    return True
