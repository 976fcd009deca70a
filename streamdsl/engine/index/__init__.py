"""The indexes of paper 001, section V.C, and one for the endpoints that count windows count."""

from streamdsl.engine.index.event_index import EventIndex, EventRow
from streamdsl.engine.index.point_index import PointIndex
from streamdsl.engine.index.window_index import OutputRow, WindowEntry, WindowIndex

__all__ = ["EventIndex", "EventRow", "OutputRow", "PointIndex", "WindowEntry", "WindowIndex"]
