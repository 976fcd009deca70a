"""What type checkers infer for the functions of expressions, and what they refuse."""

from __future__ import annotations

from datetime import date, datetime
from typing import assert_type

import streamdsl as sd
from tests.typing.payloads import Trip, trips


def of_values() -> None:
    tip: float | None = None
    assert_type(sd.functions.coalesce(tip, 0.0), float)
    assert_type(sd.functions.coalesce(tip, "none"), float | str)
    assert_type(sd.functions.coalesce(tip, None, tip), float | None)
    assert_type(sd.functions.cast("3", int), int)
    assert_type(sd.functions.cast(3, str), str)
    assert_type(sd.functions.length("abc"), int)
    assert_type(sd.functions.contains("abc", "b"), bool)
    assert_type(sd.functions.local_time(datetime(2026, 1, 1), "UTC"), datetime)
    assert_type(sd.functions.local_time(0, "UTC", unit="s"), datetime)
    assert_type(sd.functions.truncate(datetime(2026, 1, 1), "1h", "30m"), datetime)
    assert_type(sd.functions.truncate(7, 5), int)
    assert_type(sd.functions.truncate(7, "1h", unit="s"), int)
    sd.functions.truncate(datetime(2026, 1, 1), 5)  # type: ignore[call-overload]
    sd.functions.truncate(7, "1h")  # type: ignore[call-overload]
    sd.functions.local_time(0, "UTC")  # type: ignore[call-overload]
    sd.functions.local_time(0, "UTC", unit="h")  # type: ignore[call-overload]
    sd.functions.cast(3, list)  # type: ignore[type-var]
    sd.functions.length(3)  # type: ignore[call-overload]


def in_lambdas() -> None:
    assert_type(
        trips.where(lambda e: sd.functions.contains(e.vendor, "x") & (sd.functions.length(e.vendor) > 3)), sd.Stream[Trip]
    )
    assert_type(trips.select(lambda e: sd.functions.cast(e.fare, int)), sd.Stream[int])
    assert_type(trips.select(lambda e, life: sd.functions.local_time(life.le, "UTC", unit="s").date()), sd.Stream[date])
    assert_type(trips.select(lambda e: e.vendor[:3]), sd.Stream[str])
    trips.select(lambda e: sd.functions.length(e.fare))  # type: ignore[call-overload]
    trips.select(lambda e: sd.functions.length(e.vender))  # type: ignore[attr-defined]


def of_expressions() -> None:
    trips.where(sd.functions.contains(sd.col("vendor"), "x") & (sd.functions.length(sd.col("vendor")) > 3))
    trips.select(
        a=sd.functions.coalesce(sd.col("value"), 0), b=sd.functions.cast(sd.col("fare"), int) + 1, c=sd.col("vendor")[:3]
    )
    trips.group_by(sd.functions.truncate(sd.col("value"), "1h", unit="s"))
    trips.where(sd.functions.local_time(sd.col("value"), "UTC", unit="s").hour < 6)
