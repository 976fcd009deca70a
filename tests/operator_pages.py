"""Write docs/operators/, a page for each family of operators, from the docstrings of the facade (`make docs`).

The table of operators in docs/semantics.md is written from the entries in `tests/operators/`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Final

from streamdsl.stream import GroupedStream, GroupedWindowedStream, Stream, WindowedStream
from streamdsl.temporal import INFINITY
from tests.operators import entries, written
from tests.operators.entry import Meaning

FOLDER: Final = Path(__file__).parent.parent / "docs" / "operators"
SEMANTICS: Final = FOLDER.parent / "semantics.md"
MARKS: Final = ("<!-- table: python -m tests.operator_pages -->\n", "<!-- end of table -->\n")
HEAD: Final = "| operator | rows | CTI |\n|---|---|---|\n"
GROUPS: Final = Meaning(
    "`group_by(k).apply(q)`", "q for each key by itself", "the smallest of the groups', and of a group not seen yet"
)
TITLES: Final = {
    "rows": "Row by row",
    "order": "Rows in order, and rows that meet",
    "combining": "Several streams",
    "windows": "Windows and groups",
    "running": "Running a query",
}
OTHERS: Final[dict[str, list[tuple[type, str]]]] = {
    "combining": [(Stream, "multicast"), (Stream, "bind")],
    "windows": [
        *((WindowedStream, name) for name in ("aggregate", "aggregate_as", "apply", "top_k", "describe", "output_cti")),
        (Stream, "group_by"),
        (GroupedStream, "apply"),
        (GroupedWindowedStream, "aggregate"),
    ],
    "running": [
        (Stream, name)
        for name in (
            "run",
            "open",
            "restore",
            "stream",
            "as_of",
            "explain",
            "plan",
            "to_sql",
            "to_pandas",
            "to_arrow",
            "to_polars",
            "on_spark",
        )
    ],
}
"""What is no operator of an entry, and no window, by page: it comes after those."""


def windows() -> list[str]:
    """Return the methods that make windows, as written."""
    return sorted((name for name in dir(Stream) if re.fullmatch(r"(\w+_window|windows)", name)), key=written)


def families() -> dict[str, list[tuple[type, str]]]:
    """Return the methods of each page, in the order of the facade."""
    found = {page: [name for name, entry in entries().items() if entry.page == page] for page in TITLES}
    found["windows"] = windows()
    return {page: [*((Stream, name) for name in names), *OTHERS.get(page, [])] for page, names in found.items()}


def call(cls: type, name: str) -> str:
    """Return how a method is called: its parameters without types."""
    function = inspect.getattr_static(cls, name)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return re.sub(r"<(\w+\.\w+): [^>]*>", r"sd.\1", f"{name}{inspect.Signature(plain)}").replace(repr(INFINITY), "INFINITY")


def section(cls: type, name: str) -> str:
    """Return a method's part of a page: its call, what it does, its timeline, its example."""
    receiver = "" if cls is Stream else f" of a `{cls.__name__}`"
    parts = [f"## `{name}`{receiver}", f"    {call(cls, name)}"]
    for paragraph in (inspect.getdoc(inspect.getattr_static(cls, name)) or "").split("\n\n"):
        parts.append(f"```python\n{paragraph}\n\n```" if paragraph.lstrip().startswith(">>>") else paragraph)
    return "\n\n".join(parts)


def page(title: str, methods: list[tuple[type, str]]) -> str:
    """Return the text of a page."""
    head = textwrap.fill("Written by `make docs` from the docstrings of `streamdsl/stream.py`.", 130)
    return "\n\n".join([f"# {title}", head, *(section(*method) for method in methods)]) + "\n"


def pages() -> dict[Path, str]:
    """Return every page's text, by its file."""
    return {FOLDER / f"{name}.md": page(TITLES[name], methods) for name, methods in families().items()}


def semantics(page: str) -> str:
    """Return docs/semantics.md with the table of operators, which is what the entries say."""
    rows = [each for family in TITLES for entry in entries().values() if entry.page == family for each in entry.meaning]
    table = "".join(f"| {' | '.join(row)} |\n" for row in [*rows, GROUPS])
    before, _, rest = page.partition(MARKS[0])
    return before + MARKS[0] + HEAD + table + MARKS[1] + rest.partition(MARKS[1])[2]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    SEMANTICS.write_text(semantics(SEMANTICS.read_text()))
