"""Examples in docstrings that need an extra which is not installed are skipped, and say so."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
NEEDS = {ROOT / page: ("river", "learning") for page in ("udm_examples/online_learning.py", "docs/gallery/online_learning.md")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples of each file whose package is missing."""
    for item in items:
        package, extra = NEEDS.get(item.path, ("", ""))
        if package and find_spec(package) is None:
            item.add_marker(pytest.mark.skip(reason=f"{package} is not installed: pip install 'streamdsl[{extra}]'"))
