"""When results go out: at once, when they are final, or between the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from streamdsl.errors import QueryError
from streamdsl.temporal import INFINITY, DurationLike, Unit, to_duration

EmitMode: TypeAlias = Literal["speculative", "watermark", "final"]
EMIT_MODES: Final[tuple[EmitMode, ...]] = get_args(EmitMode)


@dataclass(frozen=True, slots=True)
class Emit:
    """Hold each result back for a while in application time, and correct it later: `query.open(emit=sd.emit.Emit(hold="5s"))`.

    A row goes out once the largest LE or CTI of the input is `hold` after its LE, or once it is final; what changes it later is a
    correction. The CTI stays below the LE of what is held back. A hold of 0 is `"speculative"`, one of INFINITY `"final"`: the
    dial between them is that of CEDR, from which StreamInsight came.

    >>> import streamdsl as sd
    >>> session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open(emit=Emit(hold=15))
    >>> session.push([sd.point("a", 3, 7)]), session.push([sd.point("b", 14, 7), sd.point("c", 4, 7)])
    ([], [])
    >>> session.push([sd.point("d", 17, 7)])
    [Insert(id=RowVersion(id=('window_aggregate_1', 0, 0), version=1), le=0, re=10, payload=Record(n=2))]

    `sd.emit.Emit(every=2, max_delay="10s")` smooths final results, many of which come at once where windows end (paper 004, 6):
    with every second row of the input one leaves, the one with the least RE first. None waits beyond the CTI that is `max_delay`
    after that which makes it final; with 0 all leave at once, as with `"final"`.

    >>> session = sd.source("s").group_by(lambda e: e).tumbling_window(10).aggregate(n=sd.count()).open(
    ...     emit=Emit(every=1, max_delay=10)
    ... )
    >>> session.push([sd.point(n, 3, n) for n in range(3)] + [sd.Cti(10)])
    [Cti(time=0)]
    >>> [len(session.push([sd.point(("later", n), 12, 9)])) for n in range(2)]
    [1, 1]
    >>> [type(event).__name__ for event in session.push([sd.Cti(20)])]
    ['Insert', 'Cti']
    """

    hold: DurationLike = INFINITY
    every: int | None = None
    max_delay: DurationLike = 0

    @property
    def durations(self) -> tuple[DurationLike, DurationLike]:
        """The durations that it is made of."""
        return self.hold, self.max_delay

    def in_ticks(self, unit: Unit | None) -> Emit:
        """Return the same with durations in ticks; raises `QueryError` for what cannot be."""
        hold, delay = (to_duration(each, unit) for each in self.durations)
        if hold < 0 or delay < 0:
            raise QueryError(f"results are held back for a duration >= 0, not {(self.hold if hold < 0 else self.max_delay)!r}")
        if self.every is not None and (type(self.every) is not int or self.every < 1):
            raise QueryError(f"a result leaves after every n-th row, n >= 1, not {self.every!r}")
        if self.every is None and delay:
            raise QueryError("max_delay is for results that leave a few at a time", hint='sd.emit.Emit(every=2, max_delay="10s")')
        if self.every is not None and hold != INFINITY:
            raise QueryError("results leave a few at a time when they are final", hint="leave out hold, or every")
        return Emit(hold, self.every, delay)


def mode_of(emit: Any) -> EmitMode:
    """Return the mode that operators run in; raises `QueryError` for what is no way to emit.

    >>> mode_of(Emit(5)), mode_of("final")
    ('speculative', 'final')
    """
    if isinstance(emit, Emit):
        return "final" if emit.hold == INFINITY else "speculative"
    if emit not in EMIT_MODES:
        raise QueryError(
            f"emit is one of {', '.join(map(repr, EMIT_MODES))}, or sd.emit.Emit(hold=duration), not {emit!r}",
            hint='open(emit="final")',
        )
    found: EmitMode = emit
    return found
