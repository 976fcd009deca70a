"""Functions of payloads from lambdas, expressions and field names: keys, conditions over pairs, aggregates' arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from streamdsl.errors import FieldNotFound, QueryError, StreamDslError, UserCodeError
from streamdsl.expr.facade import E
from streamdsl.expr.predicates import check_function
from streamdsl.expr.row_evaluator import evaluate_row, to_plain_value
from streamdsl.expr.schema import as_payload, row_view
from streamdsl.expr.tracing import trace
from streamdsl.expr.user_calls import call_function
from streamdsl.temporal.payload import Record, fields_of, payload_key

Read: TypeAlias = Callable[..., Any]

_PLAIN: Final = frozenset({int, str, bool})
_MAPPINGS: Final = frozenset({dict, Record})


def reader(f: Any, operator: str, rows: int = 1) -> Read:
    """Return the function of payloads that a lambda, an expression, a field's name, or a list of names denotes.

    A lambda sees a payload as the row that queries show it as. What it raises is a `UserCodeError` that names the operator.

    >>> reader(lambda e: e.zone, "")({"zone": "A"}), reader("zone", "")({"zone": "A"}), reader(lambda n: n % 2, "")(5)
    ('A', 'A', 1)
    """
    if isinstance(f, str):
        return lambda payload: _field(payload, f)
    if isinstance(f, (list, tuple)) and f and all(isinstance(name, str) for name in f):
        return lambda payload: tuple(_field(payload, name) for name in f)
    if isinstance(f, E):
        expr = trace(f, (None,) * rows)
        return lambda *payloads: evaluate_row(expr, payloads)
    if not callable(f):
        raise QueryError(f"{f!r} says nothing about a payload", hint="write lambda e: ..., a field's name, or a list of names")
    return _Function(f, operator)


def _field(payload: Any, name: str) -> Any:
    try:
        return to_plain_value(payload[name] if type(payload) in _MAPPINGS else dict(fields_of(payload))[name])
    except KeyError:
        raise FieldNotFound(name, [field for field, _ in fields_of(payload)]) from None


class _Function:
    """A user's function of rows."""

    __slots__ = ("_function", "_operator")

    def __init__(self, function: Callable[..., Any], operator: str) -> None:
        check_function(function, "a payload")
        self._function = function
        self._operator = operator

    def __call__(self, *payloads: Any) -> Any:
        try:
            value = call_function(self._function, list(map(row_view, payloads)))
            return value if type(value) in _PLAIN else as_payload(to_plain_value(value))
        except StreamDslError:
            raise
        except Exception as error:
            raise UserCodeError(error, operator=self._operator, payloads=payloads) from error


def hashable(value: Any) -> Hashable:
    """Return a hashable key of a value, equal for equal payloads.

    >>> hashable(1) == hashable(1.0), hashable([1]) == hashable([1])
    (True, True)
    """
    return value if type(value) in _PLAIN else payload_key(value)


def keys(on: Any, operator: str) -> tuple[Read, Read]:
    """Return the functions that give both sides' keys in an equality join; all rows have one key where `on` is None."""
    if on is None:
        return _everything, _everything
    if isinstance(on, (tuple, list)) and len(on) == 2 and not all(isinstance(part, str) for part in on):
        return reader(on[0], operator), reader(on[1], operator)
    return reader(on, operator), reader(on, operator)


def _everything(payload: Any) -> None:
    return None
