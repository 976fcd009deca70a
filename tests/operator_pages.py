"""Write docs/operators/: a page for each family of operators, from the docstrings of the facade (`make docs`)."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Final

from streamdsl.stream import GroupedStream, GroupedWindowedStream, Stream, WindowedStream
from streamdsl.temporal import INFINITY

FOLDER: Final = Path(__file__).parent.parent / "docs" / "operators"
FAMILIES: Final[dict[str, tuple[str, list[tuple[type, str]]]]] = {
    "rows": (
        "Row by row",
        [
            (Stream, name)
            for name in (
                "where",
                "select",
                "select_many",
                "alter_lifetime",
                "alter_duration",
                "shift",
                "extend",
                "clip_duration",
                "clip_interval",
                "quantize",
                "chop",
                "to_points",
                "to_points_at_end",
            )
        ],
    ),
    "order": (
        "Rows in order, and rows that meet",
        [(Stream, name) for name in ("to_edges", "distinct", "stitch", "fill", "scan", "throttle", "match")],
    ),
    "combining": (
        "Several streams",
        [
            (Stream, name)
            for name in (
                "union",
                "join",
                "left_join",
                "full_join",
                "semi_join",
                "anti_join",
                "asof_join",
                "band_join",
                "clip_by",
                "multicast",
                "bind",
            )
        ],
    ),
    "windows": (
        "Windows and groups",
        [
            (Stream, "tumbling_window"),
            (Stream, "hopping_window"),
            (Stream, "trailing_window"),
            (Stream, "snapshot_window"),
            (Stream, "count_window"),
            (Stream, "session_window"),
            (Stream, "windows"),
            (WindowedStream, "aggregate"),
            (WindowedStream, "aggregate_as"),
            (WindowedStream, "apply"),
            (WindowedStream, "top_k"),
            (WindowedStream, "describe"),
            (WindowedStream, "output_cti"),
            (Stream, "group_by"),
            (GroupedStream, "apply"),
            (GroupedWindowedStream, "aggregate"),
        ],
    ),
    "running": (
        "Running a query",
        [
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
    ),
}


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
    return {FOLDER / f"{name}.md": page(*family) for name, family in FAMILIES.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)
