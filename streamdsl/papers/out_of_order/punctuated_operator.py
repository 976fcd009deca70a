"""What all operators of paper 004 share: inputs with bounds on their low-water marks (A.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from inspect import Signature, signature
from typing import Any, ClassVar, Self, TypeAlias

from streamdsl.errors import EventError, QueryError, shortened
from streamdsl.papers.out_of_order.call_repr import call_text
from streamdsl.papers.out_of_order.items import (
    BEGINNING,
    Item,
    Joined,
    JointPunctuation,
    Punctuation,
    Time,
    Tuple,
    Unmatched,
    WindowResult,
    is_time,
)
from streamdsl.temporal.time import INFINITY

Items: TypeAlias = list[Any]
"""The output of a push: results before punctuation."""


class Operator(ABC):
    """An operator that is fed by hand, item by item."""

    inputs: int = 1
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        init = signature(cls.__init__)
        cls.__signature__ = init.replace(parameters=list(init.parameters.values())[1:])

    def __new__(cls, *given: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._given = given, named
        return made

    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __repr__(self) -> str:
        return call_text(self, *self._given)

    @property
    def name(self) -> str:
        """What the operator is called in errors."""
        return type(self).__name__

    @property
    def buffered(self) -> int:
        """How many tuples (sorted, stored and waiting results together), or partial aggregates, it holds after the last push."""
        return 0

    @abstractmethod
    def push(self, item: Item, input: int = 0) -> Items:
        """Return what an item causes, results before punctuation.

        Raises `EventError` for a tuple that breaks its input's punctuation, and `QueryError` for an input that there is not.
        """

    def run(self, items: Iterable[tuple[int, Item]]) -> Items:
        """Return what items cause, each given with its input, in one list."""
        found: Items = []
        for each in items:
            try:
                input, item = each
            except (TypeError, ValueError):
                hint = "write (0, Tuple(7)): what it is pushed to comes first"
                raise QueryError(f"{self.name}.run takes pairs (input, item), not {each!r}", hint=hint) from None
            found += self.push(item, input)
        return found

    def close(self) -> Items:
        """Return what the end of all inputs causes: `Punctuation(INFINITY)` on each in turn."""
        return self.run([(input, Punctuation(INFINITY)) for input in range(self.inputs)])


class Punctuated(Operator):
    """An operator that knows from punctuation alone what is complete, and may go; it trusts no order."""

    def __init__(self) -> None:
        self._bounds: list[Time] = [BEGINNING] * self.inputs

    def push(self, item: Item, input: int = 0) -> Items:
        if input != 0 and input not in range(self.inputs):
            known = ", ".join(map(str, range(self.inputs)))
            raise QueryError(f"{self.name} has no input {input!r}; its inputs are: {known}")
        if isinstance(item, Tuple):
            self._check_tuple(item, input)
            return self._on_tuple(item, input)
        if isinstance(item, Punctuation):
            return self._on_punctuation(item, input) if self._says_something(item) else []
        return self._on_other(item, input)

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
        hint = "write Tuple(7, payload), or Punctuation(7)"
        if isinstance(item, (Joined, JointPunctuation, Unmatched)):
            hint = "OfPairs makes tuples of a join's results"
        elif isinstance(item, WindowResult):
            hint = "OfWindows makes tuples of a window's results"
        raise QueryError(f"{self.name} takes tuples and punctuation, not {item!r}", hint=hint)

    def _check_tuple(self, item: Tuple, input: int) -> None:
        try:
            if self._bounds[input] <= item.ts <= INFINITY and item.ts >= -INFINITY:
                return
        except TypeError:
            pass
        check_time(item, item.ts, f"{self.name}, input {input}")
        raise EventError(
            item,
            f"its ts {item.ts} is below the punctuation {self._bounds[input]}",
            where=f"{self.name}, input {input}",
            hint="nothing earlier may come: punctuate later, or put an Input before it, which drops what is late",
        )

    def _says_something(self, item: Punctuation) -> bool:
        """Say whether a promise is one; raises `EventError` for what is no time."""
        if item.value in (BEGINNING, -BEGINNING):
            return item.value > 0
        check_time(item, item.value, self.name)
        return True


class PunctuationSender:
    """The last punctuation sent on each attribute; only punctuation that advances is sent."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent: dict[str, Time] = {}

    def to(self, value: Time, on: str = "ts") -> list[Punctuation]:
        """Return the punctuation to send, if any."""
        if value <= self.sent.get(on, BEGINNING):
            return []
        self.sent[on] = value
        return [Punctuation(value, on)]


def check_time(item: Item, value: object, where: str, what: str = "ts") -> None:
    """Raise `EventError` where what an item has for its time is none."""
    if not is_time(value):
        hint = "a time is a number of ticks, at most INFINITY"
        raise EventError(item, f"its {what} {shortened(value)} is no time", where=where, hint=hint)


def check_operator(*given: object) -> None:
    """Raise `QueryError` for what is no operator."""
    for each in given:
        if not isinstance(each, Operator):
            raise QueryError(f"{each!r} is no operator", hint="for example Union(2), or WindowAggregate(60, 60, sd.count())")
