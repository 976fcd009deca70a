"""The entry point of Spark's Python workers: pickled stages, which each worker loads once."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=64)
def load_stage(blob: bytes) -> Any:
    """Return a stage from its pickled form, which is cached."""
    return pickle.loads(blob)
