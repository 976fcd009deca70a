"""How keys are looked at: what is done with many rows and values, done with few, or never."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from unittest.mock import patch

import numpy as np

from streamdsl.engine import batch, keys, order
from streamdsl.expr import encoding, kernel
from streamdsl.io import arrow_fingerprints, arrow_held, pandas_columns


@contextmanager
def small_limits(rng: Random) -> Iterator[None]:
    """Let what is done with many rows and values be done with few."""
    many = rng.choice([2, 16, 10_000])
    few = rng.choice([1, 64])
    with ExitStack() as stack:
        stack.enter_context(patch.object(kernel, "COMPILE_FROM", many))
        stack.enter_context(patch.object(kernel, "CALL_FROM", many))
        for reader in (arrow_held, pandas_columns):
            stack.enter_context(patch.object(reader, "MATERIALIZE_BELOW", few))
        stack.enter_context(patch.object(keys, "_MANY", rng.choice([1, 64])))
        stack.enter_context(patch.object(keys, "_SPREAD", rng.choice([1, 1_024])))
        stack.enter_context(patch.object(keys, "_SPARSE", rng.choice([1, 64])))
        stack.enter_context(patch.object(order, "_MANY", rng.choice([1, 256])))
        if rng.random() < 0.3:  # all texts have one fingerprint
            stack.enter_context(patch.object(arrow_fingerprints, "_hashes", lambda texts: np.zeros(len(texts), dtype=np.int64)))
        stack.enter_context(patch.object(batch, "SLICE", rng.choice([3, 17, 2**15])))
        if rng.random() < 0.3:
            stack.enter_context(patch.object(encoding.INTEGER_ENCODER, "over", lambda _: None))
        else:
            encoding.INTEGER_ENCODER.load()
        yield


@contextmanager
def row_by_row() -> Iterator[None]:
    """Let each value be looked at for itself."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(kernel, "COMPILE_FROM", 2**40))
        stack.enter_context(patch.object(kernel, "CALL_FROM", 2**40))
        for module, name in ((keys, "_MANY"), (keys, "_SPREAD"), (order, "_MANY")):
            stack.enter_context(patch.object(module, name, 2**40))
        yield
