"""Restores checkpoints, each in a process that has imported what restores, and with that one operator, that of groups, before.

`python -m tests.architecture.afresh FILE`
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from pathlib import Path

import streamdsl.engine.state.checkpoint  # noqa: F401
from streamdsl.engine.starting import restored
from tests.laws.operators import operators

IMPORTED = {"streamdsl.engine.operators.group_apply"}


def restores(name: str, at: int, saved: bytes) -> bool:
    """Say whether a checkpoint of an operator's variant is restored as it is."""
    return restored(operators()[name][at].query().plan(), None, saved).snapshot() == saved


def in_a_fork(name: str, at: int, saved: bytes) -> bool:
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1] == 0
    try:
        os._exit(not restores(name, at, saved))
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main(path: str) -> None:
    """Print which are not restored."""
    assert {name for name in sys.modules if name.startswith("streamdsl.engine.operators.")} == IMPORTED
    print(*sorted({name for name, at, saved in pickle.loads(Path(path).read_bytes()) if not in_a_fork(name, at, saved)}))


if __name__ == "__main__":
    main(sys.argv[1])
