"""The subject of a check: the module under test, with its payloads and the way in which queries use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from streamdsl.errors import QueryError
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime, Unit
from streamdsl.testing.history import History, rows_of
from streamdsl.testing.live_window import deep_copy
from streamdsl.testing.payload_types import payload_type
from streamdsl.testing.random_payloads import VALUES, WIDE, draw_payload
from streamdsl.udm.bases import Agg, AnyModule, AnyUDA, AnyUDO
from streamdsl.udm.incremental import keeps_state
from streamdsl.udm.stream_operator import UDSO, AnyUDSO
from streamdsl.windows import Clip, Output, check_policies

_WINDOW: Final = Lifetime(0, 10)
_CROWDED: Final = Lifetime(0, 4)
"""Where the rows of a stream operator are made up, so that many begin at one instant."""
_BY_STRICTNESS: Final = (Clip.FULL, Clip.RIGHT, Clip.LEFT, Clip.NONE)

V = TypeVar("V")


@dataclass(frozen=True)
class Subject:
    """A module, where its payloads come from, and how queries use it.

    `given` are the events that the caller wants it tried on; without them payloads of the type `payload` are made up.
    """

    module: AnyModule | AnyUDSO
    given: tuple[CHTRow[Any], ...]
    payload: Any
    window: Lifetime
    clips: tuple[Clip, ...]
    output: Output
    unit: Unit | None = None
    spark: Any = None
    _made: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return what `make` gives for a key, made once: examples and runs that several laws look at."""
        if key not in self._made:
            self._made[key] = make()
        made: V = self._made[key]
        return made

    def fresh(self) -> Any:
        """Return a copy of the module that has computed nothing yet."""
        return deep_copy(self.module)

    def draw_payload(self, rng: Random, wide: bool = False) -> Any:
        """Return a payload: one of the given events', else one that is made up; `wide`: of all magnitudes."""
        return (
            deep_copy(rng.choice(self.given).payload) if self.given else draw_payload(self.payload, rng, WIDE if wide else VALUES)
        )

    @property
    def takes_wide(self) -> bool:
        """Say whether numbers of all magnitudes are made up: what has gone leaves nothing in a state, however large it was."""
        return not self.given and keeps_state(self.module) and not self.module.float_error

    @property
    def strictest_clip(self) -> Clip:
        """The clipping that leaves a module the least to see."""
        return next(clip for clip in _BY_STRICTNESS if clip in self.clips)

    @property
    def returns_events(self) -> bool:
        """Say whether the module stamps its results itself."""
        return self.module.time_sensitive and isinstance(self.module, AnyUDO)


def subject_of(
    module: Any,
    events: History | None,
    window: tuple[int, int] | None,
    clips: Collection[Clip],
    output: Output | None,
    spark: Any,
) -> Subject:
    """Return the subject of `check_udm`'s arguments; raises `QueryError` for a module that cannot be checked."""
    found = _instance(module)
    if isinstance(found, UDSO) and (window, tuple(clips), output) != (None, tuple(Clip), None):
        raise QueryError(f"{found.label} is a stream operator, and has no windows", hint="leave window, clips and output out")
    unit = events.unit if isinstance(events, CHT) else None
    given = () if events is None else tuple(rows_of(events))
    period = Lifetime(*window) if window else _middle(given) if given else _CROWDED if isinstance(found, UDSO) else _WINDOW
    payload = payload_type(found)
    if events is None:
        draw_payload(payload, Random(0))  # refuses a type of which nothing is known
    elif not any(Lifetime(row.le, row.re).overlaps(period) for row in given):
        raise QueryError(f"no event overlaps the window {period}", hint="give more events, or the window: window=(le, re)")
    if not clips:
        raise QueryError("clips names no clipping", hint="clips=[sd.Clip.FULL], or leave it out for all four")
    _check_spark(spark)
    return Subject(found, given, payload, period, tuple(clips), _output(found, output), unit, spark)


def _check_spark(spark: Any) -> None:
    active = getattr(type(spark), "getActiveSession", None)
    if spark is not None and (active is None or active() is not spark):
        raise QueryError(f"{spark!r} is not the active Spark session, on which queries run")


def _instance(module: Any) -> AnyModule | AnyUDSO:
    if isinstance(module, type) and issubclass(module, (AnyUDA, AnyUDO, UDSO)):
        try:
            module = module()
        except TypeError as error:
            raise QueryError(
                f"{module.__name__} cannot be made without parameters: {error}",
                hint=f"give an instance: check_udm({module.__name__}(...))",
            ) from error
    if isinstance(module, (AnyUDA, AnyUDO, UDSO)):
        return module
    raise QueryError(f"{module!r} is no user-defined module", hint=_hint(module))


def _hint(module: Any) -> str:
    if isinstance(module, Agg):
        return "give the module itself, without .of(...)"
    if callable(module):
        return "decorate the function with @sd.uda or @sd.udo"
    return "give an instance or a class of one of the eight bases or of streamdsl.udm.UDSO, or a function with @sd.uda or @sd.udo"


def _output(module: AnyModule | AnyUDSO, output: Output | None) -> Output:
    stamps = module.time_sensitive and isinstance(module, AnyUDO)
    if output is None:
        own_stamps = Output.TIME_BOUND if module.time_bound else Output.UNCHANGED
        return own_stamps if stamps else Output.ALIGN
    check_policies(Clip.NONE, output)
    if output.keeps_stamps and not stamps:
        raise QueryError(
            f"{module.label} stamps no results, so that {output} does not fit it", hint="Output.ALIGN or Output.POINT_AT_END"
        )
    return output


def _middle(rows: Collection[CHTRow[Any]]) -> Lifetime:
    """Return a window that some of the events lie across, if they are spread out at all."""
    first = min(row.le for row in rows)
    last = max(row.le + 1 if row.re == INFINITY else row.re for row in rows)
    quarter = (last - first) // 4
    window = Lifetime(first + quarter, last - quarter)
    inside: Any = partial(Lifetime.overlaps, window)
    return window if any(inside(Lifetime(row.le, row.re)) for row in rows) else Lifetime(first, last)
