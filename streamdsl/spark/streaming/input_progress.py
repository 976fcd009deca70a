"""The CTI that each source of a shard has reached, by the messages that the shard has received."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamdsl.spark.streaming.wire import Message
from streamdsl.temporal import MIN_TIME


@dataclass(slots=True)
class InputProgress:
    """The progress of one source of a shard: the CTI that holds after a micro-batch.

    The CTI comes from one of three places: from CTIs among the rows (`reported`), from all `origins` shards of an earlier stage,
    of which the slowest counts (`by_shard`), or from a policy that moves once `step` more rows have come (`counted_cti`). None of
    them ever decreases. Memory: one integer per shard of the earlier stage.

    >>> progress = InputProgress(origins=2)
    >>> for shard, cti in [(0, 7), (0, 9)]:
    ...     progress.receive(Message(0, "s", cti, origin=shard))
    >>> progress.cti() == MIN_TIME
    True
    >>> progress.receive(Message(0, "s", 5, origin=4))
    >>> progress.cti()
    5
    """

    origins: int = 0
    step: int = 1
    reported: int = MIN_TIME
    by_shard: dict[int, int] = field(default_factory=dict)
    pending_rows: int = 0
    pending_cti: int = MIN_TIME
    counted_cti: int = MIN_TIME

    def receive(self, message: Message) -> None:
        """Take the CTI of a message into account; a message that arrives late or twice changes nothing."""
        if message.cti is None:
            return
        if message.origin is not None:
            self.by_shard[message.origin] = max(message.cti, self.by_shard.get(message.origin, MIN_TIME))
        elif message.seen is not None:
            self.pending_rows += message.seen
            self.pending_cti = max(self.pending_cti, message.cti)
        else:
            self.reported = max(self.reported, message.cti)

    def cti(self) -> int:
        """Return the CTI that holds once all messages of a micro-batch have been received."""
        if self.pending_rows >= self.step:
            self.pending_rows %= self.step
            self.counted_cti = self.pending_cti
        all_of = min(self.by_shard.values()) if self.origins and len(self.by_shard) == self.origins else MIN_TIME
        return max(self.reported, self.counted_cti, all_of)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as JSON values. The names are part of the stored state of a stream, so they stay as they are."""
        saved = {"said": self.reported, "count": self.pending_rows, "due": self.pending_cti, "counted": self.counted_cti}
        return {**saved, "by": {str(shard): cti for shard, cti in self.by_shard.items()}}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the progress from what `to_json` returned."""
        self.by_shard = {int(shard): cti for shard, cti in saved["by"].items()}
        self.reported, self.pending_rows, self.pending_cti, self.counted_cti = (
            saved[name] for name in ("said", "count", "due", "counted")
        )
