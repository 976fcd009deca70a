"""Parts of SVG pictures: documents in the colours of the page that they are on, text, lines and bars."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
"""Colours that people with any kind of colour vision tell apart (M. Okabe, K. Ito, 2008)."""
_STYLE: Final = (
    ".sd text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:currentColor}"
    ".sd .quiet{fill-opacity:.72}.sd .grid{stroke:currentColor;stroke-opacity:.16}.sd .name{font-weight:600}"
    ".sd:root{color:#24292f}.sd:root .paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){.sd:root{color:#e6edf3}.sd:root .paper{fill:#0d1117}}"
)
"""Each rule is about the class `sd`, since a page with the picture in it obeys them too.

On a page texts and lines have the colour of the page's text, and nothing is behind them: the picture is as dark as the page. A
file, which is a root, has a paper of its own.
"""


def picture(parts: Iterable[str], width: int, height: int, style: str = "") -> str:
    """Return an SVG document, a line for each part; `style` is CSS that they need besides that of all pictures, about `.sd`.

    >>> picture([], 10, 10).count("<rect")
    1
    """
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="sd" role="img"><style>{_STYLE}{style}</style>'
    return "\n".join([f'{head}<rect class="paper" fill="none" width="{width}" height="{height}"/>', *parts, "</svg>"])


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
    return f'<rect {place} rx="3" fill="{colour}" fill-opacity=".35" stroke="{colour}"/>'
