"""Measurements of parts of the engine, without peers: `python -m benchmarks.studies.windows`, `... .modules`, `... .panes`."""
