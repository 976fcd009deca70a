"""Rows in columns, and sorted runs of them: what two-sided operators find partners in."""

from streamdsl.engine.sorted.layout import Layout
from streamdsl.engine.sorted.outward import Walk
from streamdsl.engine.sorted.overlap import Asked
from streamdsl.engine.sorted.rows import PointRows, Row, StoredRows
from streamdsl.engine.sorted.side import Met, SortedSide

__all__ = ["Asked", "Layout", "Met", "PointRows", "Row", "SortedSide", "StoredRows", "Walk"]
