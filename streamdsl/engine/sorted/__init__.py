"""Two-sided operators find partners here: rows in columns, with sorted runs as an index by key and time."""

from streamdsl.engine.sorted.galloping import GallopingSearch
from streamdsl.engine.sorted.overlap import Probe
from streamdsl.engine.sorted.side import OverlapPairs, SortedSide
from streamdsl.engine.sorted.sort_keys import SortKeyEncoding
from streamdsl.engine.sorted.stored_rows import PointRows, Row, StoredRows

__all__ = ["GallopingSearch", "OverlapPairs", "PointRows", "Probe", "Row", "SortKeyEncoding", "SortedSide", "StoredRows"]
