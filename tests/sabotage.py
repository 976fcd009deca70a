"""Break the engine on purpose, in a copy, and see that the laws notice: `python -m tests.sabotage`.

Each sabotage is one small change that a tired programmer could make. If the tests named with it still pass, they prove less than
they say; if its text is no longer found, the sabotage must follow the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAWS = "tests/laws/test_operators.py"


@dataclass(frozen=True)
class Sabotage:
    """One change of the engine: in `file`, `old` becomes `new`; `tests` (a pytest `-k` expression over the laws) must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


SABOTAGES: tuple[Sabotage, ...] = ()


def attempt(sabotage: Sabotage) -> str | None:
    """Return what is wrong with a sabotage, or None if the laws caught it."""
    with tempfile.TemporaryDirectory(prefix="sabotage-") as folder:
        copy = Path(folder)
        for part in ("streamdsl", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        target = copy / sabotage.file
        text = target.read_text()
        if text.count(sabotage.old) != 1:
            return f"its text is in {sabotage.file} {text.count(sabotage.old)} times, not once"
        target.write_text(text.replace(sabotage.old, sabotage.new))
        return verdict(run_laws(copy, sabotage.tests))


def run_laws(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", LAWS, "-k", tests]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def verdict(laws: subprocess.CompletedProcess[str]) -> str | None:
    """Return None if tests ran and failed with the law's own complaint, not with a broken import or an unknown name."""
    if laws.returncode == 0:
        return "the laws still pass"
    if laws.returncode != 1 or "SyntaxError" in laws.stdout or "ImportError" in laws.stdout:
        return f"the laws did not run:\n{laws.stdout[-2000:]}{laws.stderr[-2000:]}"
    return None


def main(names: Sequence[str] = ()) -> int:
    chosen = [sabotage for sabotage in SABOTAGES if not names or sabotage.name in names]
    failures = 0
    with ThreadPoolExecutor(2) as pool:
        for sabotage, problem in zip(chosen, pool.map(attempt, chosen), strict=True):
            print(f"{'caught' if problem is None else 'MISSED'}  {sabotage.name}", flush=True)
            if problem:
                failures += 1
                print(f"        {problem}")
    print(f"{len(chosen) - failures} of {len(chosen)} sabotages were caught")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
