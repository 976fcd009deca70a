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


IMPORT = "import streamdsl as sd"
QUERY = """
query = sd.from_rows([(1, 5, 2)]).where(lambda e: e > 1).tumbling_window(5).aggregate(n=sd.count())
assert len(query.run().cht()) == 1
assert len(sd.from_events([sd.Insert("a", 1, 5, "x"), sd.Cti(3)]).snapshot_window().aggregate(n=sd.count()).run().cht()) == 1
import streamdsl.io.frames, streamdsl.result
"""


@pytest.mark.parametrize(
    ("program", "libraries"),
    [(IMPORT, {"numpy", "typing_extensions"}), (IMPORT + QUERY, {"numpy", "typing_extensions", "sortedcontainers"})],
    ids=["the import alone", "sources, queries and results"],
)
def test_what_is_imported_of_other_libraries(program: str, libraries: set[str]) -> None:
    code = (
        f"import sys\nbefore = set(sys.modules)\n{program}\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(names - {'streamdsl'} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(done.stdout.split()) == libraries
