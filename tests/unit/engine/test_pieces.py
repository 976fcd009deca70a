"""Pieces that are out against a set of ticks."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from streamdsl.engine.batch import Batch
from streamdsl.engine.sorted import SortedSide, SortKeyEncoding
from streamdsl.engine.sorted.periods import Patches, Periods
from streamdsl.engine.sorted.pieces import piece_changes
from streamdsl.expr.schema import Schema
from streamdsl.expr.table import Table


def _redo(side: SortedSide, patches: Patches, inside: Periods) -> None:
    _, moved, ends, come = piece_changes(side, patches.owners, patches, inside)
    side.end(moved, ends)
    if len(come.at):
        le = come.le
        side.put(Batch(le, le, le, come.re, Table(Schema.tuple(0), {}, len(le))), patches.owners[come.at])
    side.end_step()


def _pieces(side: SortedSide, owner: int) -> list[tuple[int, int]]:
    columns = (side.rows.numbers.values, side.rows.le.values, side.rows.re.values)
    return sorted(
        (le, re) for number, le, re in zip(*map(np.ndarray.tolist, columns), strict=True) if number == owner and le < re
    )


@pytest.mark.parametrize("seed", range(5))
def test_pieces_are_those_of_a_set_of_ticks(seed: int) -> None:
    rng = random.Random(seed)
    side, known, owners = SortedSide(SortKeyEncoding()), -60, range(4)
    out: dict[int, set[int]] = {owner: set() for owner in owners}
    for _ in range(400):
        if rng.random() < 0.03:
            known = rng.randint(known, max(known, 40))
            side.forget(known)
        chosen = sorted(rng.sample(owners, rng.randint(1, 4)))
        los = [rng.randint(known, 60) for _ in chosen]
        his = [lo + rng.randint(1, 20) for lo in los]
        inside = []
        for n, (owner, lo, hi) in enumerate(zip(chosen, los, his, strict=True)):
            now = [(t, rng.randint(t + 1, hi)) for t in (rng.randrange(lo, hi) for _ in range(rng.randint(0, 3)))]
            inside += [(n, *life) for life in now]
            out[owner] = {t for t in out[owner] if not lo <= t < hi} | {t for life in now for t in range(*life)}
        periods = Periods(*np.array(inside, dtype=np.int64).reshape(-1, 3).T.copy()).merged()
        _redo(side, Patches(np.array(chosen), np.array(los), np.array(his)), periods)
        for owner in owners:
            pieces = _pieces(side, owner)
            assert all(a[1] < b[0] for a, b in pairwise(pieces)), "no piece touches the next"
            kept = {t for piece in pieces for t in range(*piece)}
            assert {t for t in out[owner] if t >= known} == {t for t in kept if t >= known}
