"""Records the nodes that a lambda builds while it is traced, and refuses what a symbolic value cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NoReturn

from streamdsl.errors import QueryError
from streamdsl.expr.nodes import Binary, Constant, Expr, Field, Life, Parameter
from streamdsl.expr.scalar_functions import METHODS

_EXPRESSION_HINT: Final = "inside a lambda this makes it an opaque Python function; sd.col(...) builds expressions only"


class NotTraceable(QueryError, TypeError):  # noqa: N818 - it is a signal first
    """An operation needs an expression's value, which is not known yet; a lambda that does this is opaque."""


class WriterError(QueryError):
    """A mistake of the query's writer. It is raised while the query is written, even in a lambda that could run as opaque."""


class TraceRecorder:
    """The record of one attempt at tracing: the nodes that were built, whether something was refused, and possible mistakes."""

    __slots__ = ("failed", "mistakes", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Expr] = []
        self.failed = False
        self.mistakes: dict[int, tuple[object, WriterError]] = {}

    def covers(self, *results: Expr) -> bool:
        """Say whether every node that was built is part of the results: one that the lambda throws away could still raise."""
        found = {id(node) for expr in results for node in expr.walk()}
        return not self.failed and all(id(node) in found for node in self.nodes)

    def is_in_order(self, expr: Expr) -> bool:
        """Say whether the nodes that may fail were built in the order of evaluation, so that the first error is the lambda's.

        Fields do not count: one that is missing is missing in every order.
        """
        places = {id(node): place for place, node in enumerate(expr.evaluated())}
        built = [places[id(node)] for node in self.nodes if not isinstance(node, (Field, Life, Constant, Parameter))]
        return built == sorted(built)

    def remainders(self) -> int:
        """Return how many of the nodes that were built are `%`."""
        return sum(isinstance(node, Binary) and node.op == "%" for node in self.nodes)


_RECORDER: ContextVar[TraceRecorder | None] = ContextVar("streamdsl_tracing", default=None)


@contextmanager
def recording() -> Iterator[TraceRecorder]:
    """Record the nodes that are built inside."""
    attempt = TraceRecorder()
    token = _RECORDER.set(attempt)
    try:
        yield attempt
    finally:
        _RECORDER.reset(token)


@contextmanager
def recording_paused() -> Iterator[None]:
    """Suspend recording, for user code that is no part of the trace."""
    token = _RECORDER.set(None)
    try:
        yield
    finally:
        _RECORDER.reset(token)


def record_node(node: Expr) -> None:
    """Record a node that was built."""
    attempt = _RECORDER.get()
    if attempt is not None:
        attempt.nodes.append(node)


def is_tracing() -> bool:
    """Say whether a lambda is being traced."""
    return _RECORDER.get() is not None


def record_mistake(proxy: object, error: WriterError) -> None:
    """Record a probable mistake; `discard_mistake` takes it back if the proxy is then used correctly."""
    attempt = _RECORDER.get()
    if attempt is not None:
        attempt.mistakes[id(proxy)] = (proxy, error)


def discard_mistake(proxy: object) -> None:
    """Discard the mistake that was recorded for a proxy."""
    attempt = _RECORDER.get()
    if attempt is not None:
        attempt.mistakes.pop(id(proxy), None)


def refuse(what: str, hint: str = _EXPRESSION_HINT) -> NoReturn:
    """Raise `NotTraceable`, and record that, so that a lambda that catches it is opaque all the same."""
    attempt = _RECORDER.get()
    if attempt is not None:
        attempt.failed = True
    raise NotTraceable(what, hint=hint)


class SymbolicValue:
    """A symbolic value: it stands for a value while a lambda is traced, and refuses each operation that needs the value.

    Subclasses define the operations that build expressions instead.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        refuse(
            "an expression has no truth value before it is evaluated",
            "write & and | with parentheses for `and` and `or`, sd.not_(...) for `not`, sd.when(c).then(a).otherwise(b) for `if`",
        )

    def __len__(self) -> int:
        refuse("an expression has no length before it is evaluated", "write sd.functions.length(...)")

    def __iter__(self) -> Iterator[Any]:
        refuse("an expression cannot be iterated over before it is evaluated")

    def __contains__(self, item: object) -> bool:
        refuse("`in` asks an expression for its contents", "write sd.functions.contains(whole, part)")

    def __hash__(self) -> int:
        refuse("an expression is not hashable: it is no dictionary key or set member")

    def __eq__(self, other: object) -> Any:
        refuse(f"{self!r} cannot be compared", "compare its fields")

    def __ne__(self, other: object) -> Any:
        refuse(f"{self!r} cannot be compared", "compare its fields")

    def __str__(self) -> str:
        refuse(
            "an expression has no text before it is evaluated",
            "write sd.functions.cast(..., str), or an f-string in a function under @sd.udf",
        )

    def __repr__(self) -> str:
        if is_tracing():
            refuse("an expression has no text before it is evaluated")
        return f"<{type(self).__name__}>"

    def __format__(self, spec: str) -> str:
        return str(self)

    def __index__(self) -> int:
        refuse("an expression is no integer before it is evaluated")

    def __int__(self) -> int:
        refuse("an expression is no integer before it is evaluated", "write sd.functions.cast(..., int)")

    def __float__(self) -> float:
        refuse("an expression is no number before it is evaluated", "write sd.functions.cast(..., float)")

    def __complex__(self) -> complex:
        refuse("an expression is no number before it is evaluated")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        refuse(f"{self!r} cannot be called", f"the methods of expressions are: {', '.join(sorted(METHODS))}; or use @sd.udf")


class StandIn(SymbolicValue):
    """A symbolic value that stands for a known one, which it holds."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held
