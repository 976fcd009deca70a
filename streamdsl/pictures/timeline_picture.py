"""Timelines: lanes of rows, windows and CTIs over one axis of time, drawn as text or as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from streamdsl.extras import need
from streamdsl.pictures.lanes import Lane
from streamdsl.pictures.picture_object import Drawing
from streamdsl.temporal.time import Ticks, Unit

if TYPE_CHECKING:
    import altair


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

    def chart(self, y: str | Sequence[str] | None = None, by: str | None = None) -> altair.VConcatChart:
        """Return the timeline as a chart of Altair, which zooms and moves along time (docs/pictures.md).

        With `y`, a numeric field of the rows of the last lane or several, these are drawn as steps, with a line for each value
        of the field `by`. Raises `QueryError` where Altair is not installed (`streamdsl[viz]`), for a field that there is not or
        that is no number, and for more lines than can be told apart.

        >>> import streamdsl as sd
        >>> chart = sd.from_rows([(1, 5, {"n": 2}), (5, 9, {"n": 3})]).run().timeline().chart(y="n")
        >>> [len(layer["data"]["values"]) for layer in chart.to_dict()["vconcat"][0]["layer"]]
        [2, 1]
        """
        need("altair", "charts", "viz")
        from streamdsl.pictures.altair_chart import chart
        from streamdsl.pictures.chart_steps import checked_fields

        return chart(self, checked_fields(y, by), by)

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
