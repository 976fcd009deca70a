"""The pages hold together: links and their anchors lead somewhere, and examples are marked as code that runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")])
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a page, each with the language of the block of code that it is in, and "" outside."""
    language = ""
    for line in text.splitlines():
        if line.startswith("```"):
            language = "" if language else line[3:] or "text"
        else:
            yield language, line


def prose(text: str) -> list[str]:
    return [line for language, line in parts(text) if not language]


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    found: Counter[str] = Counter()
    for title in (line.lstrip("#").strip() for line in prose(page.read_text()) if re.match(r"#+ ", line)):
        found[re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")] += 1
    return frozenset(name if n == 0 else f"{name}-{n}" for name, times in found.items() for n in range(times))


def broken(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead nowhere."""
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", "\n".join(prose(page.read_text())))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


BASES = [ROOT / base for base in ("", "streamdsl", "streamdsl/engine", "tests")]
INVENTED = ("my_node", "bursts", "test_bursts")
"""Modules that the recipes of CONTRIBUTING.md make."""


@EACH_PAGE
def test_modules_are_named_as_they_are(page: Path) -> None:
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+)\.py`", "\n".join(prose(page.read_text())))
    if page.name != "CHANGELOG.md":
        wrong = [name for name in named if not any((base / f"{name}.py").exists() for base in BASES)]
        assert [name for name in wrong if name.rpartition("/")[2] not in INVENTED] == []


@EACH_PAGE
def test_examples_are_marked_as_code(page: Path) -> None:
    """Outside a block, `>>>` is a quotation of a quotation of a quotation."""
    assert [line for line in prose(page.read_text()) if line.lstrip().startswith(">>>") and line[:4].strip()] == []


@EACH_PAGE
def test_code_in_python_is_an_example_that_runs(page: Path) -> None:
    """`make doctest` runs what begins with `>>>`, and answers are as shown."""
    blocks = "\n".join(line for language, line in parts(page.read_text()) if language == "python").split("\n\n")
    assert [block for block in blocks if block.strip() and ">>>" not in block] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# One `title`, of two\n\n# One `title`, of two\n")
    page.write_text("[a](other.md#one-title-of-two-1), [b](other.md#no-title), [c](none.md), `[d](none.md)`, [e](https://none)\n")
    assert list(broken(page)) == ["other.md#no-title", "none.md"]
