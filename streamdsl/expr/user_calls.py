"""Calls user functions with rows, and supports two ways to read a row that its class does not have.

`e["name"]` is the field of that name in every lambda, and so also of a dataclass or a named tuple, which have no such items. And
`e.value` was the way to read a bare payload, which is itself now: it works for one version more, with a `DeprecationWarning`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import FrameType, TracebackType
from typing import Any, Final

from streamdsl.expr.immutable import IMMUTABLE
from streamdsl.temporal.payload import fields_of, is_dataclass, is_namedtuple

_NO_ITEMS: Final = ("object is not subscriptable", "indices must be integers")
View = Callable[[Any], Any]


def call_function(function: Callable[..., Any], rows: Sequence[Any]) -> Any:
    """Call a function with a row, or with several; if it reads them as their class cannot be read, call it with views of them.

    >>> from typing import NamedTuple
    >>> class Trip(NamedTuple):
    ...     fare: int
    >>> call_function(lambda e: e["fare"] if e[0] else 0, [Trip(7)])
    7
    """
    try:
        return function(*rows)
    except (AttributeError, TypeError) as error:
        return with_row_views(function, error, rows)(*rows)


@dataclass(frozen=True, slots=True)
class _CalledWithViews:
    """A function that is called with views of its rows."""

    function: Callable[..., Any]
    view: View

    def __call__(self, *rows: Any) -> Any:
        return self.function(*map(self.view, rows))


def with_row_views(function: Callable[..., Any], error: AttributeError | TypeError, rows: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that is called with views of rows, which support what has failed; raises the error if no view does."""
    view = None if isinstance(function, _CalledWithViews) else _view_for(error, rows)
    if view is None:
        raise error
    return _CalledWithViews(function, view)


def _view_for(error: AttributeError | TypeError, rows: Sequence[Any]) -> View | None:
    if isinstance(error, AttributeError):
        asked = error.obj
        if error.name != "value" or type(asked) not in IMMUTABLE or not any(asked is row for row in rows):
            return None
        return partial(_value_view, _innermost_frame(error.__traceback__))
    if not any(text in str(error) for text in _NO_ITEMS):
        return None
    if any(is_dataclass(row) or is_namedtuple(row) for row in rows):
        return _item_view
    return partial(_value_view, _innermost_frame(error.__traceback__)) if any(type(row) in IMMUTABLE for row in rows) else None


def _innermost_frame(trace: TracebackType | None) -> FrameType:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return sys._getframe() if trace is None else trace.tb_frame


def warn_value_attribute(frame: FrameType) -> None:
    """Warn of `e.value` of a bare payload, at the line where it stands."""
    warnings.warn_explicit(
        "e.value of a bare payload will go: the payload is itself, write e",
        DeprecationWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "__main__"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


class _ValueView:
    """A view of a bare payload: a row with the one field `value`, whose use warns at the line of a frame."""

    __slots__ = ("_frame", "_value")

    def __init__(self, value: Any, frame: FrameType) -> None:
        self._value = value
        self._frame = frame

    @property
    def value(self) -> Any:
        warn_value_attribute(self._frame)
        return self._value

    def __getitem__(self, name: Any) -> Any:
        return self.value if name == "value" else self._value[name]

    def __bool__(self) -> bool:
        return bool(self._value)


def _value_view(frame: FrameType, row: Any) -> Any:
    return _ValueView(row, frame) if type(row) in IMMUTABLE else row


class _ItemView:
    """The base of views that have the fields of a payload as items; they are of the payload's class too."""

    __slots__ = ()


@lru_cache(maxsize=256)
def _class_with_items(cls: Any) -> Any:
    """Return a subclass whose instances have their fields as items, and whose `__class__` is the class itself."""
    inherited = getattr(cls, "__getitem__", None)

    def item(self: Any, name: Any) -> Any:
        if isinstance(name, str):
            return dict(fields_of(self))[name]
        if inherited is None:
            raise TypeError(f"the items of a {cls.__name__} are its fields, not {name!r}")
        return inherited(self, name)

    body = {"__slots__": (), "__getitem__": item, "__class__": property(lambda self: cls)}
    return type(cls.__name__, (_ItemView, cls), body)


def _item_view(row: Any) -> Any:
    is_tuple = is_namedtuple(row)
    own = getattr(type(row), "__getitem__", None)
    if not (is_tuple and own is tuple.__getitem__) and not (is_dataclass(row) and own is None):
        return row
    kind: Any = type(row)
    return _copy_as(row, _class_with_items(kind))


def _copy_as(row: Any, cls: Any) -> Any:
    if isinstance(row, tuple):
        return tuple.__new__(cls, row)
    copy = object.__new__(cls)
    for name, value in {**getattr(row, "__dict__", {}), **dict(fields_of(row))}.items():
        object.__setattr__(copy, name, value)
    return copy


def payload_of_view(value: Any) -> Any:
    """Return the payload of a view, in case a function returns it; anything else is returned as it is."""
    kind = type(value)
    if kind is _ValueView:
        return value._value
    return _copy_as(value, kind.__mro__[2]) if issubclass(kind, _ItemView) else value
