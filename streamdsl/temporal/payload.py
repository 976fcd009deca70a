"""What a payload is: its fields, its equality and its order (listings and ties)."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

_NAN: Final = ("NaN",)


class Record(Mapping[str, Any]):
    """A read-only mapping with attribute access, equal to a `dict` with the same items.

    >>> r = Record(n=3, mean=0.5)
    >>> r.n, r["mean"], r == {"n": 3, "mean": 0.5}
    (3, 0.5, True)
    """

    __slots__ = ("_items",)
    _items: dict[str, Any]

    def __init__(self, *args: Any, **fields: Any) -> None:
        object.__setattr__(self, "_items", dict(*args, **fields))

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_items":
            raise AttributeError(name)
        try:
            return self._items[name]
        except KeyError:
            known = ", ".join(self._items)
            raise AttributeError(f"there is no field {name!r}; the fields are: {known}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Record is read-only, {name!r} cannot be set")

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Record):
            return self._items == other._items
        return self._items == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(payload_key(self))

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{k}={v!r}' for k, v in self._items.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Record, (self._items,))

    def _asdict(self) -> dict[str, Any]:
        return dict(self._items)


def is_namedtuple(value: object) -> bool:
    """Say whether a value is an instance of a named tuple class."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_dataclass(value: object) -> bool:
    """Say whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def fields_of(payload: object) -> list[tuple[str, Any]]:
    """Return the payload's fields with their values; a scalar has the one field `value`.

    >>> fields_of({"a": 1}), fields_of((5, "x")), fields_of(7)
    ([('a', 1)], [('_0', 5), ('_1', 'x')], [('value', 7)])
    """
    if isinstance(payload, Mapping):
        return list(payload.items())
    if is_dataclass(payload):
        return [(f.name, getattr(payload, f.name)) for f in dataclasses.fields(payload)]  # type: ignore[arg-type]
    if isinstance(payload, tuple):
        names = getattr(payload, "_fields", None) or [f"_{i}" for i in range(len(payload))]
        return list(zip(names, payload, strict=True))
    return [("value", payload)]


def is_nan(value: object) -> bool:
    """Say whether a value is a float NaN."""
    return isinstance(value, float) and value != value


def payload_key(value: object) -> Hashable:
    """Return a hashable stand-in that is equal for equal payloads; NaN equals NaN, `1 == 1.0`.

    >>> payload_key({"a": 1.0, "b": None}) == payload_key(Record(b=None, a=1))
    True
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, Mapping):
        return ("record", frozenset((name, payload_key(item)) for name, item in value.items()))
    if is_dataclass(value):
        return (type(value), *[payload_key(item) for _, item in fields_of(value)])
    if isinstance(value, tuple):
        return ("tuple", *[payload_key(item) for item in value])
    if isinstance(value, list):
        return ("list", *[payload_key(item) for item in value])
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(payload_key(item) for item in value))
    if isinstance(value, np.ndarray):
        return ("array", *[payload_key(item) for item in value.tolist()])
    try:
        hash(value)
    except TypeError:
        return (type(value).__name__, repr(value))
    return value


def payload_order(value: object) -> tuple[Any, ...]:
    """Return a sort key: field by field; None, then numbers (NaN last), then text, then the rest by type name and repr.

    >>> sorted(["b", None, float("nan"), 2, "a"], key=payload_order)
    [None, 2, nan, 'a', 'b']
    """
    if value is None:
        return (0,)
    if isinstance(value, (int, float, Fraction, Decimal)):
        return (1, 1, 0) if value != value else (1, 0, value)
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, (Mapping, tuple)) or is_dataclass(value):
        return (3, *[payload_order(item) for _, item in fields_of(value)])
    return (4, type(value).__name__, repr(value))


def plain(value: Any) -> Any:
    """Return a Python value without a numpy wrapper.

    >>> type(plain(np.int64(3))).__name__
    'int'
    """
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _plain_time(value)
    return value.item() if isinstance(value, np.generic) else value


def _plain_time(value: np.datetime64 | np.timedelta64) -> Any:
    """Return a numpy time as Python's, NaT as None; one that Python cannot hold exactly stays as it is."""
    found = value.item()
    if not isinstance(found, int):
        return found
    kind, (unit, _) = value.dtype.kind, np.datetime_data(value.dtype)
    if unit in ("generic", "Y", "M"):
        return value
    rounded = value.astype("datetime64[us]" if kind == "M" else "timedelta64[us]")
    exact = rounded.item()
    return exact if rounded == value and not isinstance(exact, int) else value
