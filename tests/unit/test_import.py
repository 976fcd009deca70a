"""What `import streamdsl` gives, and what it leaves alone."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import files, requires
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
import streamdsl.io.data_frames, streamdsl.result
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
    assert printed(code) == libraries


SLOW = {
    "asyncio",
    "concurrent",
    "html",
    "http",
    "importlib.resources",
    "lzma",
    "multiprocessing",
    "tempfile",
    "zoneinfo",
}
"""Modules of Python that take a millisecond or more, and that a query does not need."""


def test_the_import_takes_nothing_of_python_that_is_slow_and_not_needed() -> None:
    code = f"import numpy, sys\nbefore = set(sys.modules)\n{IMPORT + QUERY}\nprint(*sorted(set(sys.modules) - before))"
    assert printed(code) & SLOW == set()


def test_a_first_result_needs_few_modules_of_this_package() -> None:
    code = f"import sys\n{IMPORT + QUERY}\nprint(*(name for name in sys.modules if name.startswith('streamdsl.')))"
    rooms = {name.split(".")[1] for name in printed(code)}
    assert rooms & {"checks", "debugger", "demo", "jobs", "papers", "pictures", "sinks", "spark", "testing"} == set()


MEGABYTE = 1_000_000


def requirements(name: str) -> set[str]:
    """Return the distributions that one needs, without extras, with those that they need."""
    found = [line for line in requires(name) or [] if "extra ==" not in line]
    names = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in found if "sys_platform" not in line}
    return names.union(*(requirements(each) for each in names))


def installed_size(name: str) -> int:
    return sum(file.locate().stat().st_size for file in files(name) or [] if file.locate().is_file())  # type: ignore[attr-defined]


def test_the_core_is_small_beside_numpy_and_pandas() -> None:
    own = [path for folder in ("streamdsl", "udm_examples", "streamdsl_pytest") for path in (ROOT / folder).rglob("*")]
    source = sum(path.stat().st_size for path in own if path.suffix in (".py", ".html", ".typed"))
    assert source < 6 * MEGABYTE
    needed = requirements("streamdsl") - {"numpy", "pandas"} - requirements("pandas")
    assert needed == {"sortedcontainers", "typing-extensions"}
    # pip compiles what it installs; byte code is less than twice as long as the source.
    assert 3 * source + sum(map(installed_size, needed)) < 30 * MEGABYTE


def printed(code: str) -> set[str]:
    """Return the words that a program prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


PAPERS = "import sys\nprint(*(name for name in sys.modules if name.startswith('streamdsl.papers')))"


def test_a_query_imports_no_model_of_a_paper() -> None:
    assert printed(IMPORT + QUERY + PAPERS) == set()


PICTURES = "import sys\nprint(*(name for name in sys.modules if name.startswith('streamdsl.pictures')))"


def test_pictures_are_imported_when_one_is_drawn() -> None:
    assert printed(IMPORT + QUERY + PICTURES) == set()
    assert "streamdsl.pictures.svg_timeline" in printed(IMPORT + QUERY + "query.timeline().svg()\n" + PICTURES)


TABLE = """
import sys
import numpy as np
import pyarrow as pa
import streamdsl as sd
from streamdsl.expr.arrow_buffers import as_arrow, text_array

numbers = np.arange(40_000)
integers, few = as_arrow(numbers), as_arrow(numbers % 7)
columns = {
    "integers": few,
    "integers with nulls": as_arrow(numbers % 7, numbers % 5 == 0),
    "far integers": as_arrow(numbers % 7 << 40),
    "floats": as_arrow(numbers % 7 / 7),
    "texts": text_array([f"t{number % 7}" for number in range(len(numbers))]),
}
times = {"integers": integers, "dates": integers.view(pa.timestamp("us", "UTC"))}

def windows(stream, size):
    grouped = stream.where(lambda e: e.v >= 0).group_by("k").tumbling_window(size)
    return grouped.aggregate(n=sd.count(), mean=sd.avg(lambda e: e.v))

for le in times.values():
    size = "1ms" if pa.types.is_timestamp(le.type) else 1_000
    for column in columns.values():
        table = pa.table({"le": le, "k": column, "v": as_arrow(numbers * 0.5)})
"""
RUN = """
        found = windows(sd.from_arrow(table, start="le"), size).run().to_arrow()
        assert sum(chunk.to_pylist().__len__() for chunk in found.column("n").chunks) >= 40 * 7
"""
SESSION = """
        unit = "us" if pa.types.is_timestamp(le.type) else None
        session = windows(sd.source("s", unit=unit, progress=sd.Progress.ordered()), size).open(emit="final")
        assert len(session.feed(table).to_arrow()) >= 39 * 7
"""
LOADED = """
print(*{name.partition(".")[0] for name in sys.modules} & {"pandas", "numba", "polars"})
print(*(name for name in sys.modules if name.startswith("streamdsl.engine.operators.")))
"""


@pytest.mark.parametrize("program", [RUN, SESSION], ids=["a run", "a session"])
def test_a_first_run_over_arrow_tables_imports_what_it_needs(program: str) -> None:
    operators = {f"streamdsl.engine.operators.{name}" for name in ("columnar_windows", "driver", "group_apply", "span")}
    assert printed(TABLE + program + LOADED) == operators
