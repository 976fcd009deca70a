"""The sketches of Apache DataSketches (extra `sketches`) as states that can be copied, pickled and sent."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from streamdsl.errors import QueryError


def datasketches() -> ModuleType:
    """Return the library. Raises `QueryError` with the remedy if it is not installed."""
    try:
        return import_module("datasketches")
    except ImportError:
        raise QueryError("sketches need datasketches, which is not installed", hint="pip install 'streamdsl[sketches]'") from None


class SketchState:
    """A sketch that can be pickled and copied."""

    def __init__(self, sketch: Any) -> None:
        self.sketch = sketch

    def __reduce__(self) -> tuple[Any, ...]:
        write = getattr(self.sketch, "serialize_compact", None) or self.sketch.serialize
        return _restored, (type(self.sketch).__name__, write())


def _restored(kind: str, data: bytes) -> SketchState:
    return SketchState(getattr(datasketches(), kind).deserialize(data))
