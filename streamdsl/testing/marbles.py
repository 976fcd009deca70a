"""Physical streams drawn as marble diagrams: one character a tick, one line after the other in order of arrival."""

from __future__ import annotations

import re as _regex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamdsl.errors import SchemaError
from streamdsl.pictures.text_lines import RULER
from streamdsl.temporal import CHRONON, INFINITY, Cti, Event, Insert, Retract

_LINE = _regex.compile(r"(?:(?P<name>[^:#]+):)?(?P<drawing>[^#]*)")
_TOKEN = _regex.compile(r"-|(?P<start>\([A-Za-z0-9|]+\)|[A-Za-z0-9|\[*])(?P<bar>=*)(?P<end>[)>!]?)")
_NAMED_STARTS: Final = ("[", "*")
_CTI: Final = "|"


def marbles(diagram: str, values: Mapping[str, Any] | None = None, *, start: int = 0) -> list[Event[Any]]:
    r"""Return the physical events of a marble diagram, in order of arrival.

    Each character is one tick, the first one tick `start`. Lines arrive one after the other, each from left to right.

        a           a point event, named by a letter or a digit
        a==)        an interval: RE is the tick of `)`
        a==b        an interval that ends where the next event starts
        a==>        an edge: RE is INFINITY
        a!          an event that never was: RE = LE
        -           a tick in which nothing starts
        (ab|)       several in one tick, in this order; an end after the group is the end of all of them
        |   |>      the CTI of this tick, of INFINITY

    A line may give its events a longer name, `name: --[==)`, or `name: --*` for a point. An event that is drawn again at the
    same LE in a later line is corrected: its retraction has the RE that is drawn now, and `!` deletes it. The line
    `time: -5   0    5` makes the first column tick -5, `#` begins a comment. The payload is the name, or what `values` has for
    it; ids are the names, with `.2`, `.3`, ... for further events of the same name.

    Raises `SchemaError` for what is no diagram.

    >>> for event in marbles("a-b--(cd)|"):
    ...     print(event)
    Insert(id='a', le=0, re=1, payload='a')
    Insert(id='b', le=2, re=3, payload='b')
    Insert(id='c', le=5, re=6, payload='c')
    Insert(id='d', le=5, re=6, payload='d')
    Cti(time=6)
    >>> for event in marbles('''
    ...     -a==>
    ...     ----b====)
    ...     -a=====)        # a has ended
    ...     b2: --[==)
    ...     ----b!          # b never was
    ... ''', values={"a": 7}):
    ...     print(event)
    Insert(id='a', le=1, re=INFINITY, payload=7)
    Insert(id='b', le=4, re=9, payload='b')
    Retract(id='a', le=1, re=INFINITY, re_new=7, payload=...)
    Insert(id='b2', le=2, re=5, payload='b2')
    Retract(id='b', le=4, re=9, re_new=4, payload=...)
    """
    story = _EventHistory(values or {})
    for number, text in enumerate(diagram.splitlines()):
        found = _LINE.match(text)
        assert found is not None
        name, drawing = (found["name"] or "").strip(), found["drawing"].strip()
        if name == RULER:
            start = _first_tick(drawing)
        else:
            story.tell(_DiagramLine(name, drawing, start), number)
    return story.events


def _first_tick(drawing: str) -> int:
    try:
        return int(drawing.split()[0])
    except (ValueError, IndexError):
        raise SchemaError(
            f"the line '{RULER}: {drawing}' does not begin with a tick",
            hint="a timeline that is not to scale is for reading only",
        ) from None


@dataclass(frozen=True)
class _DiagramLine:
    """A line of a diagram: its name ("" if it has none), and what is drawn from tick `start` on."""

    name: str
    drawing: str
    start: int

    def drawn(self) -> Iterator[tuple[str, int, int]]:
        """Yield the name, LE and RE of each event, and ("|", time, time) for each CTI, in order."""
        column, tick = 0, self.start
        while column < len(self.drawing):
            token = _TOKEN.match(self.drawing, column)
            if token is None:
                raise self._wrong(column, f"{self.drawing[column]!r} means nothing here")
            names = self._names(token["start"] or "", column)
            re = self._end(token, tick, names) if names else tick
            cti = INFINITY if names == [_CTI] and token["end"] else tick
            for name in names:
                yield (name, cti, cti) if name == _CTI else (name, tick, re)
            column = token.end()
            tick += 1 + len(token["bar"] or "") + len(token["end"] or "")

    def _names(self, start: str, column: int) -> list[str]:
        names = [self.name if cell in _NAMED_STARTS else cell for cell in start.strip("()")]
        events = [name for name in names if name != _CTI]
        if any((cell in _NAMED_STARTS) != bool(self.name) for cell in start.strip("()") if cell != _CTI):
            raise self._wrong(column, f"{start!r} means nothing in a line {'with' if self.name else 'without'} a name")
        if len(set(events)) < len(events):
            raise self._wrong(column, "an event is drawn twice in one tick; name one of them otherwise, and use values=")
        return names

    def _end(self, token: _regex.Match[str], tick: int, names: list[str]) -> int:
        bar, end = len(token["bar"]), token["end"]
        if names == [_CTI] and (bar or end not in ("", ">")):
            raise self._wrong(token.start("bar"), "a CTI has no end")
        if end == "!" and bar:
            raise self._wrong(token.start("end"), "'!' stands right after an event's start")
        if bar and not end and not self._starts_at(token.end()):
            raise self._wrong(token.end() - 1, "an event has no end")
        return {">": INFINITY, "!": tick}.get(end, tick + bar + CHRONON)

    def _starts_at(self, column: int) -> bool:
        return column < len(self.drawing) and (self.drawing[column].isalnum() or self.drawing[column] in "([*")

    def _wrong(self, column: int, what: str) -> SchemaError:
        prefix = f"{self.name}: " if self.name else ""
        return SchemaError(
            f"{what}\n    {prefix}{self.drawing}\n    {' ' * (len(prefix) + column)}^",
            hint="a point is a letter, an interval a==), an edge a==>, a CTI |; in a line with a name [==), [==> and *",
        )


@dataclass
class _EventHistory:
    """The events of the lines so far, and the current RE of each."""

    values: Mapping[str, Any]
    events: list[Event[Any]] = field(default_factory=list)
    known: dict[tuple[str, int], tuple[str, int, int]] = field(default_factory=dict)
    """By name and LE: the id, the current RE, and the number of the line that set it."""
    used: dict[str, int] = field(default_factory=dict)

    def tell(self, line: _DiagramLine, number: int) -> None:
        """Add the events of the next line."""
        for name, le, re in line.drawn():
            if name == _CTI:
                self.events.append(Cti(le))
                continue
            id, re_now, told = self.known.get((name, le), ("", le, number))
            if told < number and re_now > le:
                self.events.append(Retract(id, le, re_now, re))
            else:
                id = self._new_id(name)
                self.events.append(Insert(id, le, re, self.values.get(name, name)))
            self.known[name, le] = (id, re, number)

    def _new_id(self, name: str) -> str:
        count = self.used[name] = self.used.get(name, 0) + 1
        return name if count == 1 else f"{name}.{count}"
