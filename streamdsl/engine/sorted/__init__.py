"""Rows in columns, and sorted runs of them: what two-sided operators find partners in."""

from streamdsl.engine.sorted.galloping import GallopingSearch
from streamdsl.engine.sorted.overlap import Probe
from streamdsl.engine.sorted.side import OverlapPairs, SortedSide
from streamdsl.engine.sorted.sort_keys import SortKeyEncoding
from streamdsl.engine.sorted.stored_rows import PointRows, Row, StoredRows

__all__ = ["GallopingSearch", "OverlapPairs", "PointRows", "Probe", "Row", "SortKeyEncoding", "SortedSide", "StoredRows"]
