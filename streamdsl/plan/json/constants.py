"""Constants as JSON: a value that JSON cannot express is an object whose only name is "$" and its type."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final
from zoneinfo import ZoneInfo

from streamdsl.errors import QueryError
from streamdsl.plan.json.named_types import ENUMS


def constant(value: Any) -> Any:
    """Return the JSON of a constant, None if the value is not a constant.

    >>> constant(1.5), constant(float("inf")), constant(Fraction(1, 3)), constant([])
    (1.5, {'$float': 'inf'}, {'$Fraction': '1/3'}, None)
    """
    if type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Enum):
        return {"$enum": [type(value).__name__, value.name]} if type(value).__name__ in ENUMS else None
    found = next((name for name, (kind, _, _) in CONSTANTS.items() if type(value) is kind), None)
    return None if found is None else {f"${found}": CONSTANTS[found][1](value)}


def _zone(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        return [_parts(offset), *name]
    raise QueryError(
        f"the time zone {zone!r} cannot be written as JSON", hint="datetime.timezone, or zoneinfo.ZoneInfo by its key"
    )


def _in_zone(found: Any) -> tzinfo | None:
    if isinstance(found, list):
        (days, seconds, microseconds), *name = found
        return timezone(timedelta(days, seconds, microseconds), *name) if any(found[0]) or name else UTC
    return None if found is None else ZoneInfo(found)


def _parts(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _clock(value: datetime | time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, _zone(value.tzinfo), value.fold]


def _from_clock(make: Callable[..., Any], *parts: Any) -> Any:
    *numbers, zone, fold = parts
    return make(*numbers, tzinfo=_in_zone(zone), fold=fold)


CONSTANTS: Final[dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), lambda text: base64.b64decode(text, validate=True)),
    "datetime": (datetime, lambda v: [v.year, v.month, v.day, *_clock(v)], lambda parts: _from_clock(datetime, *parts)),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, _clock, lambda parts: _from_clock(time, *parts)),
    "timedelta": (timedelta, _parts, lambda parts: timedelta(*parts)),
    "timezone": (timezone, _zone, _in_zone),
    "Decimal": (Decimal, str, Decimal),
    "Fraction": (Fraction, str, Fraction),
}
"""Constants that JSON cannot express: their type, their encoder, and their decoder."""
