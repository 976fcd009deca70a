"""The notebooks that are stored, and what their run says of one that differs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests import run_notebooks

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PROGRAM = (
    "import sys, streamdsl as sd\nprint('one'); print('noise', file=sys.stderr); print('two')\nsd.from_rows([(1, 5, 'A')]).run()"
)


@pytest.fixture(scope="module")
def ran() -> nbformat.NotebookNode:
    cells = [nbformat.v4.new_markdown_cell("# Title", id="a"), nbformat.v4.new_code_cell(PROGRAM, id="b")]
    return run_notebooks.executed(nbformat.v4.new_notebook(cells=cells))


def test_a_run_leaves_nothing_of_the_machine(ran: nbformat.NotebookNode) -> None:
    assert dict(ran.metadata) == run_notebooks.METADATA
    assert [dict(cell.metadata) for cell in ran.cells] == [{}, {}]
    printed, result = ran.cells[1].outputs
    assert (printed.name, printed.text) == ("stdout", "one\ntwo\n")
    assert result.data["text/plain"] == "Result\n  [1, 5) 'A'"
    assert result.data["text/html"].startswith('<div style="overflow-x:auto"><svg ')
    assert list(run_notebooks.blemishes(ran)) == []


def test_the_same_outputs_have_no_difference_and_the_same_bytes(ran: nbformat.NotebookNode) -> None:
    again = run_notebooks.executed(ran)
    assert list(run_notebooks.differences(ran, again)) == []
    assert run_notebooks.text_of(ran) == run_notebooks.text_of(again)


def test_a_difference_is_named_by_its_cell_and_shown_by_line(ran: nbformat.NotebookNode) -> None:
    stored = nbformat.reads(run_notebooks.text_of(ran), as_version=4)
    stored.cells[1].outputs[1].data["text/plain"] = "Result\n  [1, 6) 'A'"
    stored.cells[1].outputs[1].data["image/png"] = "iVBORw0KGgo="
    assert list(run_notebooks.differences(stored, ran)) == [
        "cell 1 (b), output 1, image/png: stored, but the run gives none",
        "cell 1 (b), output 1, text/plain:\n"
        "  --- stored\n  +++ now\n  @@ -1,2 +1,2 @@\n   Result\n  -  [1, 6) 'A'\n  +  [1, 5) 'A'",
    ]


def test_bytes_of_a_page_may_differ_and_what_stands_beside_them_may_not() -> None:
    program = "import streamdsl as sd\nsd.source('x').tumbling_window(10).aggregate(n=sd.count()).trace({'x': [(1, 2, 'A')]})"
    ran = run_notebooks.executed(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(program, id="a")]))
    page = ran.cells[0].outputs[0].data["text/html"]
    for pattern, n_differences in ((r"\d+(?=,\[&quot;\[0, 10\))", 0), (r"(?<=count\(\) values=)1", 1)):
        other = nbformat.reads(run_notebooks.text_of(ran), as_version=4)
        other.cells[0].outputs[0].data["text/html"], n_changed = re.subn(pattern, "77", page)
        assert n_changed
        assert len(list(run_notebooks.differences(ran, other))) == n_differences


def test_a_notebook_that_was_edited_by_hand_is_found(ran: nbformat.NotebookNode) -> None:
    stored = nbformat.reads(run_notebooks.text_of(ran), as_version=4)
    stored.cells[1].execution_count = 7
    stored.cells[1].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    stored.cells[1].outputs[0].text = "read /home/me/data.csv\n"
    assert list(run_notebooks.blemishes(stored)) == [
        "cell b has not run in order",
        "it has metadata of a run",
        "cell 1 (b), output 0, stdout has a path of the machine: read /home/me/data.csv",
    ]


def test_a_run_compares_and_stores_and_says_what_failed(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    def write(program: str) -> None:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(program, id="a")])
        (tmp_path / "01_one.ipynb").write_text(run_notebooks.text_of(notebook))

    monkeypatch.setattr(run_notebooks, "FOLDER", tmp_path)
    write("6 * 7")
    assert run_notebooks.main([]) == 1
    assert "cell 0 (a), output 0, text/plain: the run gives it, but none is stored" in capsys.readouterr().out
    assert run_notebooks.main(["--store"]) == 0
    assert run_notebooks.main(["01"]) == 0
    write("1 // 0")
    assert run_notebooks.main([]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert run_notebooks.main(["02"]) == 1


def test_the_notebooks_are_numbered_in_the_order_of_the_story() -> None:
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{number:02}_" for number in range(1, len(NOTEBOOKS) + 1)]
    listed = re.findall(r"\(\.\./notebooks/([^)]*\.ipynb)\)", (ROOT / "docs" / "index.md").read_text())
    assert listed == [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_is_short_and_clean_and_has_pictures(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert list(run_notebooks.blemishes(notebook)) == []
    assert path.read_text() == run_notebooks.text_of(run_notebooks.cleaned(notebook))
    assert len(notebook.cells) <= 30
    assert "<svg" in path.read_text()
    links = [link for cell in notebook.cells for link in re.findall(r"\]\(([^)#]+)[^)]*\)", cell.source) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
