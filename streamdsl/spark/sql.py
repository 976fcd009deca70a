"""SQL as text: expressions with what is known of them, literals that no setting can change, arithmetic on times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamdsl.errors import with_hint
from streamdsl.spark.types import Scalar, Type
from streamdsl.temporal import INFINITY, MIN_TIME

_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;/+-()[]<>=*#@!?|~^&%\n")


class NotNative(Exception):  # noqa: N818
    """An expression that runs in Python; the message says why."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression as SQL text, the type of its values, whether it may fail the task, and whether it is a constant text."""

    text: str
    type: Type
    raises: bool = False
    literal: bool = False

    @property
    def kind(self) -> str:
        """The kind of a scalar; raises `NotNative` for other types."""
        if not isinstance(self.type, Scalar):
            raise NotNative("it computes with values that only Python knows")
        return self.type.kind


def struct(parts: tuple[str, ...]) -> str:
    """Return the SQL of a struct of `f0`, `f1`, ..."""
    fields = ", ".join(f"'f{i}', {part}" for i, part in enumerate(parts))
    return f"named_struct({fields})"


def raising(error: str, message: str, hint: str | None = None) -> str:
    """Return the SQL that fails the task with an error's name and message."""
    return f"raise_error({quote(f'{error}: {with_hint(message, hint)}')})"


def named(columns: Mapping[str, str]) -> list[str]:
    """Return columns as SQL, each under its name."""
    return [f"{text} as {name}" for name, text in columns.items()]


def settled(text: str) -> str:
    """Return the SQL of a value that is computed for each row before anything above it: what it raises, no filter gets round.

    Spark moves filters below what is deterministic, and into files. Where no task reads the value nothing is computed.
    """
    return f"if(spark_partition_id() >= 0, {text}, NULL)"


def quote(text: str) -> str:
    """Return a text as an SQL literal that no setting of the session can read otherwise.

    >>> quote("a b"), quote("it's")
    ("'a b'", "decode(unhex('69742773'), 'UTF-8')")
    """
    if set(text) <= _SAFE:
        return f"'{text}'"
    try:
        return f"decode(unhex('{text.encode().hex().upper()}'), 'UTF-8')"
    except UnicodeEncodeError:
        raise NotNative("a text is not valid Unicode") from None


def integer(value: int) -> str:
    """Return an int of int64 as an SQL literal."""
    return f"{value}L"


def double(value: float) -> str:
    """Return a float as an SQL literal of the same bits.

    >>> double(0.1), double(math.inf)
    ('0.1D', "double('Infinity')")
    """
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{value!r}D"


def floor_div(text: str, divisor: int) -> str:
    """Return the SQL of `x // divisor` for a positive constant; never through double, and no overflow.

    >>> floor_div("x", 10)
    '((x) div 10L - if((x) % 10L < 0, 1L, 0L))'
    """
    by = integer(divisor)
    return f"({text})" if divisor == 1 else f"(({text}) div {by} - if(({text}) % {by} < 0, 1L, 0L))"


def plus_time(text: str, duration: int) -> str:
    """Return the SQL of a time moved by a constant: INFINITY absorbs, another overflow fails the task."""
    if duration in (0, INFINITY):
        return text if duration == 0 else integer(INFINITY)
    infinity, moved = integer(INFINITY), f"{text} + {integer(duration)}"
    inside = f"{text} < {integer(INFINITY - duration)}" if duration > 0 else f"{text} >= {integer(MIN_TIME - duration)}"
    return f"CASE WHEN {text} = {infinity} THEN {infinity} WHEN {inside} THEN {moved} ELSE {_OVERFLOW} END"


_OVERFLOW: Final = raising("TimeOverflow", "a time leaves the range of times, int64 ticks")


def moved_time(time: str, duration: str) -> str:
    """Return the SQL of `add_time`."""
    infinity = integer(INFINITY)
    total = f"coalesce(nullif(try_add({time}, {duration}), {infinity}), {_OVERFLOW})"
    return f"CASE WHEN {time} = {infinity} OR {duration} = {infinity} THEN {infinity} ELSE {total} END"
