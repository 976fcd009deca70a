"""The door `import streamdsl as sd`: modules open when they are asked for, and old names say where they are now."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import streamdsl as sd
import streamdsl.functions as f
import streamdsl.papers
from streamdsl.functions import length
from streamdsl.moved import MOVED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "place"), MOVED.items())
def test_an_old_name_warns_and_gives_the_same_object(name: str, place: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"^streamdsl.{name} has moved: write streamdsl.{place}.{name};") as seen:
        found = getattr(sd, name)
    assert found is getattr(import_module(f"streamdsl.{place}"), name)
    assert [each.filename for each in seen] == [__file__]


def test_an_old_name_is_no_public_name_and_one_that_type_checkers_know() -> None:
    assert MOVED.keys() & {*sd.__all__, *dir(sd), *vars(sd)} == set()
    text = (ROOT / "streamdsl" / "__init__.py").read_text()
    assert [name for name in MOVED if f"import {name} as {name}\n" not in text] == []


OLD = """import streamdsl as sd
import sys
limit = sd.param("limit", int)
from streamdsl import check, UDSO
long = sd.from_rows([(1, 2, "tide"), (3, 4, "ebb")]).where(
    lambda e: sd.length(e) > 3,
)
print(long.explain().count("opaque"), len(long.run().cht()))
"""


def test_a_program_with_old_names_runs_and_the_warnings_show_its_lines(tmp_path: Path) -> None:
    program = tmp_path / "old.py"
    program.write_text(OLD)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stdout) == (0, "0 1\n")
    shown = [line.split(":")[:2] for line in done.stderr.splitlines() if "has moved" in line]
    assert {(Path(file).name, line) for file, line in shown} == {("old.py", "3"), ("old.py", "4"), ("old.py", "6")}
    assert 'limit = sd.param("limit", int)' in done.stderr


def test_old_names_are_errors_in_this_project() -> None:
    with pytest.raises(DeprecationWarning, match="has moved"):
        _ = sd.check


def test_the_name_that_another_library_has_for_an_aggregate_is_told_the_one_here() -> None:
    with pytest.raises(AttributeError, match="no attribute 'mean'\nHint: it is called 'avg' here"):
        sd.mean  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(sd, "std")


def test_new_places_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [name for name, place in MOVED.items() if getattr(getattr(sd, place), name) is None] == []


OPENED = """
import sys
import streamdsl as sd
before = set(sys.modules)
print(*(f"streamdsl.{name}" for name in dir(sd) if f"streamdsl.{name}" in before))
"""


def opened(program: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()


def test_the_import_opens_no_room_that_it_does_not_need() -> None:
    assert set(opened(OPENED)) == {
        f"streamdsl.{name}" for name in ("emit", "errors", "functions", "pattern", "sources", "sql", "temporal", "udm", "windows")
    }


def test_every_name_of_dir_is_there_in_a_fresh_process() -> None:
    program = "import streamdsl as sd\nprint(*(name for name in dir(sd) if getattr(sd, name) is not None))"
    assert opened(program) == dir(sd)


@pytest.mark.parametrize("name", streamdsl.papers.__all__)
def test_models_of_papers_are_reached_from_the_door(name: str) -> None:
    program = f"import streamdsl as sd\nprint(sd.papers.{name}.__name__, *dir(sd.papers))"
    assert opened(program) == [f"streamdsl.papers.{name}", *streamdsl.papers.__all__]


def test_there_is_no_other_paper() -> None:
    with pytest.raises(AttributeError, match=r"module 'streamdsl\.papers' has no attribute 'paper_005'"):
        _ = streamdsl.papers.paper_005  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "long", [lambda e: length(e) > 3, lambda e: f.length(e) > 3, lambda e: sd.functions.length(e) > 3], ids=["bare", "f", "sd"]
)
def test_functions_are_traced_by_whatever_way_they_are_reached(long: Callable[[str], bool]) -> None:
    kept = sd.from_rows([(1, 2, "tide"), (3, 4, "ebb")]).where(long)
    assert "where_1 length(e) > 3 " in kept.explain()
    assert [row.payload for row in kept.run().cht()] == ["tide"]
