"""What type checkers infer for joins, and what they refuse."""

from __future__ import annotations

from typing import assert_type

import streamdsl as sd
from tests.typing.payloads import Stats, Trip, Zone, trips, zones


def joins() -> None:
    assert_type(trips.join(zones), sd.Stream[tuple[Trip, Zone]])
    assert_type(trips.join(trips, on="zone"), sd.Stream[tuple[Trip, Trip]])
    assert_type(trips.join(trips, on=["zone", "vendor"]), sd.Stream[tuple[Trip, Trip]])
    assert_type(trips.join(zones, on=(lambda t: t.zone, lambda z: z.id)), sd.Stream[tuple[Trip, Zone]])
    assert_type(trips.join(zones, where=lambda t, z: t.zone == z.id), sd.Stream[tuple[Trip, Zone]])
    assert_type(trips.join(zones, select=lambda t, z: Stats(t.zone, t.fare)), sd.Stream[Stats])
    assert_type(
        trips.join(zones, on=(lambda t: t.zone, lambda z: z.id), where=lambda t, z: t.fare > z.id, select=lambda t, z: z.name),
        sd.Stream[str],
    )
    assert_type(trips.anti_join(zones, on=(lambda t: t.zone, lambda z: z.id)), sd.Stream[Trip])
    assert_type(trips.anti_join(zones, where=lambda t, z: t.vendor == z.name), sd.Stream[Trip])
    assert_type(trips.semi_join(zones, on=(lambda t: t.zone, lambda z: z.id)), sd.Stream[Trip])
    assert_type(trips.left_join(zones, on=(lambda t: t.zone, lambda z: z.id)), sd.Stream[tuple[Trip, Zone | None]])
    assert_type(trips.left_join(zones, select=lambda t, z: z.name if z else t.vendor), sd.Stream[str])
    assert_type(trips.band_join(zones, before="5m", after=0), sd.Stream[tuple[Trip, Zone]])
    assert_type(trips.band_join(zones, before=5, after=3, select=lambda t, z: z.name), sd.Stream[str])
    assert_type(trips.asof_join(zones, tolerance="5m"), sd.Stream[tuple[Trip, Zone]])
    assert_type(trips.asof_join(zones, how="left"), sd.Stream[tuple[Trip, Zone | None]])
    assert_type(trips.asof_join(zones, direction="nearest", select=lambda t, z: z.name), sd.Stream[str])
    assert_type(trips.full_join(zones), sd.Stream[tuple[Trip | None, Zone | None]])
    assert_type(trips.clip_by(trips, on="zone"), sd.Stream[Trip])
    assert_type(trips.join(zones).select(lambda p: p[1].name), sd.Stream[str])


def mistakes() -> None:
    trips.join(zones, on=(lambda t: t.zoon, lambda z: z.id))  # type: ignore[attr-defined]
    trips.join(zones, on=(lambda t: t.zone, lambda z: z.idd))  # type: ignore[attr-defined]
    trips.join(zones, where=lambda t, z: t.zone == z.idd)  # type: ignore[attr-defined]
    trips.join(zones, select=lambda t, z: z.nam)  # type: ignore[attr-defined]
    trips.join(zones, on=(lambda t: t.zone, lambda z: z.id), select=lambda t, z: z.nam)  # type: ignore[attr-defined]
    trips.anti_join(zones, on=(lambda t: t.zone, lambda z: z.idd))  # type: ignore[attr-defined]
    trips.clip_by(zones, where=lambda t, z: t.zoon == z.id)  # type: ignore[attr-defined]
    trips.join(zones, on=lambda t: t.zone)  # type: ignore[call-overload]
    trips.join(Zone(1, "x"))  # type: ignore[call-overload]
