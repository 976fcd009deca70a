"""Orders of simultaneous tuples, which the model leaves open (paper 002, 4.5.1): as given, random, or every one in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from math import factorial, prod
from random import Random


class TieOrder(ABC):
    """Decides the order of simultaneous tuples; each window that needs an order requests it once, when it is made."""

    @abstractmethod
    def inside(self, size: int) -> Sequence[int]:
        """Return an order of `size` simultaneous tuples, at least two."""

    def arrange(self, sizes: Sequence[int]) -> list[int]:
        """Return the order of tuples in runs of these sizes, each of simultaneous tuples.

        >>> GivenOrder().arrange([1, 2])
        [0, 1, 2]
        """
        found: list[int] = []
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
            found.extend([start] if size == 1 else [start + n for n in self.inside(size)])
        return found


class GivenOrder(TieOrder):
    """The order in which the tuples were given."""

    def inside(self, size: int) -> Sequence[int]:
        return range(size)


class RandomOrder(TieOrder):
    """A random order, the same in every run with the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def inside(self, size: int) -> Sequence[int]:
        return self._random.sample(range(size), size)


class EveryOrder(TieOrder):
    """Every combination of orders, one after another.

    >>> orders = EveryOrder()
    >>> found = [list(orders.inside(2))]
    >>> while orders.advance():
    ...     found.append(list(orders.inside(2)))
    >>> found
    [[0, 1], [1, 0]]
    """

    def __init__(self) -> None:
        self._chosen: list[int] = []
        self._sizes: list[int] = []

    @property
    def combinations(self) -> int:
        """The number of combinations of the requested orders."""
        return prod(map(factorial, self._sizes))

    def inside(self, size: int) -> Sequence[int]:
        asked = len(self._sizes)
        self._sizes.append(size)
        if asked == len(self._chosen):
            self._chosen.append(0)
        return _permutation(self._chosen[asked], size)

    def advance(self) -> bool:
        """Go to the next combination; say whether there is one."""
        while self._sizes:
            size = self._sizes.pop()
            del self._chosen[len(self._sizes) + 1 :]
            self._chosen[-1] += 1
            if self._chosen[-1] < factorial(size):
                self._sizes.clear()
                return True
            self._chosen.pop()
        return False


def _permutation(number: int, size: int) -> list[int]:
    """Return the permutation with a number, in lexicographic order."""
    left, found = list(range(size)), []
    for rest in range(size - 1, -1, -1):
        place, number = divmod(number, factorial(rest)) if number else (0, 0)
        found.append(left.pop(place))
    return found
