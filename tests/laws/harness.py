"""The law, checked: `CHT(output) == reference(CHT(input))`, whatever the order and size of pushes, and after every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, TypeAlias

import pytest

import streamdsl as sd
from streamdsl.denote import denote
from streamdsl.emit import EMIT_MODES, EmitMode
from streamdsl.engine.versions import RowVersion
from streamdsl.errors import StreamDslError, UnboundedOutputError, UserCodeError
from streamdsl.plan.node import Node, Windowed
from streamdsl.temporal import CHT, INFINITY, MIN_TIME, CHTRow, Cti, Event, Insert, add_time, payload_key, payload_order
from streamdsl.testing import assert_cht_equal
from streamdsl.windows import Output, Windows
from tests.laws.choices import SHRINKS, Random
from tests.laws.expected import (
    Watermark,
    forgotten,
    gate,
    is_row_wise,
    is_window_over_source,
    promise,
    sources_of,
    windows_of,
)
from tests.laws.fold import Fold, Slot
from tests.laws.scenarios import Push, Scenario, smallest
from tests.operators import kinds

Emit: TypeAlias = EmitMode | sd.emit.Emit
Query: TypeAlias = Callable[..., "sd.Stream[Any]"]
Options: TypeAlias = Mapping[str, str] | None
EMITS: tuple[EmitMode, ...] = EMIT_MODES


@cache
def growing() -> tuple[type[Windows], ...]:
    """Return the kinds of windows whose end may move away, also beyond what has come so far."""
    return tuple({type(each) for entry in kinds().values() if entry.may_grow for each, _ in entry.instances.values()})


class Run:
    """A session and the fold of its output: well formed, in order, true to its own promises, and minimal if windows send it."""

    def __init__(self, query: sd.Stream[Any], emit: Emit, options: Options = None) -> None:
        self.session = query.open(emit=emit, engine_options=dict(options or {}))
        self.emit = emit
        self.is_minimal = is_window_over_source(query.plan())
        self.output = Fold()

    @property
    def final(self) -> int:
        """The final frontier of the output, which tests/laws/test_final.py holds to what it promises."""
        return self.session._graph.final_frontier(self.session.ctis)

    def push(self, source: str, events: Sequence[Event[Any]]) -> None:
        out = self.session.push(list(events), source=source)
        self._take(out)
        if not any(isinstance(event, Cti) for event in events[:-1]):
            assert out == _in_order(out), f"one piece of the output is out of order: {out}"
            assert not (self.is_minimal and (again := _gone_to_come_again(out))), f"nothing changes where {again} goes and comes"

    def close(self) -> None:
        events = self.session.close()
        self._take(events)
        assert self.output.cti == INFINITY, f"the output does not end with Cti(INFINITY) but with {events[-1:]}"

    def _take(self, events: list[Event[Any]]) -> None:
        for event in events:
            if isinstance(event, Cti):
                assert event.time > self.output.cti, f"{event} does not rise above Cti({self.output.cti})"
            assert self.emit != "final" or not isinstance(event, sd.Retract), f"final sent {event}"
            self.output.take([event])


def _in_order(piece: Sequence[Event[Any]]) -> list[Event[Any]]:
    """Return the events of a piece as they must come: retractions, insertions, each by (LE, RE, payload), and the CTI."""
    return sorted(piece, key=_order)


def _gone_to_come_again(piece: Sequence[Event[Any]]) -> set[Hashable]:
    """Return what the same result is that a piece takes back and sends again: of one window, of one lifetime, of one value."""
    gone = {_result(event) for event in piece if isinstance(event, sd.Retract) and event.re_new == event.le}
    return gone & {_result(event) for event in piece if isinstance(event, Insert)}


def _result(event: Any) -> Hashable:
    id = event.id.id if isinstance(event.id, RowVersion) else event.id
    return id, event.le, event.re, payload_key(event.payload)


def _order(event: Event[Any]) -> tuple[Any, ...]:
    if isinstance(event, Cti):
        return (2,)
    payload = payload_order(event.payload) if isinstance(event, Insert) else ()
    return (int(isinstance(event, Insert)), event.le, event.re, payload)


class Law:
    """One query run through one scenario in one way, with what its input means so far."""

    def __init__(self, query: sd.Stream[Any], emit: Emit, options: Options = None) -> None:
        self.emit = emit
        self.plan = query.plan()
        self.run = Run(query, emit, options)
        self.speculative = self.run if emit == "speculative" else Run(query, "speculative", options)
        self.inputs = {name: Fold() for name in sources_of(self.plan)}
        reads = windows_of(self.plan)
        self.watermarks = {id(node): Watermark(below) for node, below in reads if is_row_wise(below)}
        self.all_known = len(self.watermarks) == len(reads)
        self.windows_are_fixed = not any(isinstance(node, Windowed) and isinstance(node.windows, growing()) for node, _ in reads)
        self.promised = MIN_TIME
        self.forgotten: set[Slot] = set()
        self.was_out: set[Hashable] = set()
        self.gated: dict[Hashable, CHT[Any]] = {}

    def push(self, source: str, events: Sequence[Event[Any]]) -> None:
        self.take(source, events)
        self.check_so_far()

    def take(self, source: str, events: Sequence[Event[Any]]) -> None:
        """Push events without a look at what the output means."""
        for event in events:
            self._follow(source, event)
            if isinstance(event, Cti) and event is not events[-1]:
                self._note_what_is_out()
        self.run.push(source, events)
        if self.speculative is not self.run:
            self.speculative.push(source, events)

    def _note_what_is_out(self) -> None:
        """Remember at the end of a piece the rows of snapshots that have ended: they may stay when they grow."""
        if self.emit == "watermark" and not self.windows_are_fixed and self.all_known and is_window_over_source(self.plan):
            self.was_out |= {(row.le, payload_key(row.payload)) for row in self._gated(by_end=True)}

    def _follow(self, source: str, event: Event[Any]) -> None:
        fold = self.inputs[source]
        before = fold.cti
        if not isinstance(event, Cti):
            self.gated.clear()
        fold.take([event])
        for watermark in self.watermarks.values():
            if watermark.source == source:
                watermark.take(fold, event)
        if fold.cti > before and is_window_over_source(self.plan):
            known = {slot: row for slot, row in fold.rows.items() if slot not in self.forgotten}
            self.forgotten |= forgotten(self.plan, known, fold.cti)
            kept = CHT(row for slot, row in known.items() if slot not in self.forgotten)
            self.promised = max(self.promised, promise(self.plan, kept, fold.cti))

    def check_so_far(self) -> None:
        actual = self.run.output.cht()
        if self.emit == "final":
            speculative = self.speculative.output.cht()
            assert_cht_equal(actual, CHT(row for row in speculative if row.re <= self.run.final))
            held_back = least_start(speculative, actual)
            assert self.run.output.cti == min(self.speculative.output.cti, held_back), "the output CTI is not what api.md says"
        elif self.all_known and all(mark.is_certain for mark in self.watermarks.values()):
            with suppress(UnboundedOutputError):  # of a sequence that does not end where its rows do
                self._check_gated(actual)
        if is_window_over_source(self.plan):
            assert self.speculative.output.cti == self.promised, "the output CTI is not what semantics.md promises"
        self._note_what_is_out()

    def _check_gated(self, actual: CHT[Any]) -> None:
        if self.emit == "speculative":
            assert_cht_equal(actual, self._gated(by_end=False))
        elif is_window_over_source(self.plan):
            self._check_watermark(actual)
        elif self.windows_are_fixed:
            assert_cht_equal(actual, self._gated(by_end=True))

    def _gated(self, by_end: bool, before: int = INFINITY) -> CHT[Any]:
        """Return what the plan means by the watermarks; remembered until an event changes the input."""
        marks = {node: mark.time for node, mark in self.watermarks.items()}
        asked = (by_end, before, *marks.values())
        if asked not in self.gated:
            self.gated[asked] = self.reference(gate(self.plan, marks, by_end, before))
        return self.gated[asked]

    def _check_watermark(self, actual: CHT[Any]) -> None:
        """Check that windows are out that end by the watermark, and that the CTI stops at the first row held back.

        A window that was out and has grown beyond the watermark stays out where taking it back would break the output's CTI.
        """
        begun, ended, cti = self._gated(by_end=False), self._gated(by_end=True), self.run.output.cti
        kept = CHT(rows_without(actual, ended))
        assert not rows_without(ended, actual), "a window that has ended is not out"
        assert not rows_without(kept, begun), "a row is out that means nothing"
        assert not len(kept) or not rows_without(kept, self._may_stay(cti)), "a row is out before its window has ended"
        assert cti == min(self.speculative.output.cti, least_start(begun, actual)), "the output CTI is not what api.md says"

    def _may_stay(self, cti: int) -> CHT[Any]:
        """Return the rows that may be out before their window has ended: to take the window back would break the CTI."""
        rows = self._gated(by_end=False, before=cti)
        if any(isinstance(node, Windowed) and node.output is Output.TIME_BOUND for node, _ in windows_of(self.plan)):
            return rows
        if self.windows_are_fixed:
            return CHT([])
        return CHT(row for row in rows if row.le < cti and (row.le, payload_key(row.payload)) in self.was_out)

    def reference(self, plan: Node, until: int = INFINITY) -> CHT[Any]:
        return denote(plan, {name: fold.cht() for name, fold in self.inputs.items()}, until)

    def close(self) -> None:
        """Check what a session sends at its end; one whose windows never end is refused, as the reference refuses them."""
        try:
            expected = self.reference(self.plan)
        except UnboundedOutputError as error:
            with pytest.raises(type(error)):
                self.run.close()
            return
        self.run.close()
        assert_cht_equal(self.run.output.cht(), expected)


def follow(query: sd.Stream[Any], stream: Sequence[Sequence[Event[Any]]], emit: Emit) -> None:
    """Run a query of the source s through pushes, checking it after every one and at the end.

    A push may raise what the user's code does where the reference does so too, after one of its events.
    """
    law = Law(query, emit)
    for number, part in enumerate(stream):
        try:
            law.take("s", part)
        except UserCodeError:
            before = [event for each in stream[:number] for event in each]
            assert any(_fails(law.plan, [*before, *part[: n + 1]]) for n in range(len(part))), "no window fails"
            return
        law.check_so_far()
    law.close()


def _fails(plan: Node, events: Sequence[Event[Any]]) -> bool:
    """Say whether the user's code fails in a window of what events mean, of those without end in one that has begun."""
    fold = Fold()
    fold.take(events)
    for until in (INFINITY, add_time(fold.high_water, 100)):
        try:
            denote(plan, {"s": fold.cht()}, until)
        except UserCodeError:
            return True
        except UnboundedOutputError:
            continue
    return False


def of_pushes(stream: Iterable[Sequence[Event[Any]]]) -> Scenario:
    """Return pushes to the source s as a scenario."""
    return Scenario(tuple(("s", tuple(part)) for part in stream))


def rows_without(rows: CHT[Any], others: CHT[Any]) -> list[CHTRow[Any]]:
    """Return the rows that the others do not have."""
    among = Counter((row.le, row.re, payload_key(row.payload)) for row in others)
    found = []
    for row in rows:
        key = (row.le, row.re, payload_key(row.payload))
        among[key] -= 1
        if among[key] < 0:
            found.append(row)
    return found


def least_start(rows: CHT[Any], shown: CHT[Any]) -> int:
    """Return the smallest LE of a row that is not shown, INFINITY if all are."""
    return min((row.le for row in rows_without(rows, shown)), default=INFINITY)


def pushes_for(query: sd.Stream[Any], scenario: Scenario) -> list[Push]:
    """Return the pushes to the sources that the query reads."""
    known = sources_of(query.plan())
    return [push for push in scenario.pushes if push[0] in known]


def check_law(query: sd.Stream[Any], scenario: Scenario, emit: Emit, options: Options = None) -> None:
    """Run a query through a scenario; raise `AssertionError` with the smallest part of it that breaks the law."""
    try:
        run_law(query, scenario, emit, options)
    except Exception as error:
        if Random.shrinks or not SHRINKS:
            raise
        what = str(error) if isinstance(error, (AssertionError, StreamDslError)) else repr(error)
        found = smallest(scenario, partial(_breaks, query, emit, options, type(error)))
        raise AssertionError(f"{what}\nemit: {emit}\n{found}\nand close\n{query.explain()}") from error


def _breaks(query: sd.Stream[Any], emit: Emit, options: Options, kind: type[Exception], scenario: Scenario) -> bool:
    try:
        run_law(query, scenario, emit, options)
    except Exception as error:
        return type(error) is kind
    return False


def run_law(query: sd.Stream[Any], scenario: Scenario, emit: Emit, options: Options = None) -> None:
    """Run a query through a scenario, checking it after every push and at the end."""
    law = Law(query, emit, options)
    for source, events in pushes_for(query, scenario):
        law.push(source, events)
    law.close()


def check_same(query: sd.Stream[Any], scenario: Scenario, emit: Emit, *options: Options) -> None:
    """Run a query under several engine options at once; raise unless all show the same rows and CTIs after every push."""
    runs = [Run(query, emit, chosen) for chosen in options]
    for source, events in pushes_for(query, scenario):
        for run in runs:
            run.push(source, events)
        for run in runs[1:]:
            assert run.output.cht() == runs[0].output.cht(), "the engine's variants show different rows"
            assert run.output.cti == runs[0].output.cti, "the engine's variants show different CTIs"
    for run in runs:
        run.close()
        assert run.output.cht() == runs[0].output.cht(), "the engine's variants end with different rows"


def check_until(query: sd.Stream[Any], scenario: Scenario, until: int) -> None:
    """Run a query bounded by `until`; raise unless it gives what the reference gives with the same bound."""
    inputs: dict[str, list[Event[Any]]] = {name: [] for name in sources_of(query.plan())}
    for source, events in pushes_for(query, scenario):
        inputs[source] += events
    expected = denote(query.plan(), {name: CHT.from_events(events) for name, events in inputs.items()}, until)
    result = query.run({name: sd.from_events(events, unit=query.plan().unit) for name, events in inputs.items()}, until=until)
    Fold().take(result.events())
    assert_cht_equal(result.cht(), expected)
