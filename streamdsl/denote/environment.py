"""The scope in which a plan is evaluated, and the evaluation of expressions in it, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from streamdsl.errors import StreamDslError, UserCodeError
from streamdsl.expr.evaluate import key_row
from streamdsl.expr.nodes import Expr
from streamdsl.expr.row_evaluator import evaluate_row, holds_row, project_row
from streamdsl.plan.node import Node
from streamdsl.temporal import CHT, INFINITY, CHTRow, Lifetime


@dataclass(frozen=True, slots=True)
class Environment:
    """The rows of each source by name, the end of the run, and in a group-apply the enclosing groups and the innermost key.

    `names` has the operators' names in errors, by the node's `id()`; `groups` the rows of the enclosing groups, by level.
    """

    denote: Callable[[Node, Environment], CHT[Any]]
    inputs: Mapping[str, CHT[Any]]
    until: int = INFINITY
    names: Mapping[int, str] = field(default_factory=dict)
    groups: Mapping[int, CHT[Any]] = field(default_factory=dict)
    key: Any = None

    def inside(self, level: int, key: Any, group: CHT[Any]) -> Environment:
        """Return the scope in which the body of a group-apply is evaluated for one group."""
        return replace(self, groups={**self.groups, level: group}, key=key)

    def label(self, node: Node) -> str:
        """Return an operator's name in errors: its label in `explain()`."""
        return self.names.get(id(node), node.name)


def value(node: Node, scope: Environment, expr: Expr, *rows: CHTRow[Any], starts: tuple[int, ...] = ()) -> Any:
    """Return the value of an expression on a row, or on a pair; `starts` overrides the LEs that it reads (old and new LE)."""
    with UserCode(node, scope, *rows):
        return evaluate_row(expr, _payloads(rows), _life(rows), scope.key, starts or _starts(rows))


def holds(node: Node, scope: Environment, predicate: Expr, *rows: CHTRow[Any]) -> bool:
    """Say whether a predicate holds on a row, or on a pair of rows."""
    with UserCode(node, scope, *rows):
        return holds_row(predicate, _payloads(rows), _life(rows), scope.key, _starts(rows))


def project(node: Node, scope: Environment, projection: Expr, *rows: CHTRow[Any]) -> Any:
    """Return the payload that a projection gives for a row, or for a pair of rows."""
    with UserCode(node, scope, *rows):
        return project_row(projection, _payloads(rows), _life(rows), scope.key, _starts(rows))


def key_of(node: Node, scope: Environment, key: Expr | None, row: CHTRow[Any]) -> Hashable:
    """Return a row's key as a hashable value: None equals None, NaN equals NaN; without a key expression all keys are equal."""
    if key is None:
        return None
    with UserCode(node, scope, row):
        return key_row(key, (row.payload,))


class UserCode(AbstractContextManager[None]):
    """Turns an exception of user code into a `UserCodeError` with the operator and the event.

    This includes StopIteration, which a surrounding generator would turn into a RuntimeError.
    """

    def __init__(self, node: Node, scope: Environment, *rows: CHTRow[Any]) -> None:
        self._operator = scope.label(node)
        self._event = rows[0] if len(rows) == 1 else rows or None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StreamDslError):
            raise UserCodeError(error, operator=self._operator, event=self._event) from error


def _payloads(rows: tuple[CHTRow[Any], ...]) -> tuple[Any, ...]:
    return tuple(row.payload for row in rows)


def _starts(rows: tuple[CHTRow[Any], ...]) -> tuple[int, ...]:
    return tuple(row.le for row in rows) if len(rows) > 1 else ()


def _life(rows: tuple[CHTRow[Any], ...]) -> Lifetime | None:
    return Lifetime(rows[0].le, rows[0].re) if len(rows) == 1 else None
