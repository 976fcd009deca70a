"""Names of rows that come back: no two rows of the output have one id at a time, whoever has made the version."""

from __future__ import annotations

from typing import Any

import streamdsl as sd
from streamdsl.engine.versions import OutRow, RowVersion, Versions
from streamdsl.temporal import Insert, Retract
from tests.laws.fold import Fold


class Above(sd.UDO[int, int]):
    def compute_result(self, payloads: Any) -> list[int]:
        return [payload + 100 for payload in payloads]


def test_a_version_of_a_name_is_none_that_a_row_has_as_its_name() -> None:
    back = RowVersion("a", 1)
    versions = Versions()
    first = versions.events([OutRow(back, 1, 1, 5, "x"), OutRow("b", 1, 1, 5, "y")], [back, "a"])
    assert [event.id for event in first if isinstance(event, Insert)] == [back, "a"]
    gone = versions.events([OutRow("b", 1, 5, 1, "y"), OutRow("c", 1, 1, 5, "z")], ["a", "a"])
    assert [(type(event), event.id) for event in gone if isinstance(event, (Insert, Retract))] == [
        (Retract, "a"),
        (Insert, RowVersion("a", 2)),
    ]
    last = versions.events([OutRow("c", 1, 5, 1, "z"), OutRow(back, 1, 5, 1, "x")], ["a", back])
    assert [event.id for event in last if isinstance(event, Retract)] == [RowVersion("a", 2), back]


def test_rows_that_are_clipped_by_themselves_and_come_back_have_ids_of_their_own() -> None:
    above = sd.source("s").hopping_window(9, 4, offset=1).apply(Above(), lambda e: e.v).select(lambda e: {"k": "a", "v": e})
    ends = above.group_by("k").snapshot_window().aggregate(v=sd.max(lambda e: e.v)).to_points_at_end()
    session, out = ends.clip_by(ends, on="k").open(), Fold()
    for le, re, v in [(-1, 5, 1), (5, 6, 1), (3, 4, 2), (8, 17, 3), (4, 13, 2), (9, 9, 3), (12, 21, 5)]:
        out.take(session.push([sd.interval(f"{le}", le, re, {"k": "c", "v": v})]))
    out.take(session.close())
