"""Run every notebook from the top in a fresh kernel: `python -m tests.run_notebooks`. A cell that raises fails the run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"


def stored_output(notebook: nbformat.NotebookNode) -> bool:
    return any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


def run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    if stored_output(notebook):
        raise SystemExit(f"{path.name} holds stored output: clear it before it is committed")
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    print(f"{path.name}: {len(notebook.cells)} cells ran")


def main() -> int:
    paths = sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        run(path)
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
