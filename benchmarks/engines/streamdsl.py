"""streamdsl's own sessions, each tuple a point, followed by a CTI at its time: time does not go back."""

from __future__ import annotations

from typing import Any

import streamdsl as sd
from benchmarks.engines.engine import Engine


def final(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """What a session says once nothing can change it, to its end."""
    return _run(size, slide, tuples, "final")


def speculative(size: int, slide: int, tuples: list[Any]) -> list[list[int]]:
    """What a session says at once, in the order in which it does; what is taken back is left out."""
    return _run(size, slide, tuples, "speculative")


def _run(size: int, slide: int, tuples: list[Any], emit: Any) -> list[list[int]]:
    query = sd.source("s").hopping_window(size, slide).aggregate(sd.collect(lambda e: e))
    session = query.open(emit)
    found = []
    for value, t_app, t_sys, _ in tuples:
        out = session.push([sd.point(t_sys, t_app, value)]) + session.push([sd.Cti(t_app)])
        found += [event.payload for event in out if isinstance(event, sd.Insert)]
    return [*found, *(event.payload for event in session.close() if isinstance(event, sd.Insert))]


ENGINES = [
    Engine("streamdsl-final", 'streamdsl, `emit="final"`', final, profile="STREAMDSL_FINAL"),
    Engine("streamdsl", "streamdsl, speculative", speculative, profile="STREAMDSL"),
]
