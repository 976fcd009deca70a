"""A program that goes on with a session where the last process has saved it, and is killed when it has saved it again."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import streamdsl as sd
from streamdsl.temporal import Event


@dataclass(frozen=True)
class Trip:
    zone: str
    fare: float


def busy() -> sd.Stream[Any]:
    """Return a query with states of several kinds: windows, groups by text, sessions, a join."""
    trips = sd.source("trips", Trip)
    fares = trips.group_by("zone").hopping_window(10, 5).aggregate(n=sd.count(), fare=sd.sum(lambda e: e.fare))
    visits = trips.group_by("zone").session_window(4).aggregate(last=sd.last(lambda e: e.fare), all=sd.collect(lambda e: e.fare))
    return fares.join(visits, on="zone")


def pushes() -> list[list[Event[Any]]]:
    rng, made = Random(11), []
    for n in range(14):
        events: list[Event[Any]] = []
        for i in range(6):
            le = 3 * n + rng.randint(0, 9)
            events.append(sd.interval(f"{n}.{i}", le, le + rng.randint(1, 6), Trip(rng.choice(["A", "B", "Ä"]), rng.random())))
        made.append([*events, sd.Cti(3 * n + 1)])
    return made


PUSHES = pushes()


def shown(events: list[Event[Any]]) -> list[str]:
    return list(map(repr, events))


def main() -> None:
    path, output = Path(sys.argv[1]), Path(sys.argv[4])
    first, last = int(sys.argv[2]), int(sys.argv[3])
    session = busy().restore(path) if first else busy().open()
    with output.open("a") as file:
        for push in PUSHES[first:last]:
            file.writelines(f"{line}\n" for line in shown(session.push(push)))
    session.checkpoint(path)
    print("saved", flush=True)
    time.sleep(600)
