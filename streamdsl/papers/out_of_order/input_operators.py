"""Where punctuation comes from: input operators, timers, and slack (paper 004, 3.2, 5.1, 5.4 and A.1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamdsl.errors import QueryError
from streamdsl.papers.common.row_functions import hashable, reader
from streamdsl.papers.out_of_order.items import Punctuation, Time, Tuple, check_positive, floor_to, minus
from streamdsl.papers.out_of_order.key_clocks import KeyClocks
from streamdsl.papers.out_of_order.punctuated_operator import Items, Punctuated, PunctuationSender, check_time
from streamdsl.papers.out_of_order.sort_buffer import SortBuffer
from streamdsl.temporal.progress_policy import Progress
from streamdsl.temporal.time import INFINITY


class Input(Punctuated):
    """Punctuates a stream by a progress policy, the same that queries' sources take, and drops tuples that come too late.

    - `Progress.ordered()`, `.slack(s)`, `.every(...)`: by what has come (data-driven). Before an operator this is Aurora's slack:
      what is dropped is counted in `dropped`.
    - `timer=True`: punctuation only when `tick(now)` is called. `.wall_clock(period, delay)`: `tick` gives the time itself.
    - `drift=s`: in a lull, when `tick` finds the data more than s behind, it punctuates at now - s.
    - `.imported_from(name, delay)`: another source's punctuation is pushed into it.
    - `key`: each key has its own time (a device, a sensor), and the slowest one counts. `keys` are those that are known to come.
      A key that falls more than `idle` behind the fastest no longer counts, nor does one that is `retire`d: it is forgotten until
      it comes again.

    Punctuation that the input has of its own passes.

    >>> source = Input(Progress.slack(2))
    >>> source.push(Tuple(7)), source.push(Tuple(4)), source.dropped
    ([Tuple(ts=7, payload=None), Punctuation(value=5, on='ts')], [], 1)
    """

    def __init__(
        self,
        progress: Progress | None = None,
        *,
        timer: bool = False,
        drift: Time | None = None,
        key: Any = None,
        keys: Iterable[Any] = (),
        idle: Time | None = None,
    ) -> None:
        super().__init__()
        if progress is not None and not isinstance(progress, Progress):
            raise QueryError(f"{progress!r} is no progress policy", hint="for example Input(sd.Progress.slack(2))")
        if progress is not None and (progress.max_jump is not None or progress.idle is not None):
            raise QueryError(f"{progress} is a policy of queries' sources", hint="here idle= says when a key falls silent")
        for value, what in ((drift, "drift"), (idle, "time of being idle")):
            if value is not None:
                check_positive(value, what)
        self._policy = progress or Progress.ordered()
        self._timer = timer
        self._drift = drift
        self._clocks = KeyClocks(self._policy, idle)
        self._key = None if key is None else reader(key, self.name)
        for known in keys:
            self._clocks.expect(hashable(known))
        self._sent = PunctuationSender()
        self.dropped = 0

    @property
    def data_time(self) -> Time:
        """The largest ts so far."""
        return self._clocks.largest

    def tick(self, now: Time) -> list[Punctuation]:
        """Return the punctuation that a timer's callback inserts at a time."""
        policy = self._policy
        if policy.kind == "wall":
            generator = policy.generator("tick")
            return self._send(now // generator.step * generator.step - generator.delay)
        found = self._clocks.low_water_mark
        if self._drift is not None and now - self.data_time > self._drift:
            found = max(found, now - self._drift)
        return self._send(found)

    def retire(self, key: Any) -> list[Punctuation]:
        """Return what is free once a key is known to send no more."""
        self._clocks.retire(hashable(key))
        return self._send(self._clocks.low_water_mark)

    def _check_tuple(self, item: Tuple, input: int) -> None:
        """Accept any tuple with a valid time; late tuples are dropped later."""
        check_time(item, item.ts, self.name)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        key = None if self._key is None else hashable(self._key(item.payload))
        if item.ts < self._bounds[0]:
            self.dropped += 1
            return []
        self._clocks.take(key, item.ts)
        return [item, *([] if self._timer else self._send(self._clocks.low_water_mark))]

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        if item.on != "ts":
            return [item]
        delay = self._policy.generator(None).delay if self._policy.kind == "imported" else 0
        return self._send(minus(item.value, delay))

    def _send(self, value: Time) -> list[Punctuation]:
        self._bounds[0] = max(self._bounds[0], min(value, INFINITY))
        return self._sent.to(self._bounds[0])


class Sort(Punctuated):
    """Sorts a stream for what needs order: punctuation p lets go of tuples with ts < p, in order, and then passes.

    >>> sort = Sort()
    >>> sort.run([(0, Tuple(5)), (0, Tuple(3)), (0, Punctuation(4))])
    [Tuple(ts=3, payload=None), Punctuation(value=4, on='ts')]
    """

    def __init__(self) -> None:
        super().__init__()
        self._held = SortBuffer()

    @property
    def buffered(self) -> int:
        return len(self._held)

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        self._held.add(item.ts, item)
        return []

    def _on_progress(self, input: int) -> Items:
        return [*self._held.complete(self._bounds[0]), Punctuation(self._bounds[0])]


class Describe(Punctuated):
    """Lets only as much punctuation pass as windows with this slide need: one for each end of a window (A.1.1).

    >>> describe = Describe(60)
    >>> describe.push(Punctuation(130)), describe.push(Punctuation(170)), describe.push(Punctuation(185))
    ([Punctuation(value=120, on='ts')], [], [Punctuation(value=180, on='ts')])
    """

    def __init__(self, slide: Time) -> None:
        check_positive(slide, "slide")
        super().__init__()
        self._slide = slide
        self._sent = PunctuationSender()

    def _on_tuple(self, item: Tuple, input: int) -> Items:
        return [item]

    def _on_punctuation(self, item: Punctuation, input: int) -> Items:
        value = item.value if item.value >= INFINITY else floor_to(item.value, self._slide) * self._slide
        if item.on == "ts":
            self._bounds[0] = max(self._bounds[0], item.value)
        return self._sent.to(value, item.on)
