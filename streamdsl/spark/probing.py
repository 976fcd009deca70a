"""A look at the workers before a job starts: whether they can load the code that it sends them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamdsl.errors import UnsupportedOnSpark
from streamdsl.plan.node import Node
from streamdsl.spark.shipping import modules_of, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINT = (
    "install it where the workers run (PYSPARK_PYTHON says which Python they have), or send it along: "
    'spark.addArtifact("modules.zip", pyfile=True), or sparkContext.addPyFile, takes .py files, zipped packages and wheels'
)
_loaded: set[tuple[int, bytes]] = set()


def check_workers(spark: SparkSession, plan: Node) -> None:
    """Have a worker load the query, and raise `UnsupportedOnSpark` naming what of it does not load; asked once per session.

    One task runs, and nothing of the query.
    """
    blobs = {module.label: ship(module, module.label) for module in modules_of(plan)}
    blobs["the query"] = ship(plan, "the query")
    known = (id(spark), hashlib.blake2b(b"".join(blobs.values())).digest())
    if known in _loaded:
        return
    found = spark.range(0, 1, 1, 1).mapInArrow(_probe(blobs), "name string, problem string").collect()
    for name, problem in found:
        raise UnsupportedOnSpark(f"{name} cannot be loaded by Spark's workers: {problem}", hint=_HINT)
    _loaded.add(known)


def _probe(blobs: Mapping[str, bytes]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    # A function inside a function travels by value, and needs nothing of streamdsl: whether workers have that is what is asked.
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
