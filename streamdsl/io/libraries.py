"""Recognition of pandas, Arrow and polars frames; a library is imported only once there is a frame of it."""

from __future__ import annotations

import sys
from typing import Any, Final

from streamdsl.io.columns import Columns

_FRAMES: Final = {"pandas": ["DataFrame"], "pyarrow": ["Table", "RecordBatch"], "polars": ["DataFrame", "LazyFrame"]}


def is_frame(value: object) -> bool:
    """Say whether a value is a pandas, Arrow or polars frame; a lazy one is not collected.

    >>> is_frame([1, 2])
    False
    """
    return _library_of(value) is not None


def columns_of(frame: Any) -> Columns | None:
    """Return the columns of a pandas, Arrow or polars frame, None for anything else."""
    library = _library_of(frame)
    if library == "pandas":
        from streamdsl.io.pandas_columns import PandasColumns

        return PandasColumns(frame)
    if library == "pyarrow":
        from streamdsl.io.arrow_columns import ArrowColumns

        return ArrowColumns(frame)
    if library == "polars":
        from streamdsl.io.polars_columns import PolarsColumns

        return PolarsColumns(frame)
    return None


def _library_of(value: object) -> str | None:
    """Return the name of the library of a frame, None for other values; imports nothing."""
    for library, classes in _FRAMES.items():
        module = sys.modules.get(library)
        if any(isinstance(value, getattr(module, cls, ())) for cls in classes):
            return library
    return None
