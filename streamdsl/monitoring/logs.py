"""The loggers of jobs: records with structured extras, in which no secrets are."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from streamdsl.redaction import hide_secrets, without_secrets


def log_of(name: str) -> logging.Logger:
    """Return a logger of the standard library, whose records have their secrets hidden before any handler sees them.

    >>> log = log_of("streamdsl.example")
    >>> record = log.makeRecord(log.name, logging.WARNING, "", 0, "lost %s", ("http://me:s3cret@h",), None)
    >>> log.filter(record) and record.getMessage()
    'lost http://***@h'
    """
    log = logging.getLogger(name)
    if not any(isinstance(each, _Redacting) for each in log.filters):
        log.addFilter(_Redacting())
    return log


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that says in each record which job it is of; what else it says has stable names too (docs/monitoring.md)."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        extra: Mapping[str, Any] = kwargs.get("extra") or {}
        return msg, {**kwargs, "extra": {**(self.extra or {}), **extra}}


class _Redacting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_secrets(record.getMessage()), None
        if record.exc_info and record.exc_info[1] is not None:
            hide_secrets(record.exc_info[1])
        for name, value in vars(record).items():
            if isinstance(value, str):
                setattr(record, name, without_secrets(value))
        return True
