"""HTML tables and text for Jupyter."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; titles are text, which is escaped, cells are HTML.

    >>> table(["le", "k"], [["1", escape("<a>")]]).count("&lt;a&gt;")
    1
    """
    body = "".join(f"<tr>{_cells('td', cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{_cells('th', map(escape, titles))}</tr></thead><tbody>{body}</tbody></table>"


def text(lines: str) -> str:
    """Return preformatted text, escaped.

    >>> text("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(lines)}</pre>"


def _cells(tag: str, cells: Iterable[str]) -> str:
    return "".join(f'<{tag} style="text-align: left">{cell}</{tag}>' for cell in cells)
