"""mypy on the files of this folder: what it must infer, and what it must refuse (an accepted wrong line is an unused ignore)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
FILES = sorted(path.name for path in FOLDER.glob("*.py") if not path.name.startswith(("test_", "__")))


def mypy(*files: Path) -> list[str]:
    """Return the complaints about files, `name:line: ...`."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if any(file.name in line.split(":")[0] for file in files)]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of all files, and of a program that is wrong: to start it takes longest."""
    wrong = tmp_path_factory.mktemp("typing") / "wrong_program.py"
    wrong.write_text(WRONG)
    return mypy(*(FOLDER / name for name in FILES), wrong)


@pytest.mark.parametrize("name", FILES)
def test_types_are_inferred_and_mistakes_refused(name: str, complaints: list[str]) -> None:
    assert [line for line in complaints if f"typing/{name}:" in line] == []


WRONG = """
import streamdsl as sd
from tests.typing.payloads import Median, trips

trips.where(lambda e: e.faer > 3)
trips.tumbling_window(10).aggregate(mean=sd.avg(lambda e: e.faer))
trips.tumbling_window(10).aggregate(lambda w: w.count() + w.max(lambda e: e.faer))
trips.tumbling_window(10).aggregate(Median(), lambda e: e.vendor)
trips.where(lambda e: e.fare > 3)  # type: ignore[attr-defined]
"""


def test_complaints_name_the_mistake(complaints: list[str]) -> None:
    found = [line.split(":", 1)[1] for line in complaints if "wrong_program.py:" in line and "error:" in line]
    expected = [
        (5, '"Trip" has no attribute "faer"'),
        (6, '"Trip" has no attribute "faer"'),
        (7, '"Trip" has no attribute "faer"'),
        (8, 'incompatible type "Callable[[Trip], str]"; expected "Callable[[Trip], float]"'),
        (8, 'got "str", expected "float"'),
        (9, "Unused"),
    ]
    assert len(found) == len(expected)
    assert all(line.startswith(f"{number}:") and text in line for line, (number, text) in zip(found, expected, strict=True))
