"""What users write about payloads, as functions: keys, conditions over a pair, aggregates' arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from streamdsl.errors import QueryError
from streamdsl.expr.facade import E
from streamdsl.expr.rows import evaluate_row, settle
from streamdsl.expr.schema import as_payload, row_view
from streamdsl.expr.trace import trace
from streamdsl.temporal.payload import payload_key

Read: TypeAlias = Callable[..., Any]

_PLAIN: Final = frozenset({int, str, bool})


def reader(f: Any, rows: int = 1) -> Read:
    """Return the function of payloads that a lambda, an expression, a field's name, or a list of names stands for.

    A lambda may take a payload as it is, or as the row that queries show it as.

    >>> reader(lambda e: e.zone)({"zone": "A"}), reader("zone")({"zone": "A"}), reader(lambda n: n % 2)(5)
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
    return _Function(f)


def _field(payload: Any, name: str) -> Any:
    row = row_view(payload)
    try:
        return settle(row[name] if not hasattr(row, name) else getattr(row, name))
    except (KeyError, TypeError):
        raise QueryError(f"{payload!r} has no field {name!r}") from None


class _Function:
    """A user's function: it is called with payloads, and once it could not read one, with rows."""

    __slots__ = ("_as_rows", "_function")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._as_rows = False

    def __call__(self, *payloads: Any) -> Any:
        if not self._as_rows:
            try:
                return self._function(*payloads)
            except (AttributeError, TypeError, KeyError):
                self._as_rows = True
        return as_payload(settle(self._function(*map(row_view, payloads))))


def hashable(value: Any) -> Hashable:
    """Return what stands for a value in a table: equal for equal payloads.

    >>> hashable(1) == hashable(1.0), hashable([1]) == hashable([1])
    (True, True)
    """
    return value if type(value) in _PLAIN else payload_key(value)


def keys(on: Any) -> tuple[Read, Read]:
    """Return the functions that give both sides' keys in an equality join; all rows have one key where `on` is None."""
    if on is None:
        return _everything, _everything
    if isinstance(on, (tuple, list)) and len(on) == 2 and not all(isinstance(part, str) for part in on):
        return reader(on[0]), reader(on[1])
    return reader(on), reader(on)


def _everything(payload: Any) -> None:
    return None
