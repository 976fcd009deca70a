"""Ids that are spelled out when they are asked for are the ids that they stand for."""

from __future__ import annotations

import numpy as np

from streamdsl.engine.columnar.window_ids import WindowIds
from streamdsl.engine.ids import concat_ids
from streamdsl.expr.table import object_column

IDS = WindowIds("w", None, np.array([0, 10, 20]))


def test_they_are_read_as_a_column_is() -> None:
    assert IDS.tolist() == [("w", 0, 0), ("w", 10, 0), ("w", 20, 0)]
    assert IDS[1] == IDS[np.int64(1)] == ("w", 10, 0)
    assert IDS[np.array([2, 0])].tolist() == [("w", 20, 0), ("w", 0, 0)]
    assert len(IDS) == 3


def test_one_after_the_other_they_stay_deferred_where_they_are_of_one_operator() -> None:
    together = concat_ids([IDS, IDS[:1]])
    assert isinstance(together, WindowIds)
    assert together.tolist() == [*IDS.tolist(), ("w", 0, 0)]
    others = concat_ids([IDS, WindowIds("v", None, np.array([5])), object_column(["a"])])
    assert others.tolist() == [*IDS.tolist(), ("v", 5, 0), "a"]
