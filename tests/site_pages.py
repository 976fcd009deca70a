"""What the site makes of pages that are written for GitHub too: an extension of Sphinx (docs/conf.py)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parent.parent
WRITTEN: Final = {ROOT / "udm_examples": ROOT / "docs" / "gallery" / "README.md"}
LINK: Final = re.compile(r"(\]\()([^)#\s]+)")
ENTRY: Final = re.compile(r"(?:- |\d+\. )\[([^\]]+)\]\(([^)#]+\.(?:md|ipynb))\)")
PLACES: Final = ("", "sources.", "aggregates.", "functions.", "udm.", "sql.", "temporal.")
"""Where the reference has names of the door."""
RETURNED: Final = [f"streamdsl.{name}" for name in ("result.Result", "engine.query_session.Session", "engine.outgoing.Outgoing")]
"""Classes whose objects are made by methods alone."""
SPOKEN: Final = {
    "sd": "",
    "streamdsl": "",
    **{name: f"{name}." for name in ("secret", "cql", "astral", "progress")},
    "query": "Stream.",
    "stream": "Stream.",
    "cht": "CHT.",
    "session": "engine.query_session.Session.",
    "result": "result.Result.",
    "trace": "debugger.EventTrace.",
}
"""What names on pages begin with, and where the reference has these."""
PUBLIC: Final = re.compile(rf"({'|'.join(SPOKEN)})\.([\w.]*\w)(?:\(.*\))?", re.DOTALL)


def with_folders_as_pages(text: str, folder: Path) -> str:
    """Return a page in which a link to a folder is one to its README.md, as on GitHub, or to the page that is written of it.

    >>> with_folders_as_pages("[why](decisions/), [how](sql.md), [web](https://x.org), [what](../udm_examples)", ROOT / "docs")
    '[why](decisions/README.md), [how](sql.md), [web](https://x.org), [what](gallery/README.md)'
    """

    def page(link: re.Match[str]) -> str:
        linked = (folder / link[2]).resolve()
        first = WRITTEN.get(linked, linked / "README.md")
        is_folder = "://" not in link[2] and first.exists()
        return link[1] + os.path.relpath(first, folder) if is_folder else link[0]

    return LINK.sub(page, text)


def with_tables_of_contents(text: str, docname: str) -> str:
    """Return a list of pages with what makes it the site's table of contents: a part for each of its sections.

    >>> print(with_tables_of_contents("# All\\n\\n## Why\\n\\n- [One law](1-law.md): short.\\n", "docs/README"))
    # All
    <BLANKLINE>
    ## Why
    <BLANKLINE>
    - [One law](1-law.md): short.
    <BLANKLINE>
    ```{toctree}
    :hidden:
    :caption: Why
    One law </docs/1-law>
    ```
    <BLANKLINE>
    """
    parts = []
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title = re.match(r"## (.+)", part)
        entries = [f"{name} </{_joined(docname, link)}>" for name, link in ENTRY.findall(part)]
        options = [":hidden:", *([f":caption: {title[1]}"] if title else [])]
        parts += [part, *(["\n".join(["\n```{toctree}", *options, *entries, "```\n"])] if entries else [])]
    return "".join(parts)


def _joined(docname: str, link: str) -> str:
    """Return the name of the page that a link of another one leads to."""
    parts: list[str] = []
    for part in (PurePosixPath(docname).parent / link).with_suffix("").parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def with_words_in_the_index(text: str) -> str:
    """Return a page whose tables of words find each by its name: a search gives the word before pages that use it.

    >>> with_words_in_the_index("| **LE**, **RE** | The **ends**. |")
    '| {index}`LE <!LE>`, {index}`RE <!RE>` | The **ends**. |'
    """
    return re.sub(
        r"^\| \*\*[^|]*", lambda words: re.sub(r"\*\*(.*?)\*\*", r"{index}`\1 <!\1>`", words[0]), text, flags=re.MULTILINE
    )


def as_rst(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring, which is Markdown, in the language of autodoc; examples and pictures stay as they are.

    >>> list(as_rst(["`a_` is *x_*, as docs/sql.md says.", "", ">>> `a`", "'a'", "", "    [--)"]))
    ['``a_``\\\\  is \\\\*x\\\\_\\\\*, as :doc:`/docs/sql` says.', '', '>>> `a`', "'a'", '', '::', '', '    [--)', '']
    """
    for paragraph in "\n".join(lines).split("\n\n"):
        shown = paragraph.startswith((">>>", "    "))
        yield from ("::", "") if paragraph.startswith("    ") else ()
        yield from (paragraph if shown else "".join(_in_rst(paragraph))).split("\n")
        yield ""


def _in_rst(paragraph: str) -> Iterator[str]:
    for n, part in enumerate(re.split(r"`+", paragraph)):
        if n % 2:
            yield f"``{part}``\\ "
        else:
            escaped = re.sub(r"([*_|\\])", r"\\\1", part)
            yield re.sub(r"docs/([\w/-]+)\.md", lambda page: f":doc:`/docs/{page[1]}`".replace("\\", ""), escaped)


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    content[0] = with_folders_as_pages(content[0], ROOT / PurePosixPath(docname).parent)
    if app.env.doc2path(docname).suffix == ".md":
        content[0] = content[0].replace("\n\n```\n", "\n```\n")  # what ends a doctest's answer is no part of it
    if docname == "docs/glossary":
        content[0] = with_words_in_the_index(content[0])
    if docname.startswith("docs/") and docname.rpartition("/")[2] in ("index", "README"):
        content[0] = with_tables_of_contents(content[0], docname)


def _documented(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def _signed(app: Sphinx, what: str, name: str, obj: Any, options: Any, parameters: str | None, result: str | None) -> Any:
    """Leave out how a class is called that users do not call."""
    return ("", None) if what == "class" and (name in RETURNED or "_node" in (parameters or "")) else None


def _with_names(app: Sphinx, doctree: Any) -> None:
    """Make each public name in code a reference; what is none stays code."""
    from docutils import nodes  # type: ignore[import-untyped]
    from sphinx import addnodes

    for code in list(doctree.findall(nodes.literal)):
        name = PUBLIC.fullmatch(code.astext())
        if name and not isinstance(code.parent, nodes.reference | nodes.title | addnodes.pending_xref):
            target = {"reftarget": f"streamdsl.{SPOKEN[name[1]]}{name[2]}", "refdoc": app.env.docname}
            reference = addnodes.pending_xref("", refdomain="py", reftype="obj", **target)
            code.replace_self(reference)
            reference += code


def _found(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Find a name of the door in the module in which the reference has it."""
    from sphinx.util.nodes import make_refnode

    door, _, name = str(node.get("reftarget", "")).partition(".")
    objects = env.domains["py"].objects
    found = next((objects[full] for place in PLACES if (full := f"streamdsl.{place}{name}") in objects), None)
    if door != "streamdsl" or found is None:
        return None
    return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts with Sphinx."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _documented)
    app.connect("autodoc-process-signature", _signed)
    app.connect("doctree-read", _with_names)
    app.connect("missing-reference", _found)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
