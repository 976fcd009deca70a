"""Write docs/operators/, a page for each family of operators, from the docstrings of the facade (`make docs`).

What docs/semantics.md lists of operators and kinds of windows is written from the entries in `tests/operators/`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from streamdsl.stream import GroupedStream, GroupedWindowedStream, Stream, WindowedStream
from streamdsl.temporal import INFINITY
from streamdsl.windows import Grid
from tests.operators import entries, kinds, written
from tests.operators.entry import Meaning

FOLDER: Final = Path(__file__).parent.parent / "docs" / "operators"
SEMANTICS: Final = FOLDER.parent / "semantics.md"
HEAD: Final = "| operator | rows | CTI |\n|---|---|---|\n"
HEAD_OF_CTIS: Final = "| windows | output CTI after c |\n|---|---|\n"
OF_GRIDS: Final = """
    min(c, LE of the first window of the grid, empty or not, that is not closed). [erratum] The paper's rule, "W.RE of the latest
    window with W.RE <= c", breaks its promise where windows overlap
"""
OF_OUTPUTS: Final = {
    "point at end": """
        c; time-sensitive and unclipped: also no later than the first W.RE of a non-empty window that is not closed
    """,
    "time-bound": """
        c. After a change with sync time s the module's old and new rows of a window, paired by (LE, payload), agree at every
        instant before s; a piece of input counts by the earliest s that touches a window, one that only opens now by its earliest
        member. A breach is a `TimestampViolation`
    """,
}
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
            "trace",
            "open",
            "restore",
            "serve",
            "serve_async",
            "stream",
            "as_of",
            "explain",
            "plan",
            "draw",
            "timeline",
            "chart",
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
    return "\n\n".join([f"## `{name}`{receiver}", f"    {call(cls, name)}", *paragraphs(inspect.getattr_static(cls, name))])


def paragraphs(documented: object) -> Iterator[str]:
    """Yield the paragraphs of a docstring in Markdown: its examples are code that runs."""
    for paragraph in (inspect.getdoc(documented) or "").split("\n\n"):
        yield f"```python\n{paragraph}\n\n```" if paragraph.lstrip().startswith(">>>") else paragraph


def page(title: str, methods: list[tuple[type, str]]) -> str:
    """Return the text of a page."""
    head = textwrap.fill("Written by `make docs` from the docstrings of `streamdsl/stream.py`.", 130)
    return "\n\n".join([f"# {title}", head, *(section(*method) for method in methods)]) + "\n"


def pages() -> dict[Path, str]:
    """Return every page's text, by its file; the first lists the others."""
    listed = [f"- [{TITLES[name]}]({name}.md): {', '.join(_names(name, methods))}" for name, methods in families().items()]
    first = ["# Operators", "Every method of a stream, with its timeline and an example.", "\n".join(map(_wrapped_entry, listed))]
    written = {FOLDER / f"{name}.md": page(TITLES[name], methods) for name, methods in families().items()}
    return {FOLDER / "README.md": "\n\n".join(first) + "\n", **written}


def _names(page: str, methods: list[tuple[type, str]]) -> list[str]:
    """Return the names of methods, each once, as links to their parts of a page."""
    first = {name: cls for cls, name in reversed(methods)}
    anchors = {name: name if cls is Stream else f"{name}-of-a-{cls.__name__.lower()}" for name, cls in first.items()}
    return [f"[`{name}`]({page}.md#{anchors[name]})" for name in dict.fromkeys(name for _, name in methods)]


def _wrapped_entry(text: str) -> str:
    return textwrap.fill(text, 140, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def semantics(page: str) -> str:
    """Return docs/semantics.md with what the entries say: of operators, of kinds of windows, and how far CTIs go after these."""
    rows = [each for family in TITLES for entry in entries().values() if entry.page == family for each in entry.meaning]
    meanings = [_line(entry.meaning) for entry in kinds().values() if entry.meaning]
    grids = [name for name, entry in kinds().items() if all(isinstance(each, Grid) for each, _ in entry.instances.values())]
    ctis = {", ".join(grids): OF_GRIDS} | {row: cti for entry in kinds().values() for row, cti in entry.ctis.items()} | OF_OUTPUTS
    page = _filled(page, "table", HEAD + _rows([*rows, GROUPS]))
    page = _filled(page, "kinds", "".join(f"{_wrapped(each)}\n" for each in meanings))
    return _filled(page, "ctis", HEAD_OF_CTIS + _rows((row, _line(cti)) for row, cti in ctis.items()))


def _filled(page: str, name: str, text: str) -> str:
    """Return a page with a text between the marks of this name."""
    start, end = f"<!-- {name}: python -m tests.operator_pages -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(start)
    return before + start + text + end + rest.partition(end)[2]


def _rows(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _line(text: str) -> str:
    return " ".join(text.split())


def _wrapped(text: str) -> str:
    return _wrapped_entry(f"- {text}")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
    SEMANTICS.write_text(semantics(SEMANTICS.read_text()))
