"""A MariaDB of its own for tests, where its programs are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "mysql"


def programs() -> tuple[str, str] | None:
    """Return the server and what makes its files, None if they are not installed."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    server, install = shutil.which("mariadbd", path=folders), shutil.which("mariadb-install-db", path=folders)
    return None if server is None or install is None else (server, install)


@contextmanager
def mariadb() -> Iterator[str]:
    """Give the address of SQLAlchemy for a new server, which listens on a socket in a temporary folder."""
    found = programs()
    assert found is not None
    server, install = found
    with tempfile.TemporaryDirectory(prefix="db") as name:
        folder = Path(name)
        as_user = [f"--user={USER}"] if os.geteuid() == 0 else []  # the server refuses to run as root
        if as_user:
            shutil.chown(folder, USER)
        files = [f"--datadir={folder}/data", *as_user]
        made = [install, "--no-defaults", *files, "--auth-root-authentication-method=normal"]
        subprocess.run(made, check=True, capture_output=True)
        socket = folder / "socket"
        options = [f"--socket={socket}", "--skip-networking", f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0"]
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen([server, "--no-defaults", *files, *options], stdout=log, stderr=log)
        try:
            until = time.monotonic() + 60
            while not socket.exists():
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.05)
            yield f"mysql+pymysql://root@localhost/test?unix_socket={socket}"
        finally:
            process.terminate()
            process.wait()
