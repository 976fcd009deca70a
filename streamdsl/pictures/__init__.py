"""Pictures, as text and as SVG: one model of timelines, one of graphs, and the parts that all pictures are made of."""

from streamdsl.pictures.axis import TimeAxis
from streamdsl.pictures.brief import cut
from streamdsl.pictures.flow_chart import FlowChart
from streamdsl.pictures.picture_object import Drawing
from streamdsl.pictures.svg import COLOURS, bar, grid_line, label, picture
from streamdsl.pictures.timeline_picture import Timeline

__all__ = ["COLOURS", "Drawing", "FlowChart", "TimeAxis", "Timeline", "bar", "cut", "grid_line", "label", "picture"]
