"""Emit policies: results are emitted at once, when they are final, or in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from streamdsl.errors import QueryError
from streamdsl.temporal import INFINITY, DurationLike, Unit, to_duration

EmitMode: TypeAlias = Literal["speculative", "watermark", "final"]
EMIT_MODES: Final[tuple[EmitMode, ...]] = get_args(EmitMode)


@dataclass(frozen=True, slots=True)
class Emit:
    """Hold each result back for a duration of application time, and correct it later: `query.open(emit=sd.emit.Emit(hold="5s"))`.

    A row is emitted once the largest LE or CTI of the input is `hold` after its LE, or once it is final; later changes are
    corrections. The output CTI stays below the LE of a row that is held back. A hold of 0 is `"speculative"`, one of INFINITY
    `"final"`; this dial between the two comes from CEDR, the predecessor of StreamInsight.

    >>> import streamdsl as sd
    >>> session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open(emit=Emit(hold=15))
    >>> session.push([sd.point("a", 3, 7)]), session.push([sd.point("b", 14, 7), sd.point("c", 4, 7)])
    ([], [])
    >>> session.push([sd.point("d", 17, 7)])
    [Insert(id=RowVersion(id=('window_aggregate_1', 0, 0), version=1), le=0, re=10, payload=Record(n=2))]

    `sd.emit.Emit(every=2, max_delay="10s")` smooths final results, which otherwise come in bursts where windows end (paper 004,
    6): with every second input row one result is emitted, the one with the least RE first. None waits longer than until a CTI
    `max_delay` after the one that makes it final; with 0 all are emitted at once, as with `"final"`.

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
        """The durations `hold` and `max_delay`."""
        return self.hold, self.max_delay

    def in_ticks(self, unit: Unit | None) -> Emit:
        """Return the policy with durations in ticks; raises `QueryError` for an invalid policy."""
        hold, delay = (to_duration(each, unit) for each in self.durations)
        if hold < 0 or delay < 0:
            raise QueryError(f"results are held back for a duration >= 0, not {(self.hold if hold < 0 else self.max_delay)!r}")
        if self.every is not None and (type(self.every) is not int or self.every < 1):
            raise QueryError(f"every is a whole number of input rows >= 1, not {self.every!r}")
        if self.every is None and delay:
            raise QueryError("max_delay applies only with every", hint='sd.emit.Emit(every=2, max_delay="10s")')
        if self.every is not None and hold != INFINITY:
            raise QueryError("every smooths final results, so hold does not apply", hint="leave out hold, or every")
        return Emit(hold, self.every, delay)


def mode_of(emit: Any) -> EmitMode:
    """Return the mode of the operators under a policy; raises `QueryError` for a value that is no emit policy.

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
