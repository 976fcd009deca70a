"""A stream takes each file once, whatever becomes of its folder, its name, its times and its content."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamdsl.cli import main
from tests.unit.jobs.files import expected, found, in_folder, write_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `rides`, in which the command is run, and three of four files."""
    (tmp_path / "here").mkdir()
    write_files(tmp_path / "here" / "in", "csv", range(3))
    yield from in_folder(tmp_path / "here", monkeypatch)


def run(path: str = "in", query: str = "by_road", checkpoint: str = "state") -> int:
    return main(["run", f"rides:{query}", "--input", f"cars={path}", "--output", "out", "--checkpoint", checkpoint])


def moved(base: Path) -> str:
    os.rename(base / "in", base / "elsewhere")
    return "elsewhere"


def below(base: Path) -> str:
    (base / "up").mkdir()
    os.rename(base / "in", base / "up" / "in")
    return "up"


def copied(base: Path) -> str:
    shutil.copytree(base / "in", base / "elsewhere")
    shutil.rmtree(base / "in")
    return "elsewhere"


def copied_beside(base: Path) -> str:
    shutil.copytree(base / "in", base / "elsewhere")
    return "elsewhere"


def linked(base: Path) -> str:
    os.symlink("in", base / "link")
    return "link"


def hard_linked(base: Path) -> str:
    (base / "links").mkdir()
    for path in (base / "in").iterdir():
        os.link(path, base / "links" / f"other-{path.name}")
    return "links"


def linked_inside(base: Path) -> str:
    os.link(base / "in" / "0.csv", base / "in" / "7.csv")
    os.symlink("1.csv", base / "in" / "8.csv")
    return "in"


def renamed(base: Path) -> str:
    for path in (base / "in").iterdir():
        path.rename(base / "in" / f"old-{path.name}")
    return "in"


def touched(base: Path) -> str:
    for path in (base / "in").iterdir():
        os.utime(path)
    return "in"


def gone(base: Path) -> str:
    for path in (base / "in").iterdir():
        path.unlink()
    return "in"


SPELLED: dict[str, Callable[[Path], str]] = {
    "with a slash": lambda base: "in/",
    "with dots": lambda base: "./in/../in",
    "in full": lambda base: str(base / "in"),
    "from above": lambda base: "../here/in",
    "by a link": linked,
    "moved, and from its parent": below,
    "moved": moved,
    "copied, and removed": copied,
    "copied": copied_beside,
    "by links with other names": hard_linked,
    "with links inside": linked_inside,
    "renamed": renamed,
    "touched": touched,
    "removed": gone,
}


@pytest.mark.parametrize("way", SPELLED)
def test_a_file_is_taken_once_whichever_way_leads_to_it(folder: Path, way: str) -> None:
    assert run() == 0
    path = SPELLED[way](folder)
    assert run(path) == 0
    shutil.rmtree(folder / "more", ignore_errors=True)
    write_files(folder / "more", "csv", range(3, 4))
    shutil.move(folder / "more" / "3.csv", folder / path / "3.csv")
    assert run(path) == 0
    assert run(path) == 0
    assert found(folder / "out") == expected()


def test_a_stream_goes_on_where_it_is_restored(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run() == 0
    shutil.copytree(folder, tmp_path / "there", copy_function=shutil.copyfile)
    shutil.rmtree(folder / "in")
    monkeypatch.chdir(tmp_path / "there")
    write_files(tmp_path / "there" / "in", "csv", range(3, 4))
    assert run(str(tmp_path / "there" / "in")) == 0
    assert found(tmp_path / "there" / "out") == expected()


def test_two_files_with_the_same_content_are_two(folder: Path) -> None:
    shutil.copyfile(folder / "in" / "2.csv", folder / "in" / "9.csv")
    assert run(query="counted") == 0
    shutil.copyfile(folder / "in" / "0.csv", folder / "in" / "8.csv")
    assert run(query="counted") == 0
    total = sum(row[3] for row in found(folder / "out"))
    assert total == 5 * 50


def test_a_new_file_with_an_old_inode_is_new(folder: Path) -> None:
    assert run() == 0
    write_files(folder / "more", "csv", range(3, 4))
    (folder / "in" / "1.csv").write_bytes((folder / "more" / "3.csv").read_bytes())
    (folder / "in" / "1.csv").rename(folder / "in" / "3.csv")
    assert run() == 0
    assert found(folder / "out") == expected()


def test_a_new_file_with_the_content_of_one_that_is_gone_is_new(folder: Path) -> None:
    assert run(query="counted") == 0
    content = (folder / "in" / "0.csv").read_bytes()
    gone(folder)
    (folder / "in" / "again.csv").write_bytes(content)
    assert run(query="counted") == 0
    assert sum(row[3] for row in found(folder / "out")) == 4 * 50


def test_a_file_that_was_renamed_and_touched_between_runs_is_new(folder: Path) -> None:
    """Nothing tells it from one that was written anew, with the content of one that is gone."""
    assert run(query="counted") == 0
    (folder / "in" / "0.csv").rename(folder / "in" / "again.csv")
    os.utime(folder / "in" / "again.csv", (2 * 10**9, 2 * 10**9))
    assert run(query="counted") == 0
    assert sum(row[3] for row in found(folder / "out")) == 4 * 50


def grown(path: Path) -> None:
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")


def cut(path: Path) -> None:
    path.write_text(path.read_text().rpartition("\n")[0][:-30])


def emptied(path: Path) -> None:
    path.write_text("")


def changed_unseen(path: Path) -> None:
    """Change a file, but neither its size nor its time."""
    before = path.stat()
    path.write_text(path.read_text().replace("r1", "r2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [grown, cut, emptied, changed_unseen])
@pytest.mark.parametrize("path", ["in", "elsewhere"])
def test_a_file_that_has_changed_since_it_was_taken_is_an_error(
    folder: Path, change: Callable[[Path], None], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    before = found(folder / "out")
    if path == "elsewhere":
        moved(folder)
    change(folder / path / "1.csv")
    write_files(folder / path, "csv", range(3, 4))
    assert run(path) == 2
    assert f"the file {path}/1.csv has changed since it was taken\nHint: put back what it held" in capsys.readouterr().err
    assert found(folder / "out") == before
    (folder / path / "1.csv").unlink()
    assert run(path) == 0
    assert found(folder / "out") == expected()


def test_another_folder_may_have_other_files_with_the_same_names(folder: Path) -> None:
    assert run() == 0
    write_files(folder / "more", "csv", range(3, 4))
    (folder / "more" / "3.csv").rename(folder / "more" / "1.csv")
    assert run("more") == 0
    assert found(folder / "out") == expected()


def test_files_in_hidden_folders_are_not_there_yet(folder: Path) -> None:
    write_files(folder / "in" / "_temporary", "csv", range(3, 4))
    write_files(folder / "in" / ".staging", "csv", range(3, 4))
    assert run() == 0
    assert sum(row[3] for row in found(folder / "out")) == 3 * 50


def test_a_stream_may_begin_before_its_files(folder: Path) -> None:
    (folder / "later").mkdir()
    assert run("later") == 0
    write_files(folder / "later", "csv")
    assert run("later") == 0
    assert found(folder / "out") == expected()


def as_written_before(folder: Path) -> None:
    """Leave in the ledger what the version before wrote."""
    for entry in (folder / "state" / "local" / "files").iterdir():
        known = json.loads(entry.read_text())
        entry.write_text(json.dumps({"source": known["source"], "path": f"in/{known['names'][0]}"}))
    shutil.rmtree(folder / "state" / "local" / "refused")
    shutil.rmtree(folder / "state" / "local" / "output")
    (folder / "state" / "lock").unlink()


def test_the_ledger_of_the_version_before_is_read(folder: Path) -> None:
    assert run() == 0
    as_written_before(folder)
    (folder / "in" / "1.csv").unlink()
    assert run("in/") == 0
    assert run(moved(folder)) == 0
    write_files(folder / "elsewhere", "csv", range(3, 4))
    assert run("elsewhere") == 0
    assert found(folder / "out") == expected()


def test_a_micro_batch_that_the_version_before_has_begun_and_no_more_is_begun_again(folder: Path) -> None:
    assert run() == 0
    as_written_before(folder)
    write_files(folder / "in", "csv", range(3, 4))
    (folder / "state" / "local" / "files" / "3").write_text(json.dumps({"source": "cars", "path": "in/3.csv"}))
    assert run("./in") == 0
    assert found(folder / "out") == expected()


def test_where_the_ledger_of_the_version_before_does_not_tell_it_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    before = found(folder / "out")
    as_written_before(folder)
    assert run(moved(folder)) == 2
    assert (
        "of an earlier version, which took in/0.csv: whether that is elsewhere/0.csv cannot be told\nHint: run it once"
        in capsys.readouterr().err
    )
    assert found(folder / "out") == before


GARBLED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an entry that is cut": (lambda local: (local / "files" / "1").write_text('{"source": "ca'), "files/1 is no record"),
    "an entry of something else": (lambda local: (local / "files" / "1").write_text('{"a": 1}'), "files/1 is no record"),
    "an entry that is lost": (lambda local: (local / "files" / "1").unlink(), "files/1 is missing, a record"),
    "all entries": (lambda local: shutil.rmtree(local / "files"), "has states up to micro-batch 2, and records of 0"),
    "the stream": (lambda local: (local / "stream").write_text(""), "stream does not say which stream"),
    "no stream": (lambda local: (local / "stream").unlink(), "stream does not say which stream"),
    "a state that is cut": (
        lambda local: os.truncate(local / "state" / "2", 100),
        "cannot be gone on with: the checkpoint is damaged",
    ),
    "bytes": (lambda local: (local / "files" / "1").write_bytes(b"\xff\x00"), "files/1 is no record"),
}


@pytest.mark.parametrize("way", GARBLED)
def test_a_garbled_checkpoint_is_an_error(folder: Path, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    before = found(folder / "out")
    garble, message = GARBLED[way]
    garble(folder / "state" / "local")
    write_files(folder / "in", "csv", range(3, 4))
    assert run() == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Hint: " in said
    assert found(folder / "out") == before


def test_a_changed_query_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    before = found(folder / "out")
    write_files(folder / "in", "csv", range(3, 4))
    assert run(query="cars") == 2
    said = capsys.readouterr().err
    assert "the checkpoint state cannot be gone on with: the checkpoint is of another query" in said
    assert "Hint: run the query as it was, or begin a new checkpoint and a new output" in said
    assert found(folder / "out") == before


def test_an_older_checkpoint_than_the_table_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    shutil.copytree(folder / "state", folder / "backup")
    write_files(folder / "in", "csv", range(3, 4))
    assert run() == 0
    assert run(checkpoint="backup") == 2
    assert "has taken micro-batch 3, and the checkpoint has no record of it\nHint: " in capsys.readouterr().err
    assert found(folder / "out") == expected()
