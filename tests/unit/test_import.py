"""What `import streamdsl` gives, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamdsl as sd

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sd.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(sd, name) is not None


def test_what_is_not_exported_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = sd.nothing_of_the_kind  # type: ignore[attr-defined]


def test_sources_and_queries_import_no_heavy_library() -> None:
    code = (
        "import sys, streamdsl as sd\n"
        "query = sd.from_rows([(1, 5, 2)]).where(lambda e: e.value > 1).tumbling_window(5).aggregate(n=sd.count())\n"
        "assert len(query.run().cht()) == 1\n"
        "print(sorted({'pandas', 'pyspark', 'pyarrow', 'polars', 'matplotlib', 'hypothesis'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
