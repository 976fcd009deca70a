"""The variance as Spark SQL, from exact sums of values and of their squares.

The square of a float is two floats, the rounded one and what rounding lost, and the digits of both are added. The result is
`(n q - s s) / (n (n - 1))` for n values with the sum s whose squares have the sum q, computed in pairs of floats. Where nearly
all of that cancels, as for equal values, it is computed from what q differs by from n squares of the mean, with a third float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamdsl.spark import exact_sums
from streamdsl.spark.aggregation_plan import BufferColumn, NativeAggregate
from streamdsl.spark.column_types import FLOAT, as_nullable
from streamdsl.spark.exact_sums import added, as_integer, carried, digit, halves, is_float, terms_of, unusually_added
from streamdsl.spark.sql_text import Sql, double

_NEAR: Final = (1, 0, -1, -2, -3, -4)
"""The weights of the digits that squares of usual floats have."""
_FAR: Final = (5, 4, 3, 2, -5, -6)
_INTEGERS: Final = (3, 2, 1, 0)
"""The weights of the digits that squares of integers have, if they do not fit into an integer."""
_CANCELS: Final = double(2.0**-44)
_TINY: Final = double(2.0**-60)
"""Of smaller floats much is below the last digit; of larger ones so much of a sum may cancel before that shows."""
_TINY_CANCELS: Final = double(2.0**-20)


def variance(value: Sql, count: BufferColumn, root: bool, retracts: bool) -> NativeAggregate:
    """Return the aggregate of the variance, or of its square root."""
    whole = value.kind == "int"
    if whole:
        parts, sums, squares = _integer_parts(), exact_sums.integer_columns("{x}"), _integer_squares()
    else:
        parts, squares = _float_parts(), _float_squares()
        sums = exact_sums.float_columns("{x}", "{x1}", "{x2}", ("{x7}", "{x8}", "{x9}"), retracts)
    made = _VarianceColumns(whole, len(sums), len(squares))
    steps = made.digits, made.pairs, made.products, made.difference

    def result(columns: Sequence[str]) -> str:
        found = made.result(columns)
        return f"sqrt({found})" if root else found

    buffer = (*sums, *squares, count)
    return NativeAggregate(value, buffer, result, as_nullable(FLOAT), parts, steps)


def _float_parts() -> tuple[str, ...]:
    """Return the parts of the sum, its near digits and their products, and of unusual floats their square as two floats."""
    products = (
        f"{{{a}}} * {{{b}}}" for a, b in (("x7", "x7"), ("x7", "x8"), ("x8", "x8"), ("x7", "x9"), ("x8", "x9"), ("x9", "x9"))
    )
    squares = (f"if({{x1}}, 0D, {each})" for each in ("{x2} * {x2}", _lost("{x2}", "{x2}")))
    return *exact_sums.near_parts(), *exact_sums.NEAR_OF_PARTS, *products, *squares


def _lost(a: str, b: str) -> str:
    """Return the SQL of what rounding loses of a product (Dekker)."""
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return f"(((({ah} * {bh} - {a} * {b}) + {ah} * {bl}) + {al} * {bh}) + {al} * {bl})"


def _halves(x: str) -> tuple[str, str]:
    return _high(x), f"({x} - {_high(x)})"


def _high(x: str) -> str:
    return f"(134217729D * {x} - (134217729D * {x} - {x}))"


def _float_squares() -> list[BufferColumn]:
    """Return the buffer columns of squares of floats: for usual ones from products of digits, else from the square."""
    square = "{x16}", "{x17}"
    both = {k: as_integer(*(digit(x, k, _FAR[0]) for x in square)) for k in (*_NEAR, *_FAR)}
    lowest = double(2.0 ** (32 * _FAR[-1]))
    rest = " + ".join(f"({x} - rint({x} / {lowest}) * {lowest})" for x in square)
    large = f"cast(abs({{x}}) >= {double(exact_sums.BELOW)} as bigint)"
    far = [*(both[k] for k in _FAR), rest, large]
    near = [f"if({{x1}}, {usual}, {both[k]})" for k, usual in zip(_NEAR, _squared_digits(), strict=True)]
    return [*map(added, near), *(unusually_added("{x1}", each) for each in far)]


def _squared_digits() -> list[str]:
    """Return the digits of the square of three digits: as of decimal ones, products of two of them stand in two places each.

    Products of different digits count twice.
    """
    whole, middle, low = (halves(f"{{x{i}}}") for i in (10, 12, 15))
    first, second, third = (halves(f"{{x{i}}}", doubled=True) for i in (11, 13, 14))
    crowded = f"({middle[1]} + {second[1]})"  # without a carry these three would hold fewer rows
    return [
        whole[0],
        f"{whole[1]} + {first[0]}",
        f"{first[1]} + {middle[0]} + {second[0]} + shiftright({crowded}, 32)",
        f"({crowded} & 4294967295L) + {third[0]}",
        f"{third[1]} + {low[0]}",
        low[1],
    ]


def _integer_parts() -> tuple[str, ...]:
    """Return whether the square of an integer is one, two floats that add up to it, and those that other squares add up to."""
    usual = "{x} IS NULL OR {x} BETWEEN -2147483648L AND 2147483647L"
    h, l = "{x2}", "{x3}"  # noqa: E741
    twice = f"(2D * {l})"
    terms = f"{h} * {h}", _lost(h, h), f"{h} * {twice}", _lost(h, twice), f"{l} * {l}"
    floats = "cast(shiftright({x}, 11) as double) * 2048D", "cast({x} & 2047L as double)"
    return usual, *floats, *(f"if({{x1}}, NULL, {term})" for term in terms)


def _integer_squares() -> list[BufferColumn]:
    square = "if({x1}, {x} * {x}, if({x} IS NULL, NULL, 0L))"
    terms = ["{x4}", "{x5}", "{x6}", "{x7}", "{x8}"]
    far = [as_integer(*(digit(term, k, _INTEGERS[0]) for term in terms)) for k in _INTEGERS]
    return [*exact_sums.integer_columns(square), *(unusually_added("{x1}", each) for each in far)]


class _VarianceColumns:
    """The columns of a variance: those of the sum, those of the squares, the count, and what each step adds."""

    def __init__(self, whole: bool, n_sums: int, n_squares: int) -> None:
        self._whole = whole
        self._n_sums = n_sums
        self._count = n_sums + n_squares
        self._near = ((1, 0), (1, 0)) if whole else (exact_sums.NEAR, _NEAR)
        """The weights of the carried digits of the sum and of the squares."""

    def digits(self, c: Sequence[str]) -> list[str]:
        """Return the carried digits of both sums, and each as a pair of floats if there are unusual values, else null."""
        sums, squares = c[: len(self._near[0])], c[self._n_sums : self._n_sums + len(self._near[1])]
        known = [f"coalesce({each}, 0L)" for each in (*carried(sums), *carried(squares))]
        pairs = [
            f"if({usual}, NULL, {exact_sums.interpreted(exact_sums.fold(array, 'a -> a'))})"
            for usual, array in zip(self._usual(c), self._arrays(c), strict=True)
        ]
        return [*known, *pairs]

    def _usual(self, c: Sequence[str]) -> tuple[str, str]:
        """Return the tests that carried near digits hold the sum, and that they hold the sum of the squares."""
        top, far = c[self._n_sums], c[self._n_sums + len(self._near[1])]
        sums = is_float(c[0]) if self._whole else exact_sums.usual_sum(c[: self._n_sums])
        return sums, f"({far} IS NULL AND {is_float(top)})"

    def _arrays(self, c: Sequence[str]) -> tuple[str, str]:
        """Return the arrays of all terms of the sum and of the squares."""
        sums, squares = c[: self._n_sums], c[self._n_sums : self._count]
        near, far = squares[: len(self._near[1])], squares[len(self._near[1]) :]
        if not self._whole:
            digits = dict(zip((*_NEAR, *_FAR), (*near, *far), strict=False))
            return exact_sums.all_terms(sums), f"concat({terms_of(digits)}, array(coalesce({far[-2]}, 0D)))"
        digits = dict(zip(_INTEGERS, far, strict=True))
        digits |= {k: f"({each} + coalesce({digits[k]}, 0L))" for k, each in zip((1, 0), near, strict=True)}
        return terms_of({1: c[0], 0: c[1]}), terms_of(digits)

    def _made(self, c: Sequence[str]) -> tuple[Mapping[int, str], Mapping[int, str], Sequence[str]]:
        """Return the carried digits of the sum and of the squares, and what else the steps have made."""
        made = c[self._count + 1 :]
        sums, squares = (len(weights) for weights in self._near)
        digits = made[:sums], made[sums : sums + squares]
        named = [dict(zip(weights, part, strict=True)) for weights, part in zip(self._near, digits, strict=True)]
        return named[0], named[1], made[sums + squares :]

    def pairs(self, c: Sequence[str]) -> list[str]:
        """Return the floats of both pairs, and n. Columns of their own, as Spark would compute a struct anew for each reader."""
        *digits, unusual = self._made(c)
        made = []
        for each, pair in zip(digits, unusual, strict=True):
            total, low = _pair(_terms(each))
            made += [f"coalesce({pair}.s, {total})", f"coalesce({pair}.c, {low})"]
        return [*made, f"cast(greatest({c[self._count]}, 2L) as double)"]

    def products(self, c: Sequence[str]) -> list[str]:
        """Return the pairs of `n q` and `s s`, and the mean of s; n has so few bits that its products with halves are floats."""
        *_, (_, _, s, s_low, q, q_low, n) = self._made(c)
        high, low = _halves(q)
        first = f"(({n} * {high} - {n} * {q}) + {n} * {low}) + {n} * {q_low}"
        return [f"{n} * {q}", first, f"{s} * {s}", f"{_lost(s, s)} + 2D * {s} * {s_low}", f"{s} / {n}"]

    def difference(self, c: Sequence[str]) -> list[str]:
        """Return the pair of their difference, and the nearest mean; the first is hardly ever less than the second."""
        *_, (_, _, s, s_low, _, _, n, first, first_low, second, second_low, mean) = self._made(c)
        top, nearest = f"({first} - {second})", f"{mean} + ((({s} - {mean} * {n}) - {_lost(mean, n)}) + {s_low}) / {n}"
        return [top, f"(({first} - {top}) - {second}) + ({first_low} - {second_low})", nearest]

    def result(self, c: Sequence[str]) -> str:
        """Return the SQL of the variance."""
        _, _, (_, _, s, _, _, _, n, first, _, _, _, _, top, low, mean) = self._made(c)
        count, found = c[self._count], f"({top} + {low})"
        cancels, unusual, doubt = f"{found} < {first} * {_CANCELS}", "", "false"
        if not self._whole:
            size, special, left = exact_sums.without_digits(c[: self._n_sums])
            unusual = f"WHEN {special} IS NOT NULL THEN double('NaN') WHEN {c[self._count - 1]} > 0L THEN {exact_sums.LOST}"
            resolved = f"if(abs({s}) < {n} * {_TINY}, {_TINY_CANCELS}, {_TINY})"
            apart = f"{size} * {count} * abs({s}) > {found} * {exact_sums.TRUSTED}"
            doubt = f"({left} AND ({found} < {first} * {resolved} OR {apart}))"
        # What was added with rounding gives a variance of 0 for equal values, and must not give a small one for others.
        known = f"CASE WHEN v <= 0D THEN 0D WHEN {doubt} THEN {exact_sums.LOST} ELSE v END"
        from_mean = f"transform(array({self._from_mean(c, n, mean)}), v -> {known})[0]"
        cases = f"WHEN {count} < 2L THEN NULL {exact_sums.too_many(count, 30)} {unusual}"
        cases += f" WHEN {cancels} OR {doubt} THEN {exact_sums.interpreted(from_mean)}"
        return f"CASE {cases} ELSE {found} / ({n} * ({n} - 1D)) END"

    def _from_mean(self, c: Sequence[str], n: str, m: str) -> str:
        """Return the SQL of the variance where nearly all cancels, given the mean m.

        With the sum as `n m + d`, it is `q - n m m - 2 m d - d d / n`, over n - 1. All terms but the last, which is tiny, are
        exact: digits, products, and what rounding lost of these.
        """
        of_sums, of_squares = self._arrays(c)
        others = _minus_products((n, f"{m} * {m}"), (n, _lost(m, m)), (f"2D * {m}", "d.s"), (f"2D * {m}", "d.c"))
        difference = _fold_in_three(f"concat({of_squares}, {others}, array(-(d.s + d.c) * (d.s + d.c) / {n}))")
        return f"{exact_sums.fold(f'concat({of_sums}, {_minus_products((n, m))})', f'd -> {difference}')} / ({n} - 1D)"


def _terms(digits: Mapping[int, str]) -> list[str]:
    """Return the floats of carried digits, large ones first."""
    return [f"(cast({digits[k]} as double) * {double(2.0 ** (32 * k))})" for k in sorted(digits, reverse=True)]


def _pair(terms: Sequence[str]) -> tuple[str, str]:
    """Return the SQL of the sum of terms as a pair; each is smaller than what those before it are multiples of (fast two-sum)."""
    total, low = terms[0], []
    for term in terms[1:4]:
        more = f"({total} + {term})"
        low.append(f"({term} - ({more} - {total}))")
        total = more
    return total, " + ".join([*low, *terms[4:]])


def _minus_products(*pairs: tuple[str, str]) -> str:
    """Return the SQL of the array of floats that products, negated, add up to."""
    given = ", ".join(f"named_struct('a', {a}, 'b', {b})" for a, b in pairs)
    return f"flatten(transform(array({given}), p -> array(-(p.a * p.b), -{_lost('p.a', 'p.b')})))"


def _fold_in_three(terms: str) -> str:
    """Return the SQL of the sum of an array: what rounding loses is added apart, and what that loses too (Klein)."""
    lost = exact_sums.lost_by_adding("b.s", "x")
    lost_too = exact_sums.lost_by_adding("b.c", lost)
    finish = f"b -> (b.s + b.c) + ({exact_sums.lost_by_adding('b.s', 'b.c')} + b.e)"
    step = f"(b, x) -> named_struct('s', b.s + x, 'c', b.c + {lost}, 'e', b.e + {lost_too})"
    return f"aggregate({terms}, named_struct('s', 0D, 'c', 0D, 'e', 0D), {step}, {finish})"
