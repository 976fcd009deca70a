"""What tests share: the number of random examples, where files are, which tests share a process, and what is garbage."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.laws.profiles import load_profile

SPARK = Path(__file__).parent / "spark"
IN_MEMORY = Path("/dev/shm")
ROOM = 2**31
HAS_BEGUN = pytest.StashKey[bool]()

load_profile()


def pytest_configure() -> None:
    """Let files of tests be in memory where there is room: else most of them wait until a disk has what they write."""
    if "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
        tempfile.tempdir = str(IN_MEMORY)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == SPARK:
            item.add_marker(pytest.mark.spark)


def pytest_collection_finish() -> None:
    """Let the collector of garbage not look through all modules and tests again and again, and through what is new less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let Spark go first where there are more processes than cores.

    Its tests are handed out before all others and wait for one another, so the last of them end the whole run.
    """
    if hasattr(item.config, "workerinput") and not item.config.stash.get(HAS_BEGUN, False):
        item.config.stash[HAS_BEGUN] = True
        if item.path.parent != SPARK:
            os.nice(5)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Return a scheduler that gives all tests on Spark to one process: a session takes long to start, and to warm up.

    The tests of one story stay together, and so do the cases of one function: to hand these out one by one costs more than most
    of them take, as xdist counts all that it has given away each time. The test of a cluster has a Spark of its own, so that
    it may run beside the others. All are known by files and names: with pytest 9.2, xdist 3.8 does not see the groups of marks.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if "/stories/" in file or "/typing/" in file or file.endswith("/test_cluster.py"):
                return file
            return "spark" if "/spark/" in file else nodeid.partition("[")[0]

    return Together(config, log)
