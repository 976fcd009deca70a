"""All exceptions and warnings, and the format of their messages.

Each error is a `StreamDslError` and also the builtin exception that a caller would expect. A message states the problem, its
place and the alternatives, and ends with a `Hint:` if there is a remedy.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os.path import basename, dirname, isfile, join
from traceback import walk_tb
from types import FrameType
from typing import Any, Final, cast

from streamdsl.redaction import without_secrets

_PACKAGE: Final = join(dirname(__file__), "")
_LONGEST: Final = 2000
VALUE_LENGTH: Final = 400
"""The most characters of a value that a message shows."""
_MEMBERS: Final = 3
_MEMBER_LENGTH: Final = 120
"""How many payloads of a window a message shows, and how much of each."""

NO_SOURCE: Final = "a source has the name that sd.source(name) gives it"

_BEFORE: Final = 100
_SHOWN: Final = 200
"""The most characters of a line of SQL that a message shows; `_BEFORE`: before the error."""

TIME: Final = "\0"
"""The place of a time in a message, until its unit is known."""
_INFINITY: Final = 2**63 - 1

__all__ = [
    "CheckpointError",
    "CrossJoinWarning",
    "CtiViolation",
    "DriverWarning",
    "EventError",
    "FieldNotFound",
    "HeldOutputWarning",
    "InputError",
    "ManyShardsWarning",
    "MethodNotFound",
    "NoProgressWarning",
    "PositionError",
    "QueryError",
    "SchemaError",
    "SessionError",
    "SinkError",
    "SqlError",
    "StreamDslError",
    "TimeOverflow",
    "TimestampViolation",
    "UdmLawViolation",
    "UnboundedOutputError",
    "UnitError",
    "UnsupportedOnSpark",
    "UntypedColumnWarning",
    "UserCodeError",
    "WindowGapsWarning",
]


def shortened(value: object, longest: int = VALUE_LENGTH) -> str:
    """Return the `repr` of a value for a message, cut if it is long; the type of a value whose `repr` raises.

    >>> shortened({"k": "a"}), shortened("x" * 1000, longest=5)
    ("{'k': 'a'}", "'xxxx... (1002 characters)")
    """
    try:
        text = repr(value)
    except Exception as error:
        return f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"


def ticks_text(time: int) -> str:
    """Return a time of which the unit is not known.

    >>> ticks_text(3), ticks_text(2**63 - 1)
    ('3', 'inf')
    """
    return "inf" if time == _INFINITY else str(time)


def reason(error: BaseException) -> str:
    """Return the message of an error; if it is empty, the type of the error and the place where it was raised.

    >>> reason(ValueError("too long")), reason(KeyboardInterrupt())
    ('too long', 'KeyboardInterrupt')
    """
    frames = list(walk_tb(error.__traceback__))
    where = f" at {frames[-1][0].f_code.co_qualname}, line {frames[-1][1]}" if frames else ""
    return str(error) or f"{type(error).__name__}{where}"


def with_hint(message: str, hint: str | None) -> str:
    """Return a message with its hint appended, if there is one; secrets that it quotes are hidden."""
    return without_secrets(f"{message}\nHint: {hint}" if hint else message)


def without_hint(error: StreamDslError) -> str:
    """Return the message of an error without its hint."""
    return str(error).removesuffix(f"\nHint: {error.hint}")


class StreamDslError(Exception):
    """The root of every error that streamdsl raises on purpose."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(with_hint(message, hint))
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), str(self), self.__dict__))


class TimeOverflow(StreamDslError, OverflowError):
    """A time is outside the range of int64 ticks."""


class UnitError(StreamDslError, TypeError):
    """A time or a duration does not fit the stream's unit, or two streams have different units."""


class EventError(StreamDslError, ValueError):
    """A physical event is malformed; it leaves the stream unchanged. `times` are the times that the `rule` names, as `{}`."""

    def __init__(
        self, event: object, rule: str, *, times: tuple[int, ...] = (), where: str | None = None, hint: str | None = None
    ) -> None:
        self.event = event
        self._parts = rule, times, where
        super().__init__(self._text(ticks_text), hint=hint)

    def _text(self, show: Callable[[int], str]) -> str:
        rule, times, where = self._parts
        self.rule = rule.format(*map(show, times)) if times else rule
        place = f" at source {where!r}" if where else ""
        id = shortened(getattr(self.event, "id", self.event))
        return f"event {id}{place} is refused: {self.rule}\n  event: {shortened(self.event)}"

    def with_times(self, show: Callable[[int], str]) -> EventError:
        """Return the same error, with times as `show` writes them."""
        return cast(EventError, _again(type(self), with_hint(self._text(show), self.hint), self.__dict__))


class CtiViolation(EventError):
    """A physical event changes a time that an earlier CTI has closed, which came from `origin`."""

    def __init__(self, event: object, sync: int, cti: int, *, where: str | None = None, origin: object = None) -> None:
        came = "" if origin is None else f", by {origin}".replace("{", "{{").replace("}", "}}")
        super().__init__(
            event,
            "its sync time {} is before the CTI {}" + came,
            times=(sync, cti),
            where=where,
            hint='choose on_violation="drop" or "adjust" at the source, or give its Progress more slack',
        )
        self.cti = cti
        self.origin = origin


class SchemaError(StreamDslError, ValueError):
    """A payload or the columns of an input do not fit the schema of the stream."""


class QueryError(StreamDslError, ValueError):
    """A query is ill-formed; it is refused when it is written."""


class SqlError(QueryError):
    r"""A query in SQL is ill-formed; the message shows the place in its text.

    >>> raise SqlError("there is no stream 'S'", "SELECT *\nFROM S", 14)
    Traceback (most recent call last):
        ...
    streamdsl.errors.SqlError: there is no stream 'S'
      line 2: FROM S
                   ^
    """

    def __init__(self, problem: str, text: str, start: int, end: int | None = None, *, hint: str | None = None) -> None:
        begin = text.rfind("\n", 0, start) + 1
        line = text[begin:].partition("\n")[0]
        place = f"  line {text.count(chr(10), 0, start) + 1}: "
        if start - begin > _BEFORE:
            place, line, begin = f"{place}... ", line[start - begin - _BEFORE :], start - _BEFORE
        line = line[:_SHOWN] + " ..." if len(line) > _SHOWN else line
        marked = max(1, min((end or start + 1) - start, len(line) - (start - begin)))
        super().__init__(f"{problem}\n{place}{line}\n{' ' * (len(place) + start - begin)}{'^' * marked}", hint=hint)
        self.start = start


class FieldNotFound(QueryError, AttributeError):
    """An expression names a field that its stream does not have."""

    def __init__(self, name: str, available: Iterable[str], *, bare: type | None = None) -> None:
        """`bare` is the type of scalar payloads, which have attributes instead of fields."""
        fields = list(available) if bare is None else [known for known in dir(bare) if not known.startswith("_")]
        close = closest(name, fields)
        if bare is None:
            what, otherwise = f"there is no field {name!r}", "a field is written as e.name, or e['name']"
        else:
            what, otherwise = f"{bare.__name__!r} payloads have no attribute {name!r}", "a bare payload is e itself"
        if fields == ["_0", "_1"]:
            otherwise = (
                "the payload is a pair, e[0] and e[1]: of a query over each group its key and its result, of a join its rows;\n"
                '  select(lambda e: {"key": e[0], ...}) gives them names'
            )
        super().__init__(
            f"{what}; the {'fields' if bare is None else 'attributes'} are: {', '.join(fields) or '(none)'}",
            hint=f"did you mean {close!r}?" if close else otherwise,
        )
        self.field = name


class MethodNotFound(QueryError, AttributeError):
    """A stream, a group or a window has no method of this name."""


class PositionError(StreamDslError, IndexError):
    """A window sequence reads a position that has no tuple yet."""


class UserCodeError(StreamDslError, RuntimeError):
    """A lambda or a user-defined module raised; the message names operator, window, event, payload, and the user's line.

    The line has the expression that failed, where it is known. `members` are the payloads of the window, `le` is the start of a
    row that has no id.
    """

    def __init__(
        self,
        cause: BaseException,
        *,
        operator: str,
        window: object = None,
        event: object = None,
        le: int | None = None,
        payloads: tuple[Any, ...] = (),
        members: Sequence[Any] = (),
    ) -> None:
        before = [f"operator {operator}"]
        after = [] if event is None else [f"event {shortened(event)}"]
        after.extend(_line_of_the_user(cause))
        if payloads:
            after.append(f"payload {_preview(payloads, getattr(cause, 'fields_read', None))}")
        if members:
            after.append(_of_window(members))
        self.operator = operator
        self.window = window
        self.event = event
        self.le = le
        self._parts = f"{type(cause).__name__} in user code: {_text_of(cause)}", before, after
        super().__init__(self._text(ticks_text), hint=_remedy(cause, window))

    def _text(self, show: Callable[[int], str]) -> str:
        head, before, after = self._parts
        le, re = getattr(self.window, "le", None), getattr(self.window, "re", None)
        period = f"[{show(le)}, {show(re)})" if isinstance(le, int) and isinstance(re, int) else self.window
        window = [] if self.window is None else [f"window {period}"]
        start = [] if self.le is None else [f"LE {show(self.le)}"]
        places = [*before, *window, *start, *after]
        return f"{head}\n  at {', '.join(places)}"

    def with_times(self, show: Callable[[int], str]) -> UserCodeError:
        """Return the same error, with its times as `show` writes them."""
        return cast(UserCodeError, _again(type(self), with_hint(self._text(show), self.hint), self.__dict__))


def _text_of(cause: BaseException) -> str:
    """Return the message of an error without its hint, which comes last."""
    hint = getattr(cause, "hint", None)
    text = str(cause).removesuffix(with_hint("", hint)) if hint else str(cause)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _preview(payloads: tuple[Any, ...], fields: frozenset[str] | None) -> str:
    """Return payloads for a message; of one that is long the fields that the expression has read, if they are known."""
    shown = payloads[0] if len(payloads) == 1 else payloads
    text = shortened(shown)
    if not text.endswith(" characters)") or not fields or len(payloads) > 1:
        return text
    parts = [f"{name}={shortened(_field(shown, name))}" for name in sorted(fields)]
    return f"{type(shown).__name__}({', '.join(parts)}, ...)"


def _field(payload: Any, name: str) -> Any:
    return payload[name] if isinstance(payload, Mapping) else getattr(payload, name, None)


def _of_window(members: Sequence[Any]) -> str:
    few = [shortened(member, _MEMBER_LENGTH) for member in members[:_MEMBERS]]
    more = ", ..." if len(members) > len(few) else ""
    return f"{len(members)} payload{'s' if len(members) > 1 else ''}: {', '.join(few)}{more}"


def _remedy(cause: BaseException, window: object) -> str | None:
    """Return a hint for mistakes that Python's own messages do not explain."""
    known: str | None = getattr(cause, "hint", None)
    if isinstance(cause, AttributeError) and known is None and (close := _close_field(cause)):
        return f"did you mean {close!r}?"
    if isinstance(cause, AttributeError) and "there is no field" in str(cause) and known is None:
        return "a field is written as e.name, or e['name']"
    if not isinstance(cause, TypeError) or "Hint:" in str(cause) or known is not None:
        return known
    if re.search(r"for [&|]: ", str(cause)):
        return "& and | bind closer than comparisons: write (e.fare > 5) & (e.zone == 'A')"
    if "'method'" in str(cause):
        return "a field that has the name of a method is e['name']"
    if window is None and "NoneType" in str(cause):
        return (
            "where a row has None: sd.functions.coalesce(e.fare, 0), or .where(lambda e: sd.not_(sd.is_none(e.fare))) before it"
        )
    return None


def _close_field(error: AttributeError) -> str | None:
    """Return the field of the object that was asked whose name is most like the one that it does not have."""
    name, asked = error.name, error.obj
    if not name or asked is None:
        return None
    return closest(name, map(str, asked) if isinstance(asked, Mapping) else [each for each in dir(asked) if each[:1] != "_"])


def _line_of_the_user(error: BaseException) -> Iterator[str]:
    """Yield the first place outside of the package in the traceback; else the line of the lambda, if it is known."""
    for frame, line in walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(_PACKAGE) and isfile(file):
            yield f"{frame.f_code.co_qualname} in {basename(file)}, line {line}"
            return
    written = getattr(error, "written", None)
    if written is not None:
        expression = getattr(error, "expression", None)
        yield f"lambda in {place_of(written.file, written.line)}{f' ({expression})' if expression else ''}"


def place_of(file: str, line: int) -> str:
    """Return a line of a file, as messages name it.

    >>> place_of("jobs/trips.py", 7)
    'trips.py, line 7'
    """
    return f"{basename(file)}, line {line}"


class TimestampViolation(StreamDslError, ValueError):
    """A module gave an output event a lifetime that its output policy forbids; `TIME` in the message stands for a time."""

    def __init__(self, message: str, *, times: tuple[int, ...] = (), hint: str | None = None) -> None:
        self._parts = message.split(TIME), times
        super().__init__(self._text(ticks_text), hint=hint)

    def _text(self, show: Callable[[int], str]) -> str:
        (first, *others), times = self._parts
        return first + "".join(f"{show(time)}{text}" for time, text in zip(times, others, strict=True))

    def with_times(self, show: Callable[[int], str]) -> TimestampViolation:
        """Return the same error, with times as `show` writes them."""
        return cast(TimestampViolation, _again(type(self), with_hint(self._text(show), self.hint), self.__dict__))


class UdmLawViolation(StreamDslError, AssertionError):
    """A user-defined module breaks a law that its kind or its claims imply; `example` is the smallest input that shows it."""

    def __init__(self, module: str, law: str, statement: str, example: str, *, hint: str | None = None) -> None:
        super().__init__(f"{module} breaks the law {law}: {statement}\n{example}", hint=hint)
        self.module = module
        self.law = law
        self.example = example


class ConnectorViolation(StreamDslError, AssertionError):
    """A source or a sink does not keep what its protocol promises (`testing.check_source`, `testing.check_sink`)."""


class UnboundedOutputError(StreamDslError, ValueError):
    """Infinitely many windows, or more than the window budget: an event never ends, its RE is wrong, or time leaps."""

    _told: Callable[[Any], str] | None = None

    def __init__(self, message: str, *, hint: str | None = None, told: Callable[[Any], str] | None = None) -> None:
        """`told` is the message in a unit of time, for whoever raises the error without knowing the unit."""
        super().__init__(message, hint=hint)
        self._told = told

    def in_unit(self, unit: str | None) -> UnboundedOutputError:
        """Return the same error with its times in a unit."""
        if self._told is None or unit is None:
            return self
        again = _again(type(self), with_hint(self._told(unit), self.hint), {**self.__dict__, "_told": None})
        return cast(UnboundedOutputError, again)


class SessionError(StreamDslError, RuntimeError):
    """A session is used after it was closed, or after user code failed in it."""


class SinkError(StreamDslError, RuntimeError):
    """A table refuses a micro-batch of a stream: it belongs to another stream, lacks earlier batches, or has other columns."""


class InputError(StreamDslError, ValueError):
    """A job refuses an input file: it cannot be read, its rows are refused, or it has changed since the job took it."""


class CheckpointError(StreamDslError, ValueError):
    """A session cannot be saved, or a checkpoint cannot be restored: it is damaged, of another query, or not trusted."""


class UnsupportedOnSpark(QueryError):
    """A node has no lowering to Spark; raised before anything runs."""


class DriverWarning(UserWarning):
    """A stream on Spark runs in the driver, in one process, as Spark cannot keep the state of shards."""


class ManyShardsWarning(UserWarning):
    """A stream on Spark has many more shards than there are cores, and each micro-batch runs a task for each."""


class UntypedColumnWarning(UserWarning):
    """A column of a result on Spark is VARIANT, as nothing says of what type its values are; the message says who gives them."""


class NoProgressWarning(UserWarning):
    """A stream on Spark has a source whose CTI never moves: its final rows never come, and the state of others only grows."""


class HeldOutputWarning(UserWarning):
    """Much state is held in memory and never released, as the output CTI does not advance; the message names the cause."""


class WindowGapsWarning(UserWarning):
    """Hopping windows are shorter than their hop, so rows that live between two of them are in none."""


class CrossJoinWarning(UserWarning):
    """A join with neither `on` nor `where` pairs each row with very many others."""


def _again(cls: type[StreamDslError], message: str, state: dict[str, Any]) -> StreamDslError:
    """Restore a pickled error without its constructor, as each class has other parameters."""
    error = cls.__new__(cls, message)
    error.__dict__.update(state)
    return error


def level_of_caller() -> int:
    """Return the `stacklevel` of a warning at the line that calls the package: a lambda asks through what traces it."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name, ignoring case; None if none is similar.

    >>> closest("fair", ["zone", "fare"]), closest("V", ["k", "v"]), closest("V", ["k"])
    ('fare', 'v', None)
    """
    import difflib

    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, n=1)
    return known[found[0]] if found else None
