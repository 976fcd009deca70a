"""Parts of SVG pictures: documents that fit light and dark pages, text, lines and bars."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from streamdsl.temporal.payload import show

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
"""Colours that people with any kind of colour vision tell apart (M. Okabe, K. Ito, 2008)."""
_STYLE: Final = (
    ".sd text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#24292f}"
    ".sd .paper{fill:#fff}.sd .quiet{fill:#57606a}.sd .grid{stroke:#57606a;stroke-opacity:.22}.sd .name{font-weight:600}"
    "@media(prefers-color-scheme:dark){.sd text{fill:#e6edf3}.sd .paper{fill:#0d1117}.sd .quiet{fill:#9da7b3}"
    ".sd .grid{stroke:#9da7b3}}"
)
"""Each rule is about the class `sd`, since a page with the picture in it obeys them too."""


def picture(parts: Iterable[str], width: int, height: int, style: str = "") -> str:
    """Return an SVG document of these parts; `style` is CSS that they need besides that of all pictures, about `.sd`.

    >>> picture([], 10, 10).count("<rect")
    1
    """
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="sd" role="img"><style>{_STYLE}{style}</style>'
    return f'{head}<rect class="paper" width="{width}" height="{height}"/>{"".join(parts)}</svg>'


def label(x: float, y: float, text: str, css: str = "", anchor: str = "start") -> str:
    """Return a line of text, optionally with the class "name" or "quiet".

    >>> "&lt;" in label(1, 2, "<a>")
    True
    """
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(text)}</text>'


def grid_line(x: float, top: float, bottom: float) -> str:
    """Return a vertical grid line.

    >>> grid_line(1, 2, 3)
    '<line class="grid" x1="1.0" x2="1.0" y1="2" y2="3"/>'
    """
    return f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'


def bar(low: float, high: float, top: float, height: float, colour: str) -> str:
    """Return the bar of an interval, at least 3 wide, so that it can be seen.

    >>> "#000" in bar(1, 2, 3, 4, "#000")
    True
    """
    place = f'x="{low:.1f}" y="{top}" width="{max(3.0, high - low):.1f}" height="{height}"'
    return f'<rect {place} rx="3" fill="{colour}" fill-opacity=".35"/>'


def cut(payload: object, most: int = 28) -> str:
    """Return a payload as one line of at most `most` characters.

    >>> cut({"k": "a"}, 28), cut("rain", 28), cut(({"k": "a"}, 7), 28), cut("a" * 40, 8)
    ("k='a'", 'rain', "(k='a', 7)", 'aaaaaaa…')
    """
    text = " ".join((payload if isinstance(payload, str) and payload else _shown(payload)).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shown(payload: object) -> str:
    """Return what `show` does, with the parts of a tuple, such as the rows of a join, shown likewise."""
    if isinstance(payload, tuple) and not hasattr(payload, "_fields"):
        return f"({', '.join(map(_shown, payload))})"
    return show(payload)
