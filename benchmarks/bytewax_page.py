"""Run the dataflows of docs/coming-from-bytewax.md on Bytewax, in its own environment, and write there what they print."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from benchmarks.environments import OWN, ROOT, python_of

PAGE: Final = ROOT / "docs" / "coming-from-bytewax.md"
PRINTED: Final = re.compile(
    r"(<!-- output: python -m benchmarks.bytewax_page(?:, on Kafka)? -->\n```text\n)(.*?)(```\n)", re.DOTALL
)
DATAFLOW: Final = re.compile(r"```py\n(import (?:(?!```).)*run_main\(flow\)\n)```", re.DOTALL)
JOB: Final = re.compile(r"```py\n(import sqlite3\n(?:(?!```).)*)```", re.DOTALL)


def dataflows() -> list[str]:
    """Return the dataflows of the page: the one that is moved over in steps, and the one on Kafka."""
    return DATAFLOW.findall(PAGE.read_text())


def job() -> str:
    """Return the program that does here what the dataflow on Kafka does."""
    (found,) = JOB.findall(PAGE.read_text())
    return str(found)


def recorded() -> list[str]:
    """Return what the page says that each dataflow prints."""
    return [found[1] for found in PRINTED.findall(PAGE.read_text())]


def readings() -> list[tuple[int, str]]:
    """Return the messages of the topic, in order, each with its partition, which is that of its sensor."""
    rng, found = Random(5), list[tuple[int, str]]()
    for n in range(240):
        at = datetime(2026, 3, 28, 9, tzinfo=UTC) + timedelta(milliseconds=100 * n + rng.randint(-3_000, 3_000))
        row: dict[str, Any] = {"at": at.isoformat(), "sensor": rng.choice("abc"), "heat": rng.randint(150, 300) / 10}
        found.append(("abc".index(row["sensor"]), json.dumps(row)))
    return found


def printed(python: str, program: str, *arguments: str) -> str:
    """Return what a program prints, in order of the alphabet, as windows of different keys close in no fixed order."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([python, "-c", program, *arguments], capture_output=True, text=True, check=True, cwd=folder)
    return "".join(sorted(run.stdout.splitlines(keepends=True)))


def printed_on_kafka(*programs: tuple[str, str]) -> list[str]:
    """Return what programs, each with its Python, print of one topic of the broker that librdkafka has inside."""
    from tests.kafka_broker import broker, new_topic

    with broker() as servers:
        topic = new_topic(servers, list(readings()))
        return [printed(*each, servers, topic) for each in programs]


def write(page: Path = PAGE) -> None:
    """Write what the dataflows print into the page."""
    python, (steps, on_kafka) = python_of("bytewax"), dataflows()
    lines = iter([printed(python, steps), *printed_on_kafka((python, on_kafka))])
    page.write_text(PRINTED.sub(lambda each: each[1] + next(lines) + each[3], page.read_text()))


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m benchmarks.bytewax_page", description=__doc__).parse_args()
    write()
    print(f"recorded with {OWN['bytewax']}")
