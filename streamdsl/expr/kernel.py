"""Kernels: loops over rows that numba compiles, where it is installed (the extra `fast`) and worth what loading it costs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Generic, TypeVar

LoopT = TypeVar("LoopT", bound=Callable[..., object])

COMPILE_FROM: Final = 2**14
"""Only batches of so many rows count towards loading the compiled loop."""
CALL_FROM: Final = 2**10
"""A compiled loop is called for so many rows, or more."""
LOAD_AFTER: Final = 2**23
"""The compiled loop is loaded after so many rows. It saves some 10 ns a row, and numba takes half a second to import: a program
with fewer rows ends sooner without it."""


class Kernel(Generic[LoopT]):
    """A loop in plain Python over arrays, which is compiled; where it is not, columns give exactly the same.

    >>> kernel = Kernel(lambda values: None)
    >>> kernel.over(1_000_000) is None
    True
    """

    def __init__(self, loop: LoopT) -> None:
        self._loop = loop
        self._rows = 0
        self._is_loaded = False
        self._compiled: LoopT | None = None

    def over(self, n_rows: int) -> LoopT | None:
        """Return the compiled loop; None for few rows, before enough rows have been processed, and without numba."""
        if not self._is_loaded and n_rows >= COMPILE_FROM:
            self._rows += n_rows
            if self._rows >= LOAD_AFTER:
                self.load()
        return self._compiled if n_rows >= CALL_FROM else None

    def load(self) -> None:
        """Compile the loop now, or take it from numba's cache."""
        if not self._is_loaded and find_spec("numba") is not None:
            self._compiled = import_module("numba").njit(cache=True, nogil=True)(self._loop)
        self._is_loaded = True
