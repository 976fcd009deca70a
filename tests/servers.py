"""What `make check-connectors` needs that no package of Python brings: `python -m tests.servers` names it, and how to get it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from tests import mariadb, postgresql

SERVERS: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "PostgreSQL (initdb, pg_ctl)": (postgresql.programs, "postgresql"),
    "MariaDB (mariadbd, mariadb-install-db)": (mariadb.programs, "mariadb-server"),
}
"""How the programs of each server are found, and the package of Debian and Ubuntu that has them."""


def lacking() -> str | None:
    """Return what is said of servers that are not installed, None if all are."""
    absent = [(name, package) for name, (found, package) in SERVERS.items() if found() is None]
    if not absent:
        return None
    names, packages = (each for each in zip(*absent, strict=True))
    return f"not installed: {'; '.join(names)}\nHint: apt-get install {' '.join(packages)}"


if __name__ == "__main__":
    sys.exit(lacking())
