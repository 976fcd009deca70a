"""What all tests share: how many random examples there are, and that all Spark tests run in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laws.profiles import load_profile

SPARK = Path(__file__).parent / "spark"

load_profile()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SPARK in item.path.parents or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
