"""Write the tables of file formats (docs/jobs.md), engines (docs/secret-profiles.md) and connectors (docs/connectors.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.engines import engines
from benchmarks.engines.engine import Engine
from benchmarks.engines.record import FOLDER
from streamdsl import secret
from streamdsl.io.formats import FORMATS

DOCS: Final = Path(__file__).parent.parent / "docs"
MARKS: Final = ("<!-- table: python -m tests.tables -->\n", "<!-- end of table -->\n")


def formats() -> str:
    """Return the table of file formats."""
    rows = [
        (
            f"`{each.name}`",
            each.title,
            ", ".join(f"`{suffix}`" for suffix in each.suffixes),
            "no" if each.spark is None else "yes",
            "" if each.needs is None else f"`streamdsl[{each.needs[1]}]`",
        )
        for each in FORMATS.values()
    ]
    return table(("`--format`", "files", "that end in", "on Spark", "needs"), rows)


def profiles() -> str:
    """Return the table of today's engines: what nothing tells apart is "any", as `tests/witnesses` has it."""
    head = ("engine", "in `secret`", "first window", "reports", "driven by", "looks at", "fed", "out of order", "at the end")
    return table((*head, "recorded with"), [_row(name, engine) for name, engine in engines().items()])


def connectors() -> str:
    """Return the table of connectors: what `make check-connectors ARGS=--record` has found of each."""
    lines = json.loads((Path(__file__).parent / "connector_reports.json").read_text())
    rows = [(_in_code(each["connector"]), each["on"], each["promise"], each["cases"], str(len(each["laws"]))) for each in lines]
    return table(("connector", "on", "promise", "cases", "laws"), rows)


def _in_code(connector: str) -> str:
    name, comma, how = connector.partition(",")
    return f"`{name}`{comma}{how}"


def _row(name: str, engine: Engine) -> tuple[str, ...]:
    if engine.profile is None:
        return (engine.title, "none fits", *[""] * 8)
    profile: secret.Profile = getattr(secret, engine.profile)
    closes = profile.report.window_close
    end = ("reports the rest" if engine.ended else "what time has passed") if closes else "nothing is left"
    path = FOLDER / f"{name}.json"
    return (
        engine.title,
        f"`{engine.profile}`",
        f"`{called(profile.t0)}`",
        str(profile.report),
        "any" if closes else profile.tick.value,
        "any" if closes else profile.scope.words,
        f"`{called(profile.feed)}`" if profile.feed else "",
        engine.late,
        end,
        json.loads(path.read_text())["version"] if path.exists() else "not recorded yet",
    )


def called(value: Any) -> str:
    """Return how a rule for t0 or a feed is written.

    >>> called(secret.Grid(whole=False)), called(partial(secret.slack, delay=0)), called(secret.in_order)
    ('Grid(whole=False)', 'slack(delay=0)', 'in_order')
    """
    if isinstance(value, partial):
        return f"{called(value.func)}({', '.join(f'{name}={each!r}' for name, each in value.keywords.items())})"
    if is_dataclass(value) and not isinstance(value, type):
        given = {each.name: getattr(value, each.name) for each in fields(value) if getattr(value, each.name) != each.default}
        return f"{type(value).__name__}({', '.join(f'{name}={each!r}' for name, each in given.items())})"
    return str(getattr(value, "__name__", value))


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [" | ".join(row).join(("| ", " |")) for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


TABLES: Final[Mapping[Path, Callable[[], str]]] = {
    DOCS / "connectors.md": connectors,
    DOCS / "jobs.md": formats,
    DOCS / "secret-profiles.md": profiles,
}


def written(path: Path) -> str:
    """Return the text of a page with its table."""
    before, _, rest = path.read_text().partition(MARKS[0])
    return before + MARKS[0] + TABLES[path]() + MARKS[1] + rest.partition(MARKS[1])[2]


if __name__ == "__main__":
    for path in TABLES:
        path.write_text(written(path))
