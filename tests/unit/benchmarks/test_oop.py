"""The experiments of paper 004, small: what they must show, and the ring buffer that they simulate."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.oop import band, memory, rate, split
from benchmarks.oop.arrivals import SECOND, Stream, arrive
from benchmarks.oop.measure import held
from streamdsl.progress import Tuple

ROOT = Path(__file__).parents[3]


def test_streams_arrive_by_time_and_keep_their_punctuation() -> None:
    items = list(arrive([Stream(0, 5), Stream(1, 3, delay=2)], 4))
    assert [now for now, _, _ in items] == sorted(now for now, _, _ in items)
    assert sum(isinstance(item, Tuple) for _, _, item in items) == 32
    for stream, delay in ((0, 0), (1, 2)):
        reached = -1
        for now, input, item in items:
            if input == stream:
                value = item.ts if isinstance(item, Tuple) else item.value
                assert (value >= reached, now) == (True, value + delay * SECOND)
                reached = reached if isinstance(item, Tuple) else int(value)


def test_figure_1_out_of_order_stays_flat_and_far_below_in_order() -> None:
    small = replace(
        memory.FIGURE_1, delays=[1, 40], seconds=130, streams=lambda delay: [Stream(0, 9, 0, 5), Stream(1, 9, delay, 5, 1)]
    )
    found = small.measure()
    near, far = found["out of order"]
    assert far.bytes <= 0.3 * found["in order"][-1].bytes
    assert far.bytes <= 1.2 * near.bytes


def test_a_band_join_holds_less_out_of_order() -> None:
    streams = [Stream(0, 10, 0, 8, 1), Stream(1, 10, 0, 8, 2)]
    one, other = (held(partial(band.Query, 4, ordered), partial(arrive, streams, 30)) for ordered in (True, False))
    assert (one.results, other.bytes < one.bytes) == (other.results, True)


@pytest.mark.parametrize("make", [split.out_of_order, split.merged])
def test_figure_3_loses_nothing_where_progress_is_known(make: object) -> None:
    _, tuples, counted = split.arm(make())  # type: ignore[operator]
    assert tuples == counted


def test_figure_3_slack_that_is_too_small_loses_tuples() -> None:
    few, enough = split.Slack(2), split.Slack(split.DELAY + 1)
    _, tuples, counted = split.arm(enough)
    assert (counted, enough.input.dropped) == (tuples, 0)
    _, _, counted = split.arm(few)
    assert (counted, few.input.dropped > 0) == (tuples - few.input.dropped, True)


def test_the_ring_buffer_overflows_at_the_rate_that_a_pause_allows() -> None:
    steady = np.full(4_000, rate.CHUNK * 1e-6)
    assert rate.supported(steady) == pytest.approx(1e6, rel=0.15)
    steady[2_000] += 1.0
    assert rate.supported(steady) == pytest.approx(rate.RING, rel=0.05)


def test_help_runs_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.oop", "--help"]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (0, "", "usage: python -m benchmarks.oop [-h] [FOLDER]")
    assert list(tmp_path.iterdir()) == []
