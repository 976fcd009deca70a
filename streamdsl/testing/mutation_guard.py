"""Detection of modules that mutate their inputs."""

from __future__ import annotations

import pickle
from typing import Any

from streamdsl.temporal import payload_key
from streamdsl.testing.live_window import deep_copy


class MutationGuard:
    """A value that a module must not mutate, with a snapshot of it.

    >>> guarded = MutationGuard([1, 2])
    >>> guarded.value.append(3)
    >>> guarded.is_changed()
    True
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        before = deep_copy(value)
        self._by_key = payload_key(before) == payload_key(value)
        self._before = self._seen()

    def _seen(self) -> Any:
        # Objects that compare by identity are compared by their pickled form.
        if self._by_key:
            return payload_key(self.value)
        try:
            return pickle.dumps(self.value)
        except Exception:  # whatever a foreign class raises
            return repr(self.value)

    def is_changed(self) -> bool:
        """Say whether the value differs from the snapshot."""
        return bool(self._seen() != self._before)
