"""Jobs in trouble: two at once, bad files, kills, full disks, tables that are lost. The table is right, or there is an error."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdsl.cli import main
from streamdsl.errors import CheckpointError
from streamdsl.io.locks import Lock
from tests.laws.power import cut_off_after
from tests.unit.jobs.files import expected, found, in_folder, write_file, write_files

STREAM = ("--input", "cars=in", "--output", "out", "--checkpoint", "state")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `rides`, in which the command is run."""
    yield from in_folder(tmp_path, monkeypatch)


def run(*options: str) -> int:
    return main(["run", "rides:by_road", *options])


def started(*options: str, bytes_written: int | None = None) -> subprocess.Popen[str]:
    """Start the command as a process of its own, which may write files no larger than that."""
    limit = None if bytes_written is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_written, bytes_written))
    # Without -B Python itself may leave half a compiled module where a limit cuts it off.
    command = [sys.executable, "-B", "-m", "streamdsl", "run", "rides:by_road", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=limit)


def test_of_two_processes_one_goes_on_and_the_other_says_so(folder: Path) -> None:
    write_files(folder / "in", "csv")
    both = [started(*STREAM, "--trigger", "1 hour") for _ in range(2)]
    deadline = time.monotonic() + 60
    while not (ended := [each for each in both if each.poll() is not None]) and time.monotonic() < deadline:
        time.sleep(0.05)
    (refused,), (other,) = ended, [each for each in both if each not in ended]
    said = refused.communicate()[1]
    assert refused.returncode == 2
    assert f"the checkpoint state is in use by process {other.pid} on " in said
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert run(*STREAM) == 0
    assert found(folder / "out") == expected()


def test_a_micro_batch_is_begun_by_one_process_even_without_a_lock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from streamdsl.jobs.ledger import Ledger

    write_files(folder / "in", "csv")
    begin = Ledger.take

    def take(ledger: Ledger, *what: object) -> None:
        if not ledger.taken:
            (folder / "state" / "local" / "files" / "0").write_text("{}")
        begin(ledger, *what)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "take", take)
        assert run(*STREAM) == 2
    assert "micro-batch 0 was begun by another process" in capsys.readouterr().err
    assert not (folder / "out").exists() or not list((folder / "out").glob("*.parquet"))


def test_a_checkpoint_that_is_removed_under_a_job_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from streamdsl.jobs.local_stream import LocalStream

    write_files(folder / "in", "csv")
    assert run(*STREAM) == 0
    take = LocalStream._take

    def remove(stream: LocalStream, *what: object) -> object:
        shutil.rmtree(folder / "state")
        (folder / "state" / "local").mkdir(parents=True)
        for name in ("files", "state", "output", "refused"):
            (folder / "state" / "local" / name).mkdir()
        with Lock(folder / "state" / "lock", "it", CheckpointError):
            return take(stream, *what)  # type: ignore[arg-type]

    write_files(folder / "in", "csv")
    (folder / "in" / "9.csv").write_bytes((folder / "in" / "3.csv").read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStream, "_take", remove)
        assert run(*STREAM) == 2
    assert "Hint: " in capsys.readouterr().err
    assert found(folder / "out") == expected()


BAD: dict[str, Callable[[Path], object]] = {
    "no Parquet": lambda path: path.with_suffix(".parquet").write_bytes(b"PAR1 no"),
    "a cut Parquet": lambda path: path.with_suffix(".parquet").write_bytes(_parquet()[:-40]),
    "a garbled Parquet": lambda path: path.with_suffix(".parquet").write_bytes(_garbled()),
    "an empty CSV": lambda path: path.with_suffix(".csv").write_text(""),
    "a CSV of bytes": lambda path: path.with_suffix(".csv").write_bytes(b"le,road,speed\n1,\xff\xfe,2\n"),
    "a CSV with other columns": lambda path: path.with_suffix(".csv").write_text("le,town\n30,x\n"),
    "a CSV with a time that is none": lambda path: path.with_suffix(".csv").write_text("le,road,speed\nsoon,r1,3\n"),
    "a CSV with text for numbers": lambda path: path.with_suffix(".csv").write_text("le,road,speed\n30,r1,fast\n"),
    "a CSV with a road that is a number": lambda path: path.with_suffix(".csv").write_text("le,road,speed\n30,1,9\n"),
    "JSON lines that are none": lambda path: path.with_suffix(".jsonl").write_text('{"le": 30, "road"'),
    "JSON that is deep": lambda path: path.with_suffix(".jsonl").write_text("[" * 100_000),
    "rows that come too late": lambda path: write_file(path, "csv", [{"le": -(10**6), "road": "r1", "speed": 3}]),
    "rows that end before they begin": lambda path: write_file(path, "csv", [{"le": 30, "re": 10, "road": "r1", "speed": 3}]),
    "a retraction of nothing": lambda path: path.with_suffix(".csv").write_text(
        "kind,id,le,re,re_new,road,speed\nretract,x,30,31,30,r1,3\n"
    ),
}


def _parquet() -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"le": range(30, 2030), "road": ["r1"] * 2000, "speed": range(2000)}), out)
    return bytes(out.getvalue())


def _garbled() -> bytes:
    data = bytearray(_parquet())
    data[8:200] = b"\xff" * 192
    return bytes(data)


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_named_and_passed_if_that_is_asked_for(folder: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(folder / "in", "csv", range(2))
    assert run(*STREAM) == 0
    BAD[what](folder / "in" / "bad.csv")
    (bad,) = (folder / "in").glob("bad.*")
    os.utime(bad, (10**9 + 1, 10**9 + 1))
    before = found(folder / "out")
    for _ in range(2):
        capsys.readouterr()
        assert run(*STREAM) == 2
        said = capsys.readouterr().err
        assert f"the file in/{bad.name} cannot be taken: " in said
        assert "--bad-files skip passes such files" in said
        assert found(folder / "out") == before
    write_files(folder / "in", "csv")
    os.utime(bad, (10**9 + 1, 10**9 + 1))
    assert run(*STREAM, "--bad-files", "skip") == 0
    assert f"passed: the file in/{bad.name} cannot be taken: " in capsys.readouterr().err
    assert found(folder / "out") == expected()
    (refused,) = (folder / "state" / "local" / "refused").iterdir()
    known = json.loads(refused.read_text())
    assert (known["names"], f"in/{bad.name}" in known["reason"]) == ([bad.name], True)
    assert run(*STREAM) == 0
    assert "passed" not in capsys.readouterr().err


@pytest.mark.parametrize("what", ["removed", "mended", "passed, then mended"])
def test_a_bad_file_that_is_mended_or_removed_blocks_no_job(folder: Path, what: str) -> None:
    write_files(folder / "in", "csv")
    good = (folder / "in" / "3.csv").read_bytes()
    (folder / "in" / "3.csv").write_text("le,road,speed\nsoon,r1,9\n")
    os.utime(folder / "in" / "3.csv", (10**9 + 10, 10**9 + 10))
    assert run(*STREAM, *(("--bad-files", "skip") if "passed" in what else ())) == (0 if "passed" in what else 2)
    if what == "removed":
        (folder / "in" / "3.csv").unlink()
        (folder / "in" / "again.csv").write_bytes(good)
    else:
        (folder / "in" / "3.csv").write_bytes(good)
    assert run(*STREAM) == 0
    assert found(folder / "out") == expected()


def test_a_first_file_that_is_bad_is_passed_too(folder: Path) -> None:
    write_files(folder / "in", "csv")
    (folder / "in" / "bad.csv").write_text("le\nx\n")
    os.utime(folder / "in" / "bad.csv", (10**8, 10**8))
    assert run(*STREAM) == 2
    assert run(*STREAM, "--bad-files", "skip") == 0
    assert found(folder / "out") == expected()


@pytest.mark.parametrize("form", ["table", "events"])
def test_what_was_cut_off_needs_its_file_no_more(folder: Path, form: str) -> None:
    write_files(folder / "in", "csv", range(1))
    for changes in range(200):
        shutil.rmtree(folder / "state", ignore_errors=True)
        shutil.rmtree(folder / "out", ignore_errors=True)
        with cut_off_after(changes) as cut_off:
            assert run(*STREAM, "--format", form) == 0
        decided = list((folder / "state" / "local" / "files").glob("0"))
        (folder / "in" / "0.csv").rename(folder / "0.csv")
        assert run(*STREAM, "--format", form) == 0
        assert bool(decided) == bool(list((folder / "out").glob("*.parquet")))
        (folder / "0.csv").rename(folder / "in" / "0.csv")
        if not cut_off[0]:
            break
    assert 10 < changes < 199


@pytest.mark.parametrize("output", ["out", "out.parquet", "out.csv", "out.jsonl"])
def test_a_batch_job_that_is_killed_leaves_nothing_under_its_name(folder: Path, output: str) -> None:
    write_files(folder / "in", "csv")
    options = ("--input", "cars=in", "--output", output)
    written: set[bytes] = set()
    for changes in range(100):
        with cut_off_after(changes) as cut_off:
            assert run(*options) == 0
        if not cut_off[0]:
            break
        if (folder / output).exists():
            written.add(content(folder / output))
            (folder / output).rename(folder / f"{changes}")
    assert changes > 1
    assert written <= {content(folder / output)}
    assert run(*options) == 2


def content(output: Path) -> bytes:
    return (output / "rows.parquet" if output.is_dir() else output).read_bytes()


def test_of_two_batch_jobs_one_gives_its_output_the_name(folder: Path) -> None:
    write_files(folder / "in", "csv")
    both = [started("--input", "cars=in", "--output", "out.csv") for _ in range(2)]
    said = [each.communicate(timeout=60)[1] for each in both]
    assert sorted(each.returncode for each in both) == [0, 2], said
    assert "the output out.csv exists already" in "".join(said)


@pytest.mark.parametrize("options", [STREAM, ("--input", "cars=in", "--output", "out.csv")], ids=["stream", "batch"])
def test_a_full_disk_is_an_error_and_the_job_goes_on_afterwards(folder: Path, options: tuple[str, ...]) -> None:
    write_files(folder / "in", "csv")
    for limit in (10, 4000, 21_000):
        job = started(*options, bytes_written=limit)
        said = job.communicate(timeout=60)[1]
        if job.returncode == 0:
            break
        assert (job.returncode, "Traceback" in said) == (2, False), said
        assert "Hint: " in said
        assert not (folder / "out.csv").exists()
    assert limit > 10
    if options is STREAM:
        assert run(*options) == 0
        assert found(folder / "out") == expected()


@pytest.mark.parametrize("form", ["table", "events"])
def test_a_table_that_is_lost_is_an_error_before_anything_is_written(
    folder: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_files(folder / "in", "csv", range(2))
    assert run(*STREAM, "--format", form) == 0
    shutil.rmtree(folder / "out")
    write_files(folder / "in", "csv")
    before = sorted(map(str, (folder / "state").rglob("*")))
    assert run(*STREAM, "--format", form) == 2
    assert "Hint: " in capsys.readouterr().err
    assert not list((folder / "out").rglob("*.parquet"))
    assert sorted(map(str, (folder / "state").rglob("*"))) == before
