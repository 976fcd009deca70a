"""How long each operator of the local engine takes, without those whose rows it pulls."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def operator_times() -> Iterator[dict[str, int]]:
    """Measure all that runs inside: nanoseconds by the operator's label, in order of the first rows.

    Rows are made when an operator pulls them, so those of another one are made inside of its step: they count there.
    """
    from streamdsl.engine.operator import Operator, Piece

    taken: dict[str, int] = defaultdict(int)
    within = [0]
    step = Operator.step

    def timed(self: Operator, inputs: Sequence[Piece]) -> Any:
        within.append(0)
        begun = time.perf_counter_ns()
        try:
            return step(self, inputs)
        finally:
            lasted, inner = time.perf_counter_ns() - begun, within.pop()
            taken[self.label] += lasted - inner
            within[-1] += lasted

    Operator.step = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        Operator.step = step  # type: ignore[method-assign]
