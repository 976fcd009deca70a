"""The pytest plugin, found by its entry point in a pytest of its own."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]
HEAVY = ("streamdsl", "numpy", "pandas", "hypothesis", "pyspark", "pyarrow", "polars")

TESTS = """
from collections.abc import Sequence

import pytest
import streamdsl as sd
from streamdsl.errors import UdmLawViolation

class First(sd.UDA[int, int]):
    def compute_result(self, payloads: Sequence[int]) -> int:
        return payloads[0]

@sd.uda
def largest(payloads: Sequence[int]) -> int:
    return max(payloads)

def test_a_good_module(check_udm):
    assert "order_insensitive" in check_udm(largest, window=(0, 20)).held

def test_a_bad_module(check_udm):
    check_udm(First, seed=3)

def test_orders(arrival_orders):
    cht = sd.CHT.from_rows([(1, 5, "a"), (2, 9, "b")])
    assert all(sd.CHT.from_events(events) == cht for events in arrival_orders(cht, 5))
    print("drawn:", arrival_orders(cht, 3))

def test_clock(virtual_clock):
    virtual_clock.advance("1s")
    assert virtual_clock() == 10**9
"""


@pytest.fixture
def pytester_with_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytest of its own, for which a distribution is installed that has the entry points in pyproject.toml."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = pytester.mkdir("site") / "streamdsl_under_test-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: streamdsl-under-test\nVersion: 0\n")
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *(f"{name} = {value}" for name, value in points.items())]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(info.parent), str(ROOT)]))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    return pytester


def test_fixtures_check_modules_and_draw_orders(pytester_with_plugin: pytest.Pytester) -> None:
    pytester_with_plugin.makepyfile(TESTS)
    done = pytester_with_plugin.runpytest_subprocess("-rA")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["*First breaks the law order_insensitive*"])
    other = pytester_with_plugin.runpytest_subprocess("-rA", "--streamdsl-seed=5", "-k", "orders")
    drawn = [line for found in (done, other) for line in found.outlines if line.startswith("drawn:")]
    assert len(drawn) == 2
    assert drawn[0] != drawn[1]


def test_pytest_starts_without_what_the_plugin_needs(pytester_with_plugin: pytest.Pytester) -> None:
    pytester_with_plugin.makepyfile(
        "import sys\n"
        "def test_nothing(request):\n"
        "    assert request.config.pluginmanager.has_plugin('streamdsl')\n"
        f"    assert [name for name in {HEAVY!r} if name in sys.modules] == []\n"
    )
    pytester_with_plugin.runpytest_subprocess().assert_outcomes(passed=1)
