"""Union, which passes everything through at once, and the merge that keeps order (paper 004, 5.4 and A.2.1)."""

from __future__ import annotations

from streamdsl.errors import EventError
from streamdsl.papers.out_of_order.items import BEGINNING, Order, Punctuation, Time, Tuple, check_order, is_time
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated, PunctuationSender
from streamdsl.papers.out_of_order.sort_buffer import SortBuffer
from streamdsl.temporal.integers import whole_number


class Union(Punctuated):
    """The union of n streams: tuples pass, and punctuation is the least of all inputs', on each attribute.

    `order="in"` merges inputs that are in order, so that a tuple tells how far its input has come: it holds tuples until all
    inputs have reached their ts, and lets them go in order. It sends no punctuation.

    >>> union = Union()
    >>> union.push(Tuple(5, "x")), union.push(Punctuation(6)), union.push(Punctuation(4), 1)
    ([Tuple(ts=5, payload='x')], [], [Punctuation(value=4, on='ts')])
    >>> merge = Union(order="in")
    >>> merge.push(Tuple(5, "x")), merge.push(Tuple(7, "y"), 1), merge.buffered
    ([], [Tuple(ts=5, payload='x')], 1)
    """

    def __init__(self, n: int = 2, order: Order = "any") -> None:
        check_order(order)
        self.inputs = whole_number(n, "n is", 1)
        super().__init__()
        self._in_order = order == "in"
        self._by_attribute: dict[str, list[Time]] = {}
        self._sent = PunctuationSender()
        self._held = SortBuffer()

    @property
    def buffered(self) -> int:
        return len(self._held)

    def _check_tuple(self, item: Tuple, input: int) -> None:
        if self._in_order and is_time(item.ts) and item.ts < self._bounds[input]:
            raise EventError(
                item,
                f"its ts {item.ts} is below {self._bounds[input]}, which its input has reached",
                where=f"Union, input {input}",
                hint='Union(order="in") merges inputs that are in order: sort them first with Sort',
            )
        super()._check_tuple(item, input)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        if not self._in_order:
            return [item]
        self._held.add(item.ts, item)
        self._bounds[input] = item.ts
        return self._held.up_to(min(self._bounds))

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        if item.on == "ts":
            return super()._on_punctuation(item, input)
        if self._in_order:
            return []
        bounds = self._by_attribute.setdefault(item.on, [BEGINNING] * self.inputs)
        bounds[input] = max(bounds[input], item.value)
        return self._least(bounds, item.on)

    def _on_progress(self, input: int) -> Items:
        return self._held.up_to(min(self._bounds)) if self._in_order else self._least(self._bounds, "ts")

    def _least(self, bounds: list[Time], on: str) -> list[Punctuation]:
        return self._sent.to(min(bounds), on)
