"""Scalar expressions: translation of trees to the expressions that lambdas are traced to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from streamdsl.expr.expression_functions import cast, coalesce, is_none, length, lit, not_, when
from streamdsl.expr.facade import E
from streamdsl.expr.nodes import is_boolean
from streamdsl.sql.parsing import Text, name_of

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("int", "integer", "bigint"), int),
    **dict.fromkeys(("float", "double", "real"), float),
    **dict.fromkeys(("text", "varchar", "string"), str),
    **dict.fromkeys(("bool", "boolean"), bool),
}
_IN_A_ROW: Final = 50
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"abs": abs, "coalesce": coalesce, "length": length}


@dataclass(frozen=True)
class Scalars:
    """Translates trees to expressions; `column` resolves names, `functions` are the user's."""

    text: Text
    column: Callable[[Any], E]
    functions: Mapping[str, Callable[..., Any]]
    call: Callable[[Any], E]
    """Translates calls of names that are not functions, such as aggregates."""

    def value(self, tree: Any) -> Any:
        """Return the expression of a tree."""
        make: Callable[[Any], Any] = getattr(self, f"_{tree.data}")
        return make(tree)

    def values(self, trees: Any) -> list[Any]:
        """Return the expressions of trees."""
        return [self.value(tree) for tree in trees]

    def _column(self, tree: Any) -> Any:
        return self.column(tree)

    def _call(self, tree: Any) -> Any:
        name, distinct, arguments = tree.children
        function = self.functions.get(name_of(name)) or FUNCTIONS.get(name_of(name).lower())
        if function is None:
            return self.call(tree)
        if distinct:
            raise self.text.refused(name, "only count has DISTINCT")
        if arguments and arguments.data == "all_rows":
            raise self.text.refused(arguments, f"{name_of(name)} takes values, not rows", "count(*) counts rows")
        values = self.values(arguments.children if arguments else ())
        with self.text.called(tree):
            given = function(*values)
        return given if isinstance(given, E) else lit(given)

    def _either(self, tree: Any) -> Any:
        return self._chained(tree, operator.or_, lambda test, other: when(test).then(lit(True)).otherwise(other))

    def _both(self, tree: Any) -> Any:
        return self._chained(tree, operator.and_, lambda test, other: when(test).then(other).otherwise(lit(False)))

    def _chained(self, tree: Any, plain: Callable[[Any, Any], Any], guarded: Callable[[Any, Any], Any]) -> Any:
        """Combine conditions; after one that tests for NULL, the rest is evaluated only where it does not decide the result."""
        if not _tests_null(tree):
            return combined(plain, [_truth(each) for each in self.values(tree.children)])
        first, *rest = tree.children
        value, guards = _truth(self.value(first)), _tests_null(first)
        for each in rest:
            value = (guarded if guards else plain)(value, _truth(self.value(each)))
            guards = guards or _tests_null(each)
        return value

    def _not_(self, tree: Any) -> Any:
        return not_(self.value(tree.children[-1]))

    def _compared(self, tree: Any) -> Any:
        left, sign, right = tree.children
        return _COMPARISONS[str(sign)](self.value(left), self.value(right))

    def _is_null(self, tree: Any) -> Any:
        operand, negated = tree.children
        test = is_none(self.value(operand))
        return not_(test) if negated else test

    def _between(self, tree: Any) -> Any:
        operand, negated, low, high = tree.children
        value = self.value(operand)
        test = (value >= self.value(low)) & (value <= self.value(high))
        return not_(test) if negated else test

    def _within(self, tree: Any) -> Any:
        operand, negated, *options = tree.children
        value = self.value(operand)
        test = combined(operator.or_, [value == option for option in self.values(options)])
        return not_(test) if negated else test

    def _sum(self, tree: Any) -> Any:
        first, *rest = tree.children
        value = self.value(first)
        for sign, operand in zip(rest[::2], rest[1::2], strict=True):
            value = _ARITHMETIC[str(sign)](value, self.value(operand))
        return value

    _product = _sum

    def _negative(self, tree: Any) -> Any:
        return -self.value(tree.children[-1])

    def _cast(self, tree: Any) -> Any:
        operand, kind = tree.children
        if name_of(kind).lower() not in _TYPES:
            raise self.text.refused(kind, f"there is no type {str(kind)!r}; there are: {', '.join(_TYPES)}")
        return cast(self.value(operand), _TYPES[name_of(kind).lower()])

    def _case(self, tree: Any) -> Any:
        *branches, otherwise = tree.children
        chain: Any = None
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            chain = (when if chain is None else chain.when)(self.value(condition)).then(self.value(value))
        return chain.otherwise(lit(None) if otherwise is None else self.value(otherwise))

    def _integer(self, tree: Any) -> Any:
        return lit(int(tree.children[0]))

    def _number(self, tree: Any) -> Any:
        return lit(float(tree.children[0]))

    def _string(self, tree: Any) -> Any:
        return lit(str(tree.children[0])[1:-1].replace("''", "'"))

    def _true(self, tree: Any) -> Any:
        return lit(True)

    def _false(self, tree: Any) -> Any:
        return lit(False)

    def _null(self, tree: Any) -> Any:
        return lit(None)


def combined(combine: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    """Combine values from left to right; many of them in halves, as deep expressions would exceed the recursion limit."""
    if len(values) <= _IN_A_ROW:
        return reduce(combine, values)
    half = len(values) // 2
    return combine(combined(combine, values[:half]), combined(combine, values[half:]))


def _truth(value: E) -> E:
    """Return a condition as a boolean expression: `&` and `|` of numbers would be bitwise."""
    return value if value._hint is bool or is_boolean(value._node) else cast(value, bool)


def condition(value: E) -> E:
    """Return a condition as a filter: a row for which it is NULL does not pass."""
    return value if is_boolean(value._node) else cast(value, bool)


def _tests_null(tree: Any) -> bool:
    return any(True for _ in tree.find_data("is_null"))
