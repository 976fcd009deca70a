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
    """Hold each result back for a while in application time, and correct it afterwards: `query.open(emit=sd.Emit(hold="5s"))`.

    A row goes out once the largest LE or CTI of the input is `hold` after its LE, or once it is final; what changes it later is a
    correction. The CTI stays below the LE of what is held back. A hold of 0 is `"speculative"`, one of INFINITY `"final"`: the
    dial between them is that of CEDR, from which StreamInsight came.

    >>> import streamdsl as sd
    >>> session = sd.source("s").tumbling_window(10).aggregate(n=sd.count()).open(emit=Emit(hold=15))
    >>> session.push([sd.point("a", 3, 7)]), session.push([sd.point("b", 14, 7), sd.point("c", 4, 7)])
    ([], [])
    >>> session.push([sd.point("d", 17, 7)])
    [Insert(id=RowVersion(id=('window_aggregate_1', 0, 0), version=1), le=0, re=10, payload=Record(n=2))]
    """

    hold: DurationLike

    def in_ticks(self, unit: Unit | None) -> Emit:
        """Return the same with `hold` in ticks; raises `QueryError` if it is negative."""
        ticks = to_duration(self.hold, unit)
        if ticks < 0:
            raise QueryError(f"results are held back for a duration >= 0, not {self.hold!r}")
        return Emit(ticks)


def mode_of(emit: Any) -> EmitMode:
    """Return the mode that operators run in; raises `QueryError` for what is no way to emit.

    >>> mode_of(Emit(5)), mode_of("final")
    ('speculative', 'final')
    """
    if isinstance(emit, Emit):
        return "final" if emit.hold == INFINITY else "speculative"
    if emit not in EMIT_MODES:
        raise QueryError(f"emit is one of {', '.join(map(repr, EMIT_MODES))}, or sd.Emit(hold=duration), not {emit!r}")
    found: EmitMode = emit
    return found
