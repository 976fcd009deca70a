"""`streamdsl doctor`: what is installed, what is not, and what cannot work, each with the remedy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from streamdsl.commands.json_report import add_json_option, print_json
from streamdsl.extras import own_version
from streamdsl.installation import OWN, InstalledPart, core, extras, installed, java

_MARKS: Final = {"ok": " ", "absent": "-", "wrong": "!"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    add_json_option(parser)


def doctor(options: argparse.Namespace) -> int:
    """Print the parts of the installation; return 0 if what is installed can work, else 1."""
    parts = _parts()
    if options.json:
        return print_json(map(asdict, parts))
    wrong = [part for part in parts if part.state == "wrong"]
    print(f"streamdsl {own_version()}", *_lines(parts), _sum(len(wrong)), sep="\n")
    return min(len(wrong), 1)


def _parts() -> list[InstalledPart]:
    if installed(OWN) is None:
        found = "runs from files that are not installed, so what it needs is not known"
        return [InstalledPart(OWN, "absent", found, "pip install -e . in its folder"), _a_query(), java()]
    needed = core()
    sound = all(part.state == "ok" for part in needed)
    return [*needed, *([_a_query()] if sound else []), *extras(), java()]


def _a_query() -> InstalledPart:
    """Return whether a query over two rows gives the answer that it must."""
    from streamdsl.aggregates import count
    from streamdsl.sources import from_rows

    try:
        counted = from_rows([(1, 5, "A"), (4, 12, "B")]).tumbling_window(10).aggregate(n=count())
        found = [(row.le, row.re, row.payload.n) for row in counted.run().cht()]
    except Exception as error:  # whatever a broken package raises
        return InstalledPart("a query", "wrong", f"{type(error).__name__}: {error}", "pip install --force-reinstall streamdsl")
    if found != [(0, 10, 2), (10, 20, 1)]:
        return InstalledPart("a query", "wrong", f"two rows were counted as {found}", "pip install --force-reinstall streamdsl")
    return InstalledPart("a query", "ok", "runs")


def _lines(parts: Sequence[InstalledPart]) -> list[str]:
    wide = max(len(part.name) for part in parts)
    return [
        f"{_MARKS[part.state]} {part.name:{wide}}  {part.found}" + (f": {part.remedy}" if part.remedy else "") for part in parts
    ]


def _sum(wrong: int) -> str:
    if not wrong:
        return "What is installed can work."
    return f"{wrong} part{'s' * (wrong != 1)} marked ! cannot work."
