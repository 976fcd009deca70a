"""The site is built of the pages as they are, says where a link leads nowhere, and its search works from files."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import site_pages
from tests.architecture.test_pages import ROOT
from tests.unit.debugger.test_page import BROWSER, FLAGS, in_a_browser

pytest.importorskip("sphinx", reason="pip install 'streamdsl[docs]'")
pytestmark = pytest.mark.xdist_group("site")


def test_the_examples_of_what_is_made_of_pages_run() -> None:
    tried = doctest.testmod(site_pages)
    assert (tried.failed, tried.attempted) == (0, 4)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a site of two pages, and what the builder said of it."""
    site = tmp_path_factory.mktemp("site")
    only = "include_patterns=docs/index.md,docs/glossary.md"
    command = [sys.executable, "-m", "sphinx", "-q", "-c", "docs", "-D", only, ".", str(site)]
    return site, subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stderr


def test_links_to_pages_that_are_not_there_are_warned_of(built: tuple[Path, str]) -> None:
    _, said = built
    missing = set(re.findall(r"Unknown source document '(.*?)'", said))
    assert {"docs/semantics", "docs/decisions/README", "README", "notebooks/01_first_query"} <= missing
    assert "docs/glossary" not in missing


def test_the_first_page_leads_to_the_list_of_pages(built: tuple[Path, str]) -> None:
    site, _ = built
    assert 'url=docs/index.html"' in (site / "index.html").read_text()
    assert (site / "docs" / "index.html").exists()


@in_a_browser
def test_a_search_from_a_file_finds_a_word_of_the_glossary_first(built: tuple[Path, str], tmp_path: Path) -> None:
    url = f"{(built[0] / 'search.html').as_uri()}?q=retraction"
    command = [str(BROWSER), *FLAGS.split(), f"--user-data-dir={tmp_path}", "--dump-dom", url]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = re.findall(r'<li class="(kind-\w+)"><a href="([^"#]+)', page)
    assert found == [("kind-index", "docs/glossary.html"), ("kind-text", "docs/glossary.html")]
