"""Tables: of text for terminals, of HTML for Jupyter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def escape(value: str) -> str:
    """Return a text as HTML that shows it, as `html.escape` does, which is not imported before anything is shown.

    >>> escape("<a>")
    '&lt;a&gt;'
    """
    import html

    return html.escape(value)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table, a line for each row; titles are text, which is escaped, cells are HTML.

    >>> table(["le", "k"], [["1", escape("<a>")]]).count("&lt;a&gt;")
    1
    """
    body = "".join(f"\n<tr>{_cells('td', cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{_cells('th', map(escape, titles))}</tr></thead><tbody>{body}\n</tbody></table>"


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return rows of text in columns, some of them to the right.

    >>> print(columns([["a", "b"], ["long", "10"], ["c", "5"]], right=[1]))
    a      b
    long  10
    c      5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = (
        [cell.rjust(width) if n in right else cell.ljust(width) for n, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)


def text(lines: str) -> str:
    """Return preformatted text, escaped; characters are equally wide and lines whole, also on pages that say otherwise.

    >>> text("a < b")
    '<pre style="font-family: monospace; white-space: pre; overflow-x: auto">a &lt; b</pre>'
    """
    return f'<pre style="font-family: monospace; white-space: pre; overflow-x: auto">{escape(lines)}</pre>'


def _cells(tag: str, cells: Iterable[str]) -> str:
    return "".join(f'<{tag} style="text-align: left">{cell}</{tag}>' for cell in cells)
