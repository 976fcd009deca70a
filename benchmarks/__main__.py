"""`python -m benchmarks [WORKLOAD ...] [--events N] [--runs N] [--peers a,b] [--write FILE.md | FILE.json]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import Line, compare
from benchmarks.report import HEAD, as_json, cells, markdown, put_into, stamp, text_row
from benchmarks.workload import peer_of
from benchmarks.workloads import WORKLOADS

PEERS = sorted({peer_of(way) for workload in WORKLOADS.values() for way in workload.ways})


def main(arguments: list[str] | None = None) -> int:
    """Compare, print, write; return 1 if any answer is wrong."""
    asked = _arguments(arguments)
    before = stamp()
    print(", ".join(f"{name} {value}" for name, value in before.items()))
    lines: dict[str, list[Line]] = {}
    for name in asked.workloads or WORKLOADS:
        workload = WORKLOADS[name]
        print(f"\n{workload.name}: {workload.title}\n{text_row(HEAD)}", flush=True)
        lines[name] = []
        for line in compare(workload, asked.events, asked.runs, asked.peers):
            lines[name].append(line)
            print(text_row(cells(line)), flush=True)
        _write(asked.write, lines, before)
    return int(any(line.ns is not None and line.problem for each in lines.values() for line in each))


def _write(paths: Sequence[Path], lines: Mapping[str, Sequence[Line]], before: Mapping[str, Any]) -> None:
    """Write what is there so far."""
    for path in paths:
        if path.suffix == ".json":
            path.write_text(as_json(lines, before))
        else:
            page = path.read_text() if path.exists() else ""
            path.write_text(put_into(page, markdown([WORKLOADS[name] for name in lines], lines, before)))


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="streamdsl beside its peers, CPU time on one core")
    parser.add_argument("workloads", nargs="*", metavar="workload", help=f"all, or some of: {', '.join(WORKLOADS)}")
    parser.add_argument("--events", type=_positive, help="how many events instead of each workload's own number")
    parser.add_argument("--runs", type=_positive, default=3, help="of which the median counts (3)")
    parser.add_argument("--peers", type=_peers, help=f"all, or some of: {','.join(PEERS)}; streamdsl is always run")
    parser.add_argument(
        "--write",
        type=Path,
        action="append",
        default=[],
        help="a .json file for the results, or a Markdown page, whose part between the marks becomes the tables",
    )
    asked = parser.parse_args(arguments)
    for name in asked.workloads:
        if name not in WORKLOADS:
            parser.error(f"there is no workload {name!r}; there are: {', '.join(WORKLOADS)}")
    return asked


def _peers(text: str) -> list[str]:
    for peer in (peers := text.split(",")):
        if peer not in PEERS:
            raise argparse.ArgumentTypeError(f"there is no peer {peer!r}; there are: {', '.join(PEERS)}")
    return peers


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("a number of at least 1 is needed")
    return number


if __name__ == "__main__":
    sys.exit(main())
