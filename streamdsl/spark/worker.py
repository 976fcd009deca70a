"""Entry points of Spark's Python workers: pickled stages, which each worker loads once."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any


def run_rows(blob: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Run a shipped row stage."""
    return load_stage(blob).run(batches)  # type: ignore[no-any-return]


def run_group(blob: bytes, table: Any) -> Any:
    """Run a shipped group stage on one group."""
    return load_stage(blob).run(table)


@lru_cache(maxsize=64)
def load_stage(blob: bytes) -> Any:
    """Return a stage from its pickled form, which is cached."""
    return pickle.loads(blob)
