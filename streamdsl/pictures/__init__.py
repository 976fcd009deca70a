"""Pictures, as text and as SVG: one model of timelines, one of graphs, and the parts that all pictures are made of."""
