"""Exact sums as Spark SQL, which add up in any order: integers as two halves, floats as digits of 32 bits (a superaccumulator).

Three digits hold most floats: those below 2**31 whose last bit is worth 2**-64 or more. What others add stands in columns of
their own, which are filtered: rows without such floats neither read nor write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.spark.aggregation_plan import BufferColumn
from streamdsl.spark.operations import int64_overflow
from streamdsl.spark.sql_text import double
from streamdsl.spark.task_errors import error_marker

_DIGIT: Final = 32
NEAR: Final = (0, -1, -2)
"""The weights of the digits that every float has: digit w is worth 2**(32 w)."""
FAR: Final = (2, 1, -3)
REST: Final = len(NEAR) + len(FAR)
"""The place of the buffer column of what has no digits."""
BELOW: Final = 2.0**94
"""Larger floats have no digits."""
_NEAR_BELOW: Final = 2.0**31
TRUSTED: Final = double(2.0**22)
"""How much larger than a sum the floats in it without digits may be, as these are added with rounding."""
LOST: Final = error_marker(UnsupportedOnSpark("floats that are far apart nearly cancel in a sum, which Spark cannot add exactly"))
_OVERFLOW: Final = error_marker(int64_overflow("a sum"))
_MASK: Final = "4294967295L"


def integer_columns(x: str) -> list[BufferColumn]:
    """Return the buffer columns of an exact sum of integers."""
    return [added(half) for half in halves(x)]


def integer_sum(columns: Sequence[str]) -> str:
    """Return the SQL of a sum of integers as an integer, which fails the task beyond int64."""
    return _from_halves(columns, lambda whole: whole, _OVERFLOW)


def float_of_integers(columns: Sequence[str]) -> str:
    """Return the SQL of a sum of integers as a float."""
    high, low, _ = columns
    exact = f"{decimal(high)} * cast(4294967296L as decimal(10,0)) + {decimal(low)}"
    return _from_halves(columns, lambda whole: f"cast({whole} as double)", f"cast({exact} as double)")


def decimal(integer: str) -> str:
    """Return the SQL of an integer as a decimal that holds it."""
    return f"cast({integer} as decimal(20,0))"


def decimal_sum(columns: Sequence[str]) -> str:
    """Return the SQL of a sum of decimals as a float."""
    return f"coalesce(cast({columns[0]} as double), {_OVERFLOW})"


def too_many(count: str, bits: int) -> str:
    """Return the case of more values than sums of digits hold."""
    error = UnsupportedOnSpark(f"more than 2**{bits} numbers are added up in one window, which Spark cannot do exactly")
    return f"WHEN {count} > {2**bits}L THEN {error_marker(error)}"


def _from_halves(columns: Sequence[str], within: Callable[[str], str], beyond: str) -> str:
    """Return the SQL of a sum from those of the high and low 32 bits, within int64 and beyond. Both hold 2**31 rows."""
    high, low, count = columns
    carried = f"({high} + shiftright({low}, {_DIGIT}))"
    whole = f"(shiftleft({carried}, {_DIGIT}) | ({low} & {_MASK}))"
    fits = f"{carried} BETWEEN -2147483648L AND 2147483647L"
    return f"CASE {too_many(count, 31)} WHEN {fits} THEN {within(whole)} ELSE {beyond} END"


def as_integer(*digits: str) -> str:
    """Return the SQL of a sum of a few digits as an integer."""
    return f"cast({' + '.join(digits)} as bigint)"


def usual_float(x: str) -> str:
    """Return the test that near digits hold a float, or that it is null."""
    last = double(2.0 ** (-_DIGIT * NEAR[-1]))
    return f"{x} IS NULL OR (abs({x}) < {double(_NEAR_BELOW)} AND {x} * {last} = rint({x} * {last}))"


def with_digits(x: str) -> str:
    """Return the SQL of a float, 0 where it is null or too large; that it is never null spares each digit a test."""
    return f"coalesce(if(abs({x}) < {double(BELOW)}, {x}, 0D), 0D)"


def near_parts() -> tuple[str, ...]:
    """Return what near digits are made of: `usual_float`, `with_digits`, what they hold of it, and what its whole part leaves."""
    above, last = double(2.0**_DIGIT), double(2.0 ** (-_DIGIT * NEAR[-1]))
    near = f"if({{x1}}, {{x2}}, rint({{x2}} * {last}) / {last} - rint({{x2}} / {above}) * {above})"
    return usual_float("{x}"), with_digits("{x}"), near, "rint({x3})", f"({{x3}} - {{x4}}) * {above}", "rint({x5})"


NEAR_OF_PARTS: Final = as_integer("{x4}"), as_integer("{x6}"), as_integer(f"({{x5}} - {{x6}}) * {double(2.0**_DIGIT)}")
"""The near digits, from `near_parts`."""


def near_digits(x: str) -> list[str]:
    """Return the near digits of a float of which there are no `near_parts`."""
    return [as_integer(digit(x, k, FAR[0])) for k in NEAR]


def float_columns(x: str, usual: str, small: str, near: Sequence[str], retracts: bool) -> list[BufferColumn]:
    """Return the buffer columns of an exact sum of floats: near digits, far digits, and what has no digits.

    Given are the tests and values of `usual_float` and `with_digits`, and the near digits.
    All but the near digits are null if all floats are usual. What has no digits is added with rounding: bits below the last,
    which larger sums lose anyway, unless they are retracted; and numbers that are too large, next to which nothing else counts
    unless they cancel. So the sizes of the latter are added too, or of all that has no digits where rows are retracted. That NaN
    and infinities may go again takes counts: of NaN and INFINITY, of NaN and -INFINITY, and of what has no digits.
    """
    lowest, endless = double(2.0 ** (_DIGIT * FAR[-1])), double(math.inf)
    rest = f"CASE WHEN abs({x}) < {double(BELOW)} THEN {x} - rint({x} / {lowest}) * {lowest} ELSE {x} END"
    finite = f"if(abs({x}) < {endless}, {rest}, 0D)"
    large = f"if(abs({x}) >= {double(BELOW)} AND abs({x}) < {endless}, abs({x}), 0D)"
    found = f"(isnan({x}) OR {x} = {endless})", f"(isnan({x}) OR {x} = -{endless})", f"({finite} <> 0D)"
    digits = [added(each) for each in near]
    digits += [unusually_added(usual, as_integer(digit(small, k, FAR[0]))) for k in FAR]
    if not retracts:
        return [*digits, *(replace(unusually_added(usual, each), signed=None) for each in (rest, large))]
    sizes = unusually_added(usual, f"abs({finite})")
    counts = [unusually_added(usual, f"cast({each} as bigint)") for each in found]
    return [*digits, unusually_added(usual, finite), replace(sizes, signed=sizes.update), *counts]


def added(value: str) -> BufferColumn:
    """Return the buffer column that adds a value."""
    return BufferColumn(f"sum({value})", signed=f"sum(s * {value})")


def unusually_added(usual: str, value: str) -> BufferColumn:
    """Return the buffer column that adds a value where a row is not usual, and is null if all are.

    The filter spares usual rows reading and writing the column. In a branch Spark computes the value only where it is added;
    what several filtered sums have in common it would compute for each row.
    """
    added_up, where = f"if({usual}, NULL, {value})", f"FILTER (WHERE NOT ({usual}))"
    return BufferColumn(f"sum({added_up}) {where}", signed=f"sum(s * {added_up}) {where}")


def digit(x: str, k: int, top: int) -> str:
    """Return the SQL of the bits of a float from 2**(32 k) up to 2**(32 k + 32) as a whole number, none above weight `top`."""
    part = f"rint({x} * {double(2.0 ** (-_DIGIT * k))})"
    if k != top:
        part += f" - rint({x} * {double(2.0 ** (-_DIGIT * (k + 1)))}) * {double(2.0**_DIGIT)}"
    return part


def halves(n: str, doubled: bool = False) -> tuple[str, str]:
    """Return the SQL of the two digits of an integer, or of its double, which may not fit into one."""
    if doubled:
        return f"shiftright({n}, {_DIGIT - 1})", f"(({n} & 2147483647L) * 2L)"
    return f"shiftright({n}, {_DIGIT})", f"({n} & {_MASK})"


def carried(digits: Sequence[str]) -> list[str]:
    """Return the SQL of digits from the highest to the lowest, all but the first carried into 32 bits.

    >>> carried(["a", "b"])
    ['(a + shiftright(b, 32))', '(b & 4294967295L)']
    """
    found: list[str] = []
    total = ""
    for each in reversed(digits):
        total = f"({each} + shiftright({total}, {_DIGIT}))" if total else each
        found.insert(0, f"({total} & {_MASK})")
    return [total, *found[1:]]


def terms_of(digits: Mapping[int, str]) -> str:
    """Return the SQL of the array of floats that sums of digits add up to, large ones first."""
    weights = sorted(digits, reverse=True)
    sums = ", ".join(f"coalesce({digits[k]}, 0L)" for k in weights)
    worth = ", ".join(double(2.0 ** (_DIGIT * k)) for k in weights)
    high = f"cast(shiftright(n, {_DIGIT}) as double) * (w * {double(2.0**_DIGIT)})"
    low = f"cast(n & {_MASK} as double) * w"
    return f"flatten(zip_with(array({sums}), array({worth}), (n, w) -> array({high}, {low})))"


def usual_sum(sums: Sequence[str]) -> str:
    """Return the test that near digits hold a sum, and that its whole part is a float."""
    return f"({sums[len(NEAR)]} IS NULL AND {is_float(sums[0])})"


def all_terms(sums: Sequence[str]) -> str:
    """Return the SQL of the array of floats that a sum adds up, large ones first and what has no digits last."""
    digits = dict(zip((*NEAR, *FAR), sums, strict=False))
    rest = f"if({without_digits(sums)[2]}, {sums[REST]}, 0D)"
    return f"concat({terms_of(digits)}, array({rest}))"


def without_digits(sums: Sequence[str]) -> tuple[str, str, str]:
    """Return the SQL of the sizes of what has no digits, of the sum if it is not finite, and whether something has no digits."""
    rest, sizes, *counts = sums[REST:]
    if not counts:
        endless = f"(isnan({rest}) OR abs({rest}) = {double(math.inf)})"
        return f"coalesce({sizes}, 0D)", f"if({endless}, {rest}, NULL)", f"(coalesce({rest}, 0D) <> 0D)"
    up, down, left = (f"(coalesce({each}, 0L) > 0L)" for each in counts)
    special = (
        f"CASE WHEN {up} AND {down} THEN double('NaN') WHEN {up} THEN {double(math.inf)} WHEN {down} THEN {double(-math.inf)} END"
    )
    return f"if({left}, {sizes}, 0D)", special, left


def is_float(top: str) -> str:
    """Return the test that the sum of the highest digit is a float when it is carried to."""
    most = 2**53 - 2**32 - 1
    return f"{top} BETWEEN -{most}L AND {most}L"  # the smallest integer has no abs


def float_sum(columns: Sequence[str]) -> str:
    """Return the SQL of the float nearest to an exact sum of floats, from its buffer columns and the count."""
    *sums, count = columns
    return f"if({usual_sum(sums)}, {_near_sum(sums)}, {interpreted(_far_sum(sums, count))})"


def interpreted(text: str) -> str:
    """Return the SQL of an expression that takes no compiled code, for what is rarely computed.

    Spark compiles a chain of projections into one method, and the JIT compiles no method over 8000 bytes. It compiles no
    `zip_with`, nor what stands in one.
    """
    return f"zip_with(array(0), array(0), (i, j) -> {text})[0]"


def _near_sum(columns: Sequence[str]) -> str:
    """Return the SQL of a sum of near digits, rounded once.

    Carried, they are an integer A, and B and C, integers of 32 bits worth 2**-32 and 2**-64. The sum of A and B is rounded to U
    and leaves V. If V is not 0, U is so large that of C only a few bits, and whether there are more, can decide how the sum of
    all is rounded: V and these fit into a float.
    """
    top, middle, low = carried(columns[: len(NEAR)])
    whole, part, last = f"cast({top} as double)", f"({middle} * {double(2.0**-32)})", double(2.0**-64)
    left = f"({part} - (({whole} + {part}) - {whole}))"
    sticky = f"(shiftright({low}, 12) | if(({low} & 4095L) = 0L, 0L, 1L)) * {double(2.0**-52)}"
    return f"({whole} + {part}) + if({left} = 0D, {low} * {last}, {left} + {sticky})"


def lost_by_adding(a: str, b: str) -> str:
    """Return the SQL of what rounding loses of a sum of two floats."""
    return f"if(abs({a}) >= abs({b}), ({a} - ({a} + {b})) + {b}, ({b} - ({a} + {b})) + {a})"


def fold(terms: str, finish: str) -> str:
    """Return the SQL of a function of the sum of an array, a pair of floats `s` and `c`: what rounding loses is added apart."""
    step = f"(a, x) -> named_struct('s', a.s + x, 'c', a.c + {lost_by_adding('a.s', 'x')})"
    return f"aggregate({terms}, named_struct('s', 0D, 'c', 0D), {step}, {finish})"


def _far_sum(sums: Sequence[str], count: str) -> str:
    """Return the SQL of the sum of terms: from large to small, with the error compensated."""
    size, special, _ = without_digits(sums)
    finish = f"a -> if({size} * {count} <= abs(a.s + a.c) * {TRUSTED}, a.s + a.c, {LOST})"
    fits = f"{size} < {double(2.0**1022)}"
    return f"CASE WHEN NOT {fits} THEN {LOST} WHEN {special} IS NOT NULL THEN {special} ELSE {fold(all_terms(sums), finish)} END"
