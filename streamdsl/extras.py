"""Optional dependencies: imported on use, and installed by an extra."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from streamdsl.errors import QueryError


@cache
def own_version() -> str:
    """Return the version of streamdsl that is installed, `"unknown"` if it runs from files that are not.

    >>> import streamdsl as sd
    >>> sd.__version__ == own_version()
    True
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("streamdsl")
    except PackageNotFoundError:
        return "unknown"


def need(package: str, what: str, extra: str | None = None) -> None:
    """Raise `QueryError` if a package is not installed; the hint names the `extra`, by default the package's name.

    >>> need("abacus", "exact sums")
    Traceback (most recent call last):
        ...
    streamdsl.errors.QueryError: exact sums need abacus, which is not installed
    Hint: pip install 'streamdsl[abacus]'
    """
    try:
        import_module(package)
    except ImportError:
        hint = f"pip install 'streamdsl[{extra or package}]'"
        raise QueryError(f"{what} need {package}, which is not installed", hint=hint) from None


def need_pyarrow(what: str) -> None:
    """Raise `QueryError` with a hint if pyarrow is not installed.

    >>> need_pyarrow("Arrow tables")
    """
    need("pyarrow", what, "arrow")


def need_spark() -> None:
    """Raise `QueryError` with a hint if PySpark, or pyarrow, which runs on Spark need, is not installed.

    >>> need_spark()
    """
    for package in ("pyspark", "pyarrow"):
        need(package, "runs on Spark", "spark")
