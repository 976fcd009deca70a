"""`python -m benchmarks.oop FOLDER`: run the experiments of paper 004 and draw each of its figures into a folder."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.oop import band, memory, rate, split

COLORS = {"in order": "#e07a1f", "out of order": "#2a6f97", "out of order, slow": "#2a6f97", "out of order, lazy": "#6aa84f"}
MARKS = {0.5: ":", 1: "--", 2: "-"}


def main(folder: str) -> None:
    """Run all, print, draw."""
    held = {each.name: each.measure() for each in memory.EXPERIMENTS}
    bands, arms, rates = band.measure(), split.measure(), rate.measure()
    draw(held, bands, rates, str(Path(folder) / "oop.svg"))
    for each in memory.EXPERIMENTS:
        print(f"{each.name}, {each.title}\n  the paper: {each.paper}\n  here: {_ends(held[each.name])}")
    for name, paper in (("N1", band.PAPER), ("G1", rate.PAPER), ("Figure 3", split.PAPER)):
        print(f"{name}, the paper: {paper}; here: above")
    for name, arm in arms.items():
        print(f"Figure 3, {name}: {arm}")


def _ends(found: Mapping[str, Sequence[Any]]) -> str:
    """Return what both ways hold at the least and at the greatest skew."""
    return ", ".join(f"{name} {each[0].bytes:,} to {each[-1].bytes:,} bytes" for name, each in found.items())


def draw(held: Mapping[str, Any], bands: Mapping[str, Any], rates: Mapping[Any, Any], path: str) -> None:
    """Draw the memory by skew above; the band join and the rates below."""
    pyplot = _pyplot()
    figure, places = pyplot.subplots(2, 4, figsize=(18, 7), constrained_layout=True)
    for each, place in zip(memory.EXPERIMENTS, places[0], strict=True):
        lines = {name: [one.bytes / 1e6 for one in found] for name, found in held[each.name].items()}
        _lines(place, each.delays, lines, each.name, "one stream is late, s", "MB held")
    for number, (what, label) in enumerate((("memory", "MB held"), ("latency", "latency, s"), ("time", "CPU s"))):
        lines = {name: [_of(what, *one) for one in found] for name, found in bands.items()}
        _lines(places[1][number], band.BANDS, lines, f"N1, {what}", "band, s", label)
    place = places[1][3]
    for (name, size), found in rates.items():
        supported = [one.supported / 1e3 for one in found]
        place.plot(rate.GROUPS, supported, MARKS[size], marker="o", color=COLORS[name], label=f"{name}, slots x {size:g}")
    place.set_ylim(-250, None)
    place.set_yticks(range(0, 500, 100))
    place.set_xticks(rate.GROUPS, [f"{groups // 1000}k" for groups in rate.GROUPS])
    _finish(place, "G1, without loss", "groups", "thousand tuples/s")
    place.legend(frameon=False, fontsize=6, ncols=2, loc="lower left")
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None)


def _of(what: str, held: Any, ran: Any) -> float:
    return float({"memory": held.bytes / 1e6, "latency": ran.latency, "time": ran.cpu}[what])


def _lines(place: Any, at: Sequence[float], lines: dict[str, list[float]], title: str, x: str, y: str) -> None:
    for name, values in lines.items():
        place.plot(at, values, marker="o", color=COLORS[name], label=name)
    place.set_ylim(bottom=0)
    _finish(place, title, x, y)


def _finish(place: Any, title: str, x: str, y: str) -> None:
    place.set_title(title)
    place.set_xlabel(x)
    place.set_ylabel(y)
    place.grid(alpha=0.3)
    place.legend(frameon=False, fontsize=7)
    place.spines[["top", "right"]].set_visible(False)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "streamdsl"
    return pyplot


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oop", description=__doc__)
    parser.add_argument("folder", nargs="?", default="docs", metavar="FOLDER", help="where to draw (default: %(default)s)")
    main(parser.parse_args().folder)
