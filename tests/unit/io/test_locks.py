"""A lock is held by one process, and by nobody when that is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from streamdsl.errors import SinkError
from streamdsl.io.locks import Lock

HOLDER = """
import sys, time
from streamdsl.errors import SinkError
from streamdsl.io.locks import Lock

lock = Lock(sys.argv[1], "the table", SinkError)
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_of_another_process_names_it_and_is_free_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(SinkError, match=f"the table is in use by process {holder.pid} on "):
            Lock(path, "the table", SinkError)
        holder.send_signal(signal.SIGKILL)
    with Lock(path, "the table", SinkError):
        pass


def test_a_lock_that_is_just_being_taken_is_given_time_to_name_its_holder(tmp_path: Path) -> None:
    held = Lock(tmp_path / "lock", "the table", SinkError)
    name = held.path.read_text()
    held.path.write_text("")  # as it is between the lock and the name
    naming = threading.Timer(0.1, held.path.write_text, [name])
    naming.start()
    with held, pytest.raises(SinkError, match=f"in use by process {os.getpid()} on "):
        Lock(held.path, "the table", SinkError)
    naming.join()


def test_a_lock_is_free_when_it_is_released_or_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for _ in range(3):
        with Lock(path, "the table", SinkError) as lock, pytest.raises(SinkError, match=f"process {os.getpid()} on "):
            Lock(path, "the table", SinkError)
        lock.release()
        forgotten = Lock(path, "the table", SinkError)
        del forgotten


def test_a_lock_that_is_freed_in_time_is_had_by_who_has_patience(tmp_path: Path) -> None:
    held = Lock(tmp_path / "lock", "the table", SinkError)
    freeing = threading.Timer(0.1, held.release)
    freeing.start()
    with Lock(held.path, "the table", SinkError, patience=30), pytest.raises(SinkError, match="in use"):
        Lock(held.path, "the table", SinkError, patience=0.05)
    freeing.join()


def test_a_child_that_is_forked_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock", "the table", SinkError)
    (begun, begins), (ends, end) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        os.write(begins, b".")
        os.read(ends, 1)
        os._exit(0)
    os.read(begun, 1)
    with pytest.raises(SinkError):
        Lock(lock.path, "the table", SinkError)
    lock.release()
    Lock(lock.path, "the table", SinkError).release()
    os.close(end)
    os.waitpid(child, 0)


def test_a_lock_whose_file_is_removed_says_so(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock", "the table", SinkError)
    lock.check()
    lock.path.unlink()
    with pytest.raises(SinkError, match="the table was removed or replaced"):
        lock.check()
    with Lock(lock.path, "the table", SinkError) as other:
        other.check()
        with pytest.raises(SinkError):
            lock.check()
