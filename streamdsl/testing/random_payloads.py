"""Random payloads of a type: few and simple values, so that equal ones are frequent and examples are short."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from streamdsl.errors import QueryError
from streamdsl.expr.schema import as_payload
from streamdsl.temporal import Record, fields_of, payload_key
from streamdsl.temporal.payload import is_dataclass, is_namedtuple

V = TypeVar("V")
_DAY: Final = datetime(2013, 1, 1, tzinfo=UTC)
VALUES: Final[dict[Any, tuple[Any, ...]]] = {
    # Floats are sums of powers of two, so that exact arithmetic on them stays exact, in any order.
    float: (1.0, 2.0, 0.0, -1.0, 0.5, 3.25, -4.5, 10.0, 64.0),
    int: (1, 2, 0, -1, 3, 5, -4, 10),
    bool: (True, False),
    str: ("a", "b", "c", "ab", ""),
    bytes: (b"a", b"b", b""),
    complex: (1 + 0j, 1j),
    datetime: (_DAY, _DAY + timedelta(hours=1), _DAY + timedelta(days=1, seconds=30)),
    date: (_DAY.date(), _DAY.date() + timedelta(days=1)),
    time: (time(9), time(17, 30)),
    timedelta: (timedelta(seconds=1), timedelta(), timedelta(minutes=5)),
    Decimal: (Decimal(1), Decimal("2.5"), Decimal(0)),
    Fraction: (Fraction(1), Fraction(1, 3), Fraction(0)),
    type(None): (None,),
    object: (1, 2, 0),
}
"""The values of the simple types, the simplest first."""
Pools: TypeAlias = Mapping[Any, tuple[Any, ...]]
WIDE: Final[Pools] = {
    **VALUES,
    # What exact arithmetic keeps and floats lose: large beside small, what has no binary form, subnormals, opposites, ties.
    float: (1.0, 0.0, -1.0, 0.1, 0.2, 0.3, -2.5, 123456.789, 1e8, -1e8, 1e16, -1e16, 1e-9, 5e-324, 2.0**53 + 2),
    int: (1, 0, -1, 2, 3, 7, 10**6, 2**53 + 1, -(2**53) - 1, 10**18, -(10**18)),
    Decimal: (Decimal(1), Decimal(0), Decimal("-0.1"), Decimal("0.3"), Decimal("1e16"), Decimal("1e-9")),
    Fraction: (Fraction(1), Fraction(0), Fraction(-1, 3), Fraction(10**16), Fraction(1, 7)),
}
"""Values of all magnitudes."""
_LISTS: Final = (list, Sequence, Collection, Iterable, typing.MutableSequence)
_SETS: Final = (set, Set, typing.MutableSet)
_MAPPINGS: Final = (dict, Mapping, typing.MutableMapping)
_DEEPEST: Final = 5
_REFUSALS: Final = (ValueError, TypeError, AssertionError)
"""What a class raises that checks its fields."""


class RandomSource(Protocol):
    """The source of random choices: `random.Random`, or hypothesis's `draw`."""

    def choice(self, values: Sequence[V], /) -> V:
        """Return one of some values."""

    def randint(self, low: int, high: int, /) -> int:
        """Return a number between two, both included."""


def draw_payload(of: Any, rng: RandomSource, pools: Pools = VALUES) -> Any:
    """Return a random payload of a type, as modules see it, of the simple types' values.

    Simple types, dates, enums, dataclasses, named tuples, typed dicts, protocols with attributes, and `Optional`, `Union`,
    `Literal`, lists, sets, tuples and dicts of them. Raises `QueryError` for a type of which nothing can be made up.

    >>> from random import Random
    >>> from typing import NamedTuple
    >>> class Trip(NamedTuple):
    ...     zone: str
    ...     fare: float | None
    >>> draw_payload(Trip, Random(1))
    Trip(zone='b', fare=0.5)
    """
    return as_payload(_draw(of, rng, 0, pools))


def with_fields(payload: Any, values: Mapping[str, Any]) -> Any:
    """Return a payload with other values in some of its fields; those that a class computes itself stay its own.

    >>> with_fields(Record(zone="A", fare=2.0), {"fare": 3.0})
    Record(zone='A', fare=3.0)
    """
    if not values:
        return payload
    if isinstance(payload, Mapping):
        return Record({**payload, **values})
    if is_dataclass(payload):
        made = {f.name for f in dataclasses.fields(payload) if f.init}
        return dataclasses.replace(payload, **{name: value for name, value in values.items() if name in made})
    if is_namedtuple(payload):
        return payload._replace(**values)
    if isinstance(payload, tuple):
        return tuple(values.get(name, item) for name, item in fields_of(payload))
    return values["value"]


def magnitude(value: Any) -> float:
    """Return the largest absolute value of the finite numbers in a payload, 0 where there are none.

    >>> magnitude(Record(fare=-2.5, zones=[1, 7])), magnitude("a")
    (7.0, 0.0)
    """
    if isinstance(value, (int, float, Fraction, Decimal)):
        return abs(float(value)) if math.isfinite(value) else 0.0
    items = value if isinstance(value, (list, tuple)) else [item for _, item in fields_of(value) if item is not value]
    return max(map(magnitude, items), default=0.0)


def simpler_payloads(value: Any) -> Iterator[Any]:
    """Yield shrunk payloads, each simpler in one place.

    >>> list(simpler_payloads(2.0)), list(simpler_payloads(("b", 1)))
    ([1.0], [('a', 1)])
    """
    kind = type(value)
    pool = VALUES.get(kind, ())
    if value not in pool and value in WIDE.get(kind, ()):
        yield from pool[:3]
        pool = WIDE[kind]
    if value in pool:
        yield from pool[: pool.index(value)]
    elif isinstance(value, list):
        yield from (value[:i] + value[i + 1 :] for i in range(len(value)))
        yield from ([*value[:i], item, *value[i + 1 :]] for i, old in enumerate(value) for item in simpler_payloads(old))
    elif [name for name, _ in fields_of(value)] != ["value"]:
        yield from (
            found for name, old in fields_of(value) for item in simpler_payloads(old) for found in _other(value, name, item)
        )


def _other(payload: Any, name: str, item: Any) -> list[Any]:
    """Return the payload with another value in a field; nothing if its class refuses it, or computes the field itself."""
    try:
        found = with_fields(payload, {name: item})
    except _REFUSALS:
        return []
    return [found] if payload_key(found) != payload_key(payload) else []


def _draw(of: Any, rng: RandomSource, depth: int, pools: Pools) -> Any:
    of = _plain(of)
    origin, arguments = get_origin(of) or of, get_args(of)
    if depth > _DEEPEST:
        raise cannot_make_up(of)
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return rng.choice(list(origin))
    if origin in pools:
        return rng.choice(pools[origin])
    if origin is Literal:
        return rng.choice(arguments)
    if origin in (Union, types.UnionType):
        return _draw(_choice(arguments, rng, depth), rng, depth + 1, pools)
    if origin in (*_LISTS, *_SETS, frozenset, tuple, *_MAPPINGS):
        return _draw_container(origin, arguments, rng, depth + 1, pools)
    fields = _fields(origin, arguments)
    if fields is None:
        raise cannot_make_up(of)
    make: Callable[..., Any] = Record if getattr(origin, "_is_protocol", False) or typing.is_typeddict(origin) else origin
    return _made(of, make, fields, rng, depth + 1, pools)


def _choice(arguments: Sequence[Any], rng: RandomSource, depth: int) -> Any:
    """Return one of a union's types; None where a type that holds itself must come to an end."""
    return type(None) if depth >= _DEEPEST - 2 and type(None) in arguments else rng.choice(arguments)


def _made(of: Any, make: Callable[..., Any], fields: Mapping[str, Any], rng: RandomSource, depth: int, pools: Pools) -> Any:
    for _ in range(20):
        values = {name: _draw(hint, rng, depth, pools) for name, hint in fields.items()}
        try:
            return make(**values)
        except _REFUSALS:
            continue
    raise cannot_make_up(of)


def _plain(of: Any) -> Any:
    """Return what stands behind an alias, an annotation, a new type or a type variable."""
    while True:
        if hasattr(of, "__supertype__"):
            of = of.__supertype__
        elif get_origin(of) is typing.Annotated or get_origin(of) in (typing.Required, typing.NotRequired):
            of = get_args(of)[0]
        elif hasattr(of, "__value__"):
            of = of.__value__
        elif isinstance(of, TypeVar):
            of = of.__bound__ or (of.__constraints__ or (object,))[0]
        else:
            return of


def _draw_container(origin: Any, arguments: Sequence[Any], rng: RandomSource, depth: int, pools: Pools) -> Any:
    if origin in _MAPPINGS:
        # A stream's payloads all have the same fields, so a mapping has the same keys each time, and a tuple one length.
        keys = VALUES.get(arguments[0] if arguments else str, ())[:2]
        return {key: _draw(arguments[1] if arguments else object, rng, depth, pools) for key in keys}
    if origin is tuple:
        items = [arguments[0], arguments[0]] if arguments[1:] == (...,) else arguments
        return tuple(_draw(item, rng, depth, pools) for item in items)
    items = [_draw(arguments[0] if arguments else object, rng, depth, pools) for _ in range(rng.randint(0, 3))]
    if origin in _SETS:
        return set(items)
    return items if origin in _LISTS else origin(items)


@functools.lru_cache(maxsize=256)
def _fields(cls: Any, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the types of a class's fields by name, None where they are not known."""
    if not isinstance(cls, type):
        return None
    try:
        hints = get_type_hints(cls)
    except Exception:  # names that only a type checker knows
        return None
    if dataclasses.is_dataclass(cls):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}
    elif not (hasattr(cls, "_fields") or typing.is_typeddict(cls) or (getattr(cls, "_is_protocol", False) and hints)):
        return None
    known = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    return {name: known.get(hint, hint) if isinstance(hint, TypeVar) else hint for name, hint in hints.items()}


def cannot_make_up(of: Any) -> QueryError:
    """Return the error for payloads of which nothing is known."""
    shown = getattr(of, "__name__", None) if isinstance(of, type) else repr(of)
    return QueryError(
        f"no payloads of type {shown} can be made up",
        hint="give some: events=[(le, re, payload), ...], or say their type: class M(sd.UDA[float, float]) or "
        "payloads: Sequence[float]",
    )
