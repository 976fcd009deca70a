"""A PostgreSQL of its own for tests, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FOLDERS: Final = "/usr/lib/postgresql"
_USER: Final = "postgres"


def programs() -> Path | None:
    """Return the folder of `initdb` and `pg_ctl`, None if they are not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path(_FOLDERS).glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


@contextmanager
def postgresql() -> Iterator[str]:
    """Give what `psycopg.connect` takes to reach a new server, which listens on a socket in a temporary folder."""
    found = programs()
    assert found is not None
    with tempfile.TemporaryDirectory(prefix="pg") as name:
        folder = Path(name)
        as_user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []  # the server refuses to run as root
        if as_user:
            shutil.chown(folder, _USER)
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"

        def run(*command: str) -> None:
            subprocess.run([*as_user, *command], check=True, capture_output=True, cwd=folder)

        run(str(found / "initdb"), "-D", f"{folder}/data", "-U", _USER, "-A", "trust", "--no-sync")
        run(str(found / "pg_ctl"), "-D", f"{folder}/data", "-l", f"{folder}/log", "-w", "-o", options, "start")
        try:
            yield f"host={folder} user={_USER} dbname=postgres"
        finally:
            run(str(found / "pg_ctl"), "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
