"""Examples in docstrings that need an extra which is not installed are skipped, and say so."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDS = {Path(__file__).parent / "udm_examples" / "online_learning.py": ("river", "learning")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples of each file whose package is missing."""
    for item in items:
        package, extra = NEEDS.get(item.path, ("", ""))
        if package and find_spec(package) is None:
            item.add_marker(pytest.mark.skip(reason=f"{package} is not installed: pip install 'streamdsl[{extra}]'"))
