"""The status of a session, read from its parts; nothing runs, and only `sizes` walks the state."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from streamdsl.engine.egress import FinalEgress, SpeculativeEgress
from streamdsl.engine.ingress import Ingress
from streamdsl.monitoring.status import OperatorStatus, OutputStatus, SourceStatus, Status
from streamdsl.pictures.brief import cut
from streamdsl.temporal import Insert, Rejected, Retract, format_time
from streamdsl.temporal.time import life_text

if TYPE_CHECKING:
    from streamdsl.emit import Emit
    from streamdsl.engine.query_session import Session

_LATE: Final = 5
"""The number of late events that are shown of each source."""
_LONGEST: Final = 200
"""The characters of a payload that are shown."""


def status_of(session: Session[Any], sizes: bool = False) -> Status:
    """Return the status of a session, with the bytes of its state if they are asked for."""
    ingresses = session._sources.values()
    outputs = [(session.emit, session._egress), *((each.emit, each.subscriber.egress) for each in session.subscriptions)]
    figures = session.stats() if sizes else session._figures(None)
    late = chain.from_iterable(each.rejected[-_LATE:] for each in ingresses)
    return Status(
        time=time.time(),
        unit=session.unit,
        state="failed" if session._failure else "closed" if session._closed else "open",
        sources=tuple(map(_source, ingresses)),
        outputs=tuple(_output(emit, egress, session) for emit, egress in outputs),
        operators=tuple(
            OperatorStatus(name=name, windows=each["windows"], events=each["events"], state_bytes=each.get("state_bytes"))
            for name, each in figures.items()
        ),
        late=tuple(_late_text(each, session) for each in late),
    )


def _source(ingress: Ingress) -> SourceStatus:
    return SourceStatus(
        name=ingress.name,
        events_in=ingress.events_in,
        retractions_in=ingress.retractions_in,
        late=len(ingress.rejected),
        cti=ingress.cti,
        furthest=ingress.table.high_water,
    )


def _output(emit: str | Emit, egress: SpeculativeEgress | FinalEgress, session: Session[Any]) -> OutputStatus:
    newest = (session._newest or {}).get(id(egress), ())
    return OutputStatus(
        emit=str(emit),
        events_out=egress.events_out,
        retractions_out=egress.retractions_out,
        held=egress.n_held,
        cti=egress.cti,
        newest=tuple(_row_text(each, session) for each in newest),
    )


def _late_text(late: Rejected, session: Session[Any]) -> str:
    """Return a late event as a line: what it is, what was done with it, and the CTI that it broke."""
    event, cti = late.event, format_time(late.cti, session.unit)
    kind = "insert" if isinstance(event, Insert) else f"retract to {format_time(event.re_new, session.unit)}"
    by = f" by {late.origin}" if late.origin else ""
    return f"{kind} {event.id!r:.40} {_row_text(event, session)}: {late.reason}; CTI {cti}{by}"


def _row_text(row: Insert[Any] | Retract, session: Session[Any]) -> str:
    return f"{life_text(row.le, row.re, session.unit)} {cut(row.payload, _LONGEST, brief=False)}"
