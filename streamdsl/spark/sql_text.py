"""SQL as text: typed expressions, literals that no session setting can change, and arithmetic on times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamdsl.errors import with_hint
from streamdsl.spark.column_types import ColumnType, ScalarType
from streamdsl.temporal import INFINITY, MIN_TIME

_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;/+-()[]<>=*#@!?|~^&%\n")


class NotNative(Exception):  # noqa: N818
    """Raised for an expression that cannot run as SQL; the message gives the reason, and the expression runs in Python."""


@dataclass(frozen=True, slots=True)
class Sql:
    """An SQL expression: its text, its type, whether it may fail the task, and whether it is a string literal."""

    text: str
    type: ColumnType
    raises: bool = False
    literal: bool = False

    @property
    def kind(self) -> str:
        """The kind of a scalar type; raises `NotNative` for other types."""
        if not isinstance(self.type, ScalarType):
            raise NotNative("it computes with values that only Python knows")
        return self.type.kind


def struct(parts: tuple[str, ...]) -> str:
    """Return the SQL of a struct of `f0`, `f1`, ..."""
    fields = ", ".join(f"'f{i}', {part}" for i, part in enumerate(parts))
    return f"named_struct({fields})"


def raise_error(error: str, message: str, hint: str | None = None) -> str:
    """Return the SQL that fails the task with an error's name and message."""
    return f"raise_error({quote(f'{error}: {with_hint(message, hint)}')})"


def aliased(columns: Mapping[str, str]) -> list[str]:
    """Return SQL expressions with their names as aliases."""
    return [f"{text} as {name}" for name, text in columns.items()]


def not_pushed_down(text: str) -> str:
    """Return the SQL of a value that no filter is pushed below, so that what it raises is raised for every row.

    Spark pushes filters below deterministic expressions and into file scans; `spark_partition_id()` is not deterministic. Column
    pruning still applies: a value that nothing reads is not computed.
    """
    return f"if(spark_partition_id() >= 0, {text}, NULL)"


def quote(text: str) -> str:
    """Return a text as an SQL literal that has the same meaning under every session setting.

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
    """Return a float as an SQL literal with the same bits.

    >>> double(0.1), double(math.inf)
    ('0.1D', "double('Infinity')")
    """
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{value!r}D"


def floor_div(text: str, divisor: int) -> str:
    """Return the SQL of `x // divisor` for a positive constant, without doubles and without overflow.

    >>> floor_div("x", 10)
    '((x) div 10L - if((x) % 10L < 0, 1L, 0L))'
    """
    by = integer(divisor)
    return f"({text})" if divisor == 1 else f"(({text}) div {by} - if(({text}) % {by} < 0, 1L, 0L))"


def plus_time(text: str, duration: int) -> str:
    """Return the SQL of a time plus a constant: INFINITY stays INFINITY, any other overflow fails the task."""
    if duration in (0, INFINITY):
        return text if duration == 0 else integer(INFINITY)
    infinity, moved = integer(INFINITY), f"{text} + {integer(duration)}"
    inside = f"{text} < {integer(INFINITY - duration)}" if duration > 0 else f"{text} >= {integer(MIN_TIME - duration)}"
    return f"CASE WHEN {text} = {infinity} THEN {infinity} WHEN {inside} THEN {moved} ELSE {_OVERFLOW} END"


_OVERFLOW: Final = raise_error("TimeOverflow", "a time leaves the range of times, int64 ticks")


def moved_time(time: str, duration: str) -> str:
    """Return the SQL of `add_time`: the sum of a time and a duration, where INFINITY stays INFINITY."""
    infinity = integer(INFINITY)
    total = f"coalesce(nullif(try_add({time}, {duration}), {infinity}), {_OVERFLOW})"
    return f"CASE WHEN {time} = {infinity} OR {duration} = {infinity} THEN {infinity} ELSE {total} END"
