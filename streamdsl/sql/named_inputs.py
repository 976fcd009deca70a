"""The named inputs of a query over streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamdsl.errors import closest
from streamdsl.sql.parsing import Text, name_of
from streamdsl.sql.spans import framed
from streamdsl.temporal import Unit


@dataclass
class Sources:
    """The named inputs of a query: streams and views, and the user's functions and aggregates."""

    text: Text
    named: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)
    """The user-defined aggregates."""
    unit: Unit = "s"
    """The unit of the timestamps of batches."""

    def frame(self, token: Any, frame: Any) -> Any:
        """Return the rows of a source, through its window if it has one; raises `SqlError` for an unknown name."""
        found = self.named.get(name_of(token))
        if found is None:
            known = ", ".join(self.named) or "(none)"
            close = closest(name_of(token), self.named)
            hint = f"did you mean {close!r}?" if close else "name it: sd.sql(text, S=stream)"
            raise self.text.refused(token, f"there is no stream {name_of(token)!r}; there are: {known}", hint)
        return self.framed(token, found, frame)

    def framed(self, token: Any, found: Any, frame: Any) -> Any:
        """Return the rows of an input, through the window `frame` if it is not None."""
        if frame is None:
            return found
        with self.text.at(frame):
            return framed(self.text, found, frame)

    def is_batched(self, token: Any) -> bool:
        """Say whether a name denotes a stream of batches."""
        return False

    def spread(self, tree: Any) -> None:
        """Refuse a SPREAD: `Batches`, for queries over batches, overrides it, and names the spread streams."""
        raise self.text.refused(tree, "these streams have no batches, so there are none to spread", "SPREAD is for a cql.group")
