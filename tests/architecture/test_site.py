"""The site has every page and every public name, and what its pages say of the code is so."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import streamdsl as sd
from streamdsl import sinks, sources
from tests import gallery_pages, site_pages
from tests.architecture.test_pages import EACH_PAGE, ROOT, prose

DOCS = ROOT / "docs"
HUBS = [DOCS / "index.md", *DOCS.glob("*/README.md")]
SUBMODULES = [name for name in dir(sd) if name not in sd.__all__ and name not in ("papers", "temporal", "windows")]
"""The modules of the door; those that are left out have names that are in the reference by themselves."""


def named(text: str) -> Any:
    """Return what a dotted name stands for."""
    parts = text.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(text)


def listed(hub: Path) -> set[Path]:
    return {(hub.parent / entry).resolve() for _, entry in site_pages.ENTRY.findall(hub.read_text())}


def test_every_page_is_in_a_list_of_pages() -> None:
    shown = set().union(*map(listed, HUBS))
    pages = {*ROOT.glob("*.md"), *DOCS.glob("**/*.md"), *ROOT.glob("notebooks/*.ipynb")}
    assert pages - shown == {DOCS / "index.md"}
    assert shown - pages == set()


def test_the_gallery_is_written_from_the_docstrings() -> None:
    assert {path: path.read_text() for path in gallery_pages.FOLDER.iterdir()} == gallery_pages.pages(), "run `make docs`"


def documented() -> list[str]:
    """Return the directives of the reference, each with its name."""
    text = "\n".join(page.read_text() for page in DOCS.glob("reference/*.md"))
    return re.findall(r"^\.\. auto(?:class|data|function|module):: (\S+)$", text, re.MULTILINE)


def test_every_public_name_is_in_the_reference() -> None:
    shown = [named(name) for name in documented()]
    shown += [getattr(each, name) for each in shown if isinstance(each, ModuleType) for name in getattr(each, "__all__", [])]
    assert [name for name in sd.__all__ if not any(getattr(sd, name) is each for each in shown)] == []
    assert [name for name in SUBMODULES if not any(each.startswith(f"streamdsl.{name}") for each in documented())] == []


def test_every_way_in_and_out_is_on_the_page_of_data() -> None:
    page = (DOCS / "data.md").read_text()
    assert [name for name in [*sources.__all__, *sinks.__all__] if name not in page] == []
    policies = [name for name, each in vars(sd.Progress).items() if isinstance(each, staticmethod)]
    assert [name for name in policies if f".{name}" not in page] == []


DEFINITIONS = sorted(set(re.findall(r"`((?:streamdsl|udm_examples)\.[\w.]+)`", (DOCS / "papers.md").read_text())))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_is_named_as_a_definition_of_a_paper_is_there(name: str) -> None:
    assert named(name) is not None


SHORT = re.compile(r"`(?:sd\.|(?=(?:secret|cql|astral)\.))(\w+(?:\.\w+)*)(?=[(`\[])")


@EACH_PAGE
def test_the_names_on_a_page_are_public(page: Path) -> None:
    if page.name != "CHANGELOG.md":
        assert [name for name in SHORT.findall("\n".join(prose(page.read_text()))) if not is_there(f"streamdsl.{name}")] == []


def is_there(name: str) -> bool:
    try:
        return named(name) is not None
    except (AttributeError, ModuleNotFoundError):
        return False


def test_a_name_that_is_not_there_is_found() -> None:
    found = SHORT.findall("`sd.point(id)`, `sd.pointt`, `secret.CORAL8`, `secret.CORAL9`")
    assert [name for name in found if not is_there(f"streamdsl.{name}")] == ["pointt", "secret.CORAL9"]
