"""Profiles: how an engine starts its windows, when it looks at them, and what it reports (paper 000, section 3, table 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.papers.secret.start import BEFORE_FIRST, Grid
from streamdsl.papers.secret.tuples import Tuple
from streamdsl.papers.secret.window_scope import Scope, check_window
from streamdsl.temporal.integers import whole_number

T0: TypeAlias = Callable[[int, int, int], int]
"""From the first tuple's application time, size and slide to where the first window starts."""
Feed: TypeAlias = Callable[[Sequence[Tuple]], Sequence[Tuple]]
"""What an engine does to its input before it looks at it."""


class Tick(Enum):
    """What makes an engine look: each tuple, the progress of application time, or each batch (paper 000, 3.2.4)."""

    TUPLE = "tuple"
    TIME = "time"
    BATCH = "batch"

    @classmethod
    def _missing_(cls, value: object) -> Tick:
        raise QueryError(f"there is no tick {value!r}; there are: {', '.join(map(repr, [each.value for each in cls]))}")


@dataclass(frozen=True, slots=True)
class Report:
    """On which conditions a window's content is reported: all that are on must hold (paper 000, 3.2.3).

    `content_change`: it is not that of the instant before; `window_close`: the window closes, and time has gone on; `non_empty`;
    `periodic`: the time is a multiple of it. With none of them everything is reported whenever the engine ticks.

    >>> str(Report(window_close=True, non_empty=True))
    'window close & non-empty'
    """

    content_change: bool = False
    window_close: bool = False
    non_empty: bool = False
    periodic: int | None = None

    def __post_init__(self) -> None:
        if self.periodic is not None:
            object.__setattr__(self, "periodic", whole_number(self.periodic, "a report's period is None or", 1))

    @property
    def period(self) -> int:
        """The period, 1 where there is none: every instant is a multiple of it."""
        return self.periodic or 1

    def __str__(self) -> str:
        named = {"window close": self.window_close, "content change": self.content_change, "non-empty": self.non_empty}
        on = [name for name, is_on in named.items() if is_on]
        if self.period > 1:
            on.append(f"every {self.periodic}")
        return " & ".join(on) or "always"


@dataclass(frozen=True, slots=True)
class Profile:
    """An engine as SECRET sees it; `scope` and `feed` are there for engines beyond the paper's.

    >>> CORAL8.start(30, 5, 1)
    24
    >>> print(CORAL8)
    Coral8: t0 = ceil((first - size) / slide) * slide - 1; report on content change & non-empty; batch-driven
    """

    name: str
    t0: T0
    report: Report
    tick: Tick
    scope: Scope = Scope.ACTIVE
    feed: Feed | None = None

    def __post_init__(self) -> None:
        if not callable(self.t0):
            raise QueryError(
                f"t0 is a function of (first, size, slide), not {self.t0!r}", hint="secret.At(7) is one time, whatever comes"
            )
        if not isinstance(self.report, Report):
            raise QueryError(f"{self.report!r} is no report", hint="secret.Report(window_close=True, non_empty=True)")
        if self.feed is not None and not callable(self.feed):
            raise QueryError(f"what an engine does to its input is a function of tuples, not {self.feed!r}")
        object.__setattr__(self, "tick", Tick(self.tick))
        object.__setattr__(self, "scope", Scope(self.scope))

    def start(self, first_t_app: int, size: int, slide: int) -> int:
        """Return t0, where the first window starts.

        >>> STREAM.start(30, 5, 1)
        25
        """
        check_window(size, slide)
        return whole_number(self.t0(whole_number(first_t_app, "a first time is"), size, slide), f"t0 of {self.name} is")

    def backward(self) -> Profile:
        """Return the profile whose slides end windows: the one at t0 + slide is the first to end one (paper 000, 3.2.1, note 3).

        >>> CORAL8.start(30, 5, 2), CORAL8.backward().start(30, 5, 2)
        (25, 22)
        """
        return replace(self, name=f"{self.name}, backward", t0=_Backward(self.t0))

    def fed(self, feed: Feed, name: str | None = None) -> Profile:
        """Return the profile of the engine that does something to its input first: restamps it, or bundles it.

        >>> from functools import partial
        >>> from streamdsl.secret import bundle
        >>> CORAL8.fed(partial(bundle, by="time"), "Coral8, bundles").name
        'Coral8, bundles'
        """
        return replace(self, name=name or self.name, feed=feed)

    def __str__(self) -> str:
        t0 = getattr(self.t0, "formula", None) or getattr(self.t0, "__name__", repr(self.t0))
        scope = "" if self.scope is Scope.ACTIVE else f"; looks at {self.scope.words}"
        return f"{self.name}: t0 = {t0}{scope}; report on {self.report}; {self.tick.value}-driven"


@dataclass(frozen=True, slots=True)
class _Backward:
    forward: T0

    def __call__(self, first: int, size: int, slide: int) -> int:
        return self.forward(first, size, slide) + slide - size

    @property
    def formula(self) -> str:
        return f"{getattr(self.forward, 'formula', self.forward)} + slide - size"


def check_profile(*given: object) -> None:
    """Raise `QueryError` for what is no profile."""
    for each in given:
        if not isinstance(each, Profile):
            raise QueryError(f"{each!r} is no profile", hint="secret.STREAM, CORAL8, STREAMBASE, ORACLE_CEP, or a secret.Profile")


STREAM: Final = Profile("STREAM", BEFORE_FIRST, Report(True, True, True, 1), Tick.TIME)
CORAL8: Final = Profile("Coral8", Grid(-1), Report(True, False, True, 1), Tick.BATCH)
STREAMBASE: Final = Profile("StreamBase", Grid(-1), Report(False, True, True, 1), Tick.TUPLE)
ORACLE_CEP: Final = replace(STREAM, name="Oracle CEP")
"""It follows STREAM (paper 000, B.3)."""
