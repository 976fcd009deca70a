"""What the lambdas are over: constants, mutable objects, classes, registered functions and functions that are not."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import streamdsl as sd
from streamdsl.expr.expression_functions import udf

Lambda = Callable[..., Any]

LIMIT = 5
RATE = 0.5
NAME = "ab"
FLAG = True
NOTHING = None
BIG = 2**70
NAN = math.nan
HALF = Fraction(1, 2)
TENTH = Decimal("0.1")
PREFIXES = ("a", "b")
EXPRESSION = sd.col("i") * 2

LIST = [1, 2, 3]
DICT = {"a": 1}
NUMPY = np.float64(0.5)


class Colour(enum.IntEnum):
    RED = 1


class Odd(int):
    """An int that adds wrongly."""

    def __add__(self, other: object) -> int:
        return 99


ODD = Odd(3)


@dataclass
class Out:
    a: Any
    b: Any = 7


@dataclass(frozen=True, kw_only=True)
class Named:
    one: Any
    two: Any = None


@dataclass
class Tree:
    node: Any


class Pair(NamedTuple):
    left: Any
    right: Any = "r"


@dataclass
class Checked:
    a: Any

    def __post_init__(self) -> None:
        self.a = str(self.a)


@dataclass
class Built:
    a: Any

    def __new__(cls, a: Any) -> Built:
        return super().__new__(cls)


@dataclass
class Custom:
    a: Any

    def __init__(self, a: Any) -> None:
        self.a = (a, a)


@dataclass
class WithList:
    a: Any
    items: list[int] = field(default_factory=list)


def helper(x: Any) -> Any:
    return x


@udf
def clamp(x: Any, low: int = 0) -> Any:
    return low if x is None or x < low else x


@udf
def fields_seen(row: Any) -> Any:
    return (row.i, row.j)


@udf
def held(x: Any) -> Any:
    return {"held": x}


@udf
def kind(x: Any) -> Any:
    return type(x).__name__
