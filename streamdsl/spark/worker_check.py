"""A check before a job starts that Spark's workers can unpickle the query's code."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PythonException

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.plan.node import Node
from streamdsl.spark.job_descriptions import described, title_of
from streamdsl.spark.shipping import modules_of, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = (
    "install it where the workers run (PYSPARK_PYTHON says which Python they have), or send it along: "
    'spark.addArtifact("modules.zip", pyfile=True), or sparkContext.addPyFile, takes .py files, zipped packages and wheels'
)
_CAUSE: Final = re.compile(r"(ModuleNotFoundError|ImportError|pyspark\.[\w.]*Error|.*PYTHON_VERSION_MISMATCH)\b")
_checked: set[tuple[int, bytes]] = set()


def check_workers(spark: SparkSession, plan: Node) -> None:
    """Raise `UnsupportedOnSpark` for the first module, or the query, that a worker cannot unpickle.

    The check runs one task, and no code of the query; its success is cached per session.
    """
    blobs = {module.label: ship(module, module.label) for module in modules_of(plan)}
    blobs["the query"] = ship(plan, "the query")
    known = (id(spark), hashlib.blake2b(b"".join(blobs.values())).digest())
    if known in _checked:
        return
    with described(spark, f"whether workers can load {title_of(plan)}"), _other_python():
        found = spark.range(0, 1, 1, 1).mapInArrow(_probe(blobs), "name string, problem string").collect()
    for name, problem in found:
        raise UnsupportedOnSpark(f"{name} cannot be loaded by Spark's workers: {problem}", hint=_HINT)
    _checked.add(known)


@contextmanager
def _other_python() -> Iterator[None]:
    """Raise what keeps the workers' Python from starting at all as `UnsupportedOnSpark`: most often it is not the driver's."""
    try:
        yield
    except PythonException as error:
        *_, last = [line for line in str(error).splitlines() if _CAUSE.match(line)] or [""]
        if not last:
            raise
        raise UnsupportedOnSpark(
            f"Spark's workers cannot run Python: {last.strip()}",
            hint="they run the Python of PYSPARK_PYTHON, else the first `python3` of the PATH: set it before the session starts, "
            f"here to {sys.executable}, or activate its environment",
        ) from None


def _probe(blobs: Mapping[str, bytes]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    # A nested function is pickled by value and does not import streamdsl, which the workers may lack: that is what is checked.
    def probe(batches: Iterable[Any]) -> Iterator[Any]:
        import pickle

        import pyarrow

        problems = []
        for name, blob in blobs.items():
            try:
                pickle.loads(blob)
            except Exception as error:
                problems.append((name, f"{type(error).__name__}: {error}"))
        for _ in batches:
            columns = [pyarrow.array([each[place] for each in problems], pyarrow.string()) for place in range(2)]
            yield pyarrow.RecordBatch.from_arrays(columns, ["name", "problem"])

    return probe
