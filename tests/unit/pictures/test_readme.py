"""The picture of README is that of its query."""

from __future__ import annotations

from doctest import DocTestParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def test_the_picture_is_that_of_the_first_query() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    for example in DocTestParser().get_examples((ROOT / "README.md").read_text().partition("query.timeline()")[0]):
        exec(example.source, names)
    picture = names["query"].timeline(windows=True)
    assert picture.svg() == (ROOT / "docs/first-query.svg").read_text(), "picture.save('docs/first-query.svg') writes it"
