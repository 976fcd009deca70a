"""Trials: a module on one example, with the operations of laws, and the report of a violation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeAlias

from streamdsl.errors import TimestampViolation, UserCodeError
from streamdsl.pictures.text_lines import TimelineLine, draw
from streamdsl.temporal import CHT, CHTRow, Event, Lifetime
from streamdsl.testing.compare import same_rows
from streamdsl.testing.examples import RowsExample, StreamExample, WindowExample
from streamdsl.testing.law_queries import query_of, text_of
from streamdsl.testing.live_window import LiveWindow, compute_rows, deep_copy, member, process_rows
from streamdsl.testing.random_payloads import magnitude
from streamdsl.testing.subject import Subject
from streamdsl.testing.timelines import line_of_row, lines_of_events
from streamdsl.udm.bases import AnyModule, AnyUDA
from streamdsl.udm.invoke import MemberRow
from streamdsl.windows import Clip

_RELATIVE: Final = 1e-9
_OF_LARGEST: Final = 1e-12
"""The tolerance for floats: relative to the result, or to the largest input, as sums of opposites are small."""
_EMITS: Final = ("speculative", "speculative", "watermark", "final")
Parts: TypeAlias = Iterable[tuple[str, Sequence[MemberRow]]]
"""Rows, in parts, each with a mark for what was done with them."""
MODULE_ERRORS: Final = (UserCodeError, TimestampViolation)
"""The errors of an engine that a module causes."""


class Breach(Exception):  # noqa: N818
    """The violation of a law by an example: a message, the expected and actual results, and the input as a drawing."""

    def __init__(self, what: str, drawing: str, expected: str | None = None, found: str | None = None) -> None:
        super().__init__(what)
        answers = [f"{name:8}: {text}" for name, text in (("expected", expected), ("found", found)) if text is not None]
        self.text = "\n".join(f"  {line}" for line in [what, *drawing.splitlines(), *answers])


class ModuleTrial(ABC):
    """A module on some rows, with what laws do with them."""

    def __init__(self, subject: Subject, example: RowsExample) -> None:
        self.subject = subject
        self.rng = Random(example.seed)
        self.module = subject.fresh()
        self._rows = example.rows

    def members(self) -> list[MemberRow]:
        """Return the rows, with payloads of their own each time."""
        return [member(row._replace(payload=deep_copy(row.payload))) for row in self._rows]

    @abstractmethod
    def answer(self, members: Sequence[MemberRow], module: Any = None) -> list[CHTRow[Any]]:
        """Return a copy of the result of the module, or of another one, for some of the rows."""

    def expect(
        self,
        what: str,
        found: Sequence[CHTRow[Any]],
        expected: Sequence[CHTRow[Any]],
        parts: Parts | None = None,
        present: Iterable[MemberRow] | None = None,
    ) -> None:
        """Raise `Breach` unless two results are the same; `parts` are the rows drawn, by default all.

        Floats may differ by what rounding does to those that are `present`, by default all rows, or by what the module claims.
        """
        error = self.module.float_error
        largest = max((magnitude(row.payload) for row in (self._rows if present is None else present)), default=0.0)
        if not same_rows(found, expected, max(_RELATIVE, error), max(_OF_LARGEST * max(1.0, largest), error)):
            raise self.breach(what, parts, expected=self.shown(expected), found=self.shown(found))

    def breach(self, what: str, parts: Parts | None = None, expected: str | None = None, found: str | None = None) -> Breach:
        """Return the breach with its rows drawn."""
        shown = [("", self.members())] if parts is None else parts
        lines = [line_of_row(CHTRow(row.le, row.re, row.payload), mark) for mark, part in shown for row in part]
        return Breach(what, self.drawn(lines), expected, found)

    def drawn(self, lines: Sequence[TimelineLine]) -> str:
        """Return the drawing of some rows."""
        return draw(lines, self.subject.unit)

    def failure(self, error: Exception) -> Breach:
        """Return the breach of a law by an exception of the module."""
        return self.breach(_raised(error))

    def shown(self, rows: Sequence[CHTRow[Any]]) -> str:
        """Return a result as text."""
        return _listed(rows)


class WindowTrial(ModuleTrial):
    """A module on the members of one window."""

    def __init__(self, subject: Subject, example: WindowExample) -> None:
        super().__init__(subject, example)
        self.example = example
        self.window = example.window
        self.clip = example.clip

    def clipped(self, clip: Clip) -> WindowTrial:
        """Return the trial of the same members, clipped in another way."""
        return WindowTrial(self.subject, replace(self.example, clip=clip))

    def answer(self, members: Sequence[MemberRow], module: AnyModule | None = None) -> list[CHTRow[Any]]:
        """Return a copy of the window's result over some members."""
        found = compute_rows(module or self.module, members, self.window, self.clip, self.subject.output)
        return deep_copy(found)

    def live(self, members: Sequence[MemberRow] = ()) -> LiveWindow:
        """Return a window of the incremental module that has been given members, at once."""
        window = LiveWindow(self.module, self.window, self.clip, self.subject.output)
        if members:
            window.add(*members)
        return window

    def drawn(self, lines: Sequence[TimelineLine]) -> str:
        """Return the drawing of the window and some members."""
        drawing = super().drawn([TimelineLine("window", *self.window), *lines])
        return f"{drawing}\nclipping: {self.clip.value}" if self.module.time_sensitive else drawing

    def shown(self, rows: Sequence[CHTRow[Any]]) -> str:
        """Return a result as text, an aggregate's as its value."""
        return repr(rows[0].payload) if isinstance(self.module, AnyUDA) and len(rows) == 1 else super().shown(rows)


class RowsTrial(ModuleTrial):
    """A stream operator on rows in order."""

    def answer(self, members: Sequence[MemberRow], module: Any = None) -> list[CHTRow[Any]]:
        """Return a copy of the results of rows in order, from a new state on."""
        return self.after((module or self.module).create_state(), members, module)[1]

    def after(self, state: Any, members: Sequence[MemberRow], module: Any = None) -> tuple[Any, list[CHTRow[Any]]]:
        """Return the state after some rows, and a copy of their results."""
        state, found = process_rows(module or self.module, state, members)
        return state, deep_copy(found)


class StreamTrial:
    """A module in a query over a physical stream."""

    def __init__(self, subject: Subject, example: StreamExample) -> None:
        self.subject = subject
        self.example = example
        self.rng = Random(example.seed)

    def query(self) -> Any:
        """Return the query, with a module that has computed nothing yet."""
        return query_of(self.subject, self.subject.fresh(), self.example.kind, self.example.clip)

    @property
    def events(self) -> list[Event[Any]]:
        """The stream."""
        return list(self.example.events)

    def expected(self) -> CHT[Any]:
        """Return what the query means over the stream, by the definition."""
        found: CHT[Any] = self.query().run({"events": deep_copy(self.events)}, engine="reference").cht()
        return found

    def output(self) -> list[Event[Any]]:
        """Return the output of a session that gets the events one by one, and of its close."""
        return self.subject.once(id(self.example), lambda: (self.example, self._run()))[1]

    def _run(self) -> list[Event[Any]]:
        session = self.query().open(emit=self.rng.choice(_EMITS))
        out: list[Event[Any]] = [sent for event in deep_copy(self.events) for sent in session.push([event])]
        return [*out, *session.close()]

    def expect(self, what: str, found: CHT[Any], expected: CHT[Any]) -> None:
        """Raise `Breach` unless two histories are the same."""
        if not same_rows(found.rows, expected.rows):
            raise self.breach(what, _listed(expected.rows), _listed(found.rows))

    def breach(self, what: str, expected: str | None = None, found: str | None = None) -> Breach:
        """Return the breach with the query and the stream drawn, in order of arrival."""
        query = text_of(self.subject, self.example.kind, self.example.clip)
        drawing = draw(lines_of_events(self.events), self.subject.unit)
        return Breach(what, f"{query}\n{drawing}", expected, found)

    def failure(self, error: Exception) -> Breach:
        """Return the violation of a law by an exception of the module; other errors are raised."""
        if not isinstance(error, MODULE_ERRORS):
            raise error
        return self.breach(_raised(error))


def _raised(error: Exception) -> str:
    return f"it raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")


def _listed(rows: Sequence[CHTRow[Any]]) -> str:
    return "; ".join(f"{Lifetime(row.le, row.re)} {row.payload!r}" for row in rows) or "no rows"
