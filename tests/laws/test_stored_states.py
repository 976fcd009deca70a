"""A shard's state in entries: what is read is what was written, and what is written is about as much as has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import streamdsl as sd
from tests.laws.choices import Random, given
from tests.laws.profiles import examples
from tests.laws.scenarios import SEEDS

pytest.importorskip("pyspark")

from streamdsl.spark.streaming import state_delta, state_log
from streamdsl.spark.streaming.state_delta import delta
from streamdsl.spark.streaming.state_log import StateLog


def some_bytes(rng: Random, size: int) -> bytes:
    """Return bytes that are alike over and over, or of a few kinds, in order, or all unlike."""
    many = np.random.default_rng(rng.getrandbits(32))
    arrays: list[Callable[[], Any]] = [
        lambda: np.full(size, rng.randrange(3)),
        lambda: many.integers(0, 3, size),
        lambda: np.arange(size) // rng.choice([1, 2, 50]),
        lambda: many.integers(0, 2**62, size),
    ]
    return bytes(rng.choice(arrays)().astype(rng.choice(["i1", "i4", "i8"])).tobytes()[:size])


def edited(rng: Random, state: bytes) -> bytes:
    """Return a state that is made of another as states are: words change, rows come and go, at the end or anywhere."""
    place, size = rng.randint(0, len(state)), rng.choice([1, 3, 8, 64, 1000, 9000])
    new = bytearray(state)
    kind = rng.randrange(9)
    if kind == 0:
        new[place:place] = some_bytes(rng, size)
    elif kind == 1:
        del new[place : place + size]
    elif kind == 2:
        del new[:size]
    elif kind == 3:
        new += some_bytes(rng, size)
    elif kind == 4:
        new = new[place:] + new[:place]
    elif kind == 5 and new:
        for at in (rng.randrange(len(new)) for _ in range(size % 100)):
            new[at] ^= 1 + rng.randrange(255)
    elif kind == 6:
        new[place : place + size] = bytes(len(new[place : place + size]))
    elif kind == 7:
        new = bytearray(some_bytes(rng, rng.choice([0, 1, 7, 8, 5000, 30_000])))
    return bytes(new)


@examples(300)
@given(SEEDS)
def test_what_is_read_is_what_was_written(seed: int) -> None:
    rng = Random(seed)
    state, log = b"", StateLog()
    committed: dict[int, bytes] = {}
    deltas = rng.choice([0, 1, 3, 20])
    small = rng.choice([0, 2**20])
    page = rng.choice([256, 512, 4096]) * (8 if small else 1)
    sizes = patch.object(state_delta, "_PAGE", page), patch.object(state_delta, "_SMALL", small)
    with sizes[0], sizes[1], patch.object(state_log, "CHUNK", rng.choice([8, 100, 4096])):
        for _ in range(rng.randint(1, 12)):
            following = state
            for _ in range(rng.randint(0, 3)):
                following = edited(rng, following)
            if rng.random() < 0.3:  # a micro-batch that fails leaves what is stored as it was
                log.followed_by(state, edited(rng, state), deltas)
            after, entries = log.followed_by(state, following, deltas)
            committed |= entries
            for place in range(len(after), len(log)):
                del committed[place]
            log, state = StateLog.from_bytes(after.to_bytes()), following
            assert log.read(committed.__getitem__) == state
            assert sorted(committed) == list(range(len(log)))
            assert all(len(entry) <= state_log.CHUNK for entry in committed.values())
            assert sum(map(len, committed.values())) <= 2 * len(state)
            assert len(log.sizes) <= deltas + 1


NOISE = np.random.default_rng(0).bytes(2**20)
EDITS: dict[str, tuple[bytes, int]] = {
    "nothing": (NOISE, 0),
    "a byte more in the middle": (NOISE[:500_000] + b"!" + NOISE[500_000:], 0),
    "less at the front": (NOISE[70_001:], 0),
    "more at the end": (NOISE + bytes(5_000), 5_000),
    "a row more in each of three columns": (
        b"".join(NOISE[n * 300_000 : (n + 1) * 300_000] + b"a new row" for n in range(3)),
        3 * 16,
    ),
    "halves that have changed places": (NOISE[2**19 :] + NOISE[: 2**19], 0),
    "a column that is new between two": (NOISE[:400_000] + b"a new column" * 2_000 + NOISE[400_000:], 24_000),
    "much that is equal, and has moved": (NOISE[:1000] + bytes(10) + NOISE[1000:], 10),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_delta_is_about_as_large_as_what_has_changed(name: str) -> None:
    new, size = EDITS[name]
    assert len(delta(NOISE, new)) < size + 300


def test_words_that_have_changed_cost_twice_their_size() -> None:
    words = np.frombuffer(NOISE, np.int64).copy()
    words[:: len(words) // 100] += 1
    assert len(delta(NOISE, words.tobytes())) < 102 * 16 + 100


def test_what_is_all_new_is_written_anew() -> None:
    log, _ = StateLog().followed_by(b"", NOISE)
    log, entries = log.followed_by(NOISE, NOISE[::-1])
    assert log.sizes == [len(NOISE)]
    assert b"".join(entries.values()) == NOISE[::-1]


GROUPS = 30_000
WINDOWS: dict[str, Callable[[Any], Any]] = {
    "tumbling": lambda groups: groups.tumbling_window(1000),
    "hopping": lambda groups: groups.hopping_window(1000, 500),
}


def rows(rng: Any, keys: Any, as_text: bool) -> pa.Table:
    le = np.sort(rng.integers(100, 500, len(keys)))
    return pa.table({"le": le, "key": [f"user {key}" for key in keys] if as_text else keys, "v": rng.random(len(keys))})


@pytest.mark.parametrize("as_text", [False, True], ids=["integers", "texts"])
@pytest.mark.parametrize("emit", ["final", "speculative"])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_micro_batch_of_few_groups_writes_little(window: str, emit: Any, as_text: bool) -> None:
    groups = sd.source("s", unit="tick").group_by("key")
    session = WINDOWS[window](groups).aggregate(n=sd.count(), total=sd.sum(lambda e: e.v)).open(emit=emit)
    rng = np.random.default_rng(0)
    session.feed(rows(rng, rng.permutation(GROUPS), as_text))
    # Columns grow by a part of their size at a time, and now have.
    session.feed(rows(rng, np.arange(GROUPS, GROUPS + 30), as_text))
    state = session.snapshot()
    log, _ = StateLog().followed_by(b"", state)
    for n in range(6):
        keys = np.arange(GROUPS + 30 * n, GROUPS + 30 * n + 30) if n % 2 else rng.integers(0, GROUPS, 30)
        session.feed(rows(rng, keys, as_text))
        session.push([sd.Cti(n)])
        following = session.snapshot()
        log, entries = log.followed_by(state, following)
        assert state != following
        assert sum(map(len, entries.values())) < len(following) / 50
        state = following
    assert len(log.sizes) == 7
