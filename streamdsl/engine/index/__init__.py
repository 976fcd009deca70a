"""The two indexes of paper 001, section V.C."""

from streamdsl.engine.index.event_index import EventIndex, EventRow
from streamdsl.engine.index.window_index import OutputRow, WindowEntry, WindowIndex

__all__ = ["EventIndex", "EventRow", "OutputRow", "WindowEntry", "WindowIndex"]
