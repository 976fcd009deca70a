"""Change of the progressing attribute: of streams with several, and of results of joins and windows (paper 004, 3.1, 5.3)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.papers.common.row_functions import reader
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
)
from streamdsl.papers.out_of_order.punctuated_operator import (
    Items,
    Operator,
    Punctuated,
    PunctuationSender,
    check_operator,
    check_time,
)
from streamdsl.papers.out_of_order.window_numbers import extent
from streamdsl.temporal.time import INFINITY

PairTime: TypeAlias = Literal["left", "right", "max", "min"]


class Restamp(Punctuated):
    """What gives items another ts; it holds nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._sent = PunctuationSender()

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        return super()._on_other(item, input)

    def close(self) -> Items:
        """Return the punctuation that ends the stream."""
        return list(self._sent.to(INFINITY))


class OfAttribute(Restamp):
    """A stream by another of its progressing attributes: that one's value becomes ts, its punctuation that on ts.

    NetFlow's records come in order of their ends and not of their starts, and both progress (3.1): each attribute has punctuation
    of its own, `Punctuation(5, on="start")`, and windows may be on either.

    >>> by_start = OfAttribute("start")
    >>> by_start.push(Tuple(9, {"start": 4})), by_start.push(Punctuation(9)), by_start.push(Punctuation(3, on="start"))
    ([Tuple(ts=4, payload={'start': 4})], [], [Punctuation(value=3, on='ts')])
    """

    def __init__(self, attribute: str) -> None:
        super().__init__()
        self._attribute = attribute
        self._read = reader(attribute, self.name)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        ts = self._read(item.payload)
        check_time(item, ts, self.name, self._attribute)
        return [Tuple(ts, item.payload)]

    def _check_tuple(self, item: Tuple, input: int) -> None:
        """The tuple's ts is not what counts here."""

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        over = item.on == "ts" and item.value >= INFINITY
        return list(self._sent.to(item.value)) if over or item.on == self._attribute else []


class OfPairs(Restamp):
    """A join's results as tuples, by the left ts, the right one, or the later or earlier of both; the payload is the `Joined`.

    For `"max"` joint punctuation counts too: every later pair has one side at or after it.

    >>> by_max = OfPairs("max")
    >>> by_max.push(Joined(Tuple(1), Tuple(4)))[0].ts, by_max.push(Punctuation(2, "left")), by_max.push(JointPunctuation(5, 9))
    (4, [Punctuation(value=2, on='ts')], [Punctuation(value=5, on='ts')])
    """

    def __init__(self, time: PairTime) -> None:
        if time not in ("left", "right", "max", "min"):
            raise QueryError(
                f'the time of a pair is "left", "right", "max" or "min", not {time!r}',
                hint="for both timestamps there is PairAggregate",
            )
        super().__init__()
        self._time = time
        self._reached: dict[str, Time] = {"left": BEGINNING, "right": BEGINNING}
        self._either: Time = BEGINNING

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        if item.on in self._reached:
            self._reached[item.on] = max(self._reached[item.on], item.value)
        return list(self._sent.to(self._bound()))

    def _on_other(self, item: Item, input: int) -> Items:
        if isinstance(item, Joined):
            return [Tuple(self._of(item.left.ts, item.right.ts), item)]
        if isinstance(item, Unmatched) and self._time == "left":
            return [Tuple(item.left.ts, item)]
        if isinstance(item, JointPunctuation):
            self._either = max(self._either, min(item.left, item.right))
            return list(self._sent.to(self._bound()))
        return super()._on_other(item, input)

    def _of(self, left: Time, right: Time) -> Time:
        if self._time in ("left", "right"):
            return left if self._time == "left" else right
        return max(left, right) if self._time == "max" else min(left, right)

    def _bound(self) -> Time:
        both = self._of(self._reached["left"], self._reached["right"])
        return max(both, self._either) if self._time == "max" else both


class OfWindows(Restamp):
    """A window aggregate's results as tuples by where their windows begin, for the next operator; the payload is the result.

    >>> rows = OfWindows(60, 60)
    >>> rows.push(WindowResult(1, "k", 5)), rows.push(Punctuation(2, "wid"))
    ([Tuple(ts=60, payload=WindowResult(wid=1, key='k', value=5))], [Punctuation(value=120, on='ts')])
    """

    def __init__(self, range: Time, slide: Time) -> None:
        super().__init__()
        self._shape = range, slide
        extent(0, range, slide)

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        if item.on != "wid":
            return []
        return list(self._sent.to(INFINITY if item.value >= INFINITY else extent(int(item.value), *self._shape)[0]))

    def _on_other(self, item: Item, input: int) -> Items:
        if isinstance(item, WindowResult):
            return [Tuple(extent(item.wid, *self._shape)[0], item)]
        return super()._on_other(item, input)


class Chain(Operator):
    """Operators one after the other, as one: what the first sends goes into the second, and so on.

    >>> from streamdsl.aggregates import count
    >>> from streamdsl.progress import Union, WindowAggregate
    >>> query = Chain(Union(2), WindowAggregate(10, 10, count()))
    >>> query.run([(0, Tuple(3)), (1, Tuple(4)), (0, Punctuation(15)), (1, Punctuation(12))])
    [WindowResult(wid=0, key=None, value=2), Punctuation(value=1, on='wid')]
    """

    def __init__(self, first: Operator, *rest: Operator) -> None:
        check_operator(first, *rest)
        self.inputs = first.inputs
        self._operators = (first, *rest)

    @property
    def buffered(self) -> int:
        return sum(operator.buffered for operator in self._operators)

    def push(self, item: Item, input: int = 0) -> Items:
        return self._through(self._operators[0].push(item, input), 1)

    def close(self) -> Items:
        """Return what the end causes: each operator is closed, after all that comes from those before it."""
        return [out for at, each in enumerate(self._operators) for out in self._through(each.close(), at + 1)]

    def _through(self, items: Items, first: int) -> Items:
        for operator in self._operators[first:]:
            items = [caused for each in items for caused in operator.push(each)]
        return items
