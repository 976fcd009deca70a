"""The session that `engine="spark"` uses where the caller has none, and the translation of Spark's errors."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    "spark.python.unix.domain.socket.enabled": "true",
}
_LOG: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.spark.name = org.apache.spark
logger.spark.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""
_LOG_FILE: Final = "LOG4J_CONFIGURATION_FILE"
_local_session: SparkSession | None = None
_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (?P<name>\w+): (?P<message>.*?)(?= SQLSTATE: \w+|\Z)", re.S)
_NAME: Final = r"(?P<name>\w+(?:Error|Overflow|Violation|OnSpark)): "
_NEXT: Final = (
    r"\tat | ?SQLSTATE: \w+$|Traceback|[\w.]+(?:Error|Exception|Overflow|Violation|OnSpark): |During handling|The above"
    r"|JVM stacktrace|\s*$"
)
_IN_PYTHON: Final = re.compile(
    rf"^(?:streamdsl\.errors\.|builtins\.)?{_NAME}(?P<message>.*(?:\n(?!{_NEXT}).*)*)",
    re.MULTILINE,
)


@contextmanager
def default_session() -> Iterator[SparkSession]:
    """Yield the caller's active session unchanged, else a local one that is created once, whose workers run this interpreter.

    The local session logs errors only. PySpark's warning that its pandas functions do not support pandas 3 is suppressed, as
    none of them is used.
    """
    active = _active()
    with warnings.catch_warnings():
        if active is None or active is _local_session:
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield active or _local()


def _active() -> SparkSession | None:
    """Return the active session, or None; `builder.getOrCreate()` would change its settings."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _local() -> SparkSession:
    global _local_session
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("streamdsl")
    for name, value in _LOCAL.items():
        builder = builder.config(name, value)
    try:
        with _errors_only():
            _local_session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise QueryError(
            f"no Spark session could be started: {str(error).strip()}",
            hint="Spark 4 needs Java 17 or later: install it, and set JAVA_HOME if it is not found",
        ) from error
    return _local_session


@contextmanager
def _errors_only() -> Iterator[None]:
    """Start the JVM with a log level of ERROR, unless the caller has configured logging."""
    if _LOG_FILE in os.environ or "SPARK_CONF_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log4j2.properties"
        file.write_text(_LOG)
        os.environ[_LOG_FILE] = str(file)
        try:
            yield
        finally:
            del os.environ[_LOG_FILE]


@contextmanager
def translated() -> Iterator[None]:
    """Raise what failed a task as the error that the local engine would raise, without the traces of Spark and its workers.

    For what runs a frame of `batch`, or waits for a stream: `with translated(): frame.collect()`. Spark's own error is the
    `__context__` of ours.
    """
    try:
        yield
    except StreamDslError:
        raise
    except Exception as error:  # an error while a join is broadcast arrives as a Java exception
        found = as_streamdsl(str(error))
        if found is None:
            raise
        raise found from None


def as_streamdsl(text: str) -> Exception | None:
    """Return the error that a failed task's text names, or None.

    >>> as_streamdsl("[USER_RAISED_EXCEPTION] UnboundedOutputError: it never ends\\nHint: end it SQLSTATE: P0001")
    UnboundedOutputError('it never ends\\nHint: end it')
    """
    found = _RAISED.search(text)
    if found is None:
        named = [match for match in _IN_PYTHON.finditer(text) if _error_class(match["name"]) is not None]
        found = named[-1] if named else None
    if found is None:
        return None
    cls = _error_class(found["name"])
    return None if cls is None else _error_of(cls, found["message"].strip())


def _error_class(name: str) -> Any:
    if name == "OverflowError":
        return OverflowError
    cls = getattr(errors, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, StreamDslError) else None


def _error_of(cls: Any, message: str) -> Exception:
    """Return an error with this message and the hint in it, without calling its constructor."""
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.hint = message.partition("\nHint: ")[2] or None
    return error  # type: ignore[no-any-return]
