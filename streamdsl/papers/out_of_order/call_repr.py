"""The `repr` of operators as the call that makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from streamdsl.errors import StreamDslError
from streamdsl.expr.describe import describe
from streamdsl.expr.facade import E
from streamdsl.expr.tracing import trace
from streamdsl.udm.bases import Agg


def call_text(made: object, given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """Return the text of a constructor call with its arguments.

    >>> call_text(Agg(len), (len,), {})
    'Agg(function=len)'
    """
    made_by = signature(type(made))
    if any(each.kind is Parameter.VAR_POSITIONAL for each in made_by.parameters.values()):
        return f"{type(made).__name__}({', '.join(map(setting_text, given))})"
    known = made_by.bind(*given, **named).arguments
    return f"{type(made).__name__}({', '.join(f'{name}={setting_text(value)}' for name, value in known.items())})"


def setting_text(value: object) -> str:
    """Return an argument as text: the expression of a lambda, the name of an aggregate.

    >>> import streamdsl as sd
    >>> tuple(map(setting_text, (sd.sum(lambda e: e.fare), sd.count(), lambda e: e.zone, len, "zone")))
    ('sum(e.fare)', 'count()', 'e.zone', 'len', "'zone'")
    """
    if isinstance(value, Agg):
        return f"{value.function.label}({'' if value.argument is None else setting_text(value.argument)})"
    if isinstance(value, E) or not callable(value):
        return repr(value)
    try:
        return describe(trace(value, (None,) * len(signature(value).parameters))).removeprefix("opaque ")
    except (StreamDslError, TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
