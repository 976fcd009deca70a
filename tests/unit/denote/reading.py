"""What the tests of the reference share: short ways to write plans, rows and what is true at an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final

from hypothesis import strategies as st

from streamdsl.denote import denote
from streamdsl.expr.nodes import Expr
from streamdsl.expr.tracing import trace
from streamdsl.plan.node import Matching, Node, Source
from streamdsl.temporal import CHT, INFINITY, payload_key
from streamdsl.testing import assert_cht_equal
from streamdsl.testing.strategies import chts, records

LEFT: Final = Source("left")
RIGHT: Final = Source("right")
INSTANTS: Final = range(-12, 40)
"""Every finite time of random rows, and some later ones that stand for all."""

histories = chts(records(), max_size=6)


def of(f: Callable[..., Any], rows: int = 1, *, life: bool = False) -> Expr:
    """The expression of a lambda."""
    return trace(f, (None,) * rows, life=life)


BY_KEY: Final = Matching(of(lambda e: e.k), of(lambda e: e.k))


def meaning(plan: Node, left: Any = (), right: Any = (), until: int = INFINITY) -> CHT[Any]:
    return denote(plan, {"left": table(left), "right": table(right)}, until)


def means(plan: Node, left: Any, right: Any = (), *, gives: Any) -> None:
    assert_cht_equal(meaning(plan, left, right), table(gives))


def table(rows: Any) -> CHT[Any]:
    return rows if isinstance(rows, CHT) else CHT.from_rows(rows)


def alive(cht: CHT[Any], t: int) -> list[Any]:
    """The payloads that live at an instant."""
    return [row.payload for row in cht if row.le <= t < row.re]


def bag(payloads: Any) -> Counter[Hashable]:
    return Counter(map(payload_key, payloads))


__all__ = ["BY_KEY", "INSTANTS", "LEFT", "RIGHT", "alive", "bag", "histories", "meaning", "means", "of", "st", "table"]
