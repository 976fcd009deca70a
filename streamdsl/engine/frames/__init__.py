"""Frames: which windows the rows of each partition make, and who is in them, one file for each kind of window."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from streamdsl.engine.frames.frame import Frame
from streamdsl.errors import QueryError
from streamdsl.windows import Windows

__all__ = ["frame_class"]


def frame_class(windows: Windows) -> type[Frame]:
    """Return the frame of a kind, found by the kind's name; raises `QueryError` if there is none.

    >>> from streamdsl.windows import Session
    >>> frame_class(Session(4)).__name__, frame_class(Session(4, 8)).__name__
    ('SessionFrame', 'CutSessionFrame')
    """
    module, name = f"{__name__}.{windows.kind}", f"{windows.kind.title().replace('_', '')}Frame"
    if find_spec(module) is None:
        raise QueryError(
            f"{windows.describe()}: windows of the kind {windows.kind} have no frame, so the engine cannot run them",
            hint=f"write a class {name} in streamdsl/engine/frames/{windows.kind}.py, or make the kind a Grid",
        )
    found: type[Frame] = getattr(import_module(module), name)
    return found
