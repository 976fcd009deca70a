"""Why the answers of profiles differ: the dimension that makes them (paper 000, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.papers.secret.profile import Profile
from streamdsl.papers.secret.profile_trace import SHOWN, Trace, simulate
from streamdsl.papers.secret.tuples import Given, Tuple, read
from streamdsl.papers.secret.window_scope import Scope
from streamdsl.temporal.display import Displayed, scrolled
from streamdsl.temporal.html import columns, table, text
from streamdsl.temporal.payload import payload_key

DIMENSIONS: Final = ("Scope", "Content", "Report", "Tick")
"""In the order of the model. Scopes differ by t0 and by which windows are looked at, contents by what is done to the input."""
_FIELDS: Final = {"Scope": ("t0", "scope"), "Content": ("feed",), "Report": ("report",), "Tick": ("tick",)}


@dataclass(frozen=True, eq=False)
class Difference:
    """Two profiles with different answers: the fewest dimensions of the second one that give its answers to the first one.

    `instead` are as few others that do so too: then this input does not tell which of them it is.
    """

    first: Profile
    second: Profile
    dimensions: tuple[str, ...]
    same: tuple[str, ...]
    instead: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        same = f"same {' and '.join(self.same)}; " if self.same else ""
        return f"{same}{'; or else '.join(map(self._said, [self.dimensions, *self.instead]))}"

    def _said(self, dimensions: tuple[str, ...]) -> str:
        verb = "differs" if len(dimensions) == 1 else "differ"
        return f"{' and '.join(dimensions)} {verb}: {'; '.join(map(self._ways, dimensions))}"

    def _ways(self, dimension: str) -> str:
        verb, way = _way(self.first, dimension)
        again, other = _way(self.second, dimension)
        return f"{self.first.name} {verb} {way}, {self.second.name} {other if verb == again else f'{again} {other}'}"


@dataclass(frozen=True, eq=False)
class Comparison(Displayed):
    """Profiles side by side: a trace of each, and for each that does not answer as the first one does, why.

    >>> from streamdsl.secret import CORAL8, STREAMBASE
    >>> print(compare([CORAL8, STREAMBASE], 5, 1, [(10, 30), (20, 31), (30, 36)], sum))
    same Scope and Content; Report differs: Coral8 reports on content change & non-empty, StreamBase on window close & non-empty
    t   Coral8  StreamBase
    30  10      10
    31  30      30
    32          30
    33          30
    34          30
    35  20      20
    """

    traces: list[Trace]
    differences: list[Difference]

    @property
    def agree(self) -> bool:
        """Whether all outputs are the same.

        >>> from streamdsl.secret import CORAL8, STREAM
        >>> compare([CORAL8, STREAM], 5, 1, [(10, 30), (20, 31), (30, 36)], sum).agree
        True
        """
        return not self.differences

    @property
    def dimension(self) -> str | None:
        """The dimension that makes them differ, several joined by "and"; None if they agree.

        >>> from streamdsl.secret import CORAL8, STREAMBASE
        >>> compare([CORAL8, STREAMBASE], 5, 1, [(10, 30), (20, 31), (30, 36)], sum).dimension
        'Report'
        """
        return " and ".join(self.dimensions) or None

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions that make them differ, in the order of the model.

        >>> from streamdsl.secret import CORAL8
        >>> compare([CORAL8, CORAL8], 5, 1, [(10, 30)]).dimensions
        ()
        """
        named = {dimension for each in self.differences for dimension in each.dimensions}
        return tuple(dimension for dimension in DIMENSIONS if dimension in named)

    def table(self) -> str:
        """Return the outputs side by side, by application time.

        >>> from streamdsl.secret import CORAL8
        >>> print(compare([CORAL8], 5, 1, [(10, 30), (20, 31)], sum).table())
        t   Coral8
        30  10
        """
        return columns([self._titles, *self.rows()])

    def rows(self) -> list[list[str]]:
        """Return the cells of the table.

        >>> from streamdsl.secret import CORAL8
        >>> compare([CORAL8], 5, 1, [(10, 30), (20, 31)], sum).rows()
        [['30', '10']]
        """
        outputs = [_by_time(trace) for trace in self.traces]
        times = sorted({t for found in outputs for t in found})
        return [[str(t), *(", ".join(map(repr, found.get(t, []))) for found in outputs)] for t in times]

    def __str__(self) -> str:
        lines = [str(each) for each in self.differences] or ["the answers are the same"]
        return "\n".join([*lines, columns([self._titles, *self.rows()[:SHOWN]]), *self._more()])

    @property
    def _titles(self) -> list[str]:
        return ["t", *(trace.profile.name for trace in self.traces)]

    def _more(self) -> list[str]:
        left = len(self.rows()) - SHOWN
        return [f"... {left} instants more: table() has them all"] if left > 0 else []

    __repr__ = __str__

    def _below(self) -> str:
        from streamdsl.papers.secret.trace_picture import draw

        lines = "\n".join(map(str, self.differences)) or "the answers are the same"
        cells = ([escape(cell) for cell in row] for row in self.rows()[:SHOWN])
        return text(lines) + scrolled(draw(self.traces)) + table(self._titles, cells) + "".join(map(text, self._more()))


def compare(profiles: Sequence[Profile], size: int, slide: int, tuples: Iterable[Given], aggregate: Any = None) -> Comparison:
    """Run profiles over the same tuples, and say which dimension makes their outputs differ from those of the first one.

    It is found by trying: the fewest dimensions of the other profile with which the first one gives the other's outputs; where
    as few others do so too, they are named after an "or else".

    >>> from functools import partial
    >>> from streamdsl.secret import STREAMBASE, restamp
    >>> runs = [STREAMBASE.fed(partial(restamp, first=first), f"run {first}") for first in (10, 11)]
    >>> print(compare(runs, 3, 3, [(10, 1), (20, 2), (30, 3), (40, 4)], sum).differences[0])
    same Scope; Content differs: run 10 reads restamp(first=10), run 11 restamp(first=11)
    """
    if isinstance(profiles, Profile) or not profiles:
        problem = (
            f"{profiles.name} is compared with nothing" if isinstance(profiles, Profile) else "there is no profile to compare"
        )
        raise QueryError(problem, hint="compare([secret.CORAL8, secret.STREAMBASE], ...)")
    seen = read(tuples)
    traces = [simulate(profile, size, slide, seen, aggregate) for profile in profiles]
    others = [other for other in traces[1:] if not _equal_outputs(other.outputs, traces[0].outputs)]
    return Comparison(traces, [_difference(traces[0], other, seen, aggregate) for other in others])


def _difference(first: Trace, second: Trace, tuples: list[Tuple], aggregate: Any) -> Difference:
    differing = [each for each in DIMENSIONS if _settings(first.profile, each) != _settings(second.profile, each)]
    for count in range(1, len(differing) + 1):
        enough = [
            chosen
            for chosen in combinations(differing, count)
            if _equal_outputs(_with(first, second, chosen, tuples, aggregate), second.outputs)
        ]
        if enough:
            return Difference(first.profile, second.profile, enough[0], _same(enough), tuple(enough[1:]))
    raise QueryError(
        f"{second.profile.name} gives other outputs each time it runs: {_outputs_text(second.outputs)}",
        hint="the aggregate, and what is done to the input, must depend on the tuples alone; an object is told by its repr",
    )


def _outputs_text(outputs: list[Any]) -> str:
    return f"[{', '.join(map(repr, outputs[:3]))}{', ...' if len(outputs) > 3 else ''}]"


def _equal_outputs(outputs: list[Any], others: list[Any]) -> bool:
    """Say whether outputs are the same; NaN is the same as NaN."""
    return len(outputs) == len(others) and list(map(payload_key, outputs)) == list(map(payload_key, others))


def _with(first: Trace, second: Trace, dimensions: Iterable[str], tuples: list[Tuple], aggregate: Any) -> list[Any]:
    """Return the first profile's outputs with some dimensions of the second one."""
    taken = {field: getattr(second.profile, field) for each in dimensions for field in _FIELDS[each]}
    return simulate(replace(first.profile, **taken), first.size, first.slide, tuples, aggregate).outputs


def _same(enough: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return which of Scope and Content are the same on this input, though the settings may not be."""
    needed = {dimension for each in enough for dimension in each}
    found = [] if "Scope" in needed else ["Scope"]
    if found and "Content" not in needed:
        found.append("Content")
    return tuple(found)


def _settings(profile: Profile, dimension: str) -> tuple[Any, ...]:
    return tuple(getattr(profile, field) for field in _FIELDS[dimension])


def _way(profile: Profile, dimension: str) -> tuple[str, str]:
    """Return in words what a profile does in a dimension: the verb, and the rest."""
    if dimension == "Scope":
        looks = "" if profile.scope is Scope.ACTIVE else f" and looks at {profile.scope.words}"
        return "starts", f"at {getattr(profile.t0, 'formula', profile.t0)}{looks}"
    if dimension == "Content":
        return "reads", _named(profile.feed) if profile.feed else "its input as it is"
    return ("reports", f"on {profile.report}") if dimension == "Report" else ("is", f"{profile.tick.value}-driven")


def _named(feed: Any) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in getattr(feed, "keywords", {}).items())
    function = getattr(feed, "func", feed)
    return f"{getattr(function, '__name__', function)}({arguments})"


def _by_time(trace: Trace) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for report, output in zip(trace.reports, trace.outputs, strict=True):
        found.setdefault(report.t, []).append(output)
    return found
