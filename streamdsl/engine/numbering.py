"""Numbers for rows without ids, kept apart from senders' ids that are integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from numbers import Number
from typing import Any, Final

from streamdsl.engine.versions import RowVersion
from streamdsl.temporal.value_arrays import distinct

_MOST: Final = 2**62
"""Rows are not numbered so far."""
_FEW: Final = 64


class RowNumbers:
    """The numbers that the rows of frames get, from 0 on, and what senders' ids are called that are numbers too.

    Rows are numbered beyond all numbers that senders have used; an id that is the number of a row gets a version.

    >>> numbers = RowNumbers()
    >>> numbers.give(3), numbers.called(1), numbers.called(7), numbers.give(2)
    (0, RowVersion(id=1, version=1), 7, 8)
    """

    def __init__(self) -> None:
        self.next = 0
        self._given = 0
        self._called: dict[Hashable, RowVersion] = {}

    def copy(self) -> RowNumbers:
        """Return an independent copy."""
        same = RowNumbers()
        same.next, same._given, same._called = self.next, self._given, dict(self._called)
        return same

    def give(self, rows: int) -> int:
        """Reserve numbers for some rows, and return the first."""
        first, self.next = self.next, self.next + rows
        self._given = self.next
        return first

    def is_given(self, id: int) -> bool:
        """Say whether an integer is, or may be, the number of a row."""
        return 0 <= id < self._given

    def is_clear(self, id: int) -> bool:
        """Say whether an integer is not the number of a row, and reserve it if so."""
        if self.is_given(id):
            return False
        if self.next <= id < _MOST:
            self.next = id + 1
        return True

    def are_clear(self, ids: Sequence[Any]) -> bool:
        """Say whether ids, each an int or a str, are numbers of no row, and never will be; of others it is not said."""
        kinds = distinct(map(type, ids))
        if int not in kinds:
            return kinds == {str}
        integers = ids if len(kinds) == 1 else [id for id in ids if type(id) is int]
        if self._given and not all(map(self.is_clear, integers)):
            return False
        self.is_clear(max(integers))
        return kinds <= {int, str}

    def called(self, id: Hashable) -> Hashable:
        """Return the id of an inserted event, which its retractions have too."""
        number = _number(id) if isinstance(id, Number) else None
        if number is None or self.is_clear(number):
            if self._called:
                self._called.pop(id, None)
            return id
        self._called[id] = RowVersion(id, 1)
        return self._called[id]

    def name(self, id: Hashable) -> Hashable:
        """Return the id of an event that was inserted before."""
        return self._called.get(id, id) if self._called else id

    def forget(self, knows: Callable[[Hashable], bool], size: int) -> None:
        """Forget ids that are not known any more, where they are many beside the number of those that are."""
        if len(self._called) > 2 * size + _FEW:
            self._called = {id: name for id, name in self._called.items() if knows(id)}


def _number(id: Any) -> int | None:
    """Return the integer that an id is equal to, None if there is none."""
    try:
        number = int(id.real)
    except (AttributeError, OverflowError, ValueError):
        return None
    return number if number == id else None
