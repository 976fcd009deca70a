"""What all operators of paper 004 share: inputs with bounds on their low-water marks (A.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from streamdsl.errors import EventError, QueryError
from streamdsl.progress.items import BEGINNING, Item, Punctuation, Time, Tuple
from streamdsl.temporal.time import INFINITY

Items: TypeAlias = list[Any]
"""What a push causes: results before punctuation."""


class Operator(ABC):
    """An operator that is fed by hand, item by item.

    It trusts no order: that something is complete, and may go, it knows from punctuation alone.
    """

    inputs: int = 1

    def __init__(self) -> None:
        self._bounds: list[Time] = [BEGINNING] * self.inputs

    @property
    def name(self) -> str:
        """What the operator is called in errors."""
        return type(self).__name__

    @property
    @abstractmethod
    def buffered(self) -> int:
        """How many tuples (sorted, stored and waiting results together), or partial aggregates, it holds after the last push."""

    def push(self, item: Item, input: int = 0) -> Items:
        """Return what an item causes, results before punctuation.

        Raises `EventError` for a tuple that breaks its input's punctuation, and `QueryError` for an input that there is not.
        """
        self._check_input(input)
        if isinstance(item, Tuple):
            self._check_tuple(item, input)
            return self._on_tuple(item, input)
        if isinstance(item, Punctuation):
            return self._on_punctuation(item, input)
        return self._on_other(item, input)

    def run(self, items: Iterable[tuple[int, Item]]) -> Items:
        """Return what items cause, each given with its input, in one list."""
        return [caused for input, item in items for caused in self.push(item, input)]

    def close(self) -> Items:
        """Return what the end of all inputs causes: `Punctuation(INFINITY)` on each in turn."""
        return self.run([(input, Punctuation(INFINITY)) for input in range(self.inputs)])

    @abstractmethod
    def _on_tuple(self, item: Tuple, input: int) -> Items:
        """Return what a tuple causes."""

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        """Return what punctuation causes: nothing if it is on another attribute, or says nothing new."""
        if item.on != "ts" or item.value <= self._bounds[input]:
            return []
        self._bounds[input] = min(item.value, INFINITY)
        return self._on_progress(input)

    def _on_progress(self, input: int) -> Items:
        """Return what the new bound of an input causes."""
        return []

    def _on_other(self, item: Item, input: int) -> Items:
        raise QueryError(
            f"{self.name} takes tuples and punctuation, not {item!r}",
            hint="OfPairs makes tuples of a join's results, OfWindows of a window's",
        )

    def _check_input(self, input: int) -> None:
        if not 0 <= input < self.inputs:
            known = ", ".join(map(str, range(self.inputs)))
            raise QueryError(f"{self.name} has no input {input!r}; its inputs are: {known}")

    def _check_tuple(self, item: Tuple, input: int) -> None:
        if item.ts < self._bounds[input]:
            raise EventError(
                item,
                f"its ts {item.ts} is below the punctuation {self._bounds[input]}",
                where=f"{self.name}, input {input}",
                hint="nothing earlier may come: punctuate later, or put an Input before it, which drops what is late",
            )


class Advancing:
    """The punctuation that has gone out on each attribute: a value goes out only when it advances."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent: dict[str, Time] = {}

    def to(self, value: Time, on: str = "ts") -> list[Punctuation]:
        """Return the punctuation to send, if any."""
        if value <= self.sent.get(on, BEGINNING):
            return []
        self.sent[on] = value
        return [Punctuation(value, on)]
