"""Timelines: lanes of rows, windows and CTIs over one axis of time, drawn as text or as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.picture_object import Drawing
from streamdsl.temporal.time import Ticks, Unit


class Timeline(Drawing):
    """Lanes over one axis, input above output; text and SVG are drawn of the same `lanes` (docs/pictures.md).

    >>> import streamdsl as sd
    >>> sd.from_rows([(1, 5, "P1"), (4, 9, "P2"), (7, sd.INFINITY, "P3")]).run().timeline()
    time: 0    5
    P1  : -[===)
    P2  : ----[====)
    P3  : -------[==>
    """

    def __init__(self, lanes: Iterable[Lane], unit: Unit | None = None) -> None:
        self.lanes = tuple(lanes)
        self.unit = unit

    @property
    def times(self) -> list[Ticks]:
        """All times that have a place on the axis."""
        return list(_times(self.lanes))

    def __str__(self) -> str:
        from streamdsl.pictures.text_timeline import text

        return text(self)

    def svg(self) -> str:
        """Return the timeline as the text of an SVG document, which needs nothing else."""
        from streamdsl.pictures.svg_timeline import svg

        return svg(self)


def _times(lanes: Iterable[Lane]) -> Iterator[Ticks]:
    for lane in lanes:
        yield from lane.times
