"""How far a shard's sources have come, by what it has been told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamdsl.spark.streaming.wire import Parcel
from streamdsl.temporal import MIN_TIME


@dataclass(slots=True)
class Hearing:
    """What has been said of a source: by its rows, by each of `origins` shards before, by its rows' number (every `step`).

    >>> heard = Hearing(origins=2)
    >>> for shard, cti in [(0, 7), (0, 9)]:
    ...     heard.take(Parcel(0, "s", cti, origin=shard))
    >>> heard.cti() == MIN_TIME
    True
    >>> heard.take(Parcel(0, "s", 5, origin=4))
    >>> heard.cti()
    5
    """

    origins: int = 0
    step: int = 1
    said: int = MIN_TIME
    by: dict[int, int] = field(default_factory=dict)
    count: int = 0
    due: int = MIN_TIME
    counted: int = MIN_TIME

    def take(self, parcel: Parcel) -> None:
        """Hear a parcel; one that comes late, or twice, moves nothing back."""
        if parcel.cti is None:
            return
        if parcel.origin is not None:
            self.by[parcel.origin] = max(parcel.cti, self.by.get(parcel.origin, MIN_TIME))
        elif parcel.seen is not None:
            self.count += parcel.seen
            self.due = max(self.due, parcel.cti)
        else:
            self.said = max(self.said, parcel.cti)

    def cti(self) -> int:
        """Return the CTI that holds once all parcels of a micro-batch have been heard."""
        if self.count >= self.step:
            self.count %= self.step
            self.counted = self.due
        all_of = min(self.by.values()) if self.origins and len(self.by) == self.origins else MIN_TIME
        return max(self.said, self.counted, all_of)

    def saved(self) -> dict[str, Any]:
        """Return what has been heard as JSON has it."""
        heard = {"said": self.said, "count": self.count, "due": self.due, "counted": self.counted}
        return {**heard, "by": {str(shard): cti for shard, cti in self.by.items()}}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take up what `saved` has given."""
        self.by = {int(shard): cti for shard, cti in saved["by"].items()}
        self.said, self.count, self.due, self.counted = (saved[name] for name in ("said", "count", "due", "counted"))
