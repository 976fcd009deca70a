"""How operators are displayed: by what they were made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from streamdsl.errors import StreamDslError
from streamdsl.expr.describe import describe
from streamdsl.expr.facade import E
from streamdsl.expr.trace import trace
from streamdsl.udm.bases import Agg


def call(made: object, given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return the call that an object was made by: its arguments by their names, several of one kind without.

    >>> call(Agg(len), (len,), {})
    'Agg(function=len)'
    """
    made_by = signature(type(made))
    if any(each.kind is Parameter.VAR_POSITIONAL for each in made_by.parameters.values()):
        return f"{type(made).__name__}({', '.join(map(shown, given))})"
    known = made_by.bind(*given, **named).arguments
    return f"{type(made).__name__}({', '.join(f'{name}={shown(value)}' for name, value in known.items())})"


def shown(value: object) -> str:
    """Return a setting as text: of a lambda what it reads, of an aggregate its name.

    >>> import streamdsl as sd
    >>> shown(sd.sum(lambda e: e.fare)), shown(sd.count()), shown(lambda e: e.zone), shown(len), shown("zone")
    ('sum(e.fare)', 'count()', 'e.zone', 'len', "'zone'")
    """
    if isinstance(value, Agg):
        return f"{value.function.label}({'' if value.argument is None else shown(value.argument)})"
    if isinstance(value, E) or not callable(value):
        return repr(value)
    try:
        return describe(trace(value, (None,) * len(signature(value).parameters))).removeprefix("opaque ")
    except (StreamDslError, TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
