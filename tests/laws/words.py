"""Values for the words of expressions: each kind's corners, and the rows on which a word is tried."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast, get_args
from zoneinfo import ZoneInfo

from streamdsl.expr.nodes import Binary, BinaryOp, Expr, Field, Function, Method, Unary, UnaryOp
from streamdsl.expr.scalar_functions import SCALAR_FUNCTIONS, ScalarFunction

BIG = 2**63 - 1
INTS: list[Any] = [0, 1, -1, 2, 3, -3, 7, -7, 10, 2**31, 2**53 + 1, -(2**53) - 1, BIG, BIG - 1, -BIG - 1]
FLOATS: list[Any] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    2.0,
    3.75,
    1e16,
    -1e300,
    5e-324,
    2.0**53,
    2.0**63,
    -(2.0**63),
    math.inf,
    -math.inf,
    math.nan,
]
TEXTS: list[Any] = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "A",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "ΣΑΣ",
    "\ufb01",
    "\U0001f600a\U0001f600",
    "\uffff",
    "'",
    "\\",
    "%a_",
    " a ",
    "\u3000a\x1c",
    "\x85\xa0",
    "\u200ba",
    "\x00a",
    "12",
    " 1_0 ",
    "nan",
    "None",
]
VALUES: dict[str, list[Any]] = {"int": INTS, "float": FLOATS, "bool": [True, False], "str": TEXTS, "none": [None]}
VIENNA, LORD_HOWE = ZoneInfo("Europe/Vienna"), ZoneInfo("Australia/Lord_Howe")
OTHERS: list[Any] = [
    2**70,
    -(2**70),
    (1, 2),
    ("a", math.nan),
    [3, "a"],
    b"ab",
    datetime(2026, 3, 29, 0, 59, 59),
    datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    datetime(2026, 10, 25, 2, 30, tzinfo=VIENNA),
    datetime(2026, 10, 25, 2, 30, tzinfo=VIENNA, fold=1),
    datetime(2026, 4, 5, 1, 45, tzinfo=LORD_HOWE),
    datetime.min,
    datetime.max.replace(tzinfo=UTC),
    date(2026, 3, 29),
    timedelta(hours=-30, microseconds=1),
]
"""What only Python knows: large integers, collections, dates, instants around which clocks are put forward or back."""
MOST = 700


def node(word: ScalarFunction, arguments: Sequence[Expr]) -> Expr:
    """Return the expression that is a word of arguments."""
    first, *rest = arguments
    if word.name.startswith("."):
        return Method(first, word.name[1:], tuple(rest))
    if word.name in get_args(BinaryOp):
        return Binary(cast(BinaryOp, word.name), first, rest[0])
    op = word.name.removesuffix("x")
    return Unary(cast(UnaryOp, op), first) if op in get_args(UnaryOp) else Function(word.name, tuple(arguments))


def fields(count: int, name: str = "x") -> list[Expr]:
    """Return the fields `x0`, `x1`, ..."""
    return [Field(f"{name}{i}") for i in range(count)]


def rows(columns: Sequence[Sequence[Any]], most: int = MOST) -> list[tuple[Any, ...]]:
    """Return rows of all combinations of some columns' values, or some of them where they are too many."""
    found = list(itertools.product(*columns))
    return random.Random(most).sample(found, most) if len(found) > most else found


def native() -> Iterator[tuple[ScalarFunction, tuple[str, ...], str]]:
    """Yield each word, the kinds of its arguments, and the kind of its result, that the table calls native."""
    for word in SCALAR_FUNCTIONS.values():
        for kinds, result in word.native.items():
            yield word, kinds, result
