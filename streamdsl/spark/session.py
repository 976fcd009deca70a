"""The session that `engine="spark"` runs on where the caller has none, and Spark's errors as streamdsl's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamdsl import errors
from streamdsl.errors import QueryError, StreamDslError

_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "4g",
    "spark.log.level": "ERROR",
}
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (?P<name>\w+): (?P<message>.*?)(?: SQLSTATE: \w+)?$", re.M | re.S)
_NAME: Final = r"(?P<name>\w+(?:Error|Overflow|Violation|OnSpark)): "
_NEXT: Final = (
    r"\tat |Traceback|[\w.]+(?:Error|Exception|Overflow|Violation|OnSpark): |During handling|The above|JVM stacktrace|\s*$"
)
_IN_PYTHON: Final = re.compile(
    rf"^(?:streamdsl\.errors\.|builtins\.)?{_NAME}(?P<message>.*(?:\n(?!{_NEXT}).*)*)",
    re.MULTILINE,
)


def default_session() -> SparkSession:
    """Return the active session, else a local one that is made now; Python workers run this interpreter."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("streamdsl")
    for name, value in _LOCAL.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise QueryError(
            f"no Spark session could be started: {str(error).strip()}",
            hint="Spark 4 needs Java 17 or later: install it, and set JAVA_HOME if it is not found",
        ) from error


@contextmanager
def translated() -> Iterator[None]:
    """Raise what failed a task as the error that the local engine would raise."""
    try:
        yield
    except StreamDslError:
        raise
    except Exception as error:  # what fails while a join is broadcast comes as Java's exception
        found = as_streamdsl(str(error))
        if found is None:
            raise
        raise found from error


def as_streamdsl(text: str) -> Exception | None:
    """Return the error that a failed task's text names, or None.

    >>> as_streamdsl("[USER_RAISED_EXCEPTION] UnboundedOutputError: it never ends SQLSTATE: P0001")
    UnboundedOutputError('it never ends')
    """
    found = _RAISED.search(text)
    if found is None:
        named = [match for match in _IN_PYTHON.finditer(text) if _error_class(match["name"]) is not None]
        found = named[-1] if named else None
    if found is None:
        return None
    cls = _error_class(found["name"])
    return None if cls is None else _made(cls, found["message"].strip())


def _error_class(name: str) -> Any:
    if name == "OverflowError":
        return OverflowError
    cls = getattr(errors, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, StreamDslError) else None


def _made(cls: Any, message: str) -> Exception:
    """Return an error with just this message, whatever its class is otherwise made of."""
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.hint = None
    return error  # type: ignore[no-any-return]
