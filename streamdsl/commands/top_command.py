"""`streamdsl top`: the figures of a job that runs elsewhere, from where it serves them, or from its checkpoint."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from streamdsl.errors import QueryError
from streamdsl.monitoring.panel import Panel, Panels, seconds_text
from streamdsl.monitoring.status import JobStatus, Status
from streamdsl.monitoring.views import view

_ADDRESS: Final = "127.0.0.1:9464"
_OLD: Final = 5.0
"""The seconds after which figures are said to be old."""
_PATIENCE: Final = 5.0
_TRIES: Final = 100
_RECORDS: Final = Path("served", "positions")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `top`."""
    add = parser.add_argument
    text = "where the job serves its figures, or the folder of its checkpoint (default: %(default)s)"
    add("watched", nargs="?", default=_ADDRESS, metavar="ADDRESS|CHECKPOINT", help=text)
    add("--every", type=float, default=1.0, metavar="SECONDS", help="look again after so long (default: %(default)s)")
    add("--once", action="store_true", help="look once")
    add("--json", action="store_true", help="as JSON, a line for each look")


def top(options: argparse.Namespace) -> int:
    """Show the figures of a job, once or until an interrupt; return 0. Raises `QueryError` for a job that is not there."""
    if not 0 < options.every <= threading.TIMEOUT_MAX:
        raise QueryError(f"top looks again after some seconds, not after {options.every!r}", hint="--every 1")
    if options.json or options.once:
        return _print(options)
    status: Status | str | None = figures_of(options.watched)
    shown, panels = view(sys.stdout), Panels()
    try:
        while True:
            shown.show(_panel(status, panels))
            time.sleep(options.every)
            status = _again(options.watched)
    finally:
        shown.end()


def _print(options: argparse.Namespace) -> int:
    while True:
        status = figures_of(options.watched)
        if options.json:
            print(json.dumps(None if status is None else status.to_json(), ensure_ascii=False), flush=True)
        else:
            print(_panel(status, Panels()))
        if options.once:
            return 0
        time.sleep(options.every)


def _again(job: str) -> Status | str | None:
    """Return the figures of a job that was there, or why there are none: it may be started again."""
    try:
        return figures_of(job)
    except QueryError as error:
        return str(error).splitlines()[0]


def _panel(status: Status | str | None, panels: Panels) -> Panel:
    if status is None:
        return Panel("the job has done no micro-batch yet", ())
    if isinstance(status, str):
        return Panel(status, ())
    age = time.time() - status.time
    panel = panels.panel(replace(status, time=time.time()))
    return panel if age < _OLD else replace(panel, headline=f"{panel.headline} · figures are {seconds_text(age)} old")


def figures_of(job: str) -> Status | None:
    """Return the figures of a job, None if it has none yet. Raises `QueryError` where there is none, or something else."""
    from urllib.error import URLError
    from urllib.request import ProxyHandler, build_opener

    if (folder := Path(job)).is_dir():
        return _of_checkpoint(folder)
    address = job if "://" in job else f"http://{job}"
    address = address if address.rstrip("/").count("/") > 2 else f"{address.rstrip('/')}/status.json"
    try:
        if not address.startswith(("http://", "https://")):
            raise ValueError("it is no address of HTTP")
        with build_opener(ProxyHandler({})).open(address, timeout=_PATIENCE) as answer:
            found: Any = json.load(answer)
        return None if found is None else Status.from_json(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise QueryError(
            f"no figures of a job at {address}: {why}",
            hint=f'serve(..., metrics="{_ADDRESS}") serves them; name that address, or the folder of a checkpoint',
        ) from None


def _of_checkpoint(folder: Path) -> Status:
    """Return what a checkpoint says of a job, whether it runs or not: micro-batches, positions, bytes of state."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):  # the job has gone on since its records were listed
            return _recorded(folder)
    raise QueryError(f"the checkpoint {folder} lacks the state of its last micro-batch", hint="name one that is whole")


def _recorded(folder: Path) -> Status:
    records = folder / _RECORDS
    numbers = sorted(int(path.name) for path in records.iterdir() if path.name.isdigit()) if records.is_dir() else []
    if not numbers:
        raise QueryError(
            f"the folder {folder} is no checkpoint of query.serve, or no micro-batch is in it",
            hint="name the checkpoint=... of the job, or the address at which it serves its figures",
        )
    path, state = records / str(numbers[-1]), folder / "served" / "state" / str(numbers[-1])
    record: Mapping[str, Any] = json.loads(path.read_bytes())
    job = JobStatus(
        micro_batches=numbers[-1] + 1,
        bad_records=record["letters"],
        checkpoint_bytes=state.stat().st_size,
        positions=record["positions"],
    )
    return Status(time=path.stat().st_mtime, job=job)
