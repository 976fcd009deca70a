"""Run the dataflow of docs/coming-from-bytewax.md on Bytewax, in its own environment, and write there what it prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.environments import OWN, ROOT, python_of

PAGE: Final = ROOT / "docs" / "coming-from-bytewax.md"
PRINTED: Final = re.compile(r"(<!-- output: python -m benchmarks.bytewax_page -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def dataflow() -> str:
    """Return the program of the page."""
    return PAGE.read_text().partition("```py\n")[2].partition("```\n")[0]


def printed() -> str:
    """Return what it prints on Bytewax, in order of the alphabet, as windows of different keys close in no fixed order."""
    run = subprocess.run([python_of("bytewax"), "-c", dataflow()], capture_output=True, text=True, check=True)
    return "".join(sorted(run.stdout.splitlines(keepends=True)))


def recorded() -> str:
    """Return what the page says that it prints."""
    found = PRINTED.search(PAGE.read_text())
    return found[2] if found else ""


def write(page: Path = PAGE) -> None:
    """Write what it prints into the page."""
    page.write_text(PRINTED.sub(lambda each: each[1] + printed() + each[3], page.read_text()))


if __name__ == "__main__":
    write()
    print(f"recorded with {OWN['bytewax']}")
