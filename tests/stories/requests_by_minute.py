"""A job for the deployment guide: counts the requests in a log by minute and status, in a table of SQLite.

`python -m requests_by_minute` runs until it is stopped, and goes on where it was. `REQUESTS` is the log, JSON lines that grow;
`STATE` is a folder for the checkpoint and the table; `METRICS` is where it is watched. Its own log is JSON, on standard error.
"""

from __future__ import annotations

import logging.config
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import streamdsl as sd
from streamdsl.connect import jsonl_file
from streamdsl.sinks import DatabaseTable


@dataclass(frozen=True)
class Request:
    """A line of the log."""

    status: int
    milliseconds: float


requests = sd.source("requests", Request, unit="ms", start="at", progress=sd.Progress.slack("10s"), on_violation="drop")
by_minute = (
    requests.group_by("status").tumbling_window("1m").aggregate(requests=sd.count(), slowest=sd.max(lambda e: e.milliseconds))
)

LOGGING = {
    "version": 1,
    "formatters": {"json": {"()": "pythonjsonlogger.json.JsonFormatter", "fmt": "{asctime}{levelname}{message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}

if __name__ == "__main__":
    logging.config.dictConfig(LOGGING)
    state = Path(os.environ["STATE"])
    by_minute.serve(
        jsonl_file(os.environ["REQUESTS"], follow=True),
        DatabaseTable(lambda: sqlite3.connect(state / "requests.db"), "by_minute"),
        checkpoint=state / "checkpoint",
        metrics=os.environ.get("METRICS", "127.0.0.1:9464"),
    )
