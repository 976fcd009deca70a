"""What a law is: a function that raises `Breach` on an example that breaks it, and when it applies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TypeAlias

from streamdsl.errors import TimestampViolation, UserCodeError
from streamdsl.temporal import CHT, CHTRow, Event, Lifetime
from streamdsl.testing.compare import same_rows
from streamdsl.testing.examples import StreamExample, WindowExample, stream_examples, window_examples
from streamdsl.testing.queries import query_of, text_of
from streamdsl.testing.states import LiveWindow, member, own, whole
from streamdsl.testing.subject import Subject
from streamdsl.testing.timeline import Line, draw, line_of_row, lines_of_events
from streamdsl.udm.bases import AnyModule, AnyUDA
from streamdsl.udm.invoke import MemberRow
from streamdsl.windows import Clip

_EMITS: Final = ("speculative", "speculative", "watermark", "final")
MODULE_ERRORS: Final = (UserCodeError, TimestampViolation)
"""What an engine raises where it is the module's fault."""
_TRIES: Final = 4
"""How many seeds a smaller example is tried with before it is given up."""


class Breach(Exception):  # noqa: N818
    """An example that breaks a law: what happens, what was expected and found, and the input drawn as text."""

    def __init__(self, what: str, drawing: str, expected: str | None = None, found: str | None = None) -> None:
        super().__init__(what)
        answers = [f"{name:8}: {text}" for name, text in (("expected", expected), ("found", found)) if text is not None]
        self.text = "\n".join(f"  {line}" for line in [what, *drawing.splitlines(), *answers])


class WindowTrial:
    """A module on the members of one window, with what laws do with them."""

    def __init__(self, subject: Subject, example: WindowExample) -> None:
        self.subject = subject
        self.example = example
        self.window = example.window
        self.clip = example.clip
        self.rng = Random(example.seed)
        self.module = subject.fresh()

    def members(self) -> list[MemberRow]:
        """Return the members, with payloads of their own each time."""
        return [member(row._replace(payload=own(row.payload))) for row in self.example.rows]

    def answer(self, members: Sequence[MemberRow], module: AnyModule | None = None) -> list[CHTRow[Any]]:
        """Return a copy of the window's result over some members."""
        found = whole(module or self.module, members, self.window, self.clip, self.subject.output)
        return own(found)

    def live(self, members: Sequence[MemberRow] = ()) -> LiveWindow:
        """Return a window of the incremental module that has been given members, at once."""
        window = LiveWindow(self.module, self.window, self.clip, self.subject.output)
        if members:
            window.add(*members)
        return window

    def expect(
        self,
        what: str,
        found: Sequence[CHTRow[Any]],
        expected: Sequence[CHTRow[Any]],
        rows: Iterable[tuple[str, MemberRow]] | None = None,
    ) -> None:
        """Raise `Breach` unless two results are the same; `rows` are the members with a mark for what was done with them."""
        if not same_rows(found, expected):
            raise self.breach(what, rows, expected=self.shown(expected), found=self.shown(found))

    def breach(
        self,
        what: str,
        rows: Iterable[tuple[str, MemberRow]] | None = None,
        expected: str | None = None,
        found: str | None = None,
        clip: Clip | None = None,
    ) -> Breach:
        """Return the breach with the window and its members drawn."""
        marked = [("", row) for row in self.members()] if rows is None else list(rows)
        lines = [line_of_row(CHTRow(row.le, row.re, row.payload), mark) for mark, row in marked]
        drawing = draw([Line("window", *self.window), *lines], self.subject.unit)
        if self.module.time_sensitive:
            drawing += f"\nclipping: {(clip or self.clip).value}"
        return Breach(what, drawing, expected, found)

    def failure(self, error: Exception, clip: Clip | None = None) -> Breach:
        """Return the breach of a law by an exception of the module."""
        return self.breach(_raised(error), clip=clip)

    def shown(self, rows: Sequence[CHTRow[Any]]) -> str:
        """Return a result as text."""
        return repr(rows[0].payload) if isinstance(self.module, AnyUDA) and len(rows) == 1 else _listed(rows)


class StreamTrial:
    """A module in a query over a physical stream."""

    def __init__(self, subject: Subject, example: StreamExample) -> None:
        self.subject = subject
        self.example = example
        self.rng = Random(example.seed)

    def query(self) -> Any:
        """Return the query, with a module that has computed nothing yet."""
        return query_of(self.subject, self.subject.fresh(), self.example.kind, self.example.clip)

    def history(self) -> CHT[Any]:
        """Return what the stream means."""
        return CHT.from_events(own(self.events), self.subject.unit)

    @property
    def events(self) -> list[Event[Any]]:
        """The stream."""
        return list(self.example.events)

    def expected(self) -> CHT[Any]:
        """Return what the query means over the stream, by the definition."""
        found: CHT[Any] = self.query().run({"events": own(self.events)}, engine="reference").cht()
        return found

    def output(self) -> list[Event[Any]]:
        """Return the output of a session that gets the events one by one, and of its close."""
        return self.subject.once(id(self.example), lambda: (self.example, self._run()))[1]

    def _run(self) -> list[Event[Any]]:
        session = self.query().open(emit=self.rng.choice(_EMITS))
        out: list[Event[Any]] = [sent for event in own(self.events) for sent in session.push([event])]
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
        """Return the breach of a law by an exception of the module; other errors are not the module's, and go on."""
        if not isinstance(error, MODULE_ERRORS):
            raise error
        return self.breach(_raised(error))


def _raised(error: Exception) -> str:
    return f"it raises {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")


def _listed(rows: Sequence[CHTRow[Any]]) -> str:
    return "; ".join(f"{Lifetime(row.le, row.re)} {row.payload!r}" for row in rows) or "no rows"


Condition: TypeAlias = Callable[[Subject], str | None]
"""Why a law does not apply to a subject; None if it does."""
Check: TypeAlias = Callable[[Any], None]


@dataclass(frozen=True)
class Law:
    """A law of user-defined modules: its name, what it says, and how it is tried."""

    name: str
    statement: str
    hint: str
    check: Check
    conditions: tuple[Condition, ...]
    trial: Callable[[Subject, Any], Any]
    draw: Callable[[Subject, Random, int, int], Iterable[Any]]
    least: int
    share: float

    def reason_to_skip(self, subject: Subject) -> str | None:
        """Return why the law does not apply, None if it does."""
        return next((reason for condition in self.conditions if (reason := condition(subject))), None)

    def examples(self, subject: Subject, seed: int, n: int) -> Sequence[Any]:
        """Return examples, small ones first, the same for all laws; `n` of them, or the law's share."""
        count = max(1, round(n * self.share))
        key = (self.draw, seed, count, self.least)
        return subject.once(key, lambda: list(self.draw(subject, Random(seed), count, self.least)))

    def breach(self, subject: Subject, example: Any) -> Breach | None:
        """Return how the module breaks the law on an example, None if it keeps it."""
        trial = self.trial(subject, example)
        try:
            self.check(trial)
        except Breach as breach:
            return breach
        except Exception as error:
            failure: Breach = trial.failure(error)
            failure.__cause__ = error
            return failure
        return None

    def smallest(self, subject: Subject, example: Any, breach: Breach) -> Breach:
        """Return the breach by the smallest example that is found."""
        while True:
            for smaller in example.smaller(self.least):
                found = self._any_breach(subject, smaller)
                if found is not None:
                    example, breach = found
                    break
            else:
                return breach

    def _any_breach(self, subject: Subject, example: Any) -> tuple[Any, Breach] | None:
        for seed in (example.seed, *range(_TRIES)):
            candidate = replace(example, seed=seed)
            breach = self.breach(subject, candidate)
            if breach is not None:
                return candidate, breach
        return None


def on_windows(*conditions: Condition, hint: str, least: int = 1) -> Callable[[Callable[[WindowTrial], None]], Law]:
    """Make a law of a function that tries a module on the members of one window; the docstring is its statement."""
    return lambda check: _law(check, conditions, hint, WindowTrial, window_examples, least, 1.0)


def on_streams(*conditions: Condition, hint: str, share: float = 1.5) -> Callable[[Callable[[StreamTrial], None]], Law]:
    """Make a law of a function that tries a module in a query over a stream, on `share` as many examples."""
    return lambda check: _law(check, conditions, hint, StreamTrial, stream_examples, 1, share)


def _law(check: Any, conditions: tuple[Condition, ...], hint: str, trial: Any, draw: Any, least: int, share: float) -> Law:
    statement = (inspect.getdoc(check) or "").splitlines()[0]
    return Law(check.__name__, statement, hint, check, conditions, trial, draw, least, share)
