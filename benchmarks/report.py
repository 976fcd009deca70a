"""What is printed and written of a comparison."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.compare import Line
from benchmarks.workload import Workload, peer_of

BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"
HEAD = ("", "events", "ns/event", "M events/s", "ours / its", "peak MB", "state B/row", "answer")


def stamp() -> dict[str, Any]:
    """Return where and when this runs, and how busy the machine is."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba") if find_spec("numba") else "not installed",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def cells(line: Line) -> list[str]:
    """Return a line as the texts of a table."""
    if line.ns is None:
        return [line.way, f"{line.events:,}", *[""] * 5, line.problem or ""]
    return [
        line.way,
        f"{line.events:,}",
        f"{line.ns:,.1f}",
        f"{1e3 / line.ns:,.2f}",
        "" if line.ratio is None else f"{line.ratio:.3g}",
        f"{line.peak_mb:,.0f}",
        "" if line.state_bytes is None else f"{line.state_bytes / max(1, line.rows):,.0f}",
        "right" if line.problem is None else f"WRONG: {line.problem}",
    ]


def text_row(row: Sequence[str]) -> str:
    """Return a row of the printed table."""
    return f"  {row[0]:<24}{row[1]:>11}" + "".join(f"{cell:>12}" for cell in row[2:7]) + f"  {row[7]}"


def markdown(workloads: Iterable[Workload], lines: Mapping[str, Sequence[Line]], before: Mapping[str, Any]) -> str:
    """Return all tables as Markdown, under the stamp."""
    return "\n".join(_markdown(workloads, lines, before)) + "\n"


def _markdown(workloads: Iterable[Workload], lines: Mapping[str, Sequence[Line]], before: Mapping[str, Any]) -> Iterator[str]:
    versions = {peer_of(line.way): line.version for each in lines.values() for line in each if line.version}
    ours = {"Python": before["python"], "numba": before["numba"]}
    numbers = {**ours, **{name: number for name, number in versions.items() if name != "streamdsl"}}
    yield f"{before['at']}, {before['cpu']}, {before['cores']} cores, load {before['load'][0]} at the start;"
    yield ", ".join(f"{name} {number}" for name, number in numbers.items()) + "."
    for workload in workloads:
        yield f"\n**`{workload.name}`**: {workload.title}.\n"
        yield "| " + " | ".join(HEAD) + " |"
        yield "|---" * len(HEAD) + "|"
        for line in lines[workload.name]:
            yield "| " + " | ".join(cells(line)) + " |"
        if workload.notes:
            yield "\nNot like for like: " + "; ".join(workload.notes) + "."


def put_into(page: str, tables: str) -> str:
    """Return a page with the tables between its marks, or the tables alone where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{tables}{end}{after}" if end else tables


def as_json(lines: Mapping[str, Sequence[Line]], before: Mapping[str, Any]) -> str:
    """Return everything that was measured, under the stamp."""
    measured = {name: [asdict(line) for line in each] for name, each in lines.items()}
    return json.dumps({"stamp": before, "workloads": measured}, indent=1) + "\n"
