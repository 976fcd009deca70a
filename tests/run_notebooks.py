"""Run every notebook from the top in a fresh kernel, and compare its outputs with those that are stored in it.

`python -m tests.run_notebooks` runs all, `python -m tests.run_notebooks 03` those whose names have that; `--store` stores the
outputs anew. A cell that raises fails the run. What is stored is clean: no times, no paths and nothing of the machine, so that a
notebook that says the same has the same bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from difflib import unified_diff
from pathlib import Path
from time import monotonic
from typing import Any, Final

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER: Final = Path(__file__).parents[1] / "notebooks"
METADATA: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
MOST_LINES: Final = 40
"""The lines of a difference that are shown."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_CHART_ID: Final = re.compile(r"\baltair-viz-[0-9a-f]{32}\b")
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}\b")
_BYTES: Final = re.compile(r"(&quot;,)\d+(?=,\[(?:&quot;|\]))")
"""The bytes of an operator on the debugger's page, which each version of Python counts otherwise."""
_OF_THE_MACHINE: Final = re.compile(r"(?<![\w.])/(?:home|tmp|root|usr|var|work|Users)/")


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook as it is when all its cells have run, in a folder of its own, with clean outputs."""
    made = deepcopy(notebook)
    os.environ["STREAMDSL_PROGRESS"] = "0"  # what is slow on one machine is not on another
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(made, timeout=600, kernel_name="python3", record_timing=False, resources=resources).execute()
    return cleaned(made)


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook without what differs from run to run: metadata, what goes to stderr, places in memory, ids of charts."""
    made, ids = deepcopy(notebook), dict[str, str]()
    made.metadata = nbformat.from_dict(METADATA)
    for cell in made.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = [nbformat.from_dict(each) for each in _outputs(cell, ids)]
    return made


def _outputs(cell: nbformat.NotebookNode, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a cell; what was printed in several parts is one."""
    printed = ""
    for output in cell.outputs:
        if output.output_type == "stream":
            printed += output.text if output.name == "stdout" else ""
            continue
        if printed:
            yield _printed(printed)
            printed = ""
        yield {**output, "metadata": {}, "data": {mime: _stable(value, ids) for mime, value in output.data.items()}}
    if printed:
        yield _printed(printed)


def _printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": _stable(text, {})}


def _stable(value: Any, ids: dict[str, str]) -> Any:
    """Return a text without places in memory, and with charts numbered that Altair has given an id by chance."""
    if not isinstance(value, str):
        return value
    numbered = _CHART_ID.sub(lambda found: ids.setdefault(found[0], f"altair-viz-{len(ids) + 1}"), value)
    return _ADDRESS.sub("0x...", numbered)


def shown(notebook: nbformat.NotebookNode) -> dict[str, list[str]]:
    """Return all that is stored of outputs, by cell, output and kind, as lines, but for bytes of states."""
    found = {}
    for number, cell in enumerate(notebook.cells):
        for place, output in enumerate(cell.get("outputs", ())):
            kinds = {"stdout": output.text} if output.output_type == "stream" else output.data
            for kind, value in sorted(kinds.items()):
                found[f"cell {number} ({cell.id}), output {place}, {kind}"] = _BYTES.sub(r"\1...", str(value)).splitlines()
    return found


def differences(stored: nbformat.NotebookNode, now: nbformat.NotebookNode) -> Iterator[str]:
    """Yield what differs between the outputs that are stored and those of a run, a text for each."""
    before, after = shown(stored), shown(now)
    for where in {**before, **after}:
        if where not in after or where not in before:
            yield f"{where}: {'stored, but the run gives none' if where in before else 'the run gives it, but none is stored'}"
        elif before[where] != after[where]:
            lines = list(unified_diff(before[where], after[where], "stored", "now", n=1, lineterm=""))
            more = [f"... {len(lines) - MOST_LINES} lines more"] if len(lines) > MOST_LINES else []
            yield "\n".join([f"{where}:", *(f"  {line[:200]}" for line in [*lines[:MOST_LINES], *more])])


def blemishes(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Yield what a stored notebook should not have: a cell that has not run, metadata, what is of the machine."""
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(codes, 1):
        if cell.execution_count != count:
            yield f"cell {cell.id} has not run in order"
    if dict(notebook.metadata) != METADATA or any(dict(cell.metadata) for cell in notebook.cells):
        yield "it has metadata of a run"
    for where, lines in shown(notebook).items():
        yield from (f"{where} has a path of the machine: {line.strip()[:120]}" for line in lines if _OF_THE_MACHINE.search(line))


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return the text of a notebook's file."""
    return f"{nbformat.writes(notebook).rstrip()}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run_notebooks", description="Run the notebooks.")
    parser.add_argument("names", nargs="*", help="parts of the names of those that are meant; none: all")
    parser.add_argument("--store", action="store_true", help="store their outputs, instead of comparing them")
    given = parser.parse_args(arguments)
    paths = [path for path in sorted(FOLDER.glob("*.ipynb")) if not given.names or any(name in path.name for name in given.names)]
    wrong = 0
    for path in paths:
        stored, start = nbformat.read(path, as_version=4), monotonic()
        try:
            now = executed(stored)
        except CellExecutionError as error:
            print(f"{path.name}: {_COLOUR.sub('', str(error))}", flush=True)
            wrong += 1
            continue
        found = [*blemishes(now), *([] if given.store else [*blemishes(stored), *differences(stored, now)])]
        if given.store:
            path.write_text(text_of(now), encoding="utf-8")
        print(f"{path.name}: {len(now.cells)} cells in {monotonic() - start:.1f} s", *found, sep="\n", flush=True)
        wrong += len(found)
    if wrong and not given.store:
        print("if what they show now is right, store it: python -m tests.run_notebooks --store", file=sys.stderr)
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
