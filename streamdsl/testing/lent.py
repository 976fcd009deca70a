"""What is lent to a module, which may not change it."""

from __future__ import annotations

import pickle
from typing import Any

from streamdsl.temporal import payload_key
from streamdsl.testing.states import own


class Lent:
    """A value that is lent to a module, and what it was.

    >>> lent = Lent([1, 2])
    >>> lent.value.append(3)
    >>> lent.is_changed()
    True
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        before = own(value)
        self._by_key = payload_key(before) == payload_key(value)
        self._before = self._seen()

    def _seen(self) -> Any:
        # What does not compare by value, such as an object of a plain class, is compared as it would be stored.
        if self._by_key:
            return payload_key(self.value)
        try:
            return pickle.dumps(self.value)
        except Exception:  # whatever a foreign class raises
            return repr(self.value)

    def is_changed(self) -> bool:
        """Say whether it is something else now."""
        return bool(self._seen() != self._before)
