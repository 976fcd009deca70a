"""How sources wait for what is added to files: they look again and again, as nothing tells them."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamdsl.connect.protocols import END, Batch, End


def look_for(look: Callable[[], Batch | None], timeout: float, pause: float, follow: bool) -> Batch | End | None:
    """Return the batch that a call finds; where there is none, call again each `pause` seconds, until the timeout.

    Without `follow` the first call that finds none is the end.

    >>> look_for(lambda: None, 0, 1, follow=True), look_for(lambda: None, 0, 1, follow=False)
    (None, END)
    """
    until = time.monotonic() + timeout
    while (batch := look()) is None and follow:
        if (left := until - time.monotonic()) <= 0:
            return None
        time.sleep(min(left, pause))
    return END if batch is None else batch
