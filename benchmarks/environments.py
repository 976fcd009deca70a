"""The Python that each peer runs on: this one, or one of a virtual environment of its own, which is made when first needed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = {"bytewax": "bytewax[kafka]==0.21.1", "pathway": "pathway==0.33.0"}
"""Peers whose requirements are apart from those of the rest."""
NEEDS = {"streamdsl": "pyarrow", "duckdb": "duckdb", "polars": "polars"}
"""What peers need of this environment; pyarrow carries columns in and out."""


class AbsentError(Exception):
    """A peer cannot be run here; the text says why."""


def python_of(peer: str, own: str | None = None) -> str:
    """Return the interpreter of a peer; raises `AbsentError` where it does not install, or is not installed.

    `own` is what it needs of an environment of its own, if that is not in `OWN`.
    """
    if own or peer in OWN:
        return _own(peer, own or OWN[peer])
    needed = NEEDS.get(peer)
    if needed and importlib.util.find_spec(needed) is None:
        raise AbsentError(f"{needed} is not installed: pip install 'streamdsl[bench]'")
    return sys.executable


def _own(peer: str, own: str) -> str:
    home = ROOT / ".bench" / peer
    python, ready = home / "bin" / "python", home / f".{own}"
    if ready.exists():
        return str(python)
    print(f"making an environment for {own} in {home}", file=sys.stderr)
    venv.create(home, clear=True)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", own, "numpy"]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        errors = [line for line in installed.stderr.splitlines() if line.startswith("ERROR")]
        raise AbsentError(f"{own} does not install on Python {sys.version.split()[0]}: {(errors or ['pip failed'])[0]}")
    ready.touch()
    return str(python)
