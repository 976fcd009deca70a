"""The file formats: each is a module here, which says all of it in its `FORMAT`, and is found by itself."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

from streamdsl.errors import QueryError
from streamdsl.io.files import Files, Format, Paths, SparkFormat, paths_of
from streamdsl.io.layout import PayloadLike

_FOUND: Final[list[Format]] = [import_module(f"{__name__}.{each.name}").FORMAT for each in pkgutil.iter_modules(__path__)]
FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _FOUND}
"""The formats, by name."""
BY_SUFFIX: Final[Mapping[str, Format]] = {suffix: each for each in _FOUND for suffix in each.suffixes}
"""The formats, by suffix of the file name."""


def open_files(paths: Paths, name: str | None, payload: PayloadLike, start: str) -> Files:
    """Return files of the format of this name, by default of that which all their suffixes are of.

    Raises `QueryError` for no files, for several formats, and for suffixes of none.
    """
    if name is not None:
        return FORMATS[name].open(paths_of(paths, FORMATS[name].suffixes[0]), payload, start)
    listed = paths_of(paths, *BY_SUFFIX)
    suffixes = sorted({Path(path).suffix for path in listed})
    names = {BY_SUFFIX[suffix].name if suffix in BY_SUFFIX else suffix for suffix in suffixes}
    if unknown := sorted(names - FORMATS.keys()):
        raise QueryError(
            f"files that end in {', '.join(map(repr, unknown))} are of no format that is known",
            hint=f"files end in {', '.join(BY_SUFFIX)}",
        )
    if len(names) > 1:
        raise QueryError(
            f"files that are read together are of one format, not {', '.join(map(repr, suffixes))}",
            hint=f"files end in {', '.join(BY_SUFFIX)}",
        )
    return FORMATS[names.pop()].open(listed, payload, start)


def on_spark(form: Format) -> SparkFormat:
    """Return what a format is on Spark. Raises `QueryError` if Spark has none."""
    if form.spark is None:
        known = [each.name for each in FORMATS.values() if each.spark is not None]
        raise QueryError(
            f"Spark reads and writes no files of the format {form.name}", hint=f"{', '.join(known)}; or --engine local"
        )
    return form.spark
